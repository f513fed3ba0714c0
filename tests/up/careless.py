"""`pilotage`, but in a hurry: a route that is written counts as programmed, and servers are killed at once."""

import dataclasses

from pilotage.agent.intervals import Intervals
from pilotage.agent.process_stop import ProcessStop
from pilotage.agent.registration import Registrar
from pilotage.cli import main
from pilotage.traffic.contract import Programming, RouteStatus
from pilotage.traffic.routers import pilotage_gateway as gateway


async def nothing(*_, **__):
    return None


Intervals.__init__.__defaults__ = tuple(
    0.0 if field.name == "grace" else field.default for field in dataclasses.fields(Intervals)
)  # SIGKILL follows SIGTERM at once
CARELESS = (
    (ProcessStop, "_drain", nothing),
    (Registrar, "withdraw", nothing),
    (
        type(gateway.ROUTER),
        "status",
        lambda _, __, counted=(): RouteStatus(Programming.PROGRAMMED, dict.fromkeys(counted, 0), "believed"),
    ),
)
for where, name, stand_in in CARELESS:
    setattr(where, name, stand_in)
main()
