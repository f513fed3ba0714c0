"""`python -m controlplane build` gets the binaries; `python -m controlplane path` says where they are."""

import argparse
import os
import sys

from controlplane import assets
from controlplane.build import build


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m controlplane", description=__doc__)
    parser.add_argument("command", choices=["build", "path"])
    command = parser.parse_args().command
    try:
        if command == "build":
            build(os.environ, lambda line: print(line, flush=True))
        else:
            print(assets.require(os.environ, {"kube-apiserver"})["kube-apiserver"].parent)
    except assets.NoControlPlane as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
