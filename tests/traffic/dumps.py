"""Config dumps and statistics of an Envoy of Contour's, as far as we read them, with what surrounds it there."""

import json
from typing import Any

Json = dict[str, Any]


def cluster(name: str, port: int = 8080, *, namespace: str = "chat", called: str = "") -> Json:
    """A cluster that is ready; `called` where Contour has cut its name."""
    named = {
        "name": called or f"{namespace}/{name}/{port}/da39a3ee5e",
        "alt_stat_name": f"{namespace}_{name}_{port}",
        "type": "EDS",
    }
    return {"version_info": "7", "cluster": named, "last_updated": "2026-01-01T00:00:00.000Z"}


def to(
    *weights: tuple[str, int],
    path: Json | None = None,
    namespace: str = "chat",
    headers: dict[str, str] | None = None,
    mirrors: dict[str, int] | None = None,
) -> Json:
    """A rule that sends requests to clusters; with one alone it has no weight.

    `headers` are exact matches, `mirrors` the percentages of requests that services get copies of.
    """
    names = [(f"{namespace}/{service}/8080/da39a3ee5e", weight) for service, weight in weights]
    if len(names) == 1:
        action: Json = {"cluster": names[0][0]}
    else:
        action = {"weighted_clusters": {"clusters": [{"name": name, "weight": weight} for name, weight in names]}}
    match = path or {"prefix": "/"}
    if headers:
        exact = [{"name": name, "string_match": {"exact": value}} for name, value in headers.items()]
        match = match | {"headers": exact}
    if mirrors:
        action["request_mirror_policies"] = [mirror(each, percent) for each, percent in mirrors.items()]
    return {"match": match, "route": action | {"timeout": "0s"}, "metadata": {}}


def mirror(service: str, percent: int, *, namespace: str = "chat") -> Json:
    """A policy that copies requests to a cluster."""
    fraction = {"runtime_fraction": {"default_value": {"numerator": percent}}}
    return {"cluster": f"{namespace}/{service}/8080/da39a3ee5e", **fraction}


REDIRECT = {"match": {"prefix": "/"}, "redirect": {"https_redirect": True}}
ANSWER = {"match": {"prefix": "/"}, "direct_response": {"status": 502}}


def routes(name: str, **hosts: list[Json]) -> Json:
    """A route configuration; hosts are named without their domain."""
    virtual = [
        {"name": host, "domains": [f"{host}.example.com"], "routes": rules, "retry_policy": {}}
        for host, rules in hosts.items()
    ]
    return {"version_info": "7", "route_config": {"name": name, "virtual_hosts": virtual}}


def listener(*names: str, state: str = "active_state") -> Json:
    """A listener that uses these route configurations."""
    manager = {"@type": "type.googleapis.com/http_connection_manager", "stat_prefix": "http"}
    chains = [
        {"filters": [{"name": "hcm", "typed_config": manager | {"rds": {"route_config_name": name}}}]} for name in names
    ]
    return {"name": "http", state: {"listener": {"name": "http", "filter_chains": chains}}}


def dump(*, clusters: list[Json], listeners: list[Json], route_configs: list[Json], fed_by: str = "contour") -> bytes:
    """The answer to `/config_dump`."""
    others = {"name": "stats", "active_state": {"listener": {"filter_chains": [{"filters": [{"name": "none"}]}]}}}
    configs = [
        {"@type": "bootstrap", "bootstrap": {"static_resources": {"clusters": [{"name": "contour"}]}}},
        {"@type": "clusters", "static_clusters": [{"cluster": {"name": fed_by}}], "dynamic_active_clusters": clusters},
        {"@type": "listeners", "dynamic_listeners": [others, *listeners]},
        {"@type": "routes", "static_route_configs": [], "dynamic_route_configs": route_configs},
        {"@type": "secrets"},
    ]
    return json.dumps({"configs": configs}).encode()


def stats(**gauges: int) -> bytes:
    """The answer to the question for gauges: `chat_old_8080__upstream_rq_active=3`."""
    lines = [f"cluster.{name.replace('__', '.')}: {value}" for name, value in gauges.items()]
    return "\n".join([*lines, ""]).encode()
