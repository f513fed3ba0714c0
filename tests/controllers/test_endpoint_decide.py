"""One decision at a time: the steps of a reconcile, for each thing that can be the case."""

from __future__ import annotations

import datetime as dt
import inspect
import itertools
from dataclasses import dataclass, field
from typing import Any

import pytest

from pilotage.api.endpoint import EndpointSpec
from pilotage.controllers.endpoint import decide as module
from pilotage.controllers.endpoint.decide import PODS_AFTER, EndpointDecision, decide
from pilotage.controllers.endpoint.problem import EndpointProblem
from pilotage.controllers.endpoint.revisions import RequestedRevision, Revision, RevisionHistory
from pilotage.controllers.endpoint.steps import (
    AddFinalizer,
    AnnounceServing,
    AppliedParts,
    ApplyParts,
    BeginRevision,
    DryRun,
    EndpointStep,
    ListPods,
    MoveRoute,
    Observed,
    ObservedPart,
    TearDown,
    WriteStatus,
)
from pilotage.controllers.routing import Routed
from pilotage.kube.wire import format_time
from pilotage.serving.parts import Capabilities, EndpointRef, Readiness, ResolvedModel
from pilotage.serving.resources import AUTOSCALERS, CLAIMS, DEPLOYMENTS, JOBS, SERVICES
from pilotage.traffic.contract import Backend, Mix
from pilotage.traffic.routers.httpproxy import HTTP_PROXIES
from pilotage.traffic.routers.ingress import INGRESSES

NOW = dt.datetime(2026, 11, 17, 12, tzinfo=dt.UTC)
OLD = NOW - PODS_AFTER
CAPABILITIES = Capabilities(fetch_image="pilotage:test")
MODEL = ResolvedModel("chat", "hf://org/repo/model.gguf")
OTHER_MODEL = ResolvedModel("newer", "hf://org/repo/newer.gguf")
PORT = 80


def endpoint(**spec: Any) -> EndpointRef:
    given = {"model": {"source": MODEL.source}, "route": {"kind": "Ingress", "host": "chat.example.com"}} | spec
    return EndpointRef("default", "chat", "u1", EndpointSpec.read(given))


CHAT = endpoint()
UNROUTED = endpoint(route={"kind": "None"})
RECREATED = endpoint(strategy={"type": "Recreate"})
ON_HOST = endpoint(placement={"kind": "Host", "host": "box"})


def past(*states: str, of: EndpointRef = CHAT, created: dt.datetime = NOW, **messages: str) -> RevisionHistory:
    """A history of revisions 1, 2, …, with the fingerprints a, b, …; `m2` is the message of revision 2."""
    written = [
        {
            "number": number,
            "created": format_time(created),
            "state": state,
            "message": messages.get(f"m{number}", ""),
            "fingerprint": "abc"[number - 1],
            "spec": of.spec.written(),
            "model": {key: value for key, value in model._asdict().items() if key != "other_names"},
            "names": [] if model is MODEL else ["chat"],
        }
        for number, state in enumerate(states, 1)
        for model in [MODEL if number == 1 else OTHER_MODEL]
    ]
    return RevisionHistory.read(written, of, CAPABILITIES)


def revision(number: int, of: EndpointRef = CHAT) -> Revision:
    return past("Current", "Starting", "Starting", of=of).revisions[number - 1]


A, B, C = RequestedRevision(MODEL, "a"), RequestedRevision(OTHER_MODEL, "b"), RequestedRevision(OTHER_MODEL, "c")
UP = Readiness(1, 1, True, "Available", "1 of 1 is ready.")
COMING = Readiness(0, 1, False, "Starting", "0 of 1 is ready.")
HOPELESS = COMING._replace(reason="ImagePullBackOff", message="no such tag.", failed=True, troubled=True)
UNSCHEDULABLE = COMING._replace(reason="Unschedulable", message="0/1 nodes are available.", troubled=True)
NONE_ASKED = Readiness(0, 0, False, "ScaledToZero", "")
MISSING = EndpointProblem("ModelMissing", "model/chat does not exist.")
REJECTED = EndpointProblem("Rejected", "the API server rejects deployment/chat-1: no.", retry_after=7.0)
NO_ROUTER = EndpointProblem("NoRouter", "route.kind Ingress is not served.")
MOVED = Routed(True, True, "Done", "It is programmed.", None, frozenset({"chat-1"}))
MOVED_ON = MOVED._replace(services=frozenset({"chat-2"}))
MOVING = Routed(False, False, "Moving", "The route is moved.", 1.0, frozenset({"chat-1", "chat-2"}))


