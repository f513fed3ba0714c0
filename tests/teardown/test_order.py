"""Order of deletion: by relation, through owners, and in cycles."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from pilotage.catalogue.phase import Phase
from pilotage.catalogue.registry import phase_of
from pilotage.catalogue.relation import Relation
from pilotage.teardown.planning.order import break_cycles, needed_by, order, strongly_connected
from pilotage.teardown.snapshot.graph import Edge, Graph
from tests.teardown.building import item

DEPLOYMENT, SERVICE, INGRESS = item("Deployment"), item("Service"), item("Ingress")
AUTOSCALER, CONFIG, BUDGET = item("HorizontalPodAutoscaler"), item("ConfigMap"), item("PodDisruptionBudget")
POD, APP, STAGE = item("Pod"), item("App"), item("Stage")
D, S, R, H, C, B, P, A, T = (
    each.uid for each in (DEPLOYMENT, SERVICE, INGRESS, AUTOSCALER, CONFIG, BUDGET, POD, APP, STAGE)
)


def edge(source, relation, target) -> Edge:
    return Edge(source, relation, target.name, target, "spec")


@dataclass(frozen=True)
class Case:
    name: str
    edges: list[Edge]
    want: dict[str, set[str]]
    """Entries that each entry waits for; the others wait for none."""
    circles: list[set[str]] = field(default_factory=list)
    carriers: dict[str, str] = field(default_factory=dict)
    holders: dict[str, str] = field(default_factory=dict)
    keepers: list[tuple[str, str]] = field(default_factory=list)


CASES = [
    Case("nothing is related", [], {}),
    Case("a route goes before its Service and before what is behind it",
         [edge(INGRESS, Relation.ROUTES_TO, SERVICE), edge(SERVICE, Relation.SELECTS, DEPLOYMENT)],
         {S: {R, D}, D: {R}}),
    Case("an autoscaler goes before what it scales", [edge(AUTOSCALER, Relation.SCALES, DEPLOYMENT)], {D: {H}}),
    Case("what is mounted goes after what mounts it", [edge(DEPLOYMENT, Relation.MOUNTS, CONFIG)], {C: {D}}),
    Case("a budget stays until what it protects is gone", [edge(BUDGET, Relation.PROTECTS, DEPLOYMENT)], {B: {D}}),
    Case("what protects anything else goes first", [edge(STAGE, Relation.PROTECTS, APP)], {A: {T}}),
    Case("to own is no order", [edge(APP, Relation.OWNS, DEPLOYMENT)], {}),
    Case("what a carried one waits for, its carrier waits for",
         [edge(AUTOSCALER, Relation.SCALES, POD)], {P: {H}, D: {H}}, carriers={P: D}),
    Case("nobody waits for what he carries, nor the other way round",
         [edge(POD, Relation.MOUNTS, DEPLOYMENT), edge(DEPLOYMENT, Relation.MOUNTS, POD)], {}, carriers={P: D}),
    Case("a part does not wait for its holder, nor the holder for its part",
         [edge(APP, Relation.TARGETS, SERVICE), edge(SERVICE, Relation.TARGETS, APP)], {}, holders={S: A}),
    Case("who keeps a finalizer goes after what it is on", [], {D: {A}}, keepers=[(D, A)]),
    Case("also where the other would wait for it, or for what it carries",
         [edge(APP, Relation.SELECTS, POD), edge(APP, Relation.SELECTS, DEPLOYMENT)], {D: {A}},
         carriers={P: D}, keepers=[(D, A)]),
    Case("those in a circle wait for nobody in it, and the others still do",
         [edge(APP, Relation.NEEDS, STAGE), edge(STAGE, Relation.NEEDS, APP), edge(CONFIG, Relation.NEEDS, STAGE)],
         {T: {C}}, circles=[{A, T}]),
    Case("a circle through a part and its holder: who waits for the holder waits for the part",
         [edge(APP, Relation.NEEDS, CONFIG), edge(CONFIG, Relation.NEEDS, SERVICE)],
         {}, circles=[{A, C, S}], holders={S: A}),
    Case("a circle through what is carried: it begins with its carrier",
         [edge(POD, Relation.NEEDS, CONFIG), edge(CONFIG, Relation.NEEDS, DEPLOYMENT)],
         {}, circles=[{P, C, D}], carriers={P: D}),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_order(case):
    everything = (DEPLOYMENT, SERVICE, INGRESS, AUTOSCALER, CONFIG, BUDGET, POD, APP, STAGE)
    phases = {each.uid: Phase.RELEASE if each is APP else phase_of(each.group_kind) for each in everything}
    after, circles = order(
        Graph(case.edges), phases, carriers=case.carriers, holders=case.holders, keepers=case.keepers
    )
    assert {uid: waits for uid, waits in after.items() if waits} == case.want
    assert [set(circle) for circle in circles] == case.circles


def test_components_come_with_the_sinks_first():
    graph = {"a": "b", "b": "ca", "c": "d", "d": "", "e": "e"}
    found = strongly_connected(graph, lambda node: graph[node])
    assert [set(each) for each in found] == [{"d"}, {"c"}, {"a", "b"}, {"e"}]


def test_a_long_chain_is_no_problem():
    count = 5000
    after = {str(number): {str(number + 1)} if number + 1 < count else set() for number in range(count)}
    assert break_cycles(after, {}) == []
    assert after["0"] == {"1"}
    after[str(count - 1)] = {"0"}
    assert [len(circle) for circle in break_cycles(after, {})] == [count]
    assert not any(after.values())


def test_what_is_needed_is_found_through_owners_and_parts():
    after = {"running": set(), "holder": {"config"}, "config": {"other"}, "other": set(), "part": {"far"}, "far": set()}
    owners = {"running": "holder", "part": "other"}
    assert needed_by(after, owners, ["running"]) == {"running", "holder", "config", "other", "part", "far"}
    assert needed_by(after, owners, ["far"]) == {"far"}
