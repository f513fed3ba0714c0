"""Finalizers whose controllers are dead, forbidden, failing, busy, unknown or nowhere, on the real API server."""

import asyncio
import copy
import datetime as dt
import json
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from controlplane import Access, Cluster
from pilotage.kube import LEASES, Absent, Client, Object, Resource, load_config
from pilotage.kube.wire import format_micro_time
from pilotage.runtime.clock import utc_now
from pilotage.teardown.diagnosis.why.codes import CauseCode
from pilotage.teardown.diagnosis.why.model import Confidence, StuckVerdict
from pilotage.teardown.diagnosis.why.render import confidence, exit_code, remedies_of, render
from tests.cli.running import Ran
from tests.support import kinds
from tests.support.waiting import eventually, until
from tests.teardown.why.staging import Stage, name_of, owner, root_codes, the

WEBHOOKS = Resource(
    "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", False
)
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
ROLE_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
EVENTS = Resource("", "v1", "events", "Event")
HOUR = 3600


async def held(stage: Stage, resource: Resource, finalizer: str, name: str = "held") -> Object:
    """An object that is being deleted, and has this finalizer."""
    obj = await stage.make(resource, {"metadata": {"name": name}}, finalizers=[finalizer])
    await stage.delete(resource, obj)
    return obj


async def lease(stage: Stage, name: str, renewed_seconds_ago: float) -> Object:
    renewed = format_micro_time(utc_now() - dt.timedelta(seconds=renewed_seconds_ago))
    spec = {"holderIdentity": "somebody", "leaseDurationSeconds": 15, "renewTime": renewed}
    return await stage.make(LEASES, {"metadata": {"name": name}, "spec": spec})


async def warned(stage: Stage, obj: Object, message: str) -> None:
    """An Event about the object, as a controller writes it."""
    now = utc_now().isoformat().replace("+00:00", "Z")
    involved = {"namespace": stage.namespace, "name": obj.meta.name, "uid": obj.meta.uid}
    body: dict[str, Any] = {
        "metadata": {"name": f"warned-{secrets.token_hex(3)}"},
        "involvedObject": involved,
        "type": "Warning",
        "reason": "CleanupFailed",
        "message": message,
        "source": {"component": "acme-controller"},
        "lastTimestamp": now[:19] + "Z",
    }
    await stage.make(EVENTS, body)


async def test_the_controller_is_known_and_scaled_to_0(stage: Stage, widgets: Resource) -> None:
    controller = await stage.make(kinds.DEPLOYMENTS, kinds.deployment("kserve-controller-manager", replicas=0))
    obj = await held(stage, widgets, "inferenceservice.finalizers")
    await stage.make(kinds.CONFIG_MAPS, kinds.config_map("part"), ownerReferences=[owner(widgets, obj)])
    explanation = await stage.why(widgets, obj, seconds_later=14 * 60)
    assert root_codes(explanation) == {CauseCode.FINALIZER_CONTROLLER_DEAD}
    root = the(explanation, CauseCode.FINALIZER_CONTROLLER_DEAD)
    assert name_of(root.subject).name == controller.meta.name
    assert "scaled to 0" in root.text
    assert (explanation.verdict, exit_code(explanation)) == (StuckVerdict.STUCK, 1)
    assert explanation.headline == "terminating for 14m"
    first, second, last = remedies_of(explanation)
    assert first.command == f"kubectl scale deployment/kserve-controller-manager -n {stage.namespace} --replicas=1"
    assert second.command == f"pilotage delete {widgets}/held -n {stage.namespace} --adopt"
    assert second.effect.startswith("Would delete 1 object,")
    assert (last.code, last.detail) == ("strip-finalizer", "inferenceservice.finalizers")
    assert "TrainedModels" in last.effect
    lines = render(explanation)
    assert lines[0] == f"widget/held -n {stage.namespace}  terminating for 14m"
    assert lines[1] == "└─ waits for finalizer inferenceservice.finalizers"
    assert lines[2].startswith(
        f"   └─ kept by KServe controller  deployment/kserve-controller-manager -n {stage.namespace}"
    )
    assert lines[3].startswith("      └─ NOT RUNNING: scaled to 0")
    assert lines[3].endswith("← root cause")


