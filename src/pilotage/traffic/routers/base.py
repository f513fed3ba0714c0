"""The contract of a router: one file in this package with a `ROUTER`, which the registry finds by itself.

The file holds everything that is known about one kind of route: the object that is written, what its status means,
which fields of `spec.route` it takes, and where clients find it. The CRD (choices and validation), the operator's RBAC
and caches and the choices of the command line come from it. What a teardown knows about the kind is its row in the
catalogue.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar, NamedTuple

from pilotage.api.endpoint import Route
from pilotage.kube import Json, Resource
from pilotage.teardown.snapshot.fields import dig
from pilotage.traffic.contract import Backend, RouteStatus


class RouteRequest(NamedTuple):
    """A route to write."""

    namespace: str
    name: str
    labels: Mapping[str, str]
    route: Route
    """Route of the endpoint's spec."""
    backends: Sequence[Backend]
    models: Sequence[str] = ()
    """Names of the model in requests, for a router that looks at them."""


class UrlRequest(NamedTuple):
    """A route whose URL is wanted."""

    namespace: str
    name: str
    route: Route
    service: str
    """The Service of the revision that serves."""
    port: int
    gateway_url: str = ""
    """URL of Pilotage's own gateway; empty: unknown."""
    conflict: bool = False
    """Whether the host or a model of the route leads to another endpoint."""


class Router(ABC):
    """One kind of route. Pure: objects are plain dicts, as the API has them."""

    kind: ClassVar[str]
    """Kind in `spec.route.kind` of an endpoint."""
    resource: ClassVar[Resource | None]
    """Kind of the object that it writes; None: none, and `manifest` must not be called."""
    weighted: ClassVar[bool]
    """Whether a route can have several backends with weights. Without, a switch is direct."""
    proves: ClassVar[bool] = False
    """Whether the status of the route is the proof, so that no proxy is read."""
    built_in: ClassVar[bool] = False
    """Whether every cluster serves the kind. Objects of other kinds are cached once it is served."""
    reaches_hosts: ClassVar[bool] = False
    """Whether it can route to processes on Hosts, too. All others route to pods alone."""
    fields: ClassVar[tuple[str, ...]] = ()
    """The optional fields of `spec.route` that it takes, of host, className, gateway and tls."""
    needs: ClassVar[tuple[str, ...]] = ()
    """Those that must be set."""
    rules: ClassVar[tuple[tuple[str, str], ...]] = ()
    """More rules for `spec.route` of its kind: CEL about `self`, and the message for the user."""

    @abstractmethod
    def manifest(self, request: RouteRequest) -> Json:
        """The whole object. ValueError for weights that are all 0, or that it cannot write."""

    def plain(self, manifest: Json) -> Json:
        """The same without fields that older versions of the kind do not have.

        An API server refuses to apply these with "field not declared in schema", and status code 500.
        """
        return manifest

    @abstractmethod
    def backends(self, obj: Json) -> list[Backend]:
        """The backends of an object, ours or changed by somebody else. Empty where it names none."""

    @abstractmethod
    def status(self, obj: Json, counted: Collection[str] = ()) -> RouteStatus:
        """Status of the current generation of an object, from its own status.

        PROGRAMMED only if the router `proves`, with the requests in flight to the `counted` services.
        """

    def url(self, request: UrlRequest) -> str | None:
        """Base URL of the OpenAI API for clients; None: unknown."""
        route = request.route
        return with_api_path(f"{'https' if route.tls else 'http'}://{route.host}", route.path) if route.host else None

    def written(self, request: RouteRequest, spec: Json) -> Json:
        """The object with a spec, for `manifest`."""
        assert self.resource is not None
        return {
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "metadata": {"namespace": request.namespace, "name": request.name, "labels": dict(request.labels)},
            "spec": spec,
        }


def with_api_path(base: str, path: str) -> str:
    """The URL of the OpenAI API below a path."""
    return f"{base}{path.rstrip('/')}/v1"


def checked(backends: Sequence[Backend]) -> Sequence[Backend]:
    """The same; ValueError where they would not mean what they say."""
    if not any(each.weight > 0 for each in backends):
        raise ValueError(f"no backend has a weight: {', '.join(map(str, backends)) or 'there is none'}")
    if any(each.weight < 0 for each in backends):
        raise ValueError(f"a weight is negative: {', '.join(map(str, backends))}")
    return backends


def references(backends: Sequence[Backend]) -> list[Json]:
    """Backends as HTTPProxy and HTTPRoute write them. ValueError as of `checked`."""
    return [{"name": each.service, "port": each.port, "weight": each.weight} for each in checked(backends)]


def is_current(condition: Json, obj: Json) -> bool:
    """Whether a condition is about the current generation of an object."""
    observed: object = condition.get("observedGeneration")
    return observed is not None and observed == dig(obj, "metadata", "generation")
