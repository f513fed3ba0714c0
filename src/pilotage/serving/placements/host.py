"""On machines beside the cluster: an agent there runs the server, and makes a Service with the addresses.

Nothing is made here. The agent labels the Service and its EndpointSlice as parts of the revision, and calls both
NAME-N.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.kinds.names import LABEL_ENDPOINT_UID
from pilotage.serving.parts import Readiness, revision_name
from pilotage.serving.placements.contract import Backend
from pilotage.serving.resources import SERVICES, SLICES
from pilotage.serving.revision import replicas_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pilotage.kube import Resource
    from pilotage.serving.parts import Capabilities, ResolvedModel, Subject, Wanted
    from pilotage.serving.placements.contract import Find

SERVICE_PORT = 80


class _Host:
    kind = "Host"
    observed: tuple[Resource, ...] = (SERVICES, SLICES)

    def wanted(
        self,
        subject: Subject,  # noqa: ARG002
        revision: int,  # noqa: ARG002
        model: ResolvedModel,  # noqa: ARG002
        capabilities: Capabilities,  # noqa: ARG002
    ) -> list[Wanted]:
        """See `Placement`: nothing."""
        return []

    def readiness(self, subject: Subject, revision: int, find: Find) -> Readiness:
        """See `Placement`."""
        name = revision_name(subject.name, revision)
        desired = replicas_of(subject.spec)
        found = [find(SERVICES, name), find(SLICES, name)]
        service, slice_ = (
            each if each and each.meta.labels.get(LABEL_ENDPOINT_UID) == subject.uid else None for each in found
        )
        if service is None or slice_ is None:
            where = f"host {subject.spec.placement.host}" if subject.spec.placement.host else "a host that fits"
            return Readiness(0, desired, False, "NoHostAgent", f"No agent on {where} has taken it.")
        endpoints = slice_.get("endpoints", default=None) or []
        # In a slice, ready that is not said means ready.
        ready = sum((each.get("conditions") or {}).get("ready") is not False for each in endpoints)
        if ready < desired:
            return Readiness(ready, desired, False, "Starting", f"{ready} of {desired} processes are ready.")
        return Readiness(ready, desired, True, "ProcessesReady", f"{ready} of {desired} processes are ready.")

    def backend(self, subject: Subject, revision: int) -> Backend:
        """See `Placement`."""
        return Backend(revision_name(subject.name, revision), SERVICE_PORT)

    def problems(self, subject: Subject, model: ResolvedModel, capabilities: Capabilities) -> Iterator[str]:  # noqa: ARG002
        """See `Placement`."""
        if subject.spec.autoscaling is not None:
            yield "Placement Host has a fixed number of replicas; take autoscaling out."
        if subject.spec.cache is not None:
            yield "Placement Host has no volume claims; take cache out."


PLACEMENT = _Host()
