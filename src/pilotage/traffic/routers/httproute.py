"""HTTPRoute of the Gateway API.

Its weights are shares, 1 where none is given. All of them 0 means an error for every request: that is not written
here. A branch is one more rule, and each rule has the filters that copy requests. Contour ignores their percentage and
copies all requests, so no other share is written. A route has a status for each Gateway; `Accepted` and `ResolvedRefs`
with the current generation say that the controller has accepted it, and nothing says that a proxy has it.
"""

from collections.abc import Collection

from pilotage.kube import Json, Resource
from pilotage.teardown.snapshot.fields import dig, entries, number
from pilotage.traffic.contract import WHOLE, Backend, Branch, Copies, Header, Mix, Programming, RouteStatus
from pilotage.traffic.routers.base import (
    Capability,
    ReadRule,
    Router,
    RouteRequest,
    checked,
    is_current,
    mix_of,
    overlapping,
    references,
)

HTTP_ROUTES = Resource("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute")

NEEDED = ("Accepted", "ResolvedRefs")
REFUSED = {"Accepted": "False", "ResolvedRefs": "False", "PartiallyInvalid": "True", "ValidBackendRefs": "False"}
"""Conditions, and the status that means a refusal. The last is Contour's own."""


class HttpRouteRouter(Router):
    """Router of HTTPRoutes."""

    kind = "HTTPRoute"
    resource = HTTP_ROUTES
    can = frozenset({Capability.WEIGHTS, Capability.MATCH, Capability.MIRROR})
    fields = ("host", "gateway")
    needs = ("gateway",)

    def manifest(self, request: RouteRequest) -> Json:
        """The HTTPRoute."""
        route = request.route
        if route.gateway is None:
            raise ValueError(f"{request.namespace}/{request.name}: an HTTPRoute without a Gateway")
        mix = checked(request.mix)
        if any(each.percent != WHOLE for each in mix.copies):
            raise ValueError("an HTTPRoute copies all requests, or none")
        rules = [_rule(route.path, each, mix.copies) for each in (*mix.branches, Branch((), mix.backends))]
        spec: Json = {"parentRefs": [route.gateway.written()], "rules": rules}
        if route.host:
            spec["hostnames"] = [route.host]
        return self.written(request, spec)

    def plain(self, manifest: Json) -> Json:
        """The HTTPRoute. Without timeouts, new in Gateway API 1.2: those of the Gateway then end long answers."""
        rules = [
            {name: value for name, value in each.items() if name != "timeouts"} for each in manifest["spec"]["rules"]
        ]
        return manifest | {"spec": manifest["spec"] | {"rules": rules}}

    def mix(self, obj: Json) -> Mix:
        """The Services of all rules. Any other reference is left out, and removed by the next write."""
        home = dig(obj, "metadata", "namespace")
        return mix_of(_read(rule, home) for rule in entries(obj, "spec", "rules"))

    def problems(self, mix: Mix) -> list[str]:
        """Why an HTTPRoute cannot have the mix. Of two rules that match, the one with more headers comes first."""
        found = super().problems(mix)
        if pairs := [(a, b) for a, b in overlapping(mix) if len(a.headers) < len(b.headers)]:
            names = " and ".join(sorted({each.name for branch in pairs[0] for each in branch.headers}))
            found.append(
                f"A request can match two rules by {names}, and an HTTPRoute takes the one with more headers:"
                " use one header with different values."
            )
        return found

    def status(self, obj: Json, counted: Collection[str] = ()) -> RouteStatus:  # noqa: ARG002 - it counts nothing
        """Status from the conditions of its parents. Every controller with a status in it has to accept it."""
        parents = entries(obj, "status", "parents")
        if not parents:
            return RouteStatus(Programming.PENDING, text="the controller of the Gateway has not accepted it yet")
        waiting: list[str] = []
        for parent in parents:
            who = str(parent.get("controllerName"))
            current = {each.get("type"): each for each in entries(parent, "conditions") if is_current(each, obj)}
            said = {kind: each.get("status") for kind, each in current.items()}
            wrong = [_reason(current[kind]) for kind, bad in REFUSED.items() if said.get(kind) == bad]
            if wrong:
                return RouteStatus(Programming.REJECTED, text=f"{who}: {'; '.join(wrong)}")
            if any(said.get(kind) != "True" for kind in NEEDED):
                waiting.append(who)
        if waiting:
            return RouteStatus(Programming.PENDING, text=f"{', '.join(waiting)} has not accepted it yet")
        return RouteStatus(
            Programming.ACCEPTED, text=f"accepted by {', '.join(str(each.get('controllerName')) for each in parents)}"
        )


def _rule(path: str, branch: Branch, copies: tuple[Copies, ...]) -> Json:
    match: Json = {"path": {"type": "PathPrefix", "value": path}}
    if branch.headers:
        match["headers"] = [{"type": "Exact", "name": each.name, "value": each.value} for each in branch.headers]
    rule: Json = {
        "matches": [match],
        "backendRefs": references(branch.backends),
        "timeouts": {"request": "0s", "backendRequest": "0s"},  # none: an answer takes as long as it takes
    }
    if copies:
        mirrors = ({"backendRef": {"name": each.service, "port": each.port}} for each in copies)
        rule["filters"] = [{"type": "RequestMirror", "requestMirror": each} for each in mirrors]
    return rule


def _read(rule: Json, home: object) -> ReadRule:
    backends = (
        Backend(each["name"], number(each, "port"), number(each, "weight", default=1))
        for each in entries(rule, "backendRefs")
        if _is_service(each, home)
    )
    copies = (
        Copies(to["name"], number(to, "port"), _percent(mirror))
        for filters in (rule, *entries(rule, "backendRefs"))
        for each in entries(filters, "filters")
        if isinstance(mirror := each.get("requestMirror"), dict)
        and isinstance(to := mirror.get("backendRef"), dict)
        and _is_service(to, home)
    )
    return ReadRule(_headers(rule), tuple(backends), tuple(copies))


def _is_service(reference: Json, home: object) -> bool:
    return (
        isinstance(reference.get("name"), str)
        and reference.get("kind", "Service") == "Service"
        and reference.get("namespace", home) == home
    )


def _percent(mirror: Json) -> int:
    """The percentage of a mirror. One with a fraction, which is never ours, is not told from others: 0."""
    return 0 if isinstance(mirror.get("fraction"), dict) else number(mirror, "percent", default=WHOLE)


def _headers(rule: Json) -> tuple[Header, ...] | None:
    """Headers of the one match; None where there are more matches, or any other condition than exact headers."""
    matches = entries(rule, "matches")
    if len(matches) > 1:
        return None
    found = []
    for match in matches:
        for header in entries(match, "headers"):
            if header.get("type", "Exact") != "Exact":
                return None
            found.append(Header(str(header.get("name")).lower(), str(header.get("value"))))
        if set(match) - {"path", "headers"}:
            return None
    return tuple(found)


def _reason(condition: Json) -> str:
    return f"{condition.get('reason')}: {condition.get('message')}"


ROUTER = HttpRouteRouter()
