"""HTTPProxy, Contour's own kind.

Its weights are shares. All of them 0 means the same share for each, and a single service gets everything whatever its
weight: neither is written here. The weight of a mirror is a percentage, and 0 means all: that is not written either.
A branch is one more route, and each route has the mirror. Contour puts the route with more headers first, and sorts
those with as many by name. `Valid` with the current generation says that Contour has accepted it, not that an Envoy
has it.
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

HTTP_PROXIES = Resource("projectcontour.io", "v1", "httpproxies", "HTTPProxy")

IDLE = "1h"
"""A model may pause for minutes within an answer. A stream that is silent for an hour has lost its client, and would
hold up every drain."""


class HttpProxyRouter(Router):
    """Router of HTTPProxies."""

    kind = "HTTPProxy"
    resource = HTTP_PROXIES
    can = frozenset({Capability.WEIGHTS, Capability.MATCH, Capability.MIRROR, Capability.MIRROR_PERCENT})
    fields = ("host", "className", "tls")
    needs = ("host",)

    def manifest(self, request: RouteRequest) -> Json:
        """The HTTPProxy."""
        route = request.route
        virtual_host: Json = {"fqdn": route.host}
        if route.tls:
            virtual_host["tls"] = {"secretName": route.tls.name}
        mix = checked(request.mix)
        rules = [_rule(route.path, each, mix.copies) for each in (*mix.branches, Branch((), mix.backends))]
        spec: Json = {"virtualhost": virtual_host, "routes": rules}
        if route.class_name:
            spec["ingressClassName"] = route.class_name
        return self.written(request, spec)

    def mix(self, obj: Json) -> Mix:
        """The services of all routes."""
        return mix_of(map(_read, entries(obj, "spec", "routes")))

    def problems(self, mix: Mix) -> list[str]:
        """Why an HTTPProxy cannot have the mix. It has one mirror, and an order of routes of its own."""
        found = super().problems(mix)
        if len(mix.copies) > 1:
            found.append("An HTTPProxy copies requests to one Service only.")
        if pairs := [(a, b) for a, b in overlapping(mix) if len(a.headers) <= len(b.headers)]:
            names = " and ".join(sorted({each.name for branch in pairs[0] for each in branch.headers}))
            found.append(
                f"A request can match two rules by {names}, and an HTTPProxy has no order of rules:"
                " use one header with different values."
            )
        return found

    def status(self, obj: Json, counted: Collection[str] = ()) -> RouteStatus:  # noqa: ARG002 - it counts nothing
        """Status from the condition `Valid`."""
        valid = [each for each in entries(obj, "status", "conditions") if each.get("type") == "Valid"]
        current = [each for each in valid if is_current(each, obj)]
        if not current:
            return RouteStatus(Programming.PENDING, text="Contour has not accepted it yet")
        if current[0].get("status") == "True":
            return RouteStatus(Programming.ACCEPTED, text=str(current[0].get("message") or "Valid HTTPProxy"))
        return RouteStatus(Programming.REJECTED, text=_reason(obj, current[0]))


def _rule(path: str, branch: Branch, copies: tuple[Copies, ...]) -> Json:
    headers = [{"header": {"name": each.name, "exact": each.value}} for each in branch.headers]
    mirrors = [{"name": each.service, "port": each.port, "weight": each.percent, "mirror": True} for each in copies]
    return {
        "conditions": [{"prefix": path}, *headers],
        "services": [*references(branch.backends), *mirrors],
        "timeoutPolicy": {"response": "infinity", "idle": IDLE},
    }


def _read(rule: Json) -> ReadRule:
    services = [each for each in entries(rule, "services") if isinstance(each.get("name"), str)]
    backends = (
        Backend(each["name"], number(each, "port"), number(each, "weight")) for each in services if not _mirrors(each)
    )
    copies = (Copies(each["name"], number(each, "port"), _percent(each)) for each in services if _mirrors(each))
    return ReadRule(_headers(rule), tuple(backends), tuple(copies))


def _mirrors(service: Json) -> bool:
    return service.get("mirror") is True


def _percent(service: Json) -> int:
    """The percentage of a mirror; 0 means all."""
    return number(service, "weight") or WHOLE


def _headers(rule: Json) -> tuple[Header, ...] | None:
    """Headers of the conditions; None where there is any other than an exact one."""
    found = []
    for condition in entries(rule, "conditions"):
        header = condition.get("header")
        if isinstance(header, dict) and set(header) == {"name", "exact"}:
            found.append(Header(str(header["name"]).lower(), str(header["exact"])))
        elif set(condition) - {"prefix"}:
            return None
    return tuple(found)


def _reason(obj: Json, condition: Json) -> str:
    """The message of Contour, with each error once."""
    errors = [str(each.get("message") or each.get("reason")) for each in entries(condition, "errors")]
    words = [str(dig(obj, "status", "description") or condition.get("message") or condition.get("reason"))]
    return "; ".join([*words, *(each for each in errors if each not in words[0])])


ROUTER = HttpProxyRouter()
