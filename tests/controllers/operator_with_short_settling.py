"""`pilotage`, with short pauses where nothing but time passes: their seconds are for virtual time."""

import datetime as dt

from pilotage.cli import main
from pilotage.controllers.endpoint import decide
from pilotage.traffic.shift import ShiftTimeouts

ShiftTimeouts.__new__.__defaults__ = ShiftTimeouts()._replace(settle_seconds=0.2)
decide.PODS_AFTER = dt.timedelta(seconds=1)
decide.PODS_SECONDS = 1.0
main()
