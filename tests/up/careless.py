"""`pilotage`, but in a hurry: a route that is written counts as programmed, and servers are killed at once."""

import dataclasses

from pilotage.agent.pace import Pace
from pilotage.agent.registration import Registrar
from pilotage.agent.takedown import Takedown
from pilotage.cli import main
from pilotage.traffic.contract import Programming, RouteStatus
from pilotage.traffic.routers import pilotage_gateway as gateway


async def nothing(*_, **__):
    return None


Pace.__init__.__defaults__ = tuple(
    0.0 if field.name == "grace" else field.default for field in dataclasses.fields(Pace)
)  # SIGKILL follows SIGTERM at once
CARELESS = (
    (Takedown, "_drain", nothing),
    (Registrar, "withdraw", nothing),
    (type(gateway.ROUTER), "status", lambda *_: RouteStatus(Programming.PROGRAMMED, 0, "believed")),
)
for where, name, stand_in in CARELESS:
    setattr(where, name, stand_in)
main()
