"""`pilotage`, but a route that no proxy can be asked about is given a moment: the seconds are for virtual time."""

from pilotage.cli import main
from pilotage.traffic.shift import ShiftTimeouts

ShiftTimeouts.__new__.__defaults__ = ShiftTimeouts()._replace(settle_seconds=0.2)
main()
