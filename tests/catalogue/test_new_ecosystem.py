"""A new ecosystem is one new file: all that its columns say works, in every command."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pilotage.catalogue import ecosystems as package
from pilotage.catalogue import generate, registry
from pilotage.catalogue.registry import find_finalizer
from pilotage.kube import GroupKind, Resource
from pilotage.teardown.diagnosis.hazards import predict
from pilotage.teardown.diagnosis.leaks import find_leaks
from pilotage.teardown.diagnosis.tree import render, tree
from pilotage.teardown.diagnosis.why.explain import explain, still_serving
from pilotage.teardown.engine.prove import prove
from pilotage.teardown.planning.ledger import Policy
from pilotage.teardown.planning.plan import make_ledger
from pilotage.teardown.planning.targets import resolve_in
from pilotage.teardown.relations import full_kinds, relate
from pilotage.teardown.snapshot.graph import Graph
from pilotage.teardown.snapshot.world import Item, World
from pilotage_sim.loop import virtual
from pilotage_sim.scenarios import teardown_parts as parts
from pilotage_sim.world import SimulatedWorld
from tests.teardown.building import ledger
from tests.teardown.onharbor import entry_of, unmake
from tests.teardown.relations.worlds import world_of

FLEET = """
apiVersion: fleet.example.com/v1
kind: Flotilla
metadata: {name: web}
spec:
  template:
    metadata: {labels: {app: web}}
    spec:
      volumes: [{configMap: {name: chart}}]
---
apiVersion: fleet.example.com/v1
kind: Fairway
metadata: {name: channel}
spec: {to: {name: web}}
---
apiVersion: fleet.example.com/v1
kind: PodGroup
metadata: {name: convoy, creationTimestamp: "2026-11-01T00:00:00Z"}
spec: {minMember: 2, selector: {matchLabels: {app: web}}}
status: {mayLeave: 0, ready: 2}
---
apiVersion: v1
kind: Pod
metadata:
  name: web-1
  labels: {app: web}
  ownerReferences: [{apiVersion: fleet.example.com/v1, kind: Flotilla, name: web, uid: flotilla/web, controller: true}]
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: chart}}
"""


@pytest.fixture(autouse=True)
def fleet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The catalogue, with one more file."""
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(Path(__file__).with_name("new_ecosystem"))])
    forget()
    yield
    forget()
    sys.modules.pop(f"{package.__name__}.fleet", None)


def forget() -> None:
    for each in vars(registry).values():
        if hasattr(each, "cache_clear"):
            each.cache_clear()


def related(world: World) -> Graph:
    return relate(world, registry.all_relation_rows())


def the(world: World, uid: str) -> Item:
    item = world.get(uid)
    assert item is not None
    return item


def test_plan_takes_the_guard_and_the_route_along_and_orders_them() -> None:
    world = world_of(FLEET)
    planned = make_ledger(world, related(world), [the(world, "flotilla/web")], Policy(drain_seconds=1), adopt=True)
    entries = {entry.name: entry for entry in planned.going}
    assert {name: str(entry.phase) for name, entry in entries.items()} == {
        "web": "stop",
        "web-1": "stop",
        "channel": "detach",
        "convoy": "remove",
        "chart": "remove",
    }
    assert "fairway/channel" in entries["web"].after, "routes go before what they lead to"
    assert "pod/web-1" in entries["convoy"].after, "a guard stays until what it protects is gone"
    assert entries["channel"].settle_seconds == 1, "no router has taken it up"


def test_a_hazard_says_that_the_guard_forbids_no_delete() -> None:
    world = world_of(FLEET)
    graph = related(world)
    planned = make_ledger(world, graph, [the(world, "flotilla/web")], Policy())
    assert ("budget-ignored", "podgroup/convoy -n shop") in {
        (hazard.code, str(hazard.subject)) for hazard in predict(world, graph, planned)
    }


def test_why_notes_the_guard_and_what_still_serves() -> None:
    world = world_of(FLEET + "---\n{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
    (note,) = explain(world, related(world), the(world, "pod/web-1")).roots[:1]
    assert (str(note.subject), note.text) == (
        "podgroup/convoy -n shop",
        "blocks eviction of pod/web-1 -n shop (429). A DELETE is unaffected.",
    )
    assert note.evidence == ("mayLeave is 0: 2 of 2 needed pods are healthy",)
    assert "flotilla/web -n shop" in map(str, still_serving(world, the(world, "namespace/shop")))


def test_tree_shows_its_relations() -> None:
    world = world_of(FLEET)
    text = "\n".join(render(tree(world, related(world), the(world, "flotilla/web"))))
    assert "configmap/chart" in text
    assert "fairway/channel" in text
    assert "podgroup/convoy" in text


def test_leaks_finds_a_guard_of_nothing() -> None:
    alone = FLEET.partition("kind: PodGroup")
    guard = f"apiVersion: fleet.example.com/v1\nkind: PodGroup{alone[2].partition('---')[0]}"
    others = [("v1", "Pod"), *(("apps/v1", kind) for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"))]
    unrelated = [f"{{apiVersion: {version}, kind: {kind}, metadata: {{name: other}}}}" for version, kind in others]
    world = world_of("\n---\n".join([guard, *unrelated]))
    found = find_leaks(world, related(world))
    assert [(leak.code, str(leak.subject)) for leak in found if leak.subject.resource.kind == "PodGroup"] == [
        ("protects-nothing", "podgroup/convoy -n shop")
    ]


def test_it_is_read_in_full_found_by_its_short_name_and_its_finalizer_is_known() -> None:
    assert GroupKind("fleet.example.com", "PodGroup") in full_kinds(registry.all_relation_rows())
    assert "fleet.example.com Fairway+ Flotilla PodGroup" in generate.reading_table().splitlines()
    world = world_of(FLEET)
    assert resolve_in(world, ["pg/convoy"]).found == [the(world, "podgroup/convoy")]
    finalizer = find_finalizer("fleet.example.com/moored")
    assert finalizer is not None
    assert finalizer.who == "Fleet operator"


@virtual
async def test_its_objects_are_proven_gone_once_their_definition_is() -> None:
    flotillas = Resource("fleet.example.com", "v1", "flotillas", "Flotilla")
    async with SimulatedWorld() as simulated:
        client = simulated.client("me")
        definition = await client.create(*parts.definition(flotillas))
        web = await client.create(flotillas, {"metadata": {"namespace": "default", "name": "web"}, "spec": {}})
        await unmake(client, definition, parts.DEFINITIONS)
        await simulated.until(lambda: simulated.find(parts.DEFINITIONS, definition.key) is None)
        proof = await prove(client, ledger(entry_of(web, flotillas)))
        assert (proof.holds, list(proof.gone)) == (True, [web.meta.uid])
