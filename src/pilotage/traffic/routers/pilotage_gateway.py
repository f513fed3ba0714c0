"""PilotageGateway: a GatewayRoute, for the gateway that Pilotage runs itself.

The gateway writes into its status what Envoy has acknowledged, and how many requests are in flight to Services at
weight 0. So it is the one route that is proven by its own status. It counts after Envoy has the weight 0, and from then
on a count only falls: one that is read late is too high, and never too low.
"""

from collections.abc import Collection, Iterable
from urllib.parse import urlsplit

from pilotage.api.cel_rules import GATEWAY_HOST, GATEWAY_HOST_MESSAGE
from pilotage.api.names import CONFLICTED, GATEWAY_ROUTES
from pilotage.kube import Json
from pilotage.runtime.conditions import find_condition
from pilotage.teardown.snapshot.fields import dig, entries, number
from pilotage.traffic.contract import Backend, Branch, Copies, Header, Mix, Programming, RouteStatus, Stickiness
from pilotage.traffic.routers.base import Capability, Router, RouteRequest, UrlRequest, checked, with_api_path


class PilotageGatewayRouter(Router):
    """Router of GatewayRoutes."""

    kind = "PilotageGateway"
    resource = GATEWAY_ROUTES
    can = frozenset(Capability)
    proves = True
    measures = True
    reaches_hosts = True
    fields = ("host",)
    rules = ((f"!has(self.host) || {GATEWAY_HOST}", GATEWAY_HOST_MESSAGE),)

    def manifest(self, request: RouteRequest) -> Json:
        """The GatewayRoute. The name of the endpoint is always one of the models."""
        spec: Json = {
            "endpoint": request.name,
            "models": list(dict.fromkeys((request.name, *request.models))),
            "path": request.route.path,
            **written_mix(checked(request.mix)),
        }
        if request.route.host:
            spec["host"] = request.route.host
        if revisions := _revisions(request.name, request.mix):
            spec["revisions"] = revisions
        if request.measure:
            spec |= {"measure": True, "warmupSeconds": request.warmup_seconds}
        return self.written(request, spec)

    def mix(self, obj: Json) -> Mix:
        """The destinations that its spec names, whoever wrote it. A path of one revision counts as a weight of 0."""
        keys = tuple(
            (kind, each[kind])
            for each in entries(obj, "spec", "assign", "keys")
            for kind in ("header", "body")
            if isinstance(each.get(kind), str)
        )
        salt = dig(obj, "spec", "assign", "salt")
        found = Mix(
            tuple(_read_backends(entries(obj, "spec", "backends"))),
            tuple(
                Branch(_read_headers(each), tuple(_read_backends(entries(each, "backends"))))
                for each in entries(obj, "spec", "branches")
            ),
            tuple(
                Copies(*_place(each), number(each, "percent", default=100), number(each, "maxConcurrent") or None)
                for each in entries(obj, "spec", "copies")
                if isinstance(each.get("service"), str)
            ),
            Stickiness(keys, salt if isinstance(salt, str) else "") if keys else None,
        )
        direct = [each._replace(weight=0) for each in _read_backends(entries(obj, "spec", "revisions"))]
        others = [each for each in direct if each.service not in found.services]
        return found._replace(backends=(*found.backends, *others))

    def status(self, obj: Json, counted: Collection[str] = ()) -> RouteStatus:
        """Status as the gateway has written it."""
        said = dig(obj, "status", "state")
        observed = dig(obj, "status", "observedGeneration")
        message = dig(obj, "status", "message")
        if observed is None or said is None:
            return RouteStatus(Programming.PENDING, text="`pilotage gateway` has not accepted the route yet")
        if observed != dig(obj, "metadata", "generation"):
            return RouteStatus(Programming.PENDING, text="`pilotage gateway` has not accepted the last change yet")
        if said == "Rejected":
            return RouteStatus(Programming.REJECTED, text=str(message or "Envoy does not say why"))
        if said != "Programmed":
            return RouteStatus(Programming.PENDING, text=str(message or "Envoy has not acknowledged it yet"))
        version = dig(obj, "status", "version")
        text = f"acknowledged by Envoy{f' as version {version}' if version else ''}"
        in_flight = self._in_flight(obj, counted)
        return RouteStatus(Programming.PROGRAMMED, in_flight, text, _conflict(obj), _effective(obj))

    def url(self, request: UrlRequest) -> str | None:
        """URL of the host; without a host of its own, or with a conflict, of a path that no other endpoint can have."""
        if not request.gateway_url:
            return None
        gateway, host = urlsplit(request.gateway_url), request.route.host
        if not host or host.startswith("*") or request.conflict:
            return with_api_path(request.gateway_url.rstrip("/"), f"/endpoints/{request.namespace}/{request.name}")
        port = f":{gateway.port}" if gateway.port else ""
        return with_api_path(f"{gateway.scheme}://{host}{port}", request.route.path)

    def _in_flight(self, obj: Json, counted: Collection[str]) -> dict[str, int]:
        """Requests in flight to these, copies included, without those that the route names and that were not counted.

        A service that has left the route and has no count has no requests in flight.
        """
        counts = {each.get("service"): number(each, "inFlight") for each in entries(obj, "status", "counts")}
        named = self.mix(obj).services
        return {each: counts.get(each, 0) for each in counted if each in counts or each not in named}


