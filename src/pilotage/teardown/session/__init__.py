"""Plan, execute and resume teardowns: what a front end calls, whether it is a command line or a server.

A front end makes a `Session` of its client, and a `TeardownRequest` of what a person asked for. `plan` returns a
`Prepared` teardown and changes nothing; `resume` returns one from the receipt of a teardown that was cut off; an
`Execution` carries it out, tells an observer of its progress, and returns a `TeardownResult`. Endpoints go through the
operator where one runs: `plan_endpoints` decides that. Nothing here prints, asks, or knows an exit code; a request that
cannot be understood raises TargetError, and an API that refuses raises ApiError.
"""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pilotage.kube import Client, Discovery


class Session(NamedTuple):
    """A cluster, and the kinds that it serves."""

    client: "Client"
    discovery: "Discovery"
    server: str
    """Its address."""
