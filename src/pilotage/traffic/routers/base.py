"""The contract of a router: one file in this package with a `ROUTER`, which the registry finds by itself.

The file holds everything that is known about one kind of route: the object that is written, what its status means,
which fields of `spec.route` it takes, and where clients find it. The CRD (choices and validation), the operator's RBAC
and caches and the choices of the command line come from it. What a teardown knows about the kind is its row in the
catalogue.
"""

import enum
import itertools
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import ClassVar, NamedTuple

from pilotage.api.endpoint import Route
from pilotage.kube import Json, Resource
from pilotage.teardown.snapshot.fields import dig
from pilotage.traffic.contract import WHOLE, Backend, Branch, Copies, Header, Mix, RouteStatus


class Capability(enum.Enum):
    """Something that a route can do beside sending all requests to one Service, in the words of a refusal."""

    WEIGHTS = "share requests between Services"
    MATCH = "choose requests by a header"
    MIRROR = "copy requests to another Service"
    MIRROR_PERCENT = "copy a part of the requests: copy all of them, or none"
    MIRROR_LIMIT = "limit the number of copies in flight"
    STICKY = "keep requests with the same key on one side"


class RouteRequest(NamedTuple):
    """A route to write."""

    namespace: str
    name: str
    labels: Mapping[str, str]
    route: Route
    """Route of the endpoint's spec."""
    mix: Mix
    models: Sequence[str] = ()
    """Names of the model in requests, for a router that looks at them."""
    measure: bool = False
    """Whether requests are to be measured, by a router that can."""
    warmup_seconds: int = 0
    """Seconds after a change of the shares whose requests are not measured."""


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
    can: ClassVar[frozenset[Capability]] = frozenset()
    """Capabilities of a route. Without WEIGHTS, a switch is direct."""
    may_pair: ClassVar[bool] = False
    """Whether some controllers of the kind share requests by a second object (`traffic.ingress_nginx`)."""
    proves: ClassVar[bool] = False
    """Whether the status of the route is the proof, so that no proxy is read."""
    measures: ClassVar[bool] = False
    """Whether its requests can be measured, for an analysis."""
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
        """The whole object. ValueError for a mix that would not mean what it says (`checked`), or cannot be written."""

    def plain(self, manifest: Json) -> Json:
        """The same without fields that older versions of the kind do not have.

        An API server refuses to apply these with "field not declared in schema", and status code 500.
        """
        return manifest

    @abstractmethod
    def mix(self, obj: Json) -> Mix:
        """The mix of an object, ours or changed by somebody else. Empty where it names no Service.

        All Services that it names are in it. One that gets requests by a rule which no mix has is in the main branch
        at weight 0.
        """

    @abstractmethod
    def status(self, obj: Json, counted: Collection[str] = ()) -> RouteStatus:
        """Status of the current generation of an object, from its own status.

        PROGRAMMED only if the router `proves`, with the requests in flight to the `counted` services.
        """

    def problems(self, mix: Mix) -> list[str]:
        """Why a route of this kind cannot have a mix, in sentences for people; empty if it can."""
        return [
            f"A route of kind {self.kind} cannot {each.value}."
            for each in Capability
            if each in _needed(mix) and each not in self.can
        ]

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


def checked(mix: Mix) -> Mix:
    """The same; ValueError where it would not mean what it says."""
    for backends in (mix.backends, *(each.backends for each in mix.branches)):
        words = ", ".join(map(str, backends))
        if not any(each.weight > 0 for each in backends):
            raise ValueError(f"no backend has a weight: {words or 'there is none'}")
        if any(each.weight < 0 for each in backends):
            raise ValueError(f"a weight is negative: {words}")
    if any(not each.headers for each in mix.branches):
        raise ValueError("a branch has no headers")
    if any(not 0 < each.percent <= WHOLE for each in mix.copies):
        raise ValueError("copies must be 1 to 100 percent: some take 0 for all")
    return mix


class ReadRule(NamedTuple):
    """A rule of a route, as a router has read it."""

    headers: tuple[Header, ...] | None
    """Headers that requests must have; empty: any requests. None: there are conditions that no mix has."""
    backends: tuple[Backend, ...]
    copies: tuple[Copies, ...] = ()


def mix_of(rules: Iterable[ReadRule]) -> Mix:
    """The mix that some rules make up, for `Router.mix`."""
    main: list[Backend] = []
    branches: list[Branch] = []
    copies: dict[Copies, None] = {}
    for rule in rules:
        if rule.headers:
            branches.append(Branch(rule.headers, rule.backends))
        else:
            main += (each if rule.headers is not None else each._replace(weight=0) for each in rule.backends)
        copies |= dict.fromkeys(rule.copies)
    return Mix(tuple(main), tuple(branches), tuple(copies))


def overlapping(mix: Mix) -> list[tuple[Branch, Branch]]:
    """Pairs of branches that one request can match, in their order."""
    return [
        (first, second)
        for first, second in itertools.combinations(mix.branches, 2)
        if not any(
            mine.name == its.name and mine.value != its.value for mine in first.headers for its in second.headers
        )
    ]


def references(backends: Sequence[Backend]) -> list[Json]:
    """Backends as HTTPProxy and HTTPRoute write them."""
    return [{"name": each.service, "port": each.port, "weight": each.weight} for each in backends]


def is_current(condition: Json, obj: Json) -> bool:
    """Whether a condition is about the current generation of an object."""
    observed: object = condition.get("observedGeneration")
    return observed is not None and observed == dig(obj, "metadata", "generation")


def _needed(mix: Mix) -> set[Capability]:
    """The capabilities that a mix takes."""
    needs = {
        Capability.WEIGHTS: len(mix.backends) > 1 or any(len(each.backends) > 1 for each in mix.branches),
        Capability.MATCH: bool(mix.branches),
        Capability.MIRROR: bool(mix.copies),
        Capability.MIRROR_PERCENT: any(each.percent != WHOLE for each in mix.copies),
        Capability.MIRROR_LIMIT: any(each.concurrent_max is not None for each in mix.copies),
        Capability.STICKY: mix.sticky is not None,
    }
    return {each for each, needed in needs.items() if needed}
