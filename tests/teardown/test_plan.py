"""The way from targets to a ledger: which entries are deleted, collected or held, and in which order."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from pilotage.catalogue.kind import Keep
from pilotage.catalogue.phase import Phase
from pilotage.catalogue.relation import Relation
from pilotage.teardown.planning.ledger import HOLD, Disposition, Entry, Policy
from pilotage.teardown.planning.plan import make_ledger, plan_again
from pilotage.teardown.relations import relate
from pilotage.teardown.snapshot.graph import Edge, Graph
from pilotage.teardown.snapshot.world import Item
from tests.teardown.building import entry, item, uid, world_of

COLLECT = Disposition.COLLECT
LABELS = {"app": "web"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": {"volumes": [{"name": "c", "configMap": {"name": "web"}}]}}
SELECTOR = {"matchLabels": LABELS}
BACKEND = {"service": {"name": "web", "port": {"number": 80}}}

DEPLOYMENT = item("Deployment", spec={"selector": SELECTOR, "template": TEMPLATE})
REPLICA_SET = item("ReplicaSet", owners=(DEPLOYMENT,), labels=LABELS)
POD = item("Pod", owners=(REPLICA_SET,), labels=LABELS)
SERVICE = item("Service", spec={"selector": LABELS})
INGRESS = item("Ingress", spec={"rules": [{"http": {"paths": [{"path": "/", "backend": BACKEND}]}}]}, status={})
SERVED = item(
    "Ingress",
    spec={"rules": [{"http": {"paths": [{"path": "/", "backend": BACKEND}]}}]},
    status={"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}},
)
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
AUTOSCALER = item("HorizontalPodAutoscaler", spec={"scaleTargetRef": TARGET})
CONFIG = item("ConfigMap")
LONELY = item("ConfigMap", "lonely")
NAMESPACE = item("Namespace", "shop")

RUNS = (DEPLOYMENT, REPLICA_SET, POD)
RUNNING = {
    uid("Deployment"): {"reason": "named"},
    uid("ReplicaSet"): {
        "disposition": COLLECT,
        "owner": uid("Deployment"),
        "reason": "owned by deployment/web -n shop",
    },
    uid("Pod"): {"disposition": COLLECT, "owner": uid("ReplicaSet"), "reason": "owned by replicaset/web -n shop"},
}
PROXY = "no proxy was asked whether it still has the route; waited 5 s"


def made(*items: Item, policy: Policy | None = None, named: tuple[Item, ...] = (), adopt: bool = False):
    world = world_of(*items)
    return make_ledger(world, relate(world), named or items, policy or Policy(), adopt=adopt)


def short(each: Entry) -> tuple[str, str, str, set[str]]:
    return each.uid, str(each.phase), each.disposition.value, {*each.after}


def test_an_endpoint_from_its_route_to_its_configuration():
    ledger = made(*RUNS, SERVICE, INGRESS, AUTOSCALER, CONFIG)
    d, s, i, h = uid("Deployment"), uid("Service"), uid("Ingress"), uid("HorizontalPodAutoscaler")
    waits = {each.uid: {*each.after} for each in ledger.entries}
    assert [short(each)[:3] for each in ledger.entries] == [
        (i, "detach", "delete"),
        (h, "quiesce", "delete"),
        (d, "stop", "delete"),
        (uid("Pod"), "stop", "collect"),
        (uid("ReplicaSet"), "stop", "collect"),
        (uid("ConfigMap"), "remove", "delete"),
        (s, "remove", "delete"),
    ]
    assert waits[i] == set()
    assert waits[d] >= {i, h}
    assert waits[s] >= {i, d}
    assert d in waits[uid("ConfigMap")]
    assert ledger.cycles == ()


def test_each_entry_as_a_whole():
    ledger = made(*RUNS, named=(DEPLOYMENT,))
    want = {
        uid_: entry({"deployment": "Deployment", "replicaset": "ReplicaSet", "pod": "Pod"}[uid_[:-4]], **fields)
        for uid_, fields in RUNNING.items()
    }
    assert ledger.by_uid() == want
    assert (ledger.targets, ledger.started) == (("deployment/web -n shop",), "2026-01-01T12:00:00Z")


class Route(NamedTuple):
    name: str
    ingress: Item
    policy: Policy
    want: tuple[float, str]


@pytest.mark.parametrize(
    "case",
    [
        Route("a route that no router has taken up needs no time", INGRESS, Policy(), (0.0, "")),
        Route("but what is under way does", INGRESS, Policy(drain_seconds=30.0), (30.0, "")),
        Route("one that a proxy has is given time, unverified", SERVED, Policy(), (5.0, PROXY)),
        Route("one without a status to read is given time", item("VirtualService"), Policy(), (5.0, PROXY)),
        Route("an HTTPRoute without parents", item("HTTPRoute", status={"parents": []}), Policy(), (0.0, "")),
        Route("an HTTPRoute of a parent", item("HTTPRoute", status={"parents": [{}]}), Policy(), (5.0, PROXY)),
        Route("an HTTPProxy", item("HTTPProxy", status={"currentStatus": "valid"}), Policy(), (5.0, PROXY)),
        Route("a GatewayRoute", item("GatewayRoute", status={"observedGeneration": 0}), Policy(), (5.0, PROXY)),
    ],
    ids=lambda case: case.name,
)
def test_how_long_a_route_takes_to_settle(case):
    found = made(case.ingress, policy=case.policy).entries[0]
    assert (found.settle_seconds, found.unverified) == case.want


def test_an_owner_with_parts_in_several_phases_is_held_and_goes_last():
    app = item("App", finalizers=("test.dev/app",))
    parts = (item("Service", owners=(app,)), item("Deployment", owners=(app,)), item("ConfigMap", owners=(app,)))
    ledger = made(app, *parts, named=(app,))
    found = ledger.by_uid()
    assert (found[app.uid].hold, found[app.uid].phase, found[app.uid].after) == (True, Phase.RELEASE, ())
    for part in parts:
        assert (found[part.uid].disposition, found[part.uid].owner) == (Disposition.DELETE, app.uid)
    assert uid("Deployment") in found[uid("ConfigMap")].after  # nothing is known about it: a running pod may read it


def test_one_that_is_owned_by_what_cannot_be_held_goes_before_it():
    """The collector would take it, and its parts in any order."""
    anchor = item("ConfigMap", "anchor")
    app = item("App", owners=(anchor,))
    parts = (item("Service", owners=(app,)), item("Deployment", owners=(app,)))
    found = made(anchor, app, *parts, named=(anchor,)).by_uid()
    assert (found[app.uid].disposition, found[app.uid].hold) == (Disposition.DELETE, True)
    assert found[anchor.uid].after == (app.uid,)


def test_an_owner_of_one_phase_takes_its_parts_along():
    app = item("App")
    ledger = made(app, item("Deployment", owners=(app,)), named=(app,))
    found = ledger.by_uid()
    assert (found[app.uid].hold, found[app.uid].phase) == (False, Phase.STOP)
    assert found[uid("Deployment")].disposition is COLLECT


def test_what_another_is_deleting_is_left_to_its_controller_unless_it_was_us():
    """A plan after a crash finds our hold, and continues with the parts."""
    for finalizers, disposition in (("test.dev/app",), COLLECT), (("test.dev/app", HOLD), Disposition.DELETE):
        app = item("App", finalizers=finalizers, terminating=True)
        parts = (item("Service", owners=(app,)), item("Deployment", owners=(app,)))
        found = made(app, *parts, named=(app,)).by_uid()
        assert {found[part.uid].disposition for part in parts} == {disposition}
        assert not found[app.uid].hold  # nothing can be put on it any more


NOBODY = {"is_abandoned": lambda world, item, finalizer: finalizer == "test.dev/app"}


@pytest.mark.parametrize("kind", ["App", "Deployment"])
@pytest.mark.parametrize("terminating", [False, True])
def test_the_parts_of_one_that_nobody_lets_go_of_are_ours_if_we_are_asked(kind, terminating):
    """The collector takes them when it is gone, and that would be never."""
    whole = item(kind, "whole", finalizers=("test.dev/app", "other"), terminating=terminating)
    part = item("ReplicaSet", owners=(whole,))
    world = world_of(whole, part)
    for adopt, disposition in (True, Disposition.DELETE), (False, COLLECT):
        found = make_ledger(world, relate(world), [whole], Policy(), adopt=adopt, **NOBODY).by_uid()
        assert (found[part.uid].disposition, found[part.uid].owner) == (disposition, whole.uid)
        assert found[whole.uid].abandoned == (("test.dev/app",) if adopt else ())
        assert found[whole.uid].hold == (adopt and not terminating)


def test_going_on_takes_in_what_is_new_and_loses_nothing():
    claim, late = item("PersistentVolumeClaim"), item("Secret", "late", owners=(DEPLOYMENT,))
    again = item("ReplicaSet", uid_="another")
    world = world_of(DEPLOYMENT, REPLICA_SET, POD, claim)
    edges = [Edge(DEPLOYMENT, Relation.MOUNTS, claim.name, claim, "spec")]
    saved = make_ledger(world, Graph(edges), [DEPLOYMENT], Policy(timeout_seconds=7.0))
    assert [each.uid for each in saved.kept] == [claim.uid]
    now = world_of(DEPLOYMENT, late, again, claim)
    ledger = plan_again(saved, now, Graph([Edge(claim, Relation.OWNS, DEPLOYMENT.name, DEPLOYMENT, "metadata")]))
    found = ledger.by_uid()
    assert found.keys() == saved.by_uid().keys() | {late.uid}
    assert (found[late.uid].disposition, found[late.uid].owner) == (COLLECT, DEPLOYMENT.uid)
    assert [each.uid for each in ledger.kept] == [claim.uid]
    assert ledger.policy == saved.policy


def test_going_on_keeps_what_was_kept():
    """Another one mounted it then: by now it could be adopted, and what it owns would go along."""
    other, part = item("Deployment", "other"), item("Secret", "part", owners=(CONFIG,))
    mounts = [Edge(each, Relation.MOUNTS, CONFIG.name, CONFIG, "spec") for each in (DEPLOYMENT, other)]
    saved = make_ledger(world_of(DEPLOYMENT, other, CONFIG), Graph(mounts), [DEPLOYMENT], Policy(), adopt=True)
    ledger = plan_again(saved, world_of(DEPLOYMENT, CONFIG, part), Graph(mounts[:1]))
    assert [each.uid for each in ledger.kept] == [CONFIG.uid]
    assert [each.uid for each in ledger.going] == [DEPLOYMENT.uid]


@pytest.mark.parametrize("adopt", [False, True])
def test_going_on_adopts_what_refers_to_it_by_now_if_that_was_asked_for(adopt):
    saved = made(SERVICE, adopt=adopt)
    world = world_of(SERVICE, INGRESS)
    ledger = plan_again(saved, world, relate(world))
    assert (INGRESS.uid in ledger.by_uid()) == adopt
    assert (ledger.by_uid()[SERVICE.uid].after == (INGRESS.uid,)) == adopt
    assert [pointer.uid for pointer in ledger.pointers] == ([] if adopt else [INGRESS.uid])


def test_a_namespace_goes_after_all_that_is_in_it():
    ledger = made(NAMESPACE, *RUNS, SERVICE, LONELY, named=(NAMESPACE,))
    found = ledger.by_uid()
    assert {*found[NAMESPACE.uid].after} == {uid("Deployment"), uid("Service"), LONELY.uid}
    assert found[LONELY.uid].last


def test_what_owns_something_that_runs_does_not_wait_for_it():
    """An owner without a workload of its own: a ConfigMap that a controller makes the owner of its pods."""
    anchor = item("ConfigMap", "anchor")
    ledger = made(anchor, item("Pod", owners=(anchor,)), named=(anchor,))
    assert not ledger.by_uid()[anchor.uid].last


def test_what_stays_is_taken_off_all_its_owners_that_go():
    one, two, three = item("App", "one"), item("App", "two"), item("App", "three")
    config = item("ConfigMap", owners=(one, two, three))
    ledger = made(one, two, three, config, named=(one, two), policy=Policy(keep=frozenset({Keep.CONFIGS})))
    assert [(each.uid, each.disown) for each in ledger.kept] == [(config.uid, (one.uid, two.uid))]


def test_who_keeps_a_finalizer_goes_after_what_it_is_on():
    app = item("App", finalizers=("test.dev/app",))
    world = world_of(DEPLOYMENT, REPLICA_SET, POD, app)
    ledger = make_ledger(
        world, relate(world), [DEPLOYMENT, app], Policy(), owner_of_finalizer=lambda world, item, finalizer: DEPLOYMENT
    )
    assert app.uid in ledger.by_uid()[DEPLOYMENT.uid].after
    assert not ledger.by_uid()[app.uid].last


def test_a_circle_is_reported_and_goes_together():
    one, two = item("App", "one"), item("App", "two")
    edges = [
        Edge(one, Relation.NEEDS, two.name, two, "spec.needs"),
        Edge(two, Relation.NEEDS, one.name, one, "spec.needs"),
    ]
    world = world_of(one, two)
    ledger = make_ledger(world, Graph(edges), [one, two], Policy())
    assert [{*circle} for circle in ledger.cycles] == [{one.uid, two.uid}]
    assert [each.after for each in ledger.entries] == [(), ()]


def test_a_circle_that_a_definition_closes_is_reported_as_well():
    """The definition waits for its objects, and one of them for a Service that the definition needs."""
    definition = item("CustomResourceDefinition", "apps.test.dev")
    app = item("App")
    edges = [
        Edge(definition, Relation.TARGETS, SERVICE.name, SERVICE, "spec.conversion"),
        Edge(SERVICE, Relation.NEEDS, app.name, app, "spec"),
    ]
    ledger = make_ledger(world_of(definition, app, SERVICE), Graph(edges), [definition, SERVICE], Policy())
    assert [{*circle} for circle in ledger.cycles] == [{definition.uid, app.uid, SERVICE.uid}]
