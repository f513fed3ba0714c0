"""The command line: thin entry points that parse, call a layer below, and print.

Only click is imported here. What a command needs, it imports when it runs, so that ``pilotage --help`` stays quick.
"""

from __future__ import annotations

import sys

import click

from pilotage import __version__
from pilotage.cli.harbor import harbor
from pilotage.cli.version import version


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="pilotage")
def pilotage() -> None:
    """Model serving on Kubernetes whose departures are as safe as its arrivals."""


pilotage.add_command(harbor)
pilotage.add_command(version)


def main() -> None:
    """The console script."""
    sys.exit(pilotage(standalone_mode=True))
