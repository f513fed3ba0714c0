"""The agents of Hosts, which keep the finalizer of their processes: one Lease for each, called like its Host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.teardown.diagnosis.finalizer_owners.liveness import Judgement, judge_lease
from pilotage.teardown.diagnosis.finalizer_owners.model import Keeper, Liveness
from pilotage.teardown.snapshot.fields import text

if TYPE_CHECKING:
    from pilotage.teardown.diagnosis.finalizer_owners.rows import Row
    from pilotage.teardown.snapshot.world import Item, World

AGENT = "pilotage.dev/agent"
HOST = "pilotage.dev/host"
"""The label of a process with the Host that it runs on."""
LEASES = "pilotage-hosts"


def agent(world: World, process: Item, row: Row, written: tuple[str, ...]) -> Keeper:
    """The agent of the Host that a process was placed on, and whether it renews its Lease."""
    host = process.meta.labels.get(HOST, "")
    lease = world.find("coordination.k8s.io", "Lease", LEASES, host) if host else None
    if not host:
        who, judged = "Pilotage operator", Judgement(Liveness.UNKNOWN, evidence=("It was not placed on any Host.",))
    else:
        who, judged = f"the agent of host/{host}", _judge(world, host, lease)
    return Keeper(
        AGENT,
        who,
        None,
        lease,
        judged.alive,
        judged.evidence + written,
        row.leaks,
        builtin=False,
        does=row.does,
        trouble=judged.trouble,
    )


def _judge(world: World, host: str, lease: Item | None) -> Judgement:
    if lease is None:
        return Judgement(Liveness.UNKNOWN, evidence=(f"No Lease {host} was seen in the namespace {LEASES}.",))
    body = world.body(lease)
    if body is not None and not text(body, "spec", "holderIdentity"):
        return Judgement(Liveness.DEAD, "it has stopped", (f"It has given up {lease}.",))
    return judge_lease(world, lease)