UNPROVEN = MOVING._replace(reason="Waiting", services=frozenset({"chat-2"}))


def part(resource, name: str, number: int | None = None) -> ObservedPart:
    return ObservedPart(resource, name, f"{resource.kind}/{name}", "" if number is None else str(number))


FIRST = (part(DEPLOYMENTS, "chat-1", 1), part(SERVICES, "chat-1", 1))
SECOND = (part(DEPLOYMENTS, "chat-2", 2), part(SERVICES, "chat-2", 2))
ROUTE = part(INGRESSES, "chat")
FORMER_ROUTE = part(HTTP_PROXIES, "chat")
JOB = part(JOBS, "chat-1-step2", 1)
SCALER = part(AUTOSCALERS, "chat-1", 1)
CACHE = part(CLAIMS, "chat-cache")


def seen(requested: RequestedRevision | EndpointProblem = A, **more: Any) -> Observed:
    return Observed(requested, CAPABILITIES, **more)


def applied(problem: EndpointProblem | None = None, services: tuple[str, ...] = ("chat-1",), **ready: Readiness) -> Any:
    """`ready`: `r1` is that of revision 1."""
    return AppliedParts(problem, {int(name[1:]): each for name, each in ready.items()}, frozenset(services))


@dataclass(frozen=True)
class Case:
    name: str
    history: RevisionHistory
    observed: Observed
    want: tuple[EndpointStep, ...]
    then: RevisionHistory | None = None
    """The history after it; None: as before."""
    endpoint: EndpointRef = field(default=CHAT)


def _fourth() -> Revision:
    return Revision(4, CHAT, OTHER_MODEL._replace(other_names=("chat",)), "b", CAPABILITIES)


BOTH = ("chat-1", "chat-2")
TO_FIRST = MoveRoute(Mix((Backend("chat-1", PORT),)), (), ("chat",), frozenset({"chat-1"}))
REDEPLOYED = {"requested": B, "recorded": {1: "Previous", 2: "Current"}, "routed": MOVED_ON,
              "applied": applied(services=BOTH, r2=UP)}  # fmt: skip

