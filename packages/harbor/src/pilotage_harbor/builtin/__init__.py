"""The kinds that every Kubernetes has, as harbor serves them: one module for each family.

They are stored, defaulted and validated; none of them does anything. No I/O, no clock but for one timestamp.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pilotage_harbor.kinds import Kind

__all__ = ["builtin_kinds"]


@cache
def builtin_kinds() -> tuple[Kind, ...]:
    """All of them, the same for everybody. Of a kind in several versions, the preferred one comes first."""
    from pilotage_harbor.builtin import (
        admission,
        admission_policies,
        apiservices,
        apps,
        autoscaling,
        batch,
        certificates,
        coordination,
        core,
        crds,
        csi,
        devices,
        discovery,
        events,
        networking,
        node,
        nodes,
        pods,
        policy,
        rbac,
        service_ranges,
        services,
        volumes,
    )

    families = (
        core, nodes, pods, services, volumes, discovery, events, apps, batch, autoscaling, networking, policy, rbac,
        coordination, admission, admission_policies, crds, apiservices, certificates, node, csi, service_ranges,
        devices,
    )  # fmt: skip
    return tuple(each for family in families for each in family.kinds())
