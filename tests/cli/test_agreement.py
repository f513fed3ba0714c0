"""``plan`` and ``delete`` say before what ``why`` would say after, on a real cluster."""

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane import Access, ApiError
from controlplane.access import wait_for
from pilotage.api.names import LABEL_ENDPOINT_UID, MODELS
from tests.cli.running import run
from tests.cli.serving import Chat
from tests.support.kinds import CONFIG_MAPS, config_map
from tests.teardown.staged import definition, install

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
FINALIZER = "acme.example.com/cleanup"


def test_what_argo_cd_applies_again_is_a_blocker_and_is_said_before_the_delete_begins(
    cluster: Access, namespace: str, tmp_path: Path
):
    """Its Application is in another namespace, and what goes is a ConfigMap: nothing else would be read there."""
    install(cluster, [definition("argoproj.io", "Application", "applications")])
    with cluster.namespace("argo", for_pods=False) as other:
        spec = {"syncPolicy": {"automated": {"selfHeal": True}}}
        application = {"apiVersion": "argoproj.io/v1", "kind": "Application", "metadata": {"name": "api"}, "spec": spec}
        cluster.request("POST", f"/apis/argoproj.io/v1/namespaces/{other}/applications", application)
        marked = {"argocd.argoproj.io/tracking-id": f"{other}_api:/ConfigMap:{namespace}/web"}
        maps = f"/api/v1/namespaces/{namespace}/configmaps"
        cluster.request("POST", maps, {"metadata": {"name": "web", "annotations": marked}})
        words = ("cm/web", "-n", namespace)
        planned = run("plan", *words, kubeconfig=cluster.kubeconfig)
        named = run("plan", *words, "-o", "json", kubeconfig=cluster.kubeconfig)
        deleted = run("delete", *words, "--yes", "--receipt", tmp_path / "r.json", kubeconfig=cluster.kubeconfig)
    said = f"Argo CD Application api re-applies configmap/web -n {namespace}, each time it is deleted"
    assert planned.code == 1
    assert f"BLOCKS  configmap/web -n {namespace} comes back: {said}" in planned.out
    assert "argocd app set api --sync-policy none" in planned.out
    assert [each["code"] for each in json.loads(named.out)["hazards"]] == ["applied-again"]
    assert said in deleted.out.partition("gone by uid")[0]


def test_a_finalizer_that_nobody_removes_is_a_blocker_before_and_after_the_delete(cluster: Access, namespace: str):
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    cluster.request("POST", path, {"metadata": {"name": "a", "finalizers": [FINALIZER]}})
    try:
        for _ in ("present", "terminating"):
            ran = run("plan", "cm/a", "-n", namespace, kubeconfig=cluster.kubeconfig)
            assert ran.code == 1
            assert f"will hang on finalizer {FINALIZER}: nothing was found that removes it" in ran.out
            cluster.request("DELETE", f"{path}/a")
    finally:
        cluster.kubectl("patch", "cm", "a", "-n", namespace, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')


@contextlib.contextmanager
def forbidding_deletes(cluster: Access, namespace: str, reason: str) -> Iterator[None]:
    """A policy that keeps the ConfigMaps of a namespace; it is in force at the begin."""
    name = f"keep-{namespace}"[-60:].strip("-")
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["configmaps"]}
    where = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    validation = {"expression": "false", "message": "kept for the audit", "reason": reason}
    policy = {"matchConstraints": {"resourceRules": [rule]} | where, "validations": [validation]}
    binding = {"policyName": name, "validationActions": ["Deny"]}
    paths = [f"{ADMISSION}/validatingadmissionpolicies", f"{ADMISSION}/validatingadmissionpolicybindings"]
    for path, spec in zip(paths, (policy, binding), strict=True):
        cluster.request("POST", path, {"metadata": {"name": name}, "spec": spec})
    try:
        cluster.request("POST", f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "probe"}})
        wait_for("the policy to be in force", lambda: _is_refused(cluster, namespace))
        yield
    finally:
        for path in paths:
            cluster.request("DELETE", f"{path}/{name}")


def _is_refused(cluster: Access, namespace: str) -> bool:
    try:
        cluster.request("DELETE", f"/api/v1/namespaces/{namespace}/configmaps/probe?dryRun=All")
    except ApiError as error:
        return "kept for the audit" in str(error)
    return False


@pytest.mark.parametrize("reason", ["Invalid", "Forbidden", "RequestEntityTooLarge"])
def test_a_delete_that_a_policy_forbids_is_predicted_and_ends_without_waiting_for_the_end_of_its_time(
    cluster: Access, namespace: str, reason: str, tmp_path: Path
):
    cluster.request("POST", f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "a"}})
    words = ("cm/a", "-n", namespace)
    with forbidding_deletes(cluster, namespace, reason):
        planned = run("plan", *words, kubeconfig=cluster.kubeconfig)
        ran = run(
            "delete", *words, "-y", "--timeout", "3600", "--receipt", tmp_path / "r.json", kubeconfig=cluster.kubeconfig
        )
    assert planned.code == 1
    assert "kept for the audit" in planned.out
    assert ran.code == 1
    assert "kept for the audit" in ran.err
    assert f"Ask why with: pilotage why configmap/a -n {namespace} --kubeconfig" in ran.err
    assert re.search(r"Resume with: pilotage delete --resume \S+/r.json", ran.err)


def test_a_model_that_is_in_use_names_who_uses_it(chat: Chat):
    chat.create(MODELS, {"metadata": {"name": "shared"}, "spec": {"source": "hf://a/b/c.gguf"}})
    chat.make("one", model={"name": "shared"})
    ran = chat.run("plan", "model/shared")
    assert ran.code == 1
    who = f"servingendpoint/one -n {chat.namespace}"
    said = f"BLOCKS  model/shared -n {chat.namespace} stays until no endpoint uses it, and {who} does"
    assert said in ran.out
    assert "points at nothing" not in ran.out
    assert chat.run("plan", "model/shared", "se/one").code == 0


def test_a_finalizer_on_a_part_of_an_endpoint_is_a_blocker_of_its_delete(chat: Chat):
    labels = {LABEL_ENDPOINT_UID: chat.make("a").meta.uid}
    part = chat.create(CONFIG_MAPS, config_map("a-part", finalizers=[FINALIZER], labels=labels))
    entry = {"apiVersion": "v1", "kind": "ConfigMap", "resource": "configmaps", "name": "a-part", "uid": part.meta.uid}
    chat.write("a", {"ledger": [entry]})
    ran = chat.run("plan", "se/a")
    assert ran.code == 1
    assert f"BLOCKS  configmap/a-part -n {chat.namespace} will hang on finalizer {FINALIZER}" in ran.out