# fmt: off
CASES = [
    # Revisions
    Case("without a model there is no revision", past(), seen(MISSING),
         (WriteStatus(MISSING, MISSING.message, requeue_after=300.0),)),
    Case("the finalizer comes before anything that is made", past(), seen(held=False),
         (AddFinalizer(), BeginRevision(revision(1))), past("Starting")),
    Case("a first revision begins", past(), seen(), (BeginRevision(revision(1)),), past("Starting")),
    Case("a former first revision that never served is abandoned", past("Starting"), seen(B),
         (BeginRevision(revision(2)),), past("Abandoned", "Starting", m1="Revision 2 was asked for instead.")),
    Case("while a revision serves, the next one is tried first", past("Current"), seen(B), (DryRun(revision(2)),)),
    Case("once it is accepted, it begins", past("Current"), seen(B, accepted=True), (BeginRevision(revision(2)),),
         past("Current", "Starting")),
    Case("if it is not, what serves is kept as it should be", past("Current"), seen(REJECTED),
         (ApplyParts(revision(1)),)),
    Case("and the problem is reported", past("Current"), seen(REJECTED, applied=applied(r1=UP), routed=MOVED),
         (WriteStatus(REJECTED, REJECTED.message, MOVED, requeue_after=7.0),)),

    # Returns
    Case("a spec that returns to the revision that serves makes nothing new", past("Current", "Starting"),
         seen(A, parts=(*FIRST, *SECOND, ROUTE)), (ApplyParts(revision(1)),),
         past("Current", "Abandoned", m2="The spec returned to revision 1.")),
    Case("why the other one failed is kept", past("Current", "Failed", m2="no such tag."), seen(A, parts=FIRST),
         (ApplyParts(revision(1)),), past("Current", "Abandoned", m2="no such tag.")),
    Case("the abandoned one goes once the status says so", past("Current", "Abandoned"),
         seen(parts=(*FIRST, *SECOND, ROUTE), recorded={1: "Current", 2: "Abandoned"}, routed=MOVED,
              applied=applied(services=BOTH, r1=UP)),
         (TearDown("Superseded", SECOND), WriteStatus(routed=MOVED, replacing=1))),
    Case("to an abandoned one that still has its parts, too", past("Current", "Abandoned", "Starting"),
         seen(B, parts=(*FIRST, *SECOND, ROUTE)), (ApplyParts(revision(1)), ApplyParts(revision(2))),
         past("Current", "Starting", "Abandoned", m3="The spec returned to revision 2.")),
    Case("a Job of it that goes says nothing about it", past("Current", "Starting"),
         seen(A, parts=(*FIRST, JOB, ROUTE), leaving=frozenset({JOB.uid}), teardowns=1), (ApplyParts(revision(1)),),
         past("Current", "Abandoned", m2="The spec returned to revision 1.")),
    Case("not to one that has none", past("Current", "Abandoned", "Starting"), seen(B, parts=(*FIRST, ROUTE)),
         (DryRun(_fourth()),)),
    Case("not to one that is being torn down", past("Current", "Starting", of=RECREATED),
         seen(A, parts=(*FIRST, ROUTE), leaving=frozenset({FIRST[0].uid}), teardowns=1),
         (DryRun(Revision(3, RECREATED, MODEL, "a", CAPABILITIES)),), endpoint=RECREATED),
    Case("not to one that another one has followed", past("Previous", "Current"), seen(A, parts=(*FIRST, *SECOND)),
         (DryRun(Revision(3, CHAT, MODEL._replace(other_names=("newer",)), "a", CAPABILITIES)),)),

    # Parts
    Case("the parts of a revision are made", past("Starting"), seen(), (ApplyParts(revision(1)),)),
    Case("what serves is kept up while the next one comes", past("Current", "Starting"), seen(B),
         (ApplyParts(revision(1)), ApplyParts(revision(2)))),
    Case("a part that cannot be made is reported, and in the history", past("Starting"),
         seen(applied=applied(REJECTED, r1=COMING)),
         (WriteStatus(REJECTED, REJECTED.message, requeue_after=7.0),), past("Failed", m1=REJECTED.message)),
    Case("a problem of the spec is reported before that of a part", past("Current"),
         seen(MISSING, applied=applied(REJECTED, r1=UP), routed=MOVED),
         (WriteStatus(MISSING, MISSING.message, MOVED, requeue_after=300.0),)),

    # Pods
    Case("a revision is given time before its pods are listed", past("Starting"), seen(applied=applied(r1=COMING)),
         (WriteStatus(requeue_after=10.0),)),
    Case("then they explain why it is not available", past("Starting", created=OLD), seen(applied=applied(r1=COMING)),
         (ListPods(revision(1)),)),
    Case("once in a reconcile", past("Starting", created=OLD), seen(applied=applied(r1=COMING), pods_listed=True),
         (WriteStatus(requeue_after=15.0),)),
    Case("a shortage is waited for", past("Starting", created=OLD),
         seen(applied=applied(r1=UNSCHEDULABLE), pods_listed=True),
         (WriteStatus(waiting_for=UNSCHEDULABLE.message, requeue_after=15.0),)),
    Case("a revision that cannot come up has failed", past("Starting", created=OLD),
         seen(applied=applied(r1=HOPELESS), pods_listed=True),
         (WriteStatus(waiting_for=HOPELESS.message, requeue_after=15.0),), past("Failed", created=OLD,
         m1=HOPELESS.message)),
    Case("and starts again if it can", past("Failed", created=OLD, m1=HOPELESS.message),
         seen(applied=applied(r1=COMING), pods_listed=True),
         (WriteStatus(requeue_after=15.0),), past("Starting", created=OLD)),
    Case("one without replicas has no pods", past("Starting", created=OLD), seen(applied=applied(r1=NONE_ASKED)),
         (WriteStatus(),)),
    Case("processes on a Host explain themselves", past("Starting", of=ON_HOST, created=OLD),
         seen(applied=applied(r1=COMING)), (WriteStatus(waiting_for=COMING.message),), endpoint=ON_HOST),

    # The route
    Case("an available revision gets the route", past("Starting"), seen(applied=applied(r1=UP)), (TO_FIRST,)),
    Case("it does not serve before the route is proven", past("Starting"),
         seen(applied=applied(r1=UP), routed=MOVING),
         (WriteStatus(None, MOVING.text, MOVING, requeue_after=1.0),)),
    Case("then it serves", past("Starting"), seen(applied=applied(r1=UP), routed=MOVED),
         (WriteStatus(routed=MOVED),), past("Current")),
    Case("without a route, it serves as soon as it is available", past("Starting", of=UNROUTED),
         seen(applied=applied(r1=UP)), (WriteStatus(),),
         past("Current", of=UNROUTED), UNROUTED),
    Case("and not before", past("Starting", of=UNROUTED), seen(applied=applied(r1=COMING)),
         (WriteStatus(requeue_after=10.0),), endpoint=UNROUTED),
    Case("a problem with the route is reported, and nothing goes", past("Current"),
         seen(parts=(*FIRST, FORMER_ROUTE), applied=applied(r1=UP), routed=NO_ROUTER),
         (WriteStatus(NO_ROUTER, NO_ROUTER.message, requeue_after=300.0),)),
    Case("the route stays where it is until the next revision is available", past("Current", "Starting"),
         seen(B, applied=applied(services=BOTH, r1=UP, r2=COMING)),
         (MoveRoute(Mix((Backend("chat-1", PORT),)), ("chat-2",), ("chat", "newer"), frozenset({"chat-1"})),)),
    Case("then it moves; both names of the model are valid meanwhile", past("Current", "Starting"),
         seen(B, applied=applied(services=BOTH, r1=UP, r2=UP)),
         (MoveRoute(Mix((Backend("chat-2", PORT),)), ("chat-1",), ("chat", "newer"), frozenset({"chat-2"})),)),
    Case("that it is where it was is no arrival", past("Current", "Starting"),
         seen(B, applied=applied(services=BOTH, r1=UP, r2=COMING), routed=MOVED, parts=(*FIRST, *SECOND, ROUTE),
              recorded={1: "Current", 2: "Starting"}),
         (WriteStatus(routed=MOVED, requeue_after=10.0),)),
    Case("a revision that serves and is not ready keeps the route", past("Current"),
         seen(applied=applied(r1=COMING)), (TO_FIRST._replace(reachable=frozenset()),)),
    Case("the shortest pause counts", past("Current"),
         seen(REJECTED, applied=applied(r1=COMING), routed=MOVING),
         (WriteStatus(REJECTED, REJECTED.message, MOVING, requeue_after=1.0),)),

    # Former parts
    Case("nothing goes that is needed", past("Current"),
         seen(parts=(*FIRST, ROUTE), recorded={1: "Current"}, applied=applied(r1=UP), routed=MOVED),
         (WriteStatus(routed=MOVED),)),
    Case("nothing goes before the status says which revision serves", past("Current", "Starting"),
         seen(B, parts=(*FIRST, *SECOND, ROUTE), recorded={1: "Current", 2: "Starting"},
              applied=applied(services=BOTH, r1=UP, r2=UP), routed=MOVED_ON),
         (AnnounceServing(revision(2)), WriteStatus(routed=MOVED_ON, replacing=1, requeue_after=0.0)),
         past("Previous", "Current")),
    Case("then the former revision goes", past("Previous", "Current"),
         seen(**REDEPLOYED, parts=(*FIRST, *SECOND, ROUTE)),
         (TearDown("Superseded", FIRST), WriteStatus(routed=MOVED_ON, replacing=1))),
    Case("once", past("Previous", "Current"),
         seen(**REDEPLOYED, parts=(*FIRST, *SECOND, ROUTE), leaving=frozenset(each.uid for each in FIRST), teardowns=1),
         (WriteStatus(routed=MOVED_ON, replacing=1),)),
    Case("a part that came back goes again", past("Previous", "Current"),
         seen(**REDEPLOYED, parts=(*FIRST, *SECOND, ROUTE), leaving=frozenset({FIRST[0].uid}), teardowns=1),
         (TearDown("Superseded", FIRST[1:]), WriteStatus(routed=MOVED_ON, replacing=1))),
    Case("that a teardown goes on is said", past("Previous", "Current"),
         seen(**REDEPLOYED, parts=(*SECOND, ROUTE), teardowns=2), (WriteStatus(routed=MOVED_ON, replacing=2),)),
    Case("a revision whose Service the route still names stays", past("Previous", "Current"),
         seen(**REDEPLOYED | {"routed": MOVING._replace(done=True, again=None)}, parts=(*FIRST, *SECOND, ROUTE)),
         (WriteStatus(routed=MOVING._replace(done=True, again=None)),)),
    Case("nothing goes while the route moves", past("Previous", "Current"),
         seen(**REDEPLOYED | {"routed": UNPROVEN}, parts=(*FIRST, *SECOND, ROUTE), teardowns=1),
         (WriteStatus(None, UNPROVEN.text, UNPROVEN, 1, 1.0),)),
    Case("an autoscaler that is not asked for any more goes", past("Current"),
         seen(parts=(*FIRST, SCALER, ROUTE), recorded={1: "Current"}, applied=applied(r1=UP), routed=MOVED),
         (TearDown("Replaced", (SCALER,)), WriteStatus(routed=MOVED, replacing=1))),
    Case("a route of another kind goes", past("Current"),
         seen(parts=(*FIRST, FORMER_ROUTE, ROUTE), recorded={1: "Current"}, applied=applied(r1=UP), routed=MOVED),
         (TearDown("Replaced", (FORMER_ROUTE,)), WriteStatus(routed=MOVED, replacing=1))),
    Case("each revision goes in a Teardown of its own", past("Previous", "Current"),
         seen(**REDEPLOYED, parts=(*FIRST, FORMER_ROUTE, *SECOND, ROUTE)),
         (TearDown("Superseded", FIRST), TearDown("Replaced", (FORMER_ROUTE,)),
          WriteStatus(routed=MOVED_ON, replacing=2))),

    Case("one that never served goes at once: nothing points at it", past("Abandoned", "Starting"),
         seen(B, parts=(*FIRST, *SECOND), recorded={1: "Abandoned", 2: "Starting"},
              applied=applied(services=BOTH, r2=COMING)),
         (TearDown("Superseded", FIRST), WriteStatus(replacing=1, requeue_after=10.0))),
    Case("unless a route does", past("Abandoned", "Starting"),
         seen(B, parts=(*FIRST, *SECOND, ROUTE), recorded={1: "Abandoned", 2: "Starting"},
              applied=applied(services=BOTH, r2=COMING)), (WriteStatus(requeue_after=10.0),)),

    # Recreate
    Case("with Recreate, all but data goes before anything is made", past("Current", "Starting", of=RECREATED),
         seen(B, parts=(*FIRST, ROUTE, CACHE)),
         (TearDown("Replaced", (*FIRST, ROUTE)),
          WriteStatus(waiting_for="its Teardown begins (the former revision is torn down first)")),
         endpoint=RECREATED),
    Case("it is waited for while a Teardown goes on", past("Current", "Starting", of=RECREATED),
         seen(B, parts=(CACHE,), teardowns=1, teardowns_wait="deployment/chat-1: 1 pod is left"),
         (WriteStatus(waiting_for="deployment/chat-1: 1 pod is left (the former revision is torn down first)"),),
         endpoint=RECREATED),
    Case("one that is blocked is a problem", past("Current", "Starting", of=RECREATED),
         seen(B, parts=(CACHE,), teardowns=1, teardowns_wait="service/chat-1", teardowns_blocked="It is held."),
         (WriteStatus(EndpointProblem("TeardownBlocked", "It is held."),
                      "service/chat-1 (the former revision is torn down first)", requeue_after=300.0),),
         endpoint=RECREATED),
    Case("one that never served goes first, too", past("Previous", "Abandoned", "Starting", of=RECREATED),
         seen(C, parts=(*SECOND, ROUTE)),
         (TearDown("Replaced", SECOND),
          WriteStatus(waiting_for="its Teardown begins (the former revision is torn down first)")),
         endpoint=RECREATED),
    Case("its own route stays", past("Previous", "Starting", of=RECREATED), seen(B, parts=(*SECOND, ROUTE)),
         (ApplyParts(revision(2, RECREATED)),), endpoint=RECREATED),
    Case("then the next one is made, and nothing serves", past("Current", "Starting", of=RECREATED),
         seen(B, parts=(CACHE,)), (ApplyParts(revision(2, RECREATED)),),
         past("Previous", "Starting", of=RECREATED), RECREATED),
    Case("a spec that cannot work takes nothing down", past("Current", of=RECREATED),
         seen(MISSING, parts=(*FIRST, ROUTE)), (ApplyParts(revision(1, RECREATED)),), endpoint=RECREATED),
]
# fmt: on


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_decision(case: Case):
    want = EndpointDecision(case.want, case.then if case.then is not None else case.history)
    assert decide(case.endpoint, case.history, case.observed, NOW) == want


