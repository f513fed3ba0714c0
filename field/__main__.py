"""`python -m field [--last] [TOOL…]` builds the tools that are not there yet, and says where each is.

`--last`: after the control plane, which more is waiting for.
"""

import os
import sys

from controlplane.assets import NoControlPlane
from controlplane.build import build
from field.modules import FieldError
from field.table import TOOLS
from field.tools import tool


def main() -> int:
    """Run the command line."""
    arguments = sys.argv[1:]
    try:
        if "--last" in arguments:
            arguments.remove("--last")
            build(os.environ, _say)
        for name in arguments or TOOLS:
            sys.stdout.write(f"{tool(name, _say)}\n")
    except (FieldError, NoControlPlane) as error:
        _say(str(error))
        return 1
    return 0


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
