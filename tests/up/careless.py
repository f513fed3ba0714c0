"""`pilotage`, but in a hurry: a route counts as programmed when it is written, and servers go without being drained."""

from pilotage.agent.registration import Registrar
from pilotage.agent.takedown import Takedown
from pilotage.cli import main
from pilotage.traffic.contract import Passage, Proof
from pilotage.traffic.routers import gateway


async def nothing(*_, **__):
    return None


CARELESS = (
    (Takedown, "_drain", nothing),
    (Registrar, "withdraw", nothing),
    (type(gateway.ROUTER), "status", lambda *_: Passage(Proof.PROGRAMMED, 0, "believed")),
)
for where, name, stand_in in CARELESS:
    setattr(where, name, stand_in)
main()
