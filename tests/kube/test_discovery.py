"""Resource of a name: from two requests on a new server, from many on an old one, and never by guessing."""

from typing import Any

import msgspec
import pytest

from pilotage.kube import ApiResource, Client, Discovery, Resource, Surface, Unavailable, UnknownKind
from pilotage.kube.transport import Request, Response, Transport
from pilotage_sim.loop import virtual
from tests.support import kinds
from tests.support.kinds import existing, served
from tests.support.transports import MemoryResponse, ScriptedTransport, answer, observed
from tests.support.waiting import eventually

API_SERVICES = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", namespaced=False)


class BeforeAggregation:
    """The server as it was before Kubernetes 1.26: it does not understand what we would accept best."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def send(self, request: Request) -> Response:
        return await self._inner.send(request._replace(accept="application/json"))

    async def close(self) -> None: ...


def builtin(surface: Surface) -> dict[Resource, ApiResource]:
    """Kinds without those of other tests, which may be about to go."""
    return {each.resource: each for each in surface.resources if not each.resource.group.endswith(".example.com")}


async def test_two_requests_tell_everything_once(client: Client) -> None:
    watched, seen = observed(client)
    discovery = Discovery(watched)
    surface = await discovery.surface()
    for name in ("po", "deploy", "leases"):
        await discovery.find(name)
    assert await discovery.surface() is surface
    assert [str(request) for request in seen.requests] == ["GET /api", "GET /apis"]


NAMES = {
    "pods": "v1 pods",
    "pod": "v1 pods",
    "po": "v1 pods",
    "Pod": "v1 pods",
    "PODS": "v1 pods",
    "pods.v1.": "v1 pods",
    "deploy": "apps/v1 deployments",
    "deployments.apps": "apps/v1 deployments",
    "Deployment.apps": "apps/v1 deployments",
    "deploy.v1.apps": "apps/v1 deployments",
    "events": "v1 events",
    "events.events.k8s.io": "events.k8s.io/v1 events",
    "ev.v1.events.k8s.io": "events.k8s.io/v1 events",
    "crd": "apiextensions.k8s.io/v1 customresourcedefinitions",
    "ns": "v1 namespaces",
}
UNKNOWN = ("", ".", "boats", "pods.apps", "deployments.v9.apps", "pods.v1", "v1.pods", "apps")


async def test_names_mean_what_they_mean_to_kubectl(client: Client) -> None:
    discovery = Discovery(client)
    found = {name: (await discovery.find(name)).resource for name in NAMES}
    assert {name: f"{resource.api_version} {resource.plural}" for name, resource in found.items()} == NAMES
    for name in UNKNOWN:
        with pytest.raises(UnknownKind) as unknown:
            await discovery.find(name)
        assert str(unknown.value).startswith(f"the server has no resource {name!r}")


async def test_what_is_found_is_all_that_is_needed_to_use_it(client: Client) -> None:
    assert await Discovery(client).find("deploy") == ApiResource(
        Resource("apps", "v1", "deployments", "Deployment", namespaced=True),
        "deployment",
        ("deploy",),
        ("all",),
        frozenset({"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}),
        frozenset({"scale", "status"}),
        preferred=True,
    )
    assert not (await Discovery(client).find("nodes")).resource.namespaced


@pytest.mark.usefixtures("own_cluster")
async def test_a_new_kind_is_found_by_looking_again_once(client: Client) -> None:
    watched, seen = observed(client)
    discovery = Discovery(watched)
    kind = kinds.widgets()
    with pytest.raises(UnknownKind):
        await discovery.find(str(kind))
    assert len(seen.requests) == 2  # a fresh answer is not read again
    async with served(client, kind):

        async def is_known() -> ApiResource | None:
            try:
                return await discovery.find(str(kind))
            except UnknownKind:
                return None

        found = await eventually(is_known)
        seen.requests.clear()
        for name in (str(kind), f"Widget.{kind.group}", f"wd.{kind.group}", f"widget.v1.{kind.group}"):
            assert await discovery.find(name) == found
        assert seen.requests == []
    assert found.resource == kind


@pytest.mark.usefixtures("own_cluster")
async def test_a_kind_in_an_older_version_than_its_group_prefers_is_found_by_its_group(client: Client) -> None:
    new = kinds.widgets()
    old = msgspec.structs.replace(new, version="v1alpha1", plural="gizmos", kind="Gizmo")
    async with served(client, new), served(client, old, "gz"):
        discovery = Discovery(client)

        async def both_known() -> bool:
            surface = await discovery.refresh()
            return {new, old} <= {each.resource for each in surface.resources}

        await eventually(both_known)
        found = await discovery.find(f"gizmos.{old.group}")
        assert found.resource == old
        assert not found.preferred
        assert (await discovery.find("gz")).resource == old
        assert (await discovery.find(f"widgets.{new.group}")).resource == new


async def test_an_old_server_is_asked_group_by_group_and_tells_the_same(client: Client) -> None:
    old, seen = observed(client.through(BeforeAggregation))
    group_by_group = await Discovery(old).surface()
    aggregated = await Discovery(client).surface()
    assert len(seen.requests) > 10
    assert builtin(group_by_group) == builtin(aggregated)
    assert len(builtin(aggregated)) > 50


@pytest.mark.usefixtures("own_cluster")
@pytest.mark.parametrize("server", ["new", "old"])
async def test_a_dead_api_service_hides_nothing_but_itself(client: Client, server: str) -> None:
    discovery = Discovery(client if server == "new" else client.through(BeforeAggregation))
    before = await discovery.surface()
    spec = {
        "group": "dead.example.com",
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 10,
        "insecureSkipTLSVerify": True,
        "service": {"name": "nowhere", "namespace": "default"},
    }
    body = {"metadata": {"name": "v1.dead.example.com"}, "spec": spec}
    async with existing(client, API_SERVICES, body):

        async def is_noticed() -> Surface | None:
            surface = await discovery.refresh()
            return surface if "dead.example.com/v1" in surface.unreadable else None

        surface = await eventually(is_noticed)
        with pytest.raises(UnknownKind) as unknown:
            await discovery.find("boats.dead.example.com")
    assert builtin(surface) == builtin(before)
    why = {"new": "its API service does not answer; what is listed may be old", "old": "service unavailable"}[server]
    assert str(unknown.value).startswith("the server has no resource 'boats.dead.example.com' (not readable: ")
    assert f"dead.example.com/v1: {why}" in str(unknown.value)


# Without a server


def group(name: str, *versions: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "versions": list(versions)}


def listed(version: str, *plurals: str, **fields: Any) -> dict[str, Any]:
    resources = [
        {"resource": plural, "responseKind": {"kind": plural.title()[:-1]}, "scope": "Namespaced", "verbs": ["get"]}
        for plural in plurals
    ]
    return {"version": version, "resources": resources, **fields}


def aggregated(*groups: dict[str, Any]) -> MemoryResponse:
    return answer({"kind": "APIGroupDiscoveryList", "items": list(groups)})


MEANT = {
    "boats": "v1",
    "boat.b.example.com": "b.example.com/v1",
    "ships": "b.example.com/v2",
    "ship.v1.b.example.com": "b.example.com/v1",
    "Ship.a.example.com": "a.example.com/v1",
    # The group decides first, as for kubectl: an old version of the first beats the preferred one of the second.
    "rafts": "b.example.com/v1",
}


@virtual
async def test_of_several_groups_the_first_in_the_servers_order_is_meant() -> None:
    transport = ScriptedTransport(
        aggregated(group("", listed("v1", "boats"))),
        aggregated(
            group("b.example.com", listed("v2", "ships"), listed("v1", "ships", "boats", "rafts")),
            group("a.example.com", listed("v1", "ships", "boats", "rafts")),
        ),
    )
    discovery = Discovery(Client(transport))
    assert {name: (await discovery.find(name)).resource.api_version for name in MEANT} == MEANT


def versions(*names: str, preferred: str) -> dict[str, Any]:
    return {"versions": [{"version": name} for name in names], "preferredVersion": {"version": preferred}}


def resources(*plurals: str) -> MemoryResponse:
    return answer({"resources": [{"name": name, "kind": name.title()[:-1], "namespaced": True} for name in plurals]})


@virtual
async def test_an_old_server_means_the_same() -> None:
    groups = [
        {"name": "b.example.com", **versions("v1", "v2", preferred="v2")},
        {"name": "a.example.com", **versions("v1", preferred="v1")},
    ]
    transport = ScriptedTransport(
        answer({"versions": ["v1"]}),
        resources("boats", "boats/status"),
        answer({"groups": groups}),
        resources("ships"),
        resources("ships", "boats", "rafts"),
        resources("ships", "boats", "rafts"),
    )
    discovery = Discovery(Client(transport))
    assert {name: (await discovery.find(name)).resource.api_version for name in MEANT} == MEANT
    assert (await discovery.find("boats")).subresources == {"status"}


@pytest.mark.parametrize("page", [b"<html>", b"[]", b""])
@virtual
async def test_a_page_that_answers_instead_of_the_server_is_no_empty_surface(page: bytes) -> None:
    with pytest.raises(Unavailable, match=r"^GET /api: what came back is not from a Kubernetes API"):
        await Discovery(Client(ScriptedTransport(MemoryResponse(page)))).find("pods")


@virtual
async def test_what_is_stale_is_said_and_still_used() -> None:
    transport = ScriptedTransport(
        aggregated(), aggregated(group("b.example.com", listed("v1", "ships", freshness="Stale")))
    )
    discovery = Discovery(Client(transport))
    assert (await discovery.find("ships")).resource.group == "b.example.com"
    assert list((await discovery.surface()).unreadable) == ["b.example.com/v1"]
