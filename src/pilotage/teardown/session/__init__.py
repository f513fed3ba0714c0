"""Plan, execute and resume teardowns: what a front end calls, whether it is a command line or a server.

A front end makes a `Session` of its client, and a `TeardownRequest` of what a person asked for. `plan` returns a
`Prepared` teardown and changes nothing; `resume` returns one from the receipt of a teardown that was cut off; an
`Execution` carries it out, tells an observer of its progress, and returns a `TeardownResult`. Endpoints go through the
operator where one runs: `plan_endpoints` decides that. Nothing here prints, asks, or knows an exit code; a request that
cannot be understood raises TargetError, and an API that refuses raises ApiError.
"""

from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from pilotage.teardown.session.request import RequestError, TeardownRequest

if TYPE_CHECKING:
    from pilotage.kube import Client, Discovery
    from pilotage.teardown.session.endpoints import plan_endpoints
    from pilotage.teardown.session.execution import Execution, TeardownObserver, TeardownResult
    from pilotage.teardown.session.operator_teardown import OperatorTeardown
    from pilotage.teardown.session.preparation import Prepared, plan
    from pilotage.teardown.session.resumption import Resumed, resume

# A program that only plans should not load what executes: imported when first used.
_LATER = {
    "Execution": "pilotage.teardown.session.execution",
    "OperatorTeardown": "pilotage.teardown.session.operator_teardown",
    "Prepared": "pilotage.teardown.session.preparation",
    "Resumed": "pilotage.teardown.session.resumption",
    "TeardownObserver": "pilotage.teardown.session.execution",
    "TeardownResult": "pilotage.teardown.session.execution",
    "plan": "pilotage.teardown.session.preparation",
    "plan_endpoints": "pilotage.teardown.session.endpoints",
    "resume": "pilotage.teardown.session.resumption",
}


class Session(NamedTuple):
    """A cluster, and the kinds that it serves."""

    client: "Client"
    discovery: "Discovery"
    server: str
    """Its address."""


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)


__all__ = [
    "Execution",
    "OperatorTeardown",
    "Prepared",
    "RequestError",
    "Resumed",
    "Session",
    "TeardownObserver",
    "TeardownRequest",
    "TeardownResult",
    "plan",
    "plan_endpoints",
    "resume",
]
