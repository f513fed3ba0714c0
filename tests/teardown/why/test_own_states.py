"""Explanations of our own kinds from worlds made by hand: variants of what is staged, and what wins over what."""

import pytest

from pilotage.api.names import (
    ANNOTATION_HOLD,
    ENDPOINTS,
    EXPERIMENTS,
    HOST_LEASES,
    LABEL_ENDPOINT_UID,
    LABEL_HOST,
    MODELS,
    PROCESSES,
    TEARDOWNS,
)
from pilotage.kube import PODS, Json, Resource
from pilotage.teardown.diagnosis.why.codes import CauseCode
from pilotage.teardown.diagnosis.why.explain import explain
from pilotage.teardown.diagnosis.why.model import Explanation, StuckVerdict
from pilotage.teardown.diagnosis.why.render import exit_code, remedies_of, render
from pilotage.teardown.relations import relate
from pilotage.teardown.snapshot.world import Item
from tests.support import kinds
from tests.teardown.why.staging import root_codes
from tests.teardown.why.worlds import LEASES, WIDGETS, ago, going, item, world

EVENTS = Resource("", "v1", "events", "Event")
OPERATOR = "pilotage-operator"


def lease(name: str, namespace: str, seconds_ago: float = 3) -> Item:
    spec = {"holderIdentity": "somebody", "leaseDurationSeconds": 15, "renewTime": ago(seconds_ago)}
    return item(LEASES, name, namespace, spec=spec)


def ask(subject: Item, *others: Item, operator_seconds_ago: float = 3) -> Explanation:
    """Answer about an object, beside an operator that runs."""
    seen = world(subject, *others, lease(OPERATOR, "pilotage-system", operator_seconds_ago))
    return explain(seen, relate(seen), subject)


def text_of(told: Explanation) -> str:
    return "\n".join(render(told))


# Pods of an endpoint


def endpoint(phase: str, *, degraded: str = "") -> Item:
    conditions = [{"type": "Degraded", "status": "True", "reason": "X", "message": degraded}] if degraded else []
    status = {"phase": phase, "observedGeneration": 1, "conditions": conditions}
    return item(ENDPOINTS, "chat", metadata={"uid": "u-chat", "generation": 1}, status=status)


def pod(status: Json) -> Item:
    return item(PODS, "chat-1-abc", metadata={"labels": {LABEL_ENDPOINT_UID: "u-chat"}}, status=status)


def container(**state: object) -> Json:
    return {"containerStatuses": [{"name": "server", "ready": False, **state}]}