def test_it_can_reach_no_client_clock_or_logger():
    """A decision depends on its arguments only: the module has access to nothing else."""
    found = {getattr(each, "__module__", "") or "" for each in vars(module).values()}
    assert not [name for name in found if name.startswith(("asyncio", "structlog", "time", "pilotage.runtime"))]
    assert not [name for name, each in vars(module).items() if inspect.ismodule(each) and each is not dt]


EVERYTHING = list(
    itertools.product(
        (CHAT, UNROUTED, RECREATED, ON_HOST),
        (
            (),
            ("Starting",),
            ("Current",),
            ("Current", "Starting"),
            ("Previous", "Current"),
            ("Abandoned", "Starting"),
            ("Current", "Failed"),
            ("Current", "Abandoned"),
        ),
        (A, B, MISSING),
        (UP, COMING, NONE_ASKED),
        (MOVED, MOVED_ON, MOVING, NO_ROUTER),
        ((), (*FIRST, ROUTE), (*FIRST, *SECOND, ROUTE, FORMER_ROUTE)),
        (None, REJECTED),
    )
)


def test_whatever_is_observed_a_reconcile_ends_and_takes_nothing_down_that_serves():
    for subject, states, requested, ready, routed, parts, refused in EVERYTHING:
        history = past(*states, of=subject, created=OLD)
        observed = seen(requested, parts=parts, held=False, recorded=history.states)
        done: list[EndpointStep] = []
        for _ in range(7):
            decision = decide(subject, history, observed, NOW)
            history = decision.history
            for step in decision.steps:
                observed = executed(step, observed, history, ready, routed, refused)
                _check(step, done, history, subject)
                done.append(step)
            if isinstance(done[-1], WriteStatus):
                break
        assert isinstance(done[-1], WriteStatus), done
        assert sum(isinstance(step, WriteStatus) for step in done) == 1


