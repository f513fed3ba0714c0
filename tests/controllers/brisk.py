"""`pilotage`, but a route that no proxy can be asked about is given a moment: the seconds are for virtual time."""

from pilotage.cli import main
from pilotage.traffic.shift import Pace

Pace.__new__.__defaults__ = Pace()._replace(settle_seconds=0.2)
main()
