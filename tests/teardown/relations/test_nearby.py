"""Edges that are found one object at a time are those of the graph of all."""

from __future__ import annotations

import pytest

from pilotage.kube import Object, Resource
from pilotage.teardown.relations import Nearby, relate
from pilotage.teardown.snapshot.graph import Edge
from pilotage.teardown.snapshot.world import Item, World
from tests.teardown.relations.test_families import CASES
from tests.teardown.relations.worlds import NOW, item_of, owned_by, told, world_of

ALL = "\n---\n".join(manifests for manifests, _ in CASES.values())
OWNERS = [
    {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}},
    {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web-1", "ownerReferences": owned_by("Deployment", "web") * 2},
    },
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "ownerReferences": owned_by("ReplicaSet", "web-1")}},
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "far", "namespace": "far", "ownerReferences": owned_by("ReplicaSet", "web-1")},
    },
]


def said(edges: list[Edge]) -> list[tuple[str, int, int]]:
    """Edges with which reading of each object they are about."""
    return [(told(edge), id(edge.source), id(edge.target)) for edge in edges]


def agree(world: World) -> int:
    """Compare all edges, from both ends; returns how many there are."""
    graph = relate(world)
    asked = world.wanted
    count = 0
    for item in world:
        world.wanted = set()
        nearby = Nearby(world)  # each time new: nothing was asked before
        assert said(nearby.out_of(item.uid)) == said(graph.out_of(item.uid))
        assert said(nearby.into(item.uid)) == said(graph.into(item.uid))
        assert world.wanted == asked
        count += len(graph.out_of(item.uid)) + len(graph.into(item.uid))
    return count


@pytest.mark.parametrize("name", CASES)
def test_what_a_family_points_at_is_found_from_both_ends(name: str) -> None:
    assert agree(world_of(CASES[name][0])) > 0


@pytest.mark.parametrize("full", [True, False])
def test_in_a_world_of_all_families(full: bool) -> None:
    world = world_of(ALL, live=True, full=full)
    assert len(world) > 80
    assert agree(world) > (100 if full else 2)


def test_who_owns_whom() -> None:
    assert agree(world_of(OWNERS)) == 6


def test_one_after_the_other_it_is_the_same() -> None:
    world = world_of(ALL)
    graph, nearby = relate(world), Nearby(world)
    for item in world:
        assert said(nearby.into(item.uid)) == said(graph.into(item.uid))
        assert said(nearby.out_of(item.uid)) == said(graph.out_of(item.uid))


def test_a_name_that_json_writes_in_another_way() -> None:
    role = item_of({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "a<b"}})
    binding = Item(
        Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
        Object.decode(
            rb'{"metadata":{"name":"c","uid":"u"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io",'
            rb'"kind":"ClusterRole","name":"a\u003cb"}}'
        ),
        full=True,
    )
    world = World(NOW, live=False)
    world.add(role)
    world.add(binding)
    assert [edge.source for edge in Nearby(world).into(role.uid)] == [binding]


def test_what_nobody_has_seen_has_no_edges() -> None:
    nearby = Nearby(world_of(OWNERS))
    assert (nearby.into("none"), nearby.out_of("none")) == ([], [])