def _check(step: EndpointStep, done: list[EndpointStep], history: RevisionHistory, subject: EndpointRef) -> None:
    """Check the invariants of a step, whatever was observed."""
    assert done or isinstance(step, AddFinalizer | WriteStatus)
    if isinstance(step, BeginRevision) and history.serving is not None:
        assert any(isinstance(each, DryRun) for each in done)
    if isinstance(step, ApplyParts):
        assert history.past, "it is in the status first"
    if isinstance(step, TearDown):
        recreates = subject.spec.strategy.type == "Recreate" and not any(isinstance(each, ApplyParts) for each in done)
        needed = [part for each in (history.wanted, history.serving) if each is not None for part in each.parts]
        names = {(part.resource, part.name) for part in needed}
        assert recreates or not any((each.resource, each.name) in names for each in step.parts), step


def executed(
    step: EndpointStep,
    observed: Observed,
    history: RevisionHistory,
    ready: Readiness,
    routed: Routed | EndpointProblem,
    refused: EndpointProblem | None,
) -> Observed:
    """Observation after a step, with the results that were given."""
    match step:
        case AddFinalizer():
            return observed._replace(held=True)
        case DryRun():
            return observed._replace(requested=refused) if refused else observed._replace(accepted=True)
        case BeginRevision():
            return observed._replace(recorded=history.states)
        case ApplyParts():
            readiness = {each.number: ready for each in history.revisions}
            return observed._replace(applied=AppliedParts(refused, readiness, frozenset(BOTH)))
        case ListPods():
            return observed._replace(pods_listed=True)
        case MoveRoute():
            return observed._replace(routed=routed)
    return observed
