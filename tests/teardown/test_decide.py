"""One decision at a time: what is done and what is waited for, for each thing that can be the case."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from pilotage.catalogue.names import FOREGROUND, ORPHAN
from pilotage.catalogue.phase import Phase
from pilotage.kube.errors import ErrorClass
from pilotage.kube.wire import format_time
from pilotage.teardown.engine.decide import decide
from pilotage.teardown.engine.decision import Act, Action, Cause, Decision, Observation, Refusal, Wait, Withheld
from pilotage.teardown.planning.ledger import HOLD, Disposition, Entry, Ledger
from pilotage.teardown.snapshot.world import State
from tests.teardown.building import (
    FOREIGN,
    GONE,
    NOW,
    PRESENT,
    STARTED,
    UNKNOWN,
    UNTIL,
    entry,
    ledger,
    seconds,
    terminating,
    uid,
)

DEPLOYMENT = entry("Deployment")
REPLICA_SET = entry("ReplicaSet", disposition=Disposition.COLLECT, owner=uid("Deployment"))
POD = entry("Pod", disposition=Disposition.COLLECT, owner=uid("ReplicaSet"))
OWN_POD = entry("Pod", disposition=Disposition.COLLECT, owner=uid("Deployment"))
INGRESS = entry("Ingress")
SLOW_INGRESS = entry("Ingress", settle_seconds=5.0)
SERVICE = entry("Service", after=(uid("Deployment"),))
AFTER_INGRESS = entry("Deployment", after=(uid("Ingress"),))
LAST = entry("ConfigMap", last=True)
OWNER = entry("App", hold=True, phase=Phase.RELEASE)
ABANDONED = entry("App", hold=True, phase=Phase.RELEASE, abandoned=("test.dev/x",))
PART = entry("Service", owner=uid("App"))
LATER_PART = entry("ConfigMap", owner=uid("App"), after=(uid("Service"),))
KEPT = entry("ConfigMap", disposition=Disposition.KEEP, disown=(uid("App"),))
OWNED = Observation(State.PRESENT, owners=(uid("App"),))
MANAGER = "kube-controller-manager"


def wait(of: Entry, cause: Cause, actor: str, text: str, since=STARTED, until=UNTIL, again=None) -> Wait:
    return Wait(of, cause, actor, text, since, until, again)


def refused(act: Act, error_class: ErrorClass, *, since: float = 1, retry: float = 1) -> Refusal:
    return Refusal(act, error_class, "no", NOW - seconds(since), NOW + seconds(retry))


@dataclass(frozen=True)
class Case:
    name: str
    ledger: Ledger
    observations: dict[str, Observation]
    want: Decision
    refusals: dict[str, Refusal] = field(default_factory=dict)


LEFT = entry("App", abandoned=("a.dev/x",))
AFTER_LEFT = entry("Stage", after=(LEFT.uid,))

CASES = [
    Case("all gone is ready for the proof", ledger(INGRESS), {INGRESS.uid: GONE}, Decision(Phase.PROVE, (), ())),
    Case("another of its name counts as gone, and is left alone", ledger(INGRESS), {INGRESS.uid: FOREIGN},
         Decision(Phase.PROVE, (), ())),
    Case("what waits for nothing is deleted, as its entry says", ledger(DEPLOYMENT), {DEPLOYMENT.uid: PRESENT},
         Decision(Phase.STOP, (Action(Act.DELETE, DEPLOYMENT),), ())),
    Case("what was not read is unknown, and waited for", ledger(INGRESS), {},
         Decision(Phase.DETACH, (), (
             wait(INGRESS, Cause.UNREADABLE, "the API server", "it cannot be read: it was not read",
                  again=NOW + seconds(2)),))),
    Case("unknown is not gone: what comes after it waits", ledger(INGRESS, AFTER_INGRESS),
         {INGRESS.uid: UNKNOWN, AFTER_INGRESS.uid: PRESENT},
         Decision(Phase.DETACH, (), (
             wait(INGRESS, Cause.UNREADABLE, "the API server", "it cannot be read: no answer", again=NOW + seconds(2)),
             wait(AFTER_INGRESS, Cause.ORDER, "ingress/web -n shop", "ingress/web -n shop goes first")))),
    Case("what was gone long enough is waited for no more", ledger(SLOW_INGRESS, AFTER_INGRESS),
         {INGRESS.uid: GONE, AFTER_INGRESS.uid: PRESENT},
         Decision(Phase.STOP, (Action(Act.DELETE, AFTER_INGRESS),), ())),
    Case("a route that has just gone is given its time", ledger(SLOW_INGRESS, AFTER_INGRESS),
         {INGRESS.uid: Observation(State.GONE, gone_at=NOW - seconds(2)), AFTER_INGRESS.uid: PRESENT},
         Decision(Phase.DRAIN, (), (
             wait(AFTER_INGRESS, Cause.ROUTER, "the router",
                  "ingress/web -n shop is gone; what it sent is given 5 s to end",
                  since=NOW - seconds(2), until=NOW + seconds(3), again=NOW + seconds(3)),))),
    Case("what owns something is not over while that is there", ledger(DEPLOYMENT, REPLICA_SET, SERVICE),
         {DEPLOYMENT.uid: GONE, REPLICA_SET.uid: terminating(FOREGROUND, since=5), SERVICE.uid: PRESENT},
         Decision(Phase.STOP, (), (
             wait(REPLICA_SET, Cause.COLLECTOR, MANAGER, "its foreground deletion ends",
                  since=NOW - seconds(5), until=NOW + seconds(5), again=NOW + seconds(5)),
             wait(SERVICE, Cause.ORDER, "deployment/web -n shop", "deployment/web -n shop goes first")))),
    Case("what nothing is known about waits for all that runs", ledger(DEPLOYMENT, LAST),
         {DEPLOYMENT.uid: terminating(), LAST.uid: PRESENT},
         Decision(Phase.STOP, (), (
             wait(DEPLOYMENT, Cause.COLLECTOR, "the API server", "it is being removed", since=NOW - seconds(1)),
             wait(LAST, Cause.ORDER, "what runs there", "goes when nothing runs in its namespace any more")))),
    Case("what is collected waits for its owner", ledger(DEPLOYMENT, REPLICA_SET),
         {DEPLOYMENT.uid: PRESENT, REPLICA_SET.uid: PRESENT},
         Decision(Phase.STOP, (Action(Act.DELETE, DEPLOYMENT),), (
             wait(REPLICA_SET, Cause.ORDER, "deployment/web -n shop", "goes with deployment/web -n shop"),))),
    Case("the collector is given time", ledger(DEPLOYMENT, REPLICA_SET),
         {DEPLOYMENT.uid: Observation(State.GONE, gone_at=NOW - seconds(4)), REPLICA_SET.uid: PRESENT},
         Decision(Phase.STOP, (), (
             wait(REPLICA_SET, Cause.COLLECTOR, MANAGER,
                  "the collector has not deleted it yet; deployment/web -n shop went",
                  since=NOW - seconds(4), again=NOW + seconds(6)),))),
    Case("what the collector has forgotten is deleted", ledger(DEPLOYMENT, REPLICA_SET),
         {DEPLOYMENT.uid: GONE, REPLICA_SET.uid: PRESENT},
         Decision(Phase.STOP, (Action(Act.DELETE, REPLICA_SET),), ())),
    Case("with an owner that goes in the background, its parts go when it is gone", ledger(DEPLOYMENT, REPLICA_SET),
         {DEPLOYMENT.uid: terminating("test.dev/x"), REPLICA_SET.uid: PRESENT},
         Decision(Phase.STOP, (), (
             wait(DEPLOYMENT, Cause.FINALIZER, "the controller that put it there", "finalizer test.dev/x",
                  since=NOW - seconds(1)),
             wait(REPLICA_SET, Cause.ORDER, "deployment/web -n shop", "goes when deployment/web -n shop is gone",
                  again=NOW + seconds(1))))),
    Case("what runs below a workload that a finalizer keeps does not serve on", ledger(DEPLOYMENT, REPLICA_SET, POD),
         {DEPLOYMENT.uid: terminating("test.dev/x", since=3), REPLICA_SET.uid: PRESENT, POD.uid: PRESENT},
         Decision(Phase.STOP, (Action(Act.DELETE, REPLICA_SET),), (
             wait(DEPLOYMENT, Cause.FINALIZER, "the controller that put it there", "finalizer test.dev/x",
                  since=NOW - seconds(3)),
             wait(POD, Cause.ORDER, "replicaset/web -n shop", "goes with replicaset/web -n shop")))),
    Case("a volume below such a workload waits for it", ledger(
        DEPLOYMENT, entry("PersistentVolumeClaim", owner=uid("Deployment"), disposition=Disposition.COLLECT)),
         {DEPLOYMENT.uid: terminating("test.dev/x", since=3), uid("PersistentVolumeClaim"): PRESENT},
         Decision(Phase.STOP, (), (
             wait(DEPLOYMENT, Cause.FINALIZER, "the controller that put it there", "finalizer test.dev/x",
                  since=NOW - seconds(3)),
             wait(entry("PersistentVolumeClaim", owner=uid("Deployment"), disposition=Disposition.COLLECT), Cause.ORDER,
                  "deployment/web -n shop", "goes when deployment/web -n shop is gone")))),
    Case("what is to be orphaned below such a workload stays", ledger(DEPLOYMENT, REPLICA_SET),
         {DEPLOYMENT.uid: terminating("test.dev/x", ORPHAN, since=3), REPLICA_SET.uid: PRESENT},
         Decision(Phase.STOP, (), (
             wait(DEPLOYMENT, Cause.FINALIZER, "the controller that put it there", "finalizer test.dev/x",
                  since=NOW - seconds(3)),
             wait(REPLICA_SET, Cause.ORDER, "deployment/web -n shop", "goes when deployment/web -n shop is gone")))),
    Case("parts of an owner that is no workload are its controller's", ledger(
        entry("App"), entry("Service", owner=uid("App"), disposition=Disposition.COLLECT)),
         {uid("App"): terminating("test.dev/x", since=3), uid("Service"): PRESENT},
         Decision(Phase.REMOVE, (), (
             wait(entry("App"), Cause.FINALIZER, "the controller that put it there", "finalizer test.dev/x",
                  since=NOW - seconds(3)),
             wait(entry("Service", owner=uid("App"), disposition=Disposition.COLLECT), Cause.ORDER,
                  "app/web -n shop", "goes when app/web -n shop is gone")))),
    Case("a pod is given its grace", ledger(POD), {POD.uid: terminating(since=-20, grace=30)},
         Decision(Phase.STOP, (), (
             wait(POD, Cause.GRACE, "the kubelet", "20 s of grace left", since=NOW - seconds(10)),))),
    Case("a pod whose grace is over", ledger(POD), {POD.uid: terminating(since=20, grace=30)},
         Decision(Phase.STOP, (), (
             wait(POD, Cause.GRACE, "the kubelet", "its grace is over; the kubelet has not confirmed its end",
                  since=NOW - seconds(50)),))),
    Case("a foreground deletion waits for its parts", ledger(DEPLOYMENT, OWN_POD),
         {DEPLOYMENT.uid: terminating(FOREGROUND, since=60), POD.uid: terminating(since=-5, grace=30)},
         Decision(Phase.STOP, (), (
             wait(DEPLOYMENT, Cause.COLLECTOR, MANAGER, "pod/web -n shop goes first", since=NOW - seconds(60)),
             wait(OWN_POD, Cause.GRACE, "the kubelet", "5 s of grace left", since=NOW - seconds(25))))),
    Case("one that nobody goes on with is driven again", ledger(DEPLOYMENT),
         {DEPLOYMENT.uid: terminating(FOREGROUND, since=60)},
         Decision(Phase.STOP, (Action(Act.REDRIVE, DEPLOYMENT),), ())),
    Case("orphaning is waited for", ledger(DEPLOYMENT), {DEPLOYMENT.uid: terminating(ORPHAN)},
         Decision(Phase.STOP, (), (
             wait(DEPLOYMENT, Cause.COLLECTOR, MANAGER, "its dependents are being orphaned",
                  since=NOW - seconds(1)),))),
    Case("an owner whose parts go one by one is held first", ledger(OWNER, PART),
         {OWNER.uid: PRESENT, PART.uid: PRESENT},
         Decision(Phase.CORDON, (Action(Act.HOLD, OWNER),), (
             wait(PART, Cause.ORDER, "app/web -n shop", "app/web -n shop is marked first"),))),
    Case("then it is marked", ledger(OWNER, PART),
         {OWNER.uid: Observation(State.PRESENT, (HOLD,)), PART.uid: PRESENT},
         Decision(Phase.CORDON, (Action(Act.DELETE, OWNER),), (
             wait(PART, Cause.ORDER, "app/web -n shop", "app/web -n shop is marked first"),))),
    Case("then its parts go, in order", ledger(OWNER, PART, LATER_PART),
         {OWNER.uid: terminating(HOLD), PART.uid: PRESENT, LATER_PART.uid: PRESENT},
         Decision(Phase.REMOVE, (Action(Act.DELETE, PART),), (
             wait(OWNER, Cause.HELD, "pilotage", "its parts go first; service/web -n shop is left",
                  since=NOW - seconds(1)),
             wait(LATER_PART, Cause.ORDER, "service/web -n shop", "service/web -n shop goes first")))),
    Case("but not while its controller may not know yet, and would bring them back", ledger(OWNER, PART),
         {OWNER.uid: terminating(HOLD, "test.dev/x"), PART.uid: PRESENT},
         Decision(Phase.REMOVE, (), (
             wait(OWNER, Cause.HELD, "pilotage", "its parts go first; service/web -n shop is left",
                  since=NOW - seconds(1)),
             wait(PART, Cause.FINALIZER, "the controller that put it there", "finalizer test.dev/x on app/web -n shop: "
                  "the controller that put it there might not know yet and bring this back",
                  until=NOW + seconds(1), again=NOW + seconds(1))))),
    Case("that is not waited for long", ledger(OWNER, PART),
         {OWNER.uid: terminating(HOLD, "test.dev/x")._replace(deletion=format_time(NOW - seconds(2))),
          PART.uid: PRESENT},
         Decision(Phase.REMOVE, (Action(Act.DELETE, PART),), (
             wait(OWNER, Cause.HELD, "pilotage", "its parts go first; service/web -n shop is left",
                  since=NOW - seconds(2)),))),
    Case("nor where it is known that nobody runs", ledger(ABANDONED, PART),
         {OWNER.uid: terminating(HOLD, "test.dev/x"), PART.uid: PRESENT},
         Decision(Phase.REMOVE, (Action(Act.DELETE, PART),), (
             wait(ABANDONED, Cause.HELD, "pilotage", "its parts go first; service/web -n shop is left",
                  since=NOW - seconds(1)),))),
    Case("then it is let go, though others hold it, too", ledger(OWNER, PART),
         {OWNER.uid: terminating(HOLD, "test.dev/x"), PART.uid: GONE},
         Decision(Phase.RELEASE, (Action(Act.RELEASE, OWNER),), ())),
    Case("it is not let go while a part is unknown", ledger(OWNER, PART),
         {OWNER.uid: terminating(HOLD), PART.uid: UNKNOWN},
         Decision(Phase.REMOVE, (), (
             wait(OWNER, Cause.HELD, "pilotage", "its parts go first; service/web -n shop is left",
                  since=NOW - seconds(1)),
             wait(PART, Cause.UNREADABLE, "the API server", "it cannot be read: no answer", again=NOW + seconds(2))))),
    Case("a part that was to be collected is deleted where the owner is held", ledger(
        OWNER, entry("Service", owner=uid("App"), disposition=Disposition.COLLECT)),
         {OWNER.uid: terminating(HOLD), PART.uid: PRESENT},
         Decision(Phase.REMOVE, (
             Action(Act.DELETE, entry("Service", owner=uid("App"), disposition=Disposition.COLLECT)),), (
             wait(OWNER, Cause.HELD, "pilotage", "its parts go first; service/web -n shop is left",
                  since=NOW - seconds(1)),))),
    Case("a hold that was refused once is tried again", ledger(OWNER), {OWNER.uid: PRESENT},
         Decision(Phase.CORDON, (), (
             wait(OWNER, Cause.REFUSED, "the API server", "hold was refused (forbidden): no",
                  since=NOW - seconds(1), again=NOW + seconds(1)),)),
         {OWNER.uid: refused(Act.HOLD, ErrorClass.FORBIDDEN)}),
    Case("a hold that is refused for good is done without, and that is noted", ledger(OWNER), {OWNER.uid: PRESENT},
         Decision(Phase.CORDON, (Action(Act.DELETE, OWNER),), (), (
             "app/web -n shop could not be held, so its parts may go in any order: no",)),
         {OWNER.uid: refused(Act.HOLD, ErrorClass.FORBIDDEN, since=3)}),
    Case("and it does not begin with the hold again when the delete is refused", ledger(OWNER), {OWNER.uid: PRESENT},
         Decision(Phase.CORDON, (), (
             wait(OWNER, Cause.REFUSED, "the API server", "delete was refused (unavailable): no",
                  since=NOW - seconds(1), again=NOW + seconds(1)),)),
         {OWNER.uid: refused(Act.DELETE, ErrorClass.UNAVAILABLE)}),
    Case("what stays is taken off its owner, which waits for that", ledger(OWNER, KEPT),
         {OWNER.uid: PRESENT, KEPT.uid: OWNED},
         Decision(Phase.REMOVE, (Action(Act.DISOWN, KEPT),), (
             wait(OWNER, Cause.ORDER, "configmap/web -n shop", "configmap/web -n shop is let go first"),))),
    Case("what stays and cannot be read is waited for", ledger(OWNER, KEPT),
         {OWNER.uid: PRESENT, KEPT.uid: UNKNOWN},
         Decision(Phase.REMOVE, (), (
             wait(OWNER, Cause.ORDER, "configmap/web -n shop", "configmap/web -n shop is let go first"),
             wait(KEPT, Cause.UNREADABLE, "the API server", "it cannot be read: no answer", again=NOW + seconds(2))))),
    Case("nor is what carries its owner along", ledger(
        entry("Stage"), entry("App", disposition=Disposition.COLLECT, owner=uid("Stage")), KEPT),
         {uid("Stage"): PRESENT, OWNER.uid: PRESENT, KEPT.uid: OWNED},
         Decision(Phase.REMOVE, (Action(Act.DISOWN, KEPT),), (
             wait(entry("Stage"), Cause.ORDER, "configmap/web -n shop", "configmap/web -n shop is let go first"),
             wait(entry("App", disposition=Disposition.COLLECT, owner=uid("Stage")), Cause.ORDER,
                  "stage/web -n shop", "goes with stage/web -n shop")))),
    Case("it is not over while what stays still has an owner that is gone", ledger(OWNER, KEPT),
         {OWNER.uid: GONE, KEPT.uid: OWNED},
         Decision(Phase.REMOVE, (Action(Act.DISOWN, KEPT),), ())),
    Case("what stays and is nobody's needs nothing", ledger(OWNER, KEPT), {OWNER.uid: GONE, KEPT.uid: PRESENT},
         Decision(Phase.PROVE, (), ())),
    Case("what was refused is tried again when its time has come", ledger(INGRESS), {INGRESS.uid: PRESENT},
         Decision(Phase.DETACH, (Action(Act.DELETE, INGRESS),), ()),
         {INGRESS.uid: refused(Act.DELETE, ErrorClass.UNAVAILABLE, retry=0)}),
    Case("if all that is left is forbidden, it is hopeless", ledger(INGRESS, AFTER_INGRESS),
         {INGRESS.uid: PRESENT, AFTER_INGRESS.uid: PRESENT},
         Decision(Phase.DETACH, (), (
             wait(INGRESS, Cause.REFUSED, "the API server", "delete was refused (forbidden): no",
                  since=NOW - seconds(3), again=NOW + seconds(1)),
             wait(AFTER_INGRESS, Cause.ORDER, "ingress/web -n shop", "ingress/web -n shop goes first")),
                  hopeless=True),
         {INGRESS.uid: refused(Act.DELETE, ErrorClass.FORBIDDEN, since=3)}),
    Case("if nobody runs who would let go of what is left, it is hopeless", ledger(LEFT, AFTER_LEFT),
         {LEFT.uid: terminating("a.dev/x"), AFTER_LEFT.uid: PRESENT},
         Decision(Phase.REMOVE, (), (
             wait(LEFT, Cause.FINALIZER, "the controller that put it there", "finalizer a.dev/x",
                  since=NOW - seconds(1)),
             wait(AFTER_LEFT, Cause.ORDER, "app/web -n shop", "app/web -n shop goes first")),
                  hopeless=True)),
    Case("if somebody else has yet to let go of it, it is not", ledger(LEFT),
         {LEFT.uid: terminating("a.dev/x", "b.dev/y")},
         Decision(Phase.REMOVE, (), (
             wait(LEFT, Cause.FINALIZER, "the controller that put it there", "finalizer a.dev/x, b.dev/y",
                  since=NOW - seconds(1)),))),
    Case("if something else is under way, it is not", ledger(INGRESS, POD),
         {INGRESS.uid: PRESENT, POD.uid: terminating(since=-5, grace=30)},
         Decision(Phase.DETACH, (), (
             wait(INGRESS, Cause.REFUSED, "the API server", "delete was refused (forbidden): no",
                  since=NOW - seconds(3), again=NOW + seconds(1)),
             wait(POD, Cause.GRACE, "the kubelet", "5 s of grace left", since=NOW - seconds(25)))),
         {INGRESS.uid: refused(Act.DELETE, ErrorClass.FORBIDDEN, since=3)}),
    Case("a namespace is emptied by its controller", ledger(entry("Namespace", "shop")),
         {uid("Namespace", "shop"): terminating()},
         Decision(Phase.RELEASE, (), (
             wait(entry("Namespace", "shop"), Cause.NAMESPACE, MANAGER, "the namespace is being emptied",
                  since=NOW - seconds(1)),))),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_decision(case):
    assert decide(case.ledger, case.observations, case.refusals, NOW) == case.want


def test_the_same_call_gives_the_same_decision():
    for case in CASES:
        first = decide(case.ledger, case.observations, case.refusals, NOW)
        assert decide(case.ledger, case.observations, case.refusals, NOW) == first


def test_a_decision_after_the_deadline_still_says_what_is_waited_for():
    late = UNTIL + seconds(1)
    decision = decide(ledger(POD), {POD.uid: terminating(since=5)}, {}, late)
    assert [(each.entry, each.until) for each in decision.waits] == [(POD, UNTIL)]


@pytest.mark.parametrize(("draining", "phase"), [(False, Phase.DETACH), (True, Phase.DRAIN)])
def test_what_is_withheld_is_not_deleted_and_what_waits_for_it_waits(draining, phase):
    held = Withheld("the gateway", "2 requests are still under way", NOW + seconds(2), draining)
    seen = {INGRESS.uid: PRESENT, AFTER_INGRESS.uid: PRESENT}
    decision = decide(ledger(INGRESS, AFTER_INGRESS), seen, {}, NOW, withheld={INGRESS.uid: held})
    assert decision == Decision(phase, (), (
        wait(INGRESS, Cause.ROUTER, "the gateway", "2 requests are still under way", again=NOW + seconds(2)),
        wait(AFTER_INGRESS, Cause.ORDER, "ingress/web -n shop", "ingress/web -n shop goes first"),
    ))  # fmt: skip


def test_what_is_withheld_is_looked_at_again_when_it_is_time():
    held = Withheld("the gateway", "it drains", NOW, draining=True)
    decision = decide(ledger(INGRESS), {INGRESS.uid: PRESENT}, {}, NOW, withheld={INGRESS.uid: held})
    assert decision.actions == (Action(Act.DELETE, INGRESS),)


JUST_GONE = Observation(State.GONE, gone_at=NOW)


def test_what_few_owners_leave_behind_is_not_left_to_the_collector():
    parts = ledger(DEPLOYMENT, REPLICA_SET)
    owned = Observation(State.PRESENT, owners=(DEPLOYMENT.uid,))
    decision = decide(parts, {DEPLOYMENT.uid: JUST_GONE, REPLICA_SET.uid: owned}, {}, NOW, hasten=True)
    assert decision.actions == (Action(Act.DELETE, REPLICA_SET),)


@pytest.mark.parametrize(
    ("owner", "part"),
    [
        (JUST_GONE, Observation(State.PRESENT, owners=(DEPLOYMENT.uid, "somebody else"))),
        (JUST_GONE._replace(state=State.FOREIGN), Observation(State.PRESENT, owners=(DEPLOYMENT.uid,))),
        (terminating(FOREGROUND), Observation(State.PRESENT, owners=(DEPLOYMENT.uid,))),
        (PRESENT, Observation(State.PRESENT, owners=(DEPLOYMENT.uid,))),
    ],
    ids=["another owns it, too", "another has the owner's name", "the owner is not gone", "the owner does not go"],
)
def test_nobody_is_hasty_where_it_may_be_wrong(owner, part):
    decision = decide(
        ledger(DEPLOYMENT, REPLICA_SET), {DEPLOYMENT.uid: owner, REPLICA_SET.uid: part}, {}, NOW, hasten=True
    )
    assert Action(Act.DELETE, REPLICA_SET) not in decision.actions