NOT_PULLED = container(state={"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}})
PULLING = container(state={"waiting": {"reason": "ErrImagePull", "message": "no such image"}})
CRASHED = container(lastState={"terminated": {"exitCode": 137, "reason": "OOMKilled"}})
DESCRIBE = "kubectl describe pod/chat-1-abc -n shop"
REDEPLOY = "pilotage redeploy chat -n shop"
NO_SECRET = container(state={"waiting": {"reason": "CreateContainerConfigError", "message": "no Secret token"}})


@pytest.mark.parametrize(
    ("status", "said", "commands"),
    [
        (NOT_PULLED, "NO IMAGE: container server: no such image", (DESCRIBE, f"{REDEPLOY} --image IMAGE")),
        (PULLING, "NO IMAGE: container server: no such image", (DESCRIBE, f"{REDEPLOY} --image IMAGE")),
        (
            CRASHED,
            "CRASHES: container server exited with code 137: OOMKilled",
            ("kubectl logs pod/chat-1-abc -n shop -c server --previous --tail=50", f"{REDEPLOY} --arg ARG"),
        ),
        (NO_SECRET, "NOT STARTED: container server: no Secret token", (DESCRIBE,)),
    ],
)
@pytest.mark.parametrize("phase", ["Deploying", "Degraded", "Failed"])
def test_the_pod_that_does_not_start_is_the_root(
    phase: str, status: Json, said: str, commands: tuple[str, ...]
) -> None:
    told = ask(endpoint(phase, degraded="" if phase == "Deploying" else "0 of 1 replicas are ready."), pod(status))
    assert root_codes(told) == {CauseCode.POD_NOT_READY}
    assert said in text_of(told)
    assert tuple(each.command for each in remedies_of(told)) == commands
    assert (told.headline, exit_code(told)) == ("is not being deleted, and is not ready", 1)


def test_the_pod_of_a_job_that_judges_a_rollout_is_no_server() -> None:
    labels = {LABEL_ENDPOINT_UID: "u-chat", "batch.kubernetes.io/job-name": "chat-2-step3"}
    told = ask(endpoint("Redeploying"), item(PODS, "chat-2-step3-x", metadata={"labels": labels}, status=NOT_PULLED))
    assert "NO IMAGE" not in text_of(told)


@pytest.mark.parametrize(
    ("phase", "degraded", "code"),
    [
        ("Serving", "", 0),
        ("ScaledToZero", "", 0),
        ("Deploying", "", 0),
        ("Redeploying", "", 0),
        ("Pending", "", 0),
        ("Serving", "another route has its name", 1),
        ("Degraded", "1 of 2 replicas are ready.", 1),
        ("Failed", "spec.x is wrong", 1),
        ("Unknown", "", 1),
    ],
)
def test_an_endpoint_that_fails_is_never_said_to_be_fine(phase: str, degraded: str, code: int) -> None:
    told = ask(endpoint(phase, degraded=degraded))
    assert exit_code(told) == code, text_of(told)
    if degraded:
        assert degraded in text_of(told)


def test_an_endpoint_that_fails_holds_up_no_namespace() -> None:
    """It is said about an endpoint that is asked about, and not where it is on the way to something else."""
    namespace = item(kinds.NAMESPACES, "shop", metadata=going(10), spec={"finalizers": ["kubernetes"]})
    assert CauseCode.ENDPOINT_NOT_READY not in root_codes(ask(namespace, endpoint("Failed", degraded="wrong")))


@pytest.mark.parametrize(
    ("more", "commands"),
    [
        ({"logFile": "/logs/chat"}, ["pilotage logs chat -n shop --tail 50", f"{REDEPLOY} --arg ARG"]),
        ({}, [f"{REDEPLOY} --model OTHER"]),
        (
            {"conditions": [{"type": "Ready", "status": "False", "reason": "NotAllowed"}]},
            ["kubectl describe hostprocesses.pilotage.dev/chat-1-0 -n shop"],
        ),
    ],
    ids=["it ran", "its weights", "its machine"],
)
def test_a_sentence_of_a_part_is_said_once_and_its_log_or_another_revision_is_offered(
    more: Json, commands: list[str]
) -> None:
    said = "The server has exited 5 times, last with code 1: error: unknown model architecture"
    message = f"{said} (hostprocess/chat-1-0 on host/gpu-1: Failed; 0 of 1 processes are ready)."
    server = item(
        PROCESSES,
        "chat-1-0",
        metadata={"labels": {LABEL_HOST: "gpu-1", LABEL_ENDPOINT_UID: "u-chat"}},
        spec={"endpoint": "chat"},
        status={"phase": "Failed", "message": f"{said}.", **more},
    )
    told = ask(endpoint("Failed", degraded=message), server)
    text = text_of(told)
    assert text.count("unknown model architecture") == 1, text
    assert "is Failed: 0 of 1 processes are ready." in text
    assert [each.command for each in remedies_of(told)] == commands


# The operator


def operator_of(replicas: int) -> Item:
    labels = {"app.kubernetes.io/name": "pilotage"}
    return item(
        kinds.DEPLOYMENTS,
        OPERATOR,
        "pilotage-system",
        metadata={"labels": labels},
        spec={"replicas": replicas},
        status={"replicas": replicas},
    )


def crashing(of: Item) -> Item:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": OPERATOR, "uid": of.uid}
    waiting = {"containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}
    return item(PODS, "p-1", "pilotage-system", metadata={"ownerReferences": [owner]}, status=waiting)


SCALED_DOWN, FAILING = operator_of(0), operator_of(2)
INSTALL = "pilotage install --print | kubectl apply --server-side -f -"
ONE_MACHINE = item(kinds.CONFIG_MAPS, "pilotage-up", "pilotage-system")
HOME = "deployment/pilotage-operator -n pilotage-system"


@pytest.mark.parametrize(
    ("others", "commands"),
    [
        ((SCALED_DOWN,), [f"kubectl scale {HOME} --replicas=1"]),
        ((FAILING,), [f"kubectl describe {HOME}"]),
        ((FAILING, crashing(FAILING)), [f"kubectl logs {HOME} --tail=100 --previous", f"kubectl describe {HOME}"]),
        ((), [INSTALL]),
        ((ONE_MACHINE,), ["pilotage up"]),
    ],
    ids=["scaled to 0", "without pods", "crashes", "not installed", "one machine"],
)
@pytest.mark.parametrize("phase", ["Pending", "Deploying"])
def test_an_operator_that_does_not_run_is_brought_back_where_it_ran(
    phase: str, others: tuple[Item, ...], commands: list[str]
) -> None:
    """Its last status does not go on, also where it has seen the present spec."""
    told = ask(endpoint(phase), *others, operator_seconds_ago=900)
    assert root_codes(told) == {CauseCode.OPERATOR_NOT_RUNNING}, text_of(told)
    assert [each.command for each in remedies_of(told)] == commands
    assert exit_code(told) == 1


def test_an_operator_that_may_run_where_nobody_could_look_is_looked_for_in_the_cluster() -> None:
    subject = item(ENDPOINTS, "chat", metadata={"generation": 1, "creationTimestamp": ago(900)})
    seen = world(subject, namespaces=("shop",))
    told = explain(seen, relate(seen), subject)
    commands = {each.command for each in remedies_of(told)}
    assert commands == {"kubectl get deployments,pods,leases -n pilotage-system"}, text_of(told)


# Deletions


def process(message: str, **more: object) -> Item:
    labels = {LABEL_HOST: "gpu-1"}
    ready = {
        "type": "Ready",
        "status": "False",
        "reason": "Deleted",
        "message": message,
        "lastTransitionTime": ago(900),
    }
    status = {"phase": "Stopping", "message": message, "conditions": [ready], **more}
    return item(PROCESSES, "chat-1-0", metadata=going(600, "pilotage.dev/agent", labels=labels), status=status)


AGENT = lease("gpu-1", HOST_LEASES)


def event(about: Item, message: str) -> Item:
    involved = {"uid": about.uid}
    return item(
        EVENTS, "e1", involvedObject=involved, type="Warning", reason="X", message=message, lastTimestamp=ago(500)
    )


def test_the_status_of_a_process_wins_over_an_older_event() -> None:
    stuck = process("Process 30162 does not end, not even by SIGKILL.")
    told = ask(stuck, AGENT, event(stuck, "It waits for the requests that are under way"))
    assert "NOT STOPPED: Process 30162 does not end" in text_of(told)
    assert "under way" not in text_of(told)
    assert [each.command for each in remedies_of(told)] == ["ssh gpu-1 sudo kill -9 30162"]


def test_a_process_that_drains_is_not_stuck() -> None:
    told = ask(process("It waits for requests in flight.", inFlight=2), AGENT)
    assert (told.verdict, root_codes(told)) == (StuckVerdict.NOT_STUCK, {CauseCode.PROCESS_DRAINS})
    assert "ends its requests first: 2 requests in flight, for 30 s at most" in text_of(told)


def test_a_process_whose_agent_may_not_remove_its_address_names_the_permission() -> None:
    refused = (
        'endpointslices.discovery.k8s.io "a" is forbidden: User "system:serviceaccount:pilotage-hosts:gpu-1" cannot '
        'delete resource "endpointslices" in API group "discovery.k8s.io" in the namespace "shop".'
    )
    told = ask(process(refused), AGENT)
    assert root_codes(told) == {CauseCode.FINALIZER_CONTROLLER_FORBIDDEN}
    assert remedies_of(told)[0].command.startswith("kubectl create role let-delete-endpointslices")


def test_files_of_a_model_that_cannot_be_removed_are_named() -> None:
    said = "/cache/a.gguf cannot be removed: Read-only file system. Allow Pilotage to remove it."
    condition = {"type": "Deleting", "status": "True", "reason": "CacheNotRemoved", "message": said}
    told = ask(item(MODELS, "m", metadata=going(600, "pilotage.dev/model"), status={"conditions": [condition]}))
    assert root_codes(told) == {CauseCode.MODEL_FILES_STAY}
    assert f"FILES STAY: {said}" in text_of(told)
    assert [each.code for each in remedies_of(told)] == [""]


def teardown(**status: object) -> Item:
    labels = {LABEL_ENDPOINT_UID: "u-chat"}
    spec = {"target": {"uid": "u-chat"}}
    return item(
        TEARDOWNS, "chat-1", metadata={"labels": labels}, spec=spec, status={"phase": "drain", "left": 3, **status}
    )


def wait(cause: str, until_seconds_ago: float) -> Json:
    words = {"object": "service/chat-1 -n shop", "cause": cause, "text": "proxies still have it (Envoy)"}
    return words | {"since": ago(30), "until": ago(until_seconds_ago)}


@pytest.mark.parametrize(
    ("waits", "roots"),
    [
        ([wait("router", -60)], {CauseCode.TEARDOWN_WORKING}),
        ([wait("router", 60)], {CauseCode.TEARDOWN_WAITS}),
        ([wait("refused", -60)], {CauseCode.TEARDOWN_WAITS}),
        ([], {CauseCode.FINALIZER_CONTROLLER_SILENT}),
    ],
)
def test_a_teardown_in_time_is_not_stuck_and_one_that_is_late_is(waits: list[Json], roots: set[str]) -> None:
    going_ = item(ENDPOINTS, "chat", metadata=going(600, "pilotage.dev/endpoint", uid="u-chat"))
    told = ask(going_, teardown(waits=waits))
    assert root_codes(told) == roots, text_of(told)
    assert not any(each.code for each in remedies_of(told)), "the operator runs: nothing is stripped"


def test_a_teardown_of_another_namespace_explains_nothing() -> None:
    """Anybody can write one there, with any label."""
    going_ = item(ENDPOINTS, "chat", metadata=going(600, "pilotage.dev/endpoint", uid="u-chat"))
    around = item(kinds.NAMESPACES, "shop")
    forged = item(
        TEARDOWNS,
        "forged",
        "elsewhere",
        metadata={"labels": {LABEL_ENDPOINT_UID: "u-chat"}},
        spec={"target": {"uid": "u-chat"}},
        status={"phase": "stop", "waits": [wait("refused", 60)]},
    )
    assert "forged" not in text_of(ask(going_, around, forged))


# Experiments


def experiment(phase: str, created_seconds_ago: float) -> Item:
    meta = {"generation": 1, "creationTimestamp": ago(created_seconds_ago)}
    status = {"phase": phase, "observedGeneration": 1, "waitingFor": "servingendpoint/chat has something to do."}
    return item(EXPERIMENTS, "q8", metadata=meta, spec={"endpoint": {"name": "chat"}}, status=status)


@pytest.mark.parametrize(
    ("phase", "seconds_ago", "code"),
    [("Pending", 100, 0), ("Pending", 900, 1), ("Starting", 900, 0), ("Running", 900, 1)],
)
def test_an_experiment_that_starts_has_time_and_one_that_is_not_taken_up_or_does_not_go_on_has_none(
    phase: str, seconds_ago: float, code: int
) -> None:
    told = ask(experiment(phase, seconds_ago), endpoint("Serving"))
    assert exit_code(told) == code, text_of(told)
    assert f"is {phase}: servingendpoint/chat has something to do." in text_of(told)
    commands = ["kubectl describe servingendpoints.pilotage.dev/chat -n shop"]
    assert [each.command for each in remedies_of(told)] == commands * code


def test_an_experiment_without_an_operator_says_that_none_runs() -> None:
    new = item(EXPERIMENTS, "q8", metadata={"generation": 1, "creationTimestamp": ago(60)})
    assert root_codes(ask(new, operator_seconds_ago=900)) == {CauseCode.OPERATOR_NOT_RUNNING}


# Conditions and Events of others


def complaining(written_seconds_ago: float | None) -> Item:
    condition = {
        "type": "Ready",
        "status": "False",
        "reason": "X",
        "message": "failed: now",
        "lastTransitionTime": ago(900),
    }
    fields = {"manager": "acme", "fieldsV1": {"f:status": {}}}
    written = [] if written_seconds_ago is None else [fields | {"time": ago(written_seconds_ago)}]
    meta = going(600, "acme.example.com/x", managedFields=written)
    return item(WIDGETS, "held", metadata=meta, status={"conditions": [condition]})


@pytest.mark.parametrize(
    ("written", "said"),
    [(10, "FAILS: failed: now"), (None, "FAILS: failed: now"), (800, "FAILS: failed: then")],
    ids=["written since", "not known when", "not written since the deletion"],
)
def test_what_a_controller_says_now_wins_over_what_it_once_said(written: float | None, said: str) -> None:
    stuck = complaining(written)
    manager = item(kinds.DEPLOYMENTS, "acme", spec={"replicas": 1}, status={"availableReplicas": 1})
    assert said in text_of(ask(stuck, manager, event(stuck, "failed: then")))


# A namespace with two causes


def test_the_complaint_of_the_namespace_controller_is_not_that_of_another_finalizer() -> None:
    message = "Discovery failed for some groups, 1 failing: custom.metrics.k8s.io/v1beta1"
    failing = {"type": "NamespaceDeletionDiscoveryFailure", "status": "True", "message": message}
    namespace = item(
        kinds.NAMESPACES,
        "shop",
        metadata=going(600, "controller.cattle.io/namespace-auth"),
        spec={"finalizers": ["kubernetes"]},
        status={"conditions": [failing | {"lastTransitionTime": ago(500)}]},
    )
    told = ask(namespace)
    text = text_of(told)
    assert root_codes(told) == {CauseCode.NAMESPACE_DISCOVERY_FAILURE, CauseCode.FINALIZER_CONTROLLER_MISSING}
    assert "FAILS" not in text
    groups = [line for line in text.splitlines() if line.startswith("About ")]
    assert groups == [
        "About namespace/shop: cannot be proven empty: an API of the cluster does not answer",
        "About namespace/shop: NOT FOUND: nothing in this cluster looks like it; it was uninstalled, or runs elsew…",
    ]
    first, second = (text.index(group) for group in groups)
    assert first < text.index("kubectl get apiservices") < second < text.index("--fix=strip-finalizer")


# Rollouts in steps


STEPS = [{"setWeight": 5}, {"pause": {}}, {"pause": {"duration": "10m"}}, {"analysis": {}}]
ABORT = "pilotage abort chat -n shop"


def rolling(phase: str, step: int, message: str, *, degraded: bool = False, hold: str = "") -> Item:
    state = {"phase": phase, "revision": "chat-2", "step": step, "of": 4, "message": message}
    reason = {"type": "Degraded", "status": "True", "reason": "RolloutAborted", "message": "It was aborted."}
    status = {"phase": "Degraded" if degraded else "Redeploying", "observedGeneration": 1, "rollout": state}
    return item(
        ENDPOINTS,
        "chat",
        metadata={"uid": "u-chat", "generation": 1, "annotations": {ANNOTATION_HOLD: hold}},
        spec={"strategy": {"canary": {"steps": STEPS}}},
        status=status | {"conditions": [reason] if degraded else []},
    )


@pytest.mark.parametrize(
    ("subject", "said", "commands"),
    [
        (
            rolling("Pausing", 2, "Until it is promoted."),
            "WAITS FOR A PERSON: the rollout to chat-2, at step 2 of 4: Until it is promoted.",
            ["pilotage promote chat -n shop", ABORT],
        ),
        (
            rolling("Pausing", 4, "Undecided."),
            "WAITS FOR A PERSON: the rollout to chat-2, at step 4 of 4: Undecided.",
            ["pilotage promote chat -n shop", ABORT],
        ),
        (
            rolling("Held", 1, "The route is refused."),
            "HELD: the rollout to chat-2, at step 1 of 4: The route is refused.",
            [ABORT],
        ),
        (
            rolling("Held", 1, "Held by request.", hold="chat-2"),
            "HELD: the rollout to chat-2, at step 1 of 4: Held by request.",
            ["pilotage hold chat -n shop --release", ABORT],
        ),
        (
            rolling("Aborted", 1, "It is worse.", degraded=True),
            "ABORTED: It is worse.",
            ["pilotage rollback chat -n shop", "pilotage retry chat -n shop"],
        ),
    ],
)
def test_a_rollout_that_does_not_go_on_by_itself_is_the_root_with_the_commands_that_apply(
    subject: Item, said: str, commands: list[str]
) -> None:
    told = ask(subject)
    assert root_codes(told) == {CauseCode.ROLLOUT_WAITS}
    assert said in text_of(told)
    assert [each.command for each in remedies_of(told)] == commands
    assert exit_code(told) == 1


@pytest.mark.parametrize("subject", [rolling("Pausing", 3, ""), rolling("Shifting", 1, "")])
def test_a_rollout_in_time_is_not_stuck(subject: Item) -> None:
    assert exit_code(ask(subject)) == 0


def test_a_change_that_waits_for_an_experiment_names_it() -> None:
    waits = {"type": "Progressing", "status": "True", "reason": "ExperimentRuns", "message": "experiment/q8 runs."}
    claims = [{"name": "q8", "phase": "Running"}, {"name": "other", "phase": "Refused"}]
    status = {"phase": "Serving", "observedGeneration": 1, "conditions": [waits], "experiments": claims}
    told = ask(item(ENDPOINTS, "chat", metadata={"uid": "u-chat", "generation": 1}, status=status))
    assert (root_codes(told), exit_code(told)) == ({CauseCode.ROLLOUT_WAITS}, 1)
    assert "HELD: experiment/q8 runs." in text_of(told)
    assert [each.command for each in remedies_of(told)] == ["pilotage terminate q8 -n shop"]
