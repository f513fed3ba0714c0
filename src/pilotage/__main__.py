"""``python -m pilotage`` is the command ``pilotage``."""

from pilotage.cli import main

main()
