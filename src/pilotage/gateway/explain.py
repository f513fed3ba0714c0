"""Why Envoy refuses a route, in its own words, where these did not get through.

Envoy repeats a table that breaks one of its rules before it says which, and cuts its answer to some thousand
characters: of a large table, the reason is lost. So the route is shown to another Envoy alone, which only looks at it.
"""

import asyncio
from pathlib import Path

import msgspec

from pilotage.gateway import own_routes, resources
from pilotage.gateway.child import launched
from pilotage.gateway.division import RouteDivision
from pilotage.gateway.inputs import ProxiedRoute
from pilotage.kube import Json

SECONDS_MAX = 10.0
_MARKS = ("Proto constraint validation failed", "error initializing")


async def explain(envoy: Path, route: ProxiedRoute, user: int | None = None) -> str:
    """Envoy's text; empty where it has nothing against the route alone, or cannot be asked. `user`: whom it runs as."""
    config = msgspec.json.encode(_alone(route)).decode()
    command = [str(envoy), "--mode", "validate", "--log-level", "critical", "--config-yaml", config]
    process = await asyncio.create_subprocess_exec(
        *launched(command, user),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={},
    )
    try:
        async with asyncio.timeout(SECONDS_MAX):
            _, said = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return ""
    if process.returncode == 0:
        return ""
    text = said.decode(errors="replace")
    starts = [at for mark in _MARKS if (at := text.rfind(mark)) >= 0]
    return text[min(starts) if starts else 0 :].strip()


def _alone(route: ProxiedRoute) -> Json:
    """An Envoy with this route and nothing else."""
    names = route.clusters()
    division = RouteDivision((tuple((each, 1) for each in names),) * len(route.shared_out()))
    routes = resources.path_routes(route, f"/endpoints/{route.key.namespace}/{route.endpoint}", division)
    routes += resources.model_routes(route, division)
    routes += [own_routes.model_info(model, route.key.namespace) for model in route.models]
    routes += resources.host_routes(route, division) if route.host else []
    host = resources.virtual_host("alone", [route.host or "*"]) | {"routes": routes}
    listener = resources.listener("127.0.0.1", 0, "")
    manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
    del manager["scoped_routes"]
    manager["route_config"] = resources.route_configuration("alone") | {"virtual_hosts": [host]}
    clusters = [{"name": name, "type": "STATIC", "load_assignment": {"cluster_name": name}} for name in names]
    return {"static_resources": {"listeners": [listener], "clusters": clusters}}
