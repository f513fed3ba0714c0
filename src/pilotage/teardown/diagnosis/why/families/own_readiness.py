"""Our own kinds that are not being deleted and do not get ready: from what an endpoint says down to what holds it up.

Only the object that was asked about: an endpoint that does not serve is no reason why anything else is not deleted.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from shlex import quote

from pilotage.api.names import (
    ENDPOINT_FINALIZER,
    ENDPOINTS,
    GATEWAY_ROUTES,
    HOSTS,
    LABEL_ENDPOINT_UID,
    LABEL_HOST,
    LABEL_JOB,
    MODEL_FINALIZER,
    MODELS,
    PROCESSES,
)
from pilotage.catalogue.phase import Phase
from pilotage.catalogue.registry import known
from pilotage.kube import Json
from pilotage.teardown.diagnosis.finalizer_owners import FinalizerOwner, Liveness
from pilotage.teardown.diagnosis.remedies import EDIT, LOOK, REPAIR, Remedy, look_at, place
from pilotage.teardown.diagnosis.why.codes import NOTES, CauseCode
from pilotage.teardown.diagnosis.why.context import PATIENCE_SECONDS, WhyContext
from pilotage.teardown.diagnosis.why.controllers import (
    Complaint,
    bring_back,
    find_log,
    refusal_in,
    short,
    start_agent,
    start_gateway,
)
from pilotage.teardown.diagnosis.why.families.finalizers import forbidden
from pilotage.teardown.diagnosis.why.families.own_deletion import progress, unfinished
from pilotage.teardown.diagnosis.why.families.own_rollouts import held_change, rollout_cause
from pilotage.teardown.diagnosis.why.model import Confidence, StuckCause, roots_of
from pilotage.teardown.snapshot.fields import condition, entries, mapping, number, seconds_since, span, text
from pilotage.teardown.snapshot.world import Item, Name

FINE = frozenset({"Serving", "ScaledToZero"})
ASKED_MAX = 5
"""Pods and processes whose status is read: those of one endpoint fail alike."""
UNSEEN_SECONDS = 30
"""Time after which an operator that runs has written something about a new object, or a new spec."""
_OF_MACHINE = frozenset(
    {"NotAllowed", "NoProgram", "NotReadable", "NameTaken", "JournalNotWritten", "PortTaken", "InvalidSpec"}
)
"""Reasons of an agent why it starts no server, other than those of weights."""
_ON_WAY = frozenset({"Fetching", "Starting", "Stopping", "Running", ""})
_PART_SAYS = re.compile(r".* \((?P<part>[a-z]+/[a-z0-9.-]+)[^;()]*; (?P<count>[^;()]+)\)\.", re.DOTALL)
"""Message of an endpoint that repeats that of a pod or a process, names it, and counts those that are ready."""
_BAD_IMAGE = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})


def causes(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    """Why an object of ours that stays is not ready."""
    if not item.terminating and context.asked_about(item):
        yield from not_ready(context, item)


def not_ready(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    """Why it is not ready, also where it is further down the chain."""
    explain = _KINDS.get(item.group_kind)
    if explain is not None:
        yield from explain(context, item)


# Endpoints


def _endpoint(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    body = context.body(item)
    if body is None:
        return
    if unseen := not_acted_on(context, item, body, ENDPOINT_FINALIZER):
        yield unseen
        return
    phase = text(body, "status", "phase") or "Pending"
    degraded = condition(body, "Degraded").get("status") == "True"
    if phase in FINE and not degraded:
        if held := held_change(item, body):
            yield held
        return
    message = _message(body, "Degraded" if degraded else "Progressing") or _message(body, "Available")
    further = tuple(_further(context, item, body, message))
    wrong = degraded or phase in ("Degraded", "Failed", "Unknown") or bool(further)
    if not wrong and (stopped := _stopped(context, item, context.finalizer_owner(item, ENDPOINT_FINALIZER))):
        yield stopped
        return
    said = _unrepeated(message, further)
    yield StuckCause(
        CauseCode.ENDPOINT_NOT_READY if wrong else CauseCode.ENDPOINT_STARTING,
        item,
        f"is {phase}: {short(said)}" if said and not _is_said_below(further) else f"is {phase}",
        (f"The status of {item} says so.",),
        because=further,
        remedies=() if further or not wrong else (_change(item),),
    )


def _is_said_below(further: tuple[StuckCause, ...]) -> bool:
    """Whether the endpoint's message is that of its rollout, which the next line has."""
    return any(each.code == CauseCode.ROLLOUT_WAITS for each in further)


def _unrepeated(message: str, further: tuple[StuckCause, ...]) -> str:
    """The message of an endpoint; only its count, where it ends in the name of a part that says the rest below it."""
    found = _PART_SAYS.fullmatch(message)
    if found is None or not any(str(cause.subject).partition(" ")[0] == found["part"] for cause in further):
        return message
    return f"{found['count']}."


