"""`python -m field [TOOL…]` builds the tools that are not there yet, and says where each is."""

import sys

from field.modules import FieldError
from field.table import TOOLS
from field.tools import tool


def main() -> int:
    """Run the command line."""
    try:
        for name in sys.argv[1:] or TOOLS:
            sys.stdout.write(f"{tool(name, _say)}\n")
    except FieldError as error:
        _say(str(error))
        return 1
    return 0


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