def written_mix(mix: Mix) -> Json:
    """The destinations of requests as a GatewayRoute names them."""
    spec: Json = {"backends": _written_backends(mix.backends)}
    if mix.branches:
        spec["branches"] = [
            {
                "headers": [{"name": header.name, "exact": header.value} for header in each.headers],
                "backends": _written_backends(each.backends),
            }
            for each in mix.branches
        ]
    if mix.copies:
        spec["copies"] = [
            {"service": each.service, "port": each.port, "percent": each.percent}
            | ({} if each.concurrent_max is None else {"maxConcurrent": each.concurrent_max})
            for each in mix.copies
        ]
    if mix.sticky is not None:
        spec["assign"] = {"keys": [{kind: name} for kind, name in mix.sticky.keys], "salt": mix.sticky.salt}
    return spec


def _written_backends(backends: Iterable[Backend]) -> list[Json]:
    return [{"service": each.service, "port": each.port, "weight": each.weight} for each in backends]


def _read_backends(listed: Iterable[Json]) -> list[Backend]:
    named = [each for each in listed if isinstance(each.get("service"), str)]
    return [Backend(*_place(each), number(each, "weight", default=100)) for each in named]


def _place(entry: Json) -> tuple[str, int]:
    return str(entry["service"]), number(entry, "port", default=80)


def _read_headers(branch: Json) -> tuple[Header, ...]:
    return tuple(
        Header(each["name"], each["exact"])
        for each in entries(branch, "headers")
        if isinstance(each.get("name"), str) and isinstance(each.get("exact"), str)
    )


def _revisions(endpoint: str, mix: Mix) -> list[Json]:
    """Paths of single revisions: those of the endpoint whose Service is called NAME-NUMBER."""
    backends = (*mix.backends, *(each for branch in mix.branches for each in branch.backends))
    found: dict[int, Json] = {}
    for service, port in [each.key for each in backends] + [each.key for each in mix.copies]:
        _, _, revision = service.rpartition(f"{endpoint}-")
        if service == f"{endpoint}-{revision}" and revision.isdecimal() and not revision.startswith("0"):
            found[int(revision)] = {"number": int(revision), "service": service, "port": port}
    return [found[each] for each in sorted(found)]


def _effective(obj: Json) -> dict[str, float] | None:
    found = {
        each["service"]: float(each["percent"])
        for each in entries(obj, "status", "effective")
        if isinstance(each.get("service"), str) and isinstance(each.get("percent"), int | float)
    }
    return found or None


def _conflict(obj: Json) -> str:
    condition = find_condition(entries(obj, "status", "conditions"), CONFLICTED)
    return str(condition.get("message", "")) if condition is not None and condition.get("status") == "True" else ""


ROUTER = PilotageGatewayRouter()
