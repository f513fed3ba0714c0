"""Small models of the controllers of a cluster, and of a kubelet, each in its own file.

They are ordinary controllers on `pilotage.runtime`: in virtual time beside the simulator's harbor, in real time beside
any API server (`python -m pilotage_sim.models --kubeconfig FILE`). Each is held to kube-controller-manager by a test
that plays the same scenario with both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.runtime.manager import Manager
from pilotage_sim.models import deployment, endpointslice, hpa, job, kubelet, namespaces, replicaset

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pilotage.kube import Client

MODELS: Mapping[str, Callable[[Manager], None]] = {
    "namespaces": namespaces.add,
    "deployment": deployment.add,
    "replicaset": replicaset.add,
    "endpointslice": endpointslice.add,
    "hpa": hpa.add,
    "job": job.add,
    "kubelet": kubelet.add,
}


async def run_all(client: Client, *, seed: int | None = None, leave_out: frozenset[str] = frozenset()) -> None:
    """Run the models until cancelled; `leave_out` names those that somebody else plays."""
    if "kubelet" not in leave_out:
        await kubelet.register(client)
    manager = Manager(client, name="models", seed=seed)
    for name, add in MODELS.items():
        if name not in leave_out:
            add(manager)
    await manager.run()
