"""Every way in which an object of ours is stuck, on the real API server beside the real operator.

The operator runs without leader election, beside a Lease that a former one has left: that Lease proves nothing.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from pilotage.operator.install import Values, manifests
from pilotage.teardown.diagnosis.remedies import STRIP_FINALIZER
from pilotage.teardown.diagnosis.why.render import exit_code, remedies_of, render
from tests.cli.running import run
from tests.controllers.operating import Operator
from tests.teardown.why.own_stage import DEPLOYMENTS, HOLD, USER, WITHOUT_KILL, Case, Stuck, check

LATER_SECONDS = 600
"""More time than a controller is given before it is called silent."""


def held_part(stuck: Stuck) -> Case:
    stuck.endpoint("held")
    stuck.hold(f"{DEPLOYMENTS.format(stuck.namespace)}/held-1", HOLD)
    stuck.delete("held")
    stuck.until(stuck.waiting_for(HOLD))
    deployment = f"deployment/held-1 -n {stuck.namespace}"
    steps = (
        "pilotage.dev/endpoint",
        "kept by Pilotage operator",
        "waits for teardown/held-",
        f"waits for {deployment}",
    )
    return Case("ServingEndpoint", "held", "NO OWNER FOUND", f"kubectl describe {deployment}", (*steps, HOLD))


def part_of_dead_controller(stuck: Stuck) -> Case:
    pods = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "x", "image": "x"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "x"}}, "template": pods}
    manager = {"metadata": {"name": "prometheus-operator"}, "spec": spec}
    stuck.cluster.request("POST", DEPLOYMENTS.format(stuck.namespace), manager)
    stuck.endpoint("watched")
    stuck.hold(f"/api/v1/namespaces/{stuck.namespace}/services/watched-1", "monitoring.coreos.com/status-cleanup")
    stuck.delete("watched")
    stuck.until(stuck.waiting_for("monitoring.coreos.com/status-cleanup"))
    command = f"kubectl scale deployment/prometheus-operator -n {stuck.namespace} --replicas=1"
    steps = (f"waits for service/watched-1 -n {stuck.namespace}", "kept by Prometheus operator")
    return Case("ServingEndpoint", "watched", "NOT RUNNING: scaled to 0", command, steps)


def forbidden(stuck: Stuck) -> Case:
    stuck.endpoint("routed", route={"kind": "Ingress", "host": "routed.example.com"})
    stuck.until(lambda: any(each.startswith("ingresses/routed") for each in stuck.parts()))
    stuck.delete("routed")
    stuck.until(stuck.waiting_for("cannot delete resource"))
    root = f"FORBIDDEN: {USER} may not delete ingresses.networking.k8s.io in namespace {stuck.namespace}"
    command = (
        f"kubectl create role let-delete-ingresses --verb=delete --resource=ingresses.networking.k8s.io "
        f"-n {stuck.namespace} && kubectl create rolebinding let-delete-ingresses --role=let-delete-ingresses "
        f"--user={USER} -n {stuck.namespace}"
    )
    return Case("ServingEndpoint", "routed", root, command, (f"waits for ingress/routed -n {stuck.namespace}",))


def record_of_somebody_else(stuck: Stuck) -> Case:
    stuck.endpoint("taken")
    uid = (stuck.get("taken") or {})["metadata"]["uid"]
    target = {"apiVersion": "pilotage.dev/v1alpha1", "kind": "ServingEndpoint", "name": "taken", "uid": "u-9"}
    record = f"taken-{uid[:8]}"
    stuck.post("Teardown", record, {"target": target | {"namespace": stuck.namespace}, "reason": "Deleted"})
    stuck.delete("taken")
    stuck.until_says("ServingEndpoint", "taken", "exists and is about something else")
    command = f"kubectl delete teardowns.pilotage.dev/{record} -n {stuck.namespace}"
    return Case("ServingEndpoint", "taken", "NOT BEGUN: Nothing is deleted before its Teardown exists", command)


def forged_teardown(stuck: Stuck) -> Case:
    stuck.until_says("Teardown", "forged", "LedgerRefused")
    command = f"kubectl delete teardowns.pilotage.dev/forged -n {stuck.namespace}"
    return Case("Teardown", "forged", "NOT ACTED ON: ", command)


def teardown_of_another_namespace(stuck: Stuck) -> Case:
    stuck.until_says("Teardown", "elsewhere", "Stalled")
    command = f"kubectl delete teardowns.pilotage.dev/elsewhere -n {stuck.namespace}"
    return Case("Teardown", "elsewhere", "NOT ACTED ON: teardown/elsewhere", command)


def lost_host(stuck: Stuck) -> Case:
    host = stuck.on_lost_host("adrift")
    stuck.delete("adrift")
    stuck.until(stuck.waiting_for("hostprocess/adrift-1-0"))
    steps = (f"waits for hostprocess/adrift-1-0 -n {stuck.namespace}", f"kept by the agent of host/{host}")
    root = "NOT RUNNING: "
    return Case("ServingEndpoint", "adrift", root, f"pilotage agent --name {host}", steps, dead=True)


def process_on_lost_host(stuck: Stuck) -> Case:
    host = stuck.on_lost_host("marooned")
    stuck.doom("HostProcess", "marooned-1-0")
    steps = ("waits for finalizer pilotage.dev/agent", f"kept by the agent of host/{host}")
    return Case("HostProcess", "marooned-1-0", "NOT RUNNING: ", f"pilotage agent --name {host}", steps, dead=True)


def model_in_use(stuck: Stuck) -> Case:
    stuck.post("Model", "shared", {"source": "pvc://weights/model.gguf"})
    stuck.until_says("Model", "shared", "Ready")
    stuck.endpoint("user", model={"name": "shared"})
    stuck.doom("Model", "shared")
    stuck.until_says("Model", "shared", "InUse")
    root = f"is used by servingendpoint/user -n {stuck.namespace}"
    return Case("Model", "shared", root, f"pilotage redeploy user -n {stuck.namespace} --model OTHER")


def model_of_stuck_endpoint(stuck: Stuck) -> Case:
    stuck.post("Model", "kept", {"source": "pvc://weights/model.gguf"})
    stuck.until_says("Model", "kept", "Ready")
    stuck.endpoint("keeper", model={"name": "kept"})
    stuck.hold(f"{DEPLOYMENTS.format(stuck.namespace)}/keeper-1", HOLD)
    stuck.delete("keeper")
    stuck.doom("Model", "kept")
    stuck.until_says("Model", "kept", "InUse")
    stuck.until(stuck.waiting_for(f"deployment/keeper-1 -n {stuck.namespace}"))
    steps = (f"is used by servingendpoint/keeper -n {stuck.namespace}", "waits for teardown/keeper-", HOLD)
    command = f"kubectl describe deployment/keeper-1 -n {stuck.namespace}"
    return Case("Model", "kept", "NO OWNER FOUND", command, steps)


def namespace_that_goes(stuck: Stuck) -> Case:
    """Nothing new is created in it: its Teardown is in the namespace of the operator."""
    going = Stuck(stuck.cluster, f"{stuck.namespace}-2", stuck.folder)
    stuck.cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": going.namespace}})
    going.endpoint("inside")
    going.hold(f"{DEPLOYMENTS.format(going.namespace)}/inside-1", HOLD)
    stuck.cluster.request("DELETE", f"/api/v1/namespaces/{going.namespace}")
    stuck.until(stuck.waiting_for(f"deployment/inside-1 -n {going.namespace}", "pilotage-system"))
    deployment = f"deployment/inside-1 -n {going.namespace}"
    steps = ("waits for teardown/inside-", f"waits for {deployment}", HOLD)
    command = f"kubectl describe {deployment}"
    return Case("ServingEndpoint", "inside", "NO OWNER FOUND", command, steps, going.namespace)


def redeploy_that_waits_for_former_parts(stuck: Stuck) -> Case:
    former_parts_that_stay(stuck)
    stuck.until_says("ServingEndpoint", "again", "Recreating")
    steps = (
        "is Redeploying: ",
        "waits for teardown/again-",
        f"waits for deployment/again-1 -n {stuck.namespace}",
        HOLD,
    )
    command = f"kubectl describe deployment/again-1 -n {stuck.namespace}"
    return Case("ServingEndpoint", "again", "NO OWNER FOUND", command, steps)


def part_that_a_policy_keeps(stuck: Stuck) -> Case:
    """It is refused also where the operator has all permissions."""
    stuck.endpoint("policed")
    stuck.keep("services", f"policed-1-{stuck.namespace}", "policed-1")
    stuck.delete("policed")
    stuck.until(stuck.waiting_for("nobody deletes it"))
    steps = ("waits for teardown/policed-", f"waits for service/policed-1 -n {stuck.namespace}")
    root = f"validatingadmissionpolicy/policed-1-{stuck.namespace}: refuses the delete: this policy denies it"
    command = f"kubectl describe service/policed-1 -n {stuck.namespace}"
    return Case("ServingEndpoint", "policed", root, command, steps)


def former_parts_that_stay(stuck: Stuck) -> Case:
    """A redeploy with Recreate waits for a former part."""
    if stuck.get("again") is not None:
        return _former_parts(stuck)
    stuck.endpoint("again", strategy={"type": "Recreate"})
    stuck.until(lambda: stuck.serves("again"))
    stuck.hold(f"{DEPLOYMENTS.format(stuck.namespace)}/again-1", HOLD)
    stuck.change("again", runtime={"args": ["--ctx-size", "512"]})
    stuck.until(stuck.waiting_for(f"deployment/again-1 -n {stuck.namespace}"))
    return _former_parts(stuck)


def _former_parts(stuck: Stuck) -> Case:
    name = next(each["metadata"]["name"] for each in stuck.records() if each["spec"]["target"]["name"] == "again")
    command = f"kubectl describe deployment/again-1 -n {stuck.namespace}"
    return Case("Teardown", name, "NO OWNER FOUND", command, (f"waits for deployment/again-1 -n {stuck.namespace}",))


# Not being deleted


def model_missing(stuck: Stuck) -> Case:
    stuck.deploy("hungry", model={"name": "nowhere"})
    stuck.until_says("ServingEndpoint", "hungry", "ModelMissing")
    root = f"MISSING: model/nowhere -n {stuck.namespace} does not exist"
    return Case(
        "ServingEndpoint", "hungry", root, f"kubectl get models.pilotage.dev -n {stuck.namespace}", ("is Failed: ",)
    )


def model_that_fails(stuck: Stuck) -> Case:
    stuck.post("Model", "broken", {"source": "file:///nowhere/model.gguf"})
    stuck.until_says("Model", "broken", "Failed")
    stuck.deploy("starved", model={"name": "broken"})
    stuck.until_says("ServingEndpoint", "starved", "ModelFailed")
    command = f"kubectl edit models.pilotage.dev/broken -n {stuck.namespace}"
    return Case("ServingEndpoint", "starved", "UNAVAILABLE: ", command, ("is Failed: ",))


def failed_model(stuck: Stuck) -> Case:
    stuck.post("Model", "absent", {"source": "file:///nowhere/other.gguf"})
    stuck.until_says("Model", "absent", "Failed")
    return Case("Model", "absent", "UNAVAILABLE: ", f"kubectl edit models.pilotage.dev/absent -n {stuck.namespace}")


def pods_that_fit_nowhere(stuck: Stuck) -> Case:
    stuck.endpoint("homeless", nodeSelector={"there-is": "none"})
    stuck.until_says("ServingEndpoint", "homeless", "Unschedulable")
    steps = ("is Deploying: 0 of 1 replicas are ready.",)
    return Case("ServingEndpoint", "homeless", "UNSCHEDULABLE: ", "kubectl describe pod/homeless-1-", steps)


def host_that_was_lost(stuck: Stuck) -> Case:
    host = stuck.on_lost_host("stranded")
    stuck.until_says("ServingEndpoint", "stranded", "is lost: its agent")
    steps = (f"hostprocess/stranded-1-0 -n {stuck.namespace}: is Lost",)
    root = "LOST: Its agent has not renewed its Lease"
    return Case("ServingEndpoint", "stranded", root, f"pilotage agent --name {host}", steps)


def lost_host_itself(stuck: Stuck) -> Case:
    host = stuck.machine()
    stuck.until_says("Host", host, "Lost")
    return Case("Host", host, "LOST: Its agent has not renewed its Lease", f"pilotage agent --name {host}")


def process_without_host(stuck: Stuck) -> Case:
    placement = {"kind": "Host", "host": "nowhere"}
    stuck.deploy("unplaced", placement=placement, route={"kind": "None"})
    stuck.until_says("HostProcess", "unplaced-1-0", "Pending")
    command = f"kubectl describe hostprocesses.pilotage.dev/unplaced-1-0 -n {stuck.namespace}"
    return Case("HostProcess", "unplaced-1-0", "is Pending: ", command)


def name_that_is_taken(stuck: Stuck) -> Case:
    pods = {"metadata": {"labels": {"app": "y"}}, "spec": {"containers": [{"name": "x", "image": "x"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "y"}}, "template": pods}
    stuck.cluster.request("POST", DEPLOYMENTS.format(stuck.namespace), {"metadata": {"name": "double-1"}, "spec": spec})
    stuck.deploy("double")
    stuck.until_says("ServingEndpoint", "double", "Degraded")
    stuck.until_says("ServingEndpoint", "double", "double-1")
    return Case(
        "ServingEndpoint",
        "double",
        "is Failed: deployment/double-1",
        f"kubectl edit servingendpoints.pilotage.dev/double -n {stuck.namespace}",
    )


CASES: tuple[Callable[[Stuck], Case], ...] = (
    forged_teardown,
    teardown_of_another_namespace,
    held_part,
    part_of_dead_controller,
    forbidden,
    record_of_somebody_else,
    lost_host,
    process_on_lost_host,
    model_in_use,
    model_of_stuck_endpoint,
    namespace_that_goes,
    former_parts_that_stay,
    redeploy_that_waits_for_former_parts,
    part_that_a_policy_keeps,
    model_missing,
    model_that_fails,
    failed_model,
    pods_that_fit_nowhere,
    host_that_was_lost,
    lost_host_itself,
    process_without_host,
    name_that_is_taken,
)


@pytest.mark.parametrize("stage", CASES, ids=lambda stage: stage.__name__)
def test_the_chain_ends_at_the_root_with_the_remedy_for_it(stuck: Stuck, stage: Callable[[Stuck], Case]) -> None:
    case = stage(stuck)
    for later in (0, LATER_SECONDS):
        told = stuck.why(case.kind, case.name, later=later, namespace=case.namespace)
        check(told, case)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start servers as another user")
def test_a_process_that_does_not_end_is_named_from_the_endpoint_the_process_and_the_host(
    stuck: Stuck,
) -> None:
    """Its agent has lost the right to kill what runs as another user; it is alive, and says so."""
    host = stuck.agent(before=WITHOUT_KILL)
    stuck.on_host("deaf", host, {"name": "custom", "command": ["/bin/sleep", "1000"], "args": []})
    stuck.until_says("HostProcess", "deaf-1-0", '"pid": ')
    stuck.delete("deaf")
    stuck.until_says("HostProcess", "deaf-1-0", "does not end")
    stuck.until(stuck.waiting_for("hostprocess/deaf-1-0"))
    stuck.doom("Host", host)
    pid = stuck.process("deaf")["status"]["pid"]
    root, command = f"NOT STOPPED: Process {pid} does not end", f"ssh {host} sudo kill -9 {pid}"
    for kind, name in (("ServingEndpoint", "deaf"), ("HostProcess", "deaf-1-0"), ("Host", host)):
        check(stuck.why(kind, name), Case(kind, name, root, command, (f"kept by the agent of host/{host}",)))


def test_an_operator_that_says_nothing_is_said_to_run_and_its_log_is_named(stuck: Stuck) -> None:
    """A finalizer that it never removes; its writes show that it runs."""
    stuck.post("Model", "odd", {"source": "pvc://weights/model.gguf"}, finalizers=["pilotage.dev/other"])
    stuck.until_says("Model", "odd", "Ready")
    stuck.doom("Model", "odd")
    told = stuck.why("Model", "odd")
    text = "\n".join(render(told))
    assert "NOT RUNNING" not in text
    assert [each for each in remedies_of(told) if each.code == STRIP_FINALIZER] == [], text


INSTALL = "pilotage install --print | kubectl apply --server-side -f -"
DEAD = {
    "ServingEndpoint": ("last", "the endpoint's parts"),
    "Model": ("weights", "the fetched files"),
    "Host": ("box", "the HostProcesses that were placed on it"),
}
"""Objects that are deleted when no operator runs, and what leaks of each if its finalizer is removed."""


def is_held(stuck: Stuck, path: str) -> bool:
    return bool(stuck.cluster.request("GET", path)["metadata"].get("finalizers"))


def test_an_operator_that_does_not_run_is_started_first_and_the_finalizer_is_the_last_thing(
    running: tuple[Operator, Stuck],
) -> None:
    process, stuck = running
    stuck.endpoint("last")
    stuck.post("Model", "weights", {"source": "pvc://weights/model.gguf"})
    stuck.post("Host", "box", {})
    for kind, (name, _) in DEAD.items():
        stuck.until(partial(is_held, stuck, stuck.path(kind, name)))
    process.end()
    stuck.lease("pilotage-system", "pilotage-operator", ago=0, seconds=15)  # it held it to its end
    stuck.deploy("late")
    for kind, (name, leak) in DEAD.items():
        stuck.doom(kind, name)
        told = stuck.why(kind, name, later=120)
        text = "\n".join(render(told))
        assert "NOT RUNNING: its lease expired" in text
        first, *_, last = remedies_of(told)
        assert first.command == INSTALL, text
        assert (last.code, exit_code(told)) == (STRIP_FINALIZER, 1), text
        assert leak in last.effect
    told = stuck.why("ServingEndpoint", "late", later=120)
    text = "\n".join(render(told))
    assert "NOT ACTED ON: Pilotage operator does not run (its lease expired" in text
    assert [each.command for each in remedies_of(told)] == [INSTALL], text
    assert exit_code(told) == 1


def test_the_command_brings_the_deployment_of_the_operator_back(
    running: tuple[Operator, Stuck], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was scaled to 0 a moment ago, and has given up its Lease: what it wrote just before is no sign of life."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    process, stuck = running
    if process.runs:
        process.end()
    stuck.lease("pilotage-system", "pilotage-operator", ago=0, seconds=1, holder="")
    (deployment,) = (each for each in manifests(Values(replicas=0)) if each["kind"] == "Deployment")
    stuck.cluster.request("POST", DEPLOYMENTS.format("pilotage-system"), deployment)
    where = "deployment/pilotage-operator -n pilotage-system"
    try:
        stuck.deploy("unseen")
        ran = run("why", "se/unseen", "-n", stuck.namespace, kubeconfig=stuck.cluster.kubeconfig)
    finally:
        stuck.cluster.request("DELETE", f"{DEPLOYMENTS.format('pilotage-system')}/pilotage-operator")
    assert (ran.code, ran.err) == (1, "")
    assert "NOT ACTED ON: Pilotage operator does not run (scaled to 0)" in ran.out
    assert f"1. Bring the controller back:  kubectl scale {where} --replicas=1 --kubeconfig" in ran.out
    assert "pilotage install" not in ran.out