async def test_what_the_dead_controller_would_have_done_is_done_in_order(
    stage: Stage, widgets: Resource, cluster: Access, tmp_path: Path
) -> None:
    """The remedy of `why` works: the parts go, the finalizer stays, the last answer names the release; then that."""
    await stage.make(kinds.DEPLOYMENTS, kinds.deployment("kserve-controller-manager", replicas=0))
    obj = await held(stage, widgets, "inferenceservice.finalizers")
    part: dict[str, Any] = {"ownerReferences": [owner(widgets, obj)]}
    config = await stage.make(kinds.CONFIG_MAPS, kinds.config_map("config"), **part)
    body = kinds.deployment("web", replicas=0)
    body["spec"]["template"]["spec"]["volumes"] = [{"name": "config", "configMap": {"name": "config"}}]
    web = await stage.make(kinds.DEPLOYMENTS, body, **part)
    other = await stage.make(kinds.CONFIG_MAPS, kinds.config_map("other"))
    await eventually(lambda: replica_sets(stage, web))
    _, remedy, _ = remedies_of(await stage.why(widgets, obj))
    assert remedy.effect.startswith("Would delete 3 objects,")
    receipt = tmp_path / "r.json"

    ran = await pilotage(cluster, *remedy.command.split()[1:], "--yes", "--timeout", "60", "--receipt", str(receipt))
    assert ran.code == 1, ran
    left = await stage.client.get(widgets, obj.key)
    assert left.meta.finalizers == ("inferenceservice.finalizers",)
    for resource, part_of_it in ((kinds.DEPLOYMENTS, web), (kinds.CONFIG_MAPS, config)):
        with pytest.raises(Absent):
            await stage.client.get(resource, part_of_it.key)
    told = json.loads(receipt.read_text())
    gone = {record["kind"]: record["gone"] for record in told["objects"] if record["state"] != "left"}
    assert gone.keys() == {"Deployment", "ReplicaSet", "ConfigMap"}
    assert gone["Deployment"] <= gone["ReplicaSet"] < gone["ConfigMap"]
    [line] = [line for line in ran.err.splitlines() if line.startswith("Bring KServe controller back, or let go of ")]

    stripped = await pilotage(cluster, *line.partition(": pilotage ")[2].split(), "--yes")
    assert stripped.code == 0, stripped
    resumed = await pilotage(cluster, "delete", "--resume", str(receipt), "--yes")
    assert resumed.code == 0, resumed
    assert json.loads(receipt.read_text())["result"] == "complete"
    assert (await stage.client.get(kinds.CONFIG_MAPS, other.key)).meta.uid == other.meta.uid


async def replica_sets(stage: Stage, deployment: Object) -> bool:
    listed = await stage.client.list(REPLICA_SETS, stage.namespace)
    return any(owner.uid == deployment.meta.uid for obj in listed.items for owner in obj.meta.owner_references)


