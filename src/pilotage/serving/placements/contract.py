"""The contract of a placement: one file in this package with a `PLACEMENT`, which the registry finds by itself."""

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol, TypeAlias

from pilotage.kube import Object, Resource
from pilotage.serving.parts import Capabilities, DesiredObject, EndpointRef, Readiness, ResolvedModel

Find: TypeAlias = Callable[[Resource, str], Object | None]
"""The object of a kind and name in the endpoint's namespace, as it was last seen."""


class ServiceBackend(NamedTuple):
    """The Service of a revision, and its port."""

    service: str
    port: int


class PlacementStrategy(Protocol):
    """A way to run an endpoint."""

    kind: str
    observed: tuple[Resource, ...]
    """The kinds that `readiness` looks at."""

    def desired(
        self, endpoint: EndpointRef, revision: int, model: ResolvedModel, capabilities: Capabilities
    ) -> list[DesiredObject]:
        """All objects of a revision, and those of all revisions, in the order in which they are made."""

    def readiness(self, endpoint: EndpointRef, revision: int, find: Find) -> Readiness:
        """Readiness of a revision, from its observed parts."""

    def backend(self, endpoint: EndpointRef, revision: int) -> ServiceBackend:
        """The Service of a revision, and its port."""

    def problems(self, endpoint: EndpointRef, model: ResolvedModel, capabilities: Capabilities) -> Iterator[str]:
        """Reasons why an endpoint cannot be placed here, each a sentence or two for people."""
