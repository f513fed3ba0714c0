"""Any graph of objects, owners, references and finalizers: the order holds, it is explained, and it ends."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import NamedTuple

from hypothesis import given, note, settings
from hypothesis import strategies as st

from pilotage.catalogue.kind import Keep
from pilotage.catalogue.phase import Phase
from pilotage.catalogue.relation import Relation
from pilotage.kube import Object
from pilotage.teardown.engine.decide import decide
from pilotage.teardown.engine.decision import Act, Decision, Observation
from pilotage.teardown.planning.ledger import Disposition, Ledger, Policy
from pilotage.teardown.planning.plan import make_ledger, plan_again
from pilotage.teardown.snapshot.graph import Edge, Graph
from pilotage.teardown.snapshot.world import Item, State, World
from tests.teardown.building import NOW, item, world_of
from tests.teardown.model import Cluster, Thing, run

RELATIONS = tuple(each for each in Relation if each not in (Relation.OWNS, Relation.DEFINES))
"""All but those that come from metadata, which a story makes by itself."""
EXAMPLES = 500
WHAT = (
    "Deployment",
    "ReplicaSet",
    "Pod",
    "Service",
    "ConfigMap",
    "Secret",
    "Ingress",
    "HorizontalPodAutoscaler",
    "PodDisruptionBudget",
    "App",
    "App",
    "Stage",
)


class Story(NamedTuple):
    """Objects, their relations, and the targets."""

    world: World
    graph: Graph
    targets: list[Item]
    policy: Policy
    adopt: bool
    keepers: dict[str, Item]
    hidden: dict[str, int]
    edges: list[Edge]

    def ledger(self) -> Ledger:
        return make_ledger(
            self.world,
            self.graph,
            self.targets,
            self.policy,
            adopt=self.adopt,
            owner_of_finalizer=lambda _, item, finalizer: self.keepers.get(item.uid) if finalizer == "kept" else None,
        )


def story_of(seed: int) -> Story:
    """A story for each number; the size grows with the number, so that small failures come first."""
    rng = random.Random(seed)
    items: list[Item] = []
    if rng.random() < 0.3:
        items.append(item("Namespace", "shop"))
    if rng.random() < 0.3:
        items.append(item("CustomResourceDefinition", "apps.test.dev"))
    for number in range(rng.randint(1, 2 + seed % 8)):
        possible = [each for each in items if each.meta.namespace]
        owners = rng.sample(possible, min(rng.choice((0, 0, 1, 1, 2)), len(possible)))
        finalizers = tuple(rng.sample(["kept", "other"], rng.choice((0, 0, 1, 2))))
        going = bool(finalizers) and rng.random() < 0.2
        items.append(
            item(rng.choice(WHAT), f"x{number}", owners=tuple(owners), finalizers=finalizers, terminating=going)
        )
    things = [each for each in items if each.meta.namespace]
    world = world_of(*items)
    owned = [
        Edge(owner, Relation.OWNS, each.name, each, "metadata.ownerReferences")
        for each in items
        for reference in each.meta.owner_references
        if (owner := world.get(reference.uid)) is not None
    ]
    edges = []
    for _ in range(rng.randint(0, 2 + seed % 7)):
        source, target = rng.choice(things), rng.choice(things)
        if source is not target:
            edges.append(Edge(source, rng.choice(RELATIONS), target.name, target, "spec"))
    workloads = [each for each in items if each.resource.kind == "Deployment"]
    return Story(
        world,
        Graph([*owned, *edges]),
        rng.sample(items, min(rng.randint(1, 4), len(items))),
        Policy(keep=frozenset(rng.choice(((), (), (Keep.SECRETS,), (Keep.CONFIGS,)))), timeout_seconds=10_000.0),
        rng.random() < 0.5,
        {each.uid: rng.choice(workloads) for each in things if workloads and rng.random() < 0.5},
        {each.uid: rng.randint(1, 5) for each in things if rng.random() < 0.2},
        edges,
    )


stories = st.integers(0, 1_000_000).map(story_of)


def is_explained(ledger: Ledger, decision: Decision, observations: Mapping[str, Observation]) -> None:
    """Each that is not over is acted on or waited for, and what is unknown is only waited for."""
    acted = {action.entry.uid for action in decision.actions}
    waited = {wait.entry.uid for wait in decision.waits}
    for entry in ledger.going:
        state = observations[entry.uid].state
        if state is State.GONE:
            assert entry.uid not in acted | waited
        else:
            assert entry.uid in acted | waited, f"nothing about {entry}"
        if state is State.UNKNOWN:
            assert entry.uid not in acted, f"{entry} is unknown, and acted on"
    for wait in decision.waits:
        assert all((wait.cause, wait.actor, wait.text)), wait
        assert wait.since <= wait.until
    assert decision.finished or decision.actions or decision.blockers, "nothing is done, and nothing is a reason"


def taken_down(story: Story) -> tuple[Ledger, Cluster]:
    """Plan for a story, and the cluster after it was executed."""
    ledger = story.ledger()
    note("\n".join(map(repr, ledger.entries)))
    cluster = Cluster.of(story.world, NOW)
    run(ledger, cluster)
    return ledger, cluster


@given(stories)
@settings(max_examples=EXAMPLES, deadline=None)
def test_any_teardown_is_explained_and_ends_with_all_gone_and_the_rest_there(story):
    ledger = story.ledger()
    note("\n".join(map(repr, ledger.entries)))
    cluster = Cluster.of(story.world, NOW)
    run(
        ledger,
        cluster,
        hidden=story.hidden,
        look=lambda decision, observations: is_explained(ledger, decision, observations),
    )
    assert [str(entry) for entry in ledger.going if entry.uid in cluster.things] == []
    doomed = set()  # an object that is being deleted cannot be kept, nor can its dependents
    for each in story.world:  # owners come before their dependents
        if each.terminating or doomed & {owner.uid for owner in each.meta.owner_references}:
            doomed.add(each.uid)
    assert [str(entry) for entry in ledger.kept if entry.uid not in {*cluster.things, *doomed}] == []


def above(ledger: Ledger, uid: str) -> list[str]:
    """An entry, and those whose part it is."""
    entries = ledger.by_uid()
    chain = [uid]
    while (owner := entries[chain[-1]].owner) in entries and owner not in chain:
        chain.append(owner)
    return chain


def asked_for(ledger: Ledger, uid: str) -> str:
    """Objects that are deleted so that this one goes."""
    entries = ledger.by_uid()
    return next(each for each in above(ledger, uid) if entries[each].disposition is Disposition.DELETE)


def first_and_then(edge: Edge, phases: Mapping[str, Phase]) -> tuple[str, str]:
    """Order of the two ends of a relation: the one that has to be gone before the other is deleted comes first."""
    assert edge.target is not None
    source, target = edge.source.uid, edge.target.uid
    if edge.source.resource.kind == "PodDisruptionBudget":
        return target, source  # it guards for as long as there is something to guard
    if phases[target] is Phase.DETACH and phases[source] > Phase.DETACH:
        return target, source  # routes come first, whatever owns them
    if edge.relation is Relation.SELECTS and phases[source] > phases[target]:
        return target, source  # a Service stays until its pods are gone
    return source, target


@given(stories)
@settings(max_examples=EXAMPLES, deadline=None)
def test_the_order_never_violates_a_relation(story):
    ledger, cluster = taken_down(story)
    entries = ledger.by_uid()
    phases = {uid: entry.phase for uid, entry in entries.items()}
    going = {entry.uid for entry in ledger.going}
    kept_by = {(keeper.uid, uid) for uid, keeper in story.keepers.items()}
    holders = {entry.owner for entry in ledger.going if entry.disposition is Disposition.DELETE}
    circles = [set(circle) for circle in ledger.cycles]
    for edge in story.edges:
        assert edge.target is not None
        if not {edge.source.uid, edge.target.uid} <= going:
            continue
        first, then = first_and_then(edge, phases)
        if any((each, then) in kept_by for each in above(ledger, first)):
            continue  # a finalizer owner is deleted after its object, with all its dependents
        one, other = asked_for(ledger, first), asked_for(ledger, then)
        related = {*above(ledger, first)} & {*above(ledger, then)}
        if one == other or related & {first, then, one, other}:
            continue  # they go together, or as a part and its owner
        if any({one, other} <= circle or {first, then} <= circle for circle in circles):
            continue
        began = cluster.deleted_at.get(other)
        if began is None or {other, then} & holders:
            continue  # it was Terminating before, or is marked first: the waits of its parts are another matter
        assert cluster.gone_at[first] <= began, f"{edge}: {entries[other]} began while {entries[first]} was there"


@given(stories)
@settings(max_examples=EXAMPLES, deadline=None)
def test_an_owner_whose_parts_go_one_by_one_is_gone_last(story):
    ledger, cluster = taken_down(story)
    entries = ledger.by_uid()
    for part in ledger.going:
        owner = entries.get(part.owner)
        if part.disposition is Disposition.DELETE and owner is not None and owner.hold:
            assert cluster.gone_at[part.uid] <= cluster.gone_at[owner.uid], f"{owner} was gone before {part}"


@given(stories)
@settings(max_examples=EXAMPLES, deadline=None)
def test_nothing_is_done_to_what_stays_but_to_take_it_off_its_owner(story):
    ledger = story.ledger()
    kept = {entry.uid for entry in ledger.kept}
    cluster = Cluster.of(story.world, NOW)
    for decision in run(ledger, cluster):
        for action in decision.actions:
            assert action.entry.uid not in kept or action.act is Act.DISOWN
            assert action.act is not Act.HOLD or action.entry.hold


def as_it_is(thing: Thing) -> Item:
    """An object as it would be read by now."""
    was = thing.item
    body = was.object.to_dict()
    references = body["metadata"].get("ownerReferences", [])
    body["metadata"] |= {
        "finalizers": [*thing.finalizers],
        "ownerReferences": [each for each in references if each["uid"] in thing.owners],
    }
    if thing.deletion:
        body["metadata"] |= {"deletionTimestamp": thing.deletion, "deletionGracePeriodSeconds": 0}
    return Item(was.resource, Object.from_dict(body), full=True)


def go_on_elsewhere(story: Story, ledger: Ledger, cluster: Cluster, rng: random.Random) -> list[Item]:
    """Changes by others between two runs: new parts of existing objects, new objects in the place of deleted ones."""
    there = [thing.item for thing in cluster.things.values() if thing.item.meta.namespace]
    made = []
    for number in range(rng.randint(0, 3) if there else 0):
        made.append(item(rng.choice(WHAT), f"y{number}", owners=(rng.choice(there),)))
    gone = [each for each in story.world if each.uid not in cluster.things and each.meta.namespace]
    strangers = [item(each.resource.kind, each.meta.name, uid_=f"{each.uid}-again") for each in gone[:2]]
    for each in (*made, *strangers):
        owners = [owner.uid for owner in each.meta.owner_references]
        cluster.things[each.uid] = Thing(each, [*each.meta.finalizers], owners)
    return strangers


@given(stories, st.integers(0, 12), st.integers(0, 1000))
@settings(max_examples=EXAMPLES, deadline=None)
def test_one_that_was_cut_off_goes_on_with_what_has_appeared_and_ends(story, ticks, seed):
    rng = random.Random(seed)
    saved = story.ledger()
    cluster = Cluster.of(story.world, NOW)
    for _ in range(ticks):
        for action in decide(saved, cluster.observations(saved), {}, cluster.now).actions:
            cluster.perform(action)
        cluster.tick()
    strangers = go_on_elsewhere(story, saved, cluster, rng)
    items = [as_it_is(thing) for thing in cluster.things.values()]
    world = world_of(*items)
    related = [(each.source.uid, each.relation, each.target.uid) for each in story.edges if each.target is not None]
    related += [(rng.choice(items).uid, rng.choice(RELATIONS), rng.choice(items).uid) for _ in items[:3]]
    edges = [
        Edge(source, relation, target.name, target, "spec")
        for first, relation, second in related
        if (source := world.get(first)) and (target := world.get(second)) and source is not target
    ]

    ledger = plan_again(saved, world, Graph(edges))
    note("\n".join(map(repr, ledger.entries)))
    assert [str(each) for each in saved.going if each.uid not in {entry.uid for entry in ledger.going}] == []
    assert [str(each) for each in saved.kept if each.uid not in {entry.uid for entry in ledger.kept}] == []
    run(ledger, cluster, look=lambda decision, seen: is_explained(ledger, decision, seen))
    assert [str(entry) for entry in ledger.going if entry.uid in cluster.things] == []
    taken = {entry.resource.kind for entry in saved.going}
    if not taken & {"Namespace", "CustomResourceDefinition"} and not saved.adopt:
        assert [str(each) for each in strangers if each.uid not in cluster.things] == []