async def pilotage(cluster: Access, *args: str) -> Ran:
    """Run the program, as a person does, without a terminal."""
    program = (sys.executable, "-m", "pilotage", *args, "--kubeconfig", str(cluster.kubeconfig))
    process = await asyncio.create_subprocess_exec(
        *program, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return Ran(process.returncode, out.decode(), err.decode())


async def test_the_controllers_pods_cannot_start(stage: Stage, namespace_for_pods: str, widgets: Resource) -> None:
    body = kinds.deployment("keda-operator")
    body["spec"]["template"]["spec"]["nodeSelector"] = {"there-is": "none"}
    controller = await stage.make(kinds.DEPLOYMENTS, body)
    obj = await held(stage, widgets, "finalizer.keda.sh")
    await until(stage.client, kinds.DEPLOYMENTS, controller.key, _unavailable)
    explanation = await stage.why(widgets, obj)
    root = the(explanation, CauseCode.FINALIZER_CONTROLLER_DEAD)
    assert "0 of 1 replicas available" in root.text
    assert remedies_of(explanation)[0].command.startswith("kubectl describe deployment/keda-operator")


async def test_the_controllers_lease_has_expired(stage: Stage, widgets: Resource) -> None:
    held_lease = await lease(stage, "cert-manager-controller", 2 * HOUR)
    obj = await held(stage, widgets, "finalizer.acme.cert-manager.io")
    explanation = await stage.why(widgets, obj)
    root = the(explanation, CauseCode.FINALIZER_CONTROLLER_DEAD)
    assert name_of(root.subject).name == held_lease.meta.name
    assert "its lease expired" in root.text
    assert any("somebody held it" in line for line in root.evidence)
    assert "DNS" in remedies_of(explanation)[-1].effect


async def test_the_controller_renews_its_lease_and_is_at_work(stage: Stage, widgets: Resource) -> None:
    await lease(stage, "crossplane-leader-election-core", 1)
    obj = await held(stage, widgets, "composite.apiextensions.crossplane.io")
    explanation = await stage.why(widgets, obj)
    assert root_codes(explanation) == {CauseCode.FINALIZER_CONTROLLER_WORKING}
    assert (explanation.verdict, exit_code(explanation)) == (StuckVerdict.NOT_STUCK, 0)
    assert explanation.headline.endswith("not stuck")
    assert remedies_of(explanation)[0].title == "Wait"
    assert not any("← root cause" in line for line in render(explanation))


async def test_the_controller_runs_and_has_said_nothing_for_an_hour(
    stage: Stage, namespace_for_pods: str, widgets: Resource
) -> None:
    controller = await stage.make(kinds.DEPLOYMENTS, kinds.deployment("rook-ceph-operator"))
    obj = await held(stage, widgets, "cephcluster.ceph.rook.io")
    await until(stage.client, kinds.DEPLOYMENTS, controller.key, _available)
    assert root_codes(await stage.why(widgets, obj)) == {CauseCode.FINALIZER_CONTROLLER_WORKING}
    explanation = await stage.why(widgets, obj, seconds_later=HOUR)
    root = the(explanation, CauseCode.FINALIZER_CONTROLLER_SILENT)
    assert any("1 of 1 replicas available" in line for line in root.evidence)
    assert explanation.verdict is StuckVerdict.STUCK
    assert confidence(explanation) is Confidence.MEDIUM
    assert remedies_of(explanation)[0].command.startswith("kubectl logs deployment/rook-ceph-operator")


async def test_the_controller_says_in_a_condition_why_it_fails(stage: Stage, widgets: Resource) -> None:
    obj = await held(stage, widgets, "finalizer.managedresource.crossplane.io")
    condition = {
        "type": "Synced",
        "status": "False",
        "reason": "ReconcileError",
        "message": "delete failed: cannot delete bucket: BucketNotEmpty",
        "lastTransitionTime": format_micro_time(utc_now() + dt.timedelta(seconds=2)),
    }
    ready = {"type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    await stage.status(widgets, obj, {"conditions": [ready, condition]})
    explanation = await stage.why(widgets, obj)
    root = the(explanation, CauseCode.FINALIZER_CONTROLLER_ERRORING)
    assert "BucketNotEmpty" in root.text
    assert root_codes(explanation) == {CauseCode.FINALIZER_CONTROLLER_ERRORING}
    assert confidence(explanation) is Confidence.HIGH
    assert remedies_of(explanation)[0].command.startswith("kubectl describe widgets.")


async def test_the_controller_says_in_an_event_why_it_fails(stage: Stage, widgets: Resource) -> None:
    obj = await held(stage, widgets, "acme.example.org/release-address")
    await warned(stage, obj, "could not release 10.0.0.7: the pool answers 503")
    explanation = await stage.why(widgets, obj)
    root = the(explanation, CauseCode.FINALIZER_CONTROLLER_ERRORING)
    assert "the pool answers 503" in root.text
    assert any("Event CleanupFailed of acme-controller" in line for line in root.evidence)


async def test_the_controller_may_not_do_what_it_has_to(stage: Stage, widgets: Resource) -> None:
    obj = await held(stage, widgets, "acme.example.org/clean-up")
    user = f"system:serviceaccount:{stage.namespace}:acme"
    await warned(
        stage,
        obj,
        f'secrets "token" is forbidden: User "{user}" cannot delete resource "secrets" in API group "" in the '
        f'namespace "{stage.namespace}"',
    )
    explanation = await stage.why(widgets, obj)
    root = the(explanation, CauseCode.FINALIZER_CONTROLLER_FORBIDDEN)
    assert root.text == f"FORBIDDEN: {user} may not delete secrets in namespace {stage.namespace}"
    assert "The server confirms that it may not." in root.evidence
    assert confidence(explanation) is Confidence.HIGH
    grant = remedies_of(explanation)[0].command
    assert "--verb=delete --resource=secrets" in grant
    assert f"--serviceaccount={stage.namespace}:acme" in grant


async def test_the_controller_was_forbidden_and_may_by_now(stage: Stage, cluster: Access, widgets: Resource) -> None:
    obj = await held(stage, widgets, "acme.example.org/clean-up")
    user = f"system:serviceaccount:{stage.namespace}:acme"
    refused = (
        f'configmaps "a" is forbidden: User "{user}" cannot delete resource "configmaps" in API group "" in the '
        f'namespace "{stage.namespace}"'
    )
    await warned(stage, obj, refused)
    grant = remedies_of(await stage.why(widgets, obj))[0].command  # the remedy of `why`, applied
    for command in grant.split(" && "):
        cluster.kubectl(*command.split()[1:])
    root = the(await stage.why(widgets, obj), CauseCode.FINALIZER_CONTROLLER_FORBIDDEN)
    assert "It may by now: the controller tries again." in root.evidence
    assert root.confidence is Confidence.MEDIUM


async def test_the_controller_is_known_but_nowhere_to_be_found(stage: Stage, widgets: Resource) -> None:
    obj = await held(stage, widgets, "longhorn.io")
    explanation = await stage.why(widgets, obj, seconds_later=HOUR)
    root = the(explanation, CauseCode.FINALIZER_CONTROLLER_MISSING)
    assert "No workload is named like Longhorn manager: longhorn-manager." in root.evidence
    first, last = remedies_of(explanation)[0], remedies_of(explanation)[-1]
    assert first.title.endswith("if Longhorn manager is not among them, install it again")
    assert last.code == "strip-finalizer"
    assert "data on the nodes' disks" in last.effect


async def test_nobody_watches_the_finalizer(stage: Stage) -> None:
    finalizer = f"x{secrets.token_hex(4)}.test/hold"
    obj = await held(stage, kinds.CONFIG_MAPS, finalizer)
    explanation = await stage.why(kinds.CONFIG_MAPS, obj)
    root = the(explanation, CauseCode.FINALIZER_UNCLAIMED)
    assert any('last written by "pilotage"' in line for line in root.evidence)
    assert confidence(explanation) is Confidence.MEDIUM
    first, last = remedies_of(explanation)
    assert first.command == f"kubectl describe configmap/held -n {stage.namespace}"
    assert (last.code, last.detail) == ("strip-finalizer", finalizer)
    assert last.command.startswith("pilotage why configmap/held")


async def test_an_unknown_controller_is_found_by_the_webhooks_of_its_api_group(stage: Stage, widgets: Resource) -> None:
    controller = await stage.make(kinds.DEPLOYMENTS, kinds.deployment("gadgetry", replicas=0))
    service = {"metadata": {"name": "hooks"}, "spec": {"selector": {"app": "gadgetry"}, "ports": [{"port": 443}]}}
    await stage.make(kinds.SERVICES, service)
    await stage.make(
        WEBHOOKS,
        {
            "metadata": {"name": f"gadgetry-{stage.namespace}"},
            "webhooks": [
                {
                    "name": "gadgetry.example.com",
                    "admissionReviewVersions": ["v1"],
                    "sideEffects": "None",
                    "failurePolicy": "Ignore",
                    "clientConfig": {"service": {"namespace": stage.namespace, "name": "hooks"}},
                    "rules": [
                        {
                            "apiGroups": [widgets.group],
                            "apiVersions": ["v1"],
                            "operations": ["CREATE"],
                            "resources": ["no"],
                        }
                    ],
                }
            ],
        },
    )
    obj = await held(stage, widgets, f"{widgets.group}/clean-up")
    explanation = await stage.why(widgets, obj)
    root = the(explanation, CauseCode.FINALIZER_CONTROLLER_DEAD)
    assert name_of(root.subject).name == controller.meta.name
    assert any("answers the webhooks of the API group" in line for line in root.evidence)


async def test_an_unknown_controller_is_found_by_who_wrote_the_finalizer(stage: Stage, widgets: Resource) -> None:
    await stage.make(kinds.DEPLOYMENTS, kinds.deployment("harvest-operator", replicas=0))
    writer = copy.copy(stage.client)
    writer.name = "harvest-operator"
    theirs = Stage(writer, stage.namespace)
    obj = await held(theirs, kinds.CONFIG_MAPS, f"x{secrets.token_hex(4)}.test/hold")
    try:
        explanation = await stage.why(kinds.CONFIG_MAPS, obj)
        root = the(explanation, CauseCode.FINALIZER_CONTROLLER_DEAD)
        assert name_of(root.subject).name == "harvest-operator"
        assert '"harvest-operator" is the name of' in " ".join(root.evidence)
    finally:
        await theirs.clear()


async def test_a_delete_of_what_is_still_there_would_hang(stage: Stage, widgets: Resource) -> None:
    await stage.make(kinds.DEPLOYMENTS, kinds.deployment("karpenter", replicas=0))
    obj = await stage.make(widgets, {"metadata": {"name": "present"}}, finalizers=["karpenter.sh/termination"])
    explanation = await stage.why(widgets, obj)
    assert explanation.headline == "present; a delete would not go through"
    assert root_codes(explanation) == {CauseCode.FINALIZER_CONTROLLER_DEAD}
    assert not any(remedy.code == "strip-finalizer" for remedy in remedies_of(explanation))


async def test_who_may_read_little_is_told_so(stage: Stage, own_cluster: Cluster) -> None:
    user = f"reader-{secrets.token_hex(3)}"
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]
    await stage.make(ROLES, {"metadata": {"name": "reader"}, "rules": rules})
    binding = {
        "roleRef": {"apiGroup": ROLES.group, "kind": "Role", "name": "reader"},
        "subjects": [{"apiGroup": ROLES.group, "kind": "User", "name": user}],
    }
    await stage.make(ROLE_BINDINGS, {"metadata": {"name": "reader"}, **binding})
    obj = await held(stage, kinds.CONFIG_MAPS, "kueue.x-k8s.io/resource-in-use")
    async with Client.connect(load_config(kubeconfig=str(own_cluster.user(user)))) as little:
        explanation = await Stage(little, stage.namespace).why(kinds.CONFIG_MAPS, obj, in_namespace=True)
    root = the(explanation, CauseCode.FINALIZER_CONTROLLER_UNCLEAR)
    assert any(line.startswith("Deployment.apps could not be read: ") for line in root.evidence)
    assert confidence(explanation) is Confidence.LOW
    assert remedies_of(explanation)[-1].code == "strip-finalizer"


async def test_nothing_holds_what_nobody_deletes(stage: Stage) -> None:
    obj = await stage.make(kinds.CONFIG_MAPS, kinds.config_map("plain"))
    explanation = await stage.why(kinds.CONFIG_MAPS, obj)
    assert (explanation.verdict, explanation.headline) == (StuckVerdict.NOT_STUCK, "is not being deleted")
    assert explanation.causes == ()


def _unavailable(obj: Object | None) -> bool:
    conditions = obj.get("status", "conditions", default=[]) if obj else []
    return any(each["type"] == "Available" and each["status"] == "False" for each in conditions)


def _available(obj: Object | None) -> bool:
    return bool(obj and obj.get("status", "availableReplicas"))