def _message(body: Json, type_: str) -> str:
    said = condition(body, type_)
    return text(said, "message") or text(said, "reason")


def _further(context: WhyContext, item: Item, body: Json, message: str) -> Iterator[StuckCause]:
    """Causes that hold it up: its Model, a former part, a permission, its pods, its servers, its rollout."""
    if refusal := refusal_in(message):
        keeper = context.finalizer_owner(item, ENDPOINT_FINALIZER)
        complaint = Complaint(f"status of {item}", message, "", fresh=True)
        yield forbidden(context, item, keeper, complaint, refusal)
        return
    reason = text(condition(body, "Degraded"), "reason") or text(condition(body, "Progressing"), "reason")
    progressing = text(condition(body, "Progressing"), "reason")
    if (name := text(body, "spec", "model", "name")) and {reason, progressing} & _MODEL_REASONS:
        yield from _model_of(context, item, name)
        return
    former = tuple(_former_parts(context, item))
    if former:
        yield from former
        return
    found = (*_pods(context, item), *_processes(context, item)) or tuple(_route(context, item, body, message))
    rollout = rollout_cause(item, body, found)
    yield from found if rollout is None else (rollout,)


def _former_parts(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    """Causes that keep parts of a former revision, which have to be gone before the next one starts."""
    keeper = context.finalizer_owner(item, ENDPOINT_FINALIZER)
    for record in unfinished(context, item):
        found = tuple(progress(context, record, keeper))
        if any(root.code not in NOTES for root in roots_of(found)):
            yield StuckCause(CauseCode.TEARDOWN, record, f"waits for {record}", because=found)


_MODEL_REASONS = frozenset({"ModelMissing", "ModelDeleting", "ModelFailed", "ModelNotReady"})


def _model_of(context: WhyContext, item: Item, name: str) -> Iterator[StuckCause]:
    model = context.world.find(*MODELS.group_kind, item.meta.namespace, name)
    if model is not None:
        if model.terminating:  # why it has not gone yet does not matter: once it has, it is missing
            line = f"UNAVAILABLE: {model} is being deleted, and serves no revision that is new"
            another = _redeploy(item, "Let it serve another model", "--model OTHER")
            yield StuckCause(
                CauseCode.MODEL_UNAVAILABLE, model, line, (f"The status of {item} says so.",), remedies=(another,)
            )
        else:
            yield from _model(context, model)
    elif not context.world.problem(*MODELS.group_kind, item.meta.namespace):
        yield _missing(item, name)


def _missing(item: Item, name: str) -> StuckCause:
    namespace = item.meta.namespace
    see = Remedy(
        "See which Models there are; then create that one, or name another in the spec",
        f"kubectl get {MODELS.plural}.{MODELS.group} -n {quote(namespace)}",
        "The operator acts on the change at once.",
        LOOK,
        item,
    )
    line = f"MISSING: model/{name} -n {namespace} does not exist"
    return StuckCause(CauseCode.MODEL_MISSING, item, line, (f"The status of {item} says so.",), remedies=(see,))


def _change(item: Item) -> Remedy:
    """Change the spec, or what is in its way."""
    effect = "The operator acts on the change at once. The revision that serves now serves on until the next one does."
    title = "Change its spec, or what its status names"
    return Remedy(title, f"kubectl edit {place(item)}", effect, EDIT, item)


def _route(context: WhyContext, item: Item, body: Json, told: str) -> Iterator[StuckCause]:
    """The cause where a route is refused, or has not been taken up though there was time. `told`: the message above."""
    said = condition(body, "RouteProgrammed")
    waited = seconds_since(context.now, text(said, "lastTransitionTime")) or 0.0
    if said.get("status") != "False" or (text(said, "reason") != "Rejected" and waited < PATIENCE_SECONDS):
        return
    parts = [context.world.get(text(each, "uid")) for each in entries(body, "status", "ledger")]
    for route in (each for each in parts if each is not None and known(each.group_kind).phase is Phase.DETACH):
        remedies = [look_at(route, "See what its controller reports, and whether that runs", "Nothing changes.")]
        if route.group_kind == GATEWAY_ROUTES.group_kind and (start := start_gateway(route, context.body(route))):
            remedies.append(start)
        message = _message(body, "RouteProgrammed")
        line = f"NOT PROGRAMMED for {span(waited)}" + (f": {short(message)}" if message != told else "")
        evidence = (f"The status of {item} says so.",)
        yield StuckCause(CauseCode.ROUTE_NOT_PROGRAMMED, route, line, evidence, remedies=tuple(remedies))


# Its pods


def _pods(context: WhyContext, endpoint: Item) -> Iterator[StuckCause]:
    mine = [
        pod
        for pod in context.world.of("", "Pod", endpoint.meta.namespace)
        if pod.meta.labels.get(LABEL_ENDPOINT_UID) == endpoint.uid and not pod.terminating
        if LABEL_JOB not in pod.meta.labels  # it judges a rollout, and does not serve
    ]
    said: set[str] = set()
    newest_first = sorted(mine, key=lambda each: each.meta.creation_timestamp, reverse=True)
    for pod in newest_first[:ASKED_MAX]:
        problem = _pod_problem(endpoint, pod, context.body(pod) or {})
        if problem is not None and problem.text not in said:
            said.add(problem.text)
            yield problem


def _pod_problem(endpoint: Item, pod: Item, body: Json) -> StuckCause | None:
    scheduled = condition(body, "PodScheduled")
    if scheduled.get("status") == "False":
        advice = "Compare its requests and selectors with the nodes, and change one of them"
        said = text(scheduled, "message") or "no node was found"
        return _not_ready(pod, f"UNSCHEDULABLE: {short(said)}", advice)
    containers = entries(body, "status", "initContainerStatuses") + entries(body, "status", "containerStatuses")
    for each in containers:
        if found := _container_problem(endpoint, pod, each):
            return found
    return None


def _container_problem(endpoint: Item, pod: Item, status: Json) -> StuckCause | None:
    name, waiting = text(status, "name"), mapping(status, "state", "waiting")
    reason, message = text(waiting, "reason"), text(waiting, "message")
    ended = mapping(status, "lastState", "terminated") or mapping(status, "state", "terminated")
    if reason in _BAD_IMAGE:
        advice = "Check the image, its registry and the pull Secret"
        line = f"NO IMAGE: container {name}: {short(message or reason)}"
        return _not_ready(pod, line, advice, redeploy=_redeploy(endpoint, "Name another image", "--image IMAGE"))
    if reason in ("CreateContainerConfigError", "CreateContainerError", "RunContainerError"):
        advice = "Fix what the kubelet reports"
        return _not_ready(pod, f"NOT STARTED: container {name}: {short(message or reason)}", advice)
    if ended and number(ended, "exitCode") and status.get("ready") is not True:
        last = short(text(ended, "message") or text(ended, "reason"))
        line = f"CRASHES: container {name} exited with code {number(ended, 'exitCode')}: {last}"
        log = f"kubectl logs {place(pod)} -c {quote(name)} --previous --tail=50"
        return _not_ready(pod, line, "Read its log", log, _redeploy(endpoint))
    return None


def _not_ready(pod: Item, line: str, title: str, command: str = "", redeploy: Remedy | None = None) -> StuckCause:
    look = Remedy(title, command or f"kubectl describe {place(pod)}", "Nothing changes by itself.", LOOK, pod)
    remedies = (look,) if redeploy is None else (look, redeploy)
    return StuckCause(CauseCode.POD_NOT_READY, pod, line, (f"The status of {pod} says so.",), remedies=remedies)


def _redeploy(
    endpoint: Item | Name,
    title: str = "Change its model, its arguments or its limits, by the flag of each",
    flags: str = "--arg ARG",
) -> Remedy:
    """Start another revision that differs where this one fails."""
    name = endpoint.name if isinstance(endpoint, Item) else endpoint
    command = f"pilotage redeploy {quote(name.name)} -n {quote(name.namespace)} {flags}"
    effect = "The revision that serves now, if there is one, serves on until the next one does."
    return Remedy(title, command, effect, EDIT, endpoint)


# Servers on Hosts


def _processes(context: WhyContext, endpoint: Item) -> Iterator[StuckCause]:
    mine = [
        each
        for each in context.world.of(*PROCESSES.group_kind, endpoint.meta.namespace)
        if each.meta.labels.get(LABEL_ENDPOINT_UID) == endpoint.uid and not each.terminating
    ]
    for process in mine[:ASKED_MAX]:
        yield from _process(context, process)


def _process(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    body = context.body(item)
    phase, message = text(body, "status", "phase"), text(body, "status", "message")
    if phase in _ON_WAY or mapping(body, "status").get("ready") is True:
        return
    host = context.world.find(*HOSTS.group_kind, "", item.meta.labels.get(LABEL_HOST, ""))
    lost = tuple(_host(context, host)) if host is not None else ()
    yield StuckCause(
        CauseCode.PROCESS_NOT_READY,
        item,
        f"is {phase}: {short(message)}" if message else f"is {phase}",
        (f"The status of {item} says so.",),
        because=lost,
        remedies=() if lost else tuple(_mend_server(item, body, phase)),
    )


def _mend_server(item: Item, body: Json | None, phase: str) -> Iterator[Remedy]:
    """Remedies for a server that does not run. It has a log if it ever ran; else its weights are the usual reason."""
    endpoint = Name(*ENDPOINTS.group_kind, item.meta.namespace, text(body, "spec", "endpoint"))
    if phase == "Evicted":
        host = quote(f"{HOSTS.plural}.{HOSTS.group}/{item.meta.labels.get(LABEL_HOST, '')}")
        title = "See how much memory its Host has; then free some, or raise spec.placement.priority of its endpoint"
        yield Remedy(title, f"kubectl describe {host}", "It is started again by itself.", LOOK, item)
    elif text(body, "status", "logFile") and endpoint.name:
        log = f"pilotage logs {quote(endpoint.name)} -n {quote(endpoint.namespace)} --tail 50"
        yield Remedy("Read its log, and mend what it names", log, "It is tried again by itself.", LOOK, item)
        yield _redeploy(endpoint)
    elif phase == "Failed" and endpoint.name and text(condition(body, "Ready"), "reason") not in _OF_MACHINE:
        yield _redeploy(endpoint, "Replace its weights (it is tried again by itself), or name others", "--model OTHER")
    else:
        yield look_at(item, "Fix what it reports", "It is tried again by itself.")


def _host(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    body = context.body(item)
    phase = text(body, "status", "phase")
    if phase not in ("Lost", "Stopped"):
        return
    message = _message(body or {}, "AgentAlive")
    yield StuckCause(
        CauseCode.HOST_LOST,
        item,
        f"{phase.upper()}: {short(message or 'its agent does not run')}",
        (f"The status of {item} says so.",),
        remedies=tuple(start_agent(item.meta.name, item)),
    )


# Models


def _model(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    body = context.body(item)
    if body is None:
        return
    if unseen := not_acted_on(context, item, body, MODEL_FINALIZER):
        yield unseen
        return
    phase = text(body, "status", "phase")
    reason = text(condition(body, "Available"), "reason")
    if phase == "Failed" or (phase == "Fetching" and reason != "Fetching"):
        yield StuckCause(
            CauseCode.MODEL_UNAVAILABLE,
            item,
            f"UNAVAILABLE: {short(_message(body, 'Available'))}",
            (f"The status of {item} says so.",),
            Confidence.HIGH if phase == "Failed" else Confidence.MEDIUM,
            remedies=(
                Remedy(
                    "Mend its source, or change its spec",
                    f"kubectl edit {place(item)}",
                    "The operator checks it again by itself, and at once when the spec changes.",
                    REPAIR,
                    item,
                ),
            ),
        )
    elif phase in ("Pending", "Fetching"):
        stopped = _stopped(context, item, context.finalizer_owner(item, MODEL_FINALIZER))
        yield stopped or StuckCause(
            CauseCode.ENDPOINT_STARTING, item, f"is {phase}: {short(_message(body, 'Available'))}"
        )


# The operator


def not_acted_on(context: WhyContext, item: Item, body: Json, finalizer: str) -> StuckCause | None:
    """The cause where nobody has acted on an object, or on its present spec, though there was time."""
    observed = number(body, "status", "observedGeneration", default=-1)
    if observed >= number(body, "metadata", "generation"):
        return None
    keeper = context.finalizer_owner(item, finalizer)
    age = seconds_since(context.now, item.meta.creation_timestamp) or 0.0
    if stopped := _stopped(context, item, keeper):
        return stopped
    if keeper.alive is Liveness.ALIVE or age < UNSEEN_SECONDS:
        return None
    text_ = f"NOT ACTED ON: {keeper.who} has written nothing about it, and whether it runs could not be determined"
    check = (find_log(context.world, keeper), *bring_back(context, keeper))
    return StuckCause(CauseCode.OPERATOR_NOT_RUNNING, item, text_, keeper.evidence, Confidence.MEDIUM, remedies=check)


def _stopped(context: WhyContext, item: Item, keeper: FinalizerOwner) -> StuckCause | None:
    """The cause where the operator is known not to run: what it wrote last does not go on."""
    if keeper.alive is not Liveness.DEAD:
        return None
    text_ = f"NOT ACTED ON: {keeper.who} does not run ({keeper.trouble})"
    remedies = tuple(bring_back(context, keeper))
    return StuckCause(CauseCode.OPERATOR_NOT_RUNNING, item, text_, keeper.evidence, remedies=remedies)


_KINDS: Mapping[tuple[str, str], Callable[[WhyContext, Item], Iterator[StuckCause]]] = {
    ENDPOINTS.group_kind: _endpoint,
    MODELS.group_kind: _model,
    HOSTS.group_kind: _host,
    PROCESSES.group_kind: _process,
}
