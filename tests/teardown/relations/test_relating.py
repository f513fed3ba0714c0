"""A graph that is brought up to date is the graph that is made anew."""

from __future__ import annotations

import pytest

from pilotage.kube import Json
from pilotage.teardown.graph import Graph
from pilotage.teardown.relations import BUILT_IN, Relating, edges, relate
from pilotage.teardown.world import World
from tests.teardown.relations.worlds import item_of, owned_by, told, world_of

POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web-1", "labels": {"app": "web"}, "ownerReferences": owned_by("ReplicaSet", "web")},
    "spec": {
        "serviceAccountName": "none",
        "containers": [{"name": "c", "envFrom": [{"configMapRef": {"name": "web"}}]}],
    },
}
CONFIG: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}}
WORLD: list[Json] = [
    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"}},
    POD,
    CONFIG,
    {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}}},
    {
        "apiVersion": "protection.crossplane.io/v1beta1",
        "kind": "Usage",
        "metadata": {"name": "held"},
        "spec": {
            "of": {"apiVersion": "v1", "kind": "ConfigMap", "resourceRef": {"name": "web"}},
            "by": {"apiVersion": "v1", "kind": "Pod", "resourceRef": {"name": "web-1"}},
        },
    },
]


def everything(graph: Graph, world: World) -> list[tuple[str, int, int]]:
    """All edges from both ends, with which reading of each object they are about."""
    out = [edge for item in world for edge in graph.out_of(item.uid)]
    into = [edge for item in world for edge in graph.into(item.uid)]
    return sorted((told(edge), id(edge.source), id(edge.target)) for edge in (*out, *into, *graph.dangling))


def before() -> tuple[World, Relating, Graph]:
    world = world_of(WORLD)
    world.add(item_of(POD, full=False))
    relating = Relating()
    return world, relating, relating(world)


def test_what_was_read_in_full_since_points_at_more(monkeypatch):
    world, relating, first = before()
    count = len(everything(first, world))
    world.add(item_of(POD))
    monkeypatch.setattr(edges, "relate", None)  # it is not made anew: that takes long in a large world
    again = relating(world)
    assert len(everything(again, world)) > count
    assert everything(again, world) == everything(relate(world), world)
    world.add(item_of(POD | {"spec": {}}))  # and once more: now at less
    assert everything(relating(world), world) == everything(relate(world), world)


@pytest.mark.parametrize(
    "news",
    [
        CONFIG | {"metadata": {"name": "new"}},
        POD | {"metadata": POD["metadata"] | {"labels": {"app": "other"}}},
        POD | {"metadata": POD["metadata"] | {"ownerReferences": []}},
        WORLD[3] | {"spec": {"selector": {"app": "other"}}},
    ],
    ids=["another object", "other labels", "another owner", "another kind"],
)
def test_other_news_count_as_well(news):
    world, relating, _ = before()
    world.add(item_of(news))
    assert everything(relating(world), world) == everything(relate(world), world)


def test_without_news_it_is_the_same():
    world, relating, first = before()
    assert relating(world) is first
    assert everything(first, world) == everything(relate(world, BUILT_IN), world)
