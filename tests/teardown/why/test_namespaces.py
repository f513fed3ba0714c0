"""Namespaces that do not go, by each of their conditions and by what is in them, on the real API server."""

import secrets

import pytest

from controlplane import Cluster
from pilotage.kube import PODS, Object, ObjectKey, Resource
from pilotage.teardown.diagnosis.why.codes import CauseCode
from pilotage.teardown.diagnosis.why.model import Confidence, Explanation, StuckVerdict
from pilotage.teardown.diagnosis.why.render import confidence, remedies_of, render
from tests.support import kinds
from tests.support.waiting import until
from tests.teardown.why.staging import Stage, all_causes, name_of, root_codes, the

MINUTES = 60
MAPS = kinds.CONFIG_MAPS
NAMESPACES = kinds.NAMESPACES
API_SERVICES = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", False)


def hold() -> str:
    """A finalizer that no controller removes."""
    return f"x{secrets.token_hex(4)}.test/hold"


async def doomed(stage: Stage, *conditions: tuple[str, str]) -> Object:
    """The stage's own namespace, being deleted, with conditions as its controller would set them."""
    namespace = await stage.client.get(NAMESPACES, ObjectKey("", stage.namespace))
    await stage.delete(NAMESPACES, namespace)
    written = [
        {"type": type_, "status": "True", "reason": "Staged", "message": message, "lastTransitionTime": NOW}
        for type_, message in conditions
    ]
    return await stage.status(NAMESPACES, namespace, {"conditions": written})


NOW = "2026-01-01T00:00:00Z"


async def ask(stage: Stage, namespace: Object, minutes_later: float = 10) -> Explanation:
    return await stage.why(NAMESPACES, namespace, seconds_later=minutes_later * MINUTES)


async def test_pods_go_first_and_finalized_content_stays(stage: Stage, namespace_for_pods: str) -> None:
    """Two namespaces, as the real namespace controller leaves them: it takes 5 s to begin."""
    other = await stage.make(NAMESPACES, {"metadata": {"name": f"content-{secrets.token_hex(4)}"}})
    kept = await stage.make(MAPS, kinds.config_map("kept"), other.meta.name, finalizers=[hold()])
    pod = await stage.make(PODS, kinds.pod("last"), finalizers=[hold()])
    await stage.make(MAPS, kinds.config_map("waiting"))
    await stage.delete(NAMESPACES, other)
    namespace = await doomed(stage)
    assert (await stage.why(NAMESPACES, namespace)).verdict is StuckVerdict.NOT_STUCK
    await until(stage.client, PODS, pod.key, lambda obj: obj is not None and obj.meta.terminating)
    await until(stage.client, MAPS, kept.key, lambda obj: obj is not None and obj.meta.terminating)
    await until(stage.client, NAMESPACES, other.key, _all_deletes_sent)

    explanation = await ask(stage, namespace)
    step = the(explanation, CauseCode.NAMESPACE_PODS_FIRST)
    assert f"waits for pod/last -n {stage.namespace}" in step.text
    assert "configmap/waiting" in " ".join(step.evidence)
    assert {name_of(root.subject).name for root in explanation.roots} == {"last"}
    assert remedies_of(explanation)[-1].code == "strip-finalizer"

    explanation = await ask(stage, other)
    assert root_codes(explanation) == {CauseCode.FINALIZER_UNCLAIMED}
    assert f"waits for configmap/kept -n {other.meta.name}" in the(explanation, CauseCode.NAMESPACE_CONTENT).text


@pytest.mark.usefixtures("paused_controllers")
async def test_content_is_counted_whatever_the_conditions_say(stage: Stage) -> None:
    for name in ("one", "two", "three"):
        await stage.delete(MAPS, await stage.make(MAPS, kinds.config_map(name), finalizers=["alike.test/hold"]))
    namespace = await doomed(stage)  # no condition at all
    explanation = await ask(stage, namespace)
    assert "(and 2 more like it)" in the(explanation, CauseCode.NAMESPACE_CONTENT).text
    assert CauseCode.FINALIZER_UNCLAIMED in root_codes(explanation)
    assert explanation.verdict is StuckVerdict.STUCK


@pytest.mark.usefixtures("paused_controllers")
async def test_remaining_content_that_is_no_longer_there(stage: Stage) -> None:
    # Created while no controller adds the usual two objects.
    namespace = await stage.make(NAMESPACES, {"metadata": {"name": f"empty-{secrets.token_hex(4)}"}})
    await stage.delete(NAMESPACES, namespace)
    said = "Some content in the namespace has finalizers remaining: a/b in 1 resource instances"
    conditions = [
        {"type": type_, "status": "True", "reason": "Staged", "message": said, "lastTransitionTime": NOW}
        for type_ in ("NamespaceContentRemaining", "NamespaceFinalizersRemaining")
    ]
    await stage.status(NAMESPACES, namespace, {"conditions": conditions})
    explanation = await ask(stage, namespace)
    root = the(explanation, CauseCode.NAMESPACE_EMPTY)
    assert [line.partition(" still says")[0] for line in root.evidence] == [
        "Condition NamespaceContentRemaining",
        "Condition NamespaceFinalizersRemaining",
    ]
    assert explanation.verdict is StuckVerdict.NOT_STUCK


@pytest.mark.usefixtures("paused_controllers")
async def test_an_api_that_does_not_answer_anywhere(stage: Stage) -> None:
    group = f"x{secrets.token_hex(4)}.example.org"
    spec = {
        "group": group,
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "service": {"namespace": stage.namespace, "name": "not-there"},
        "insecureSkipTLSVerify": True,
    }
    async with kinds.existing(stage.client, API_SERVICES, {"metadata": {"name": f"v1.{group}"}, "spec": spec}) as dead:
        message = f"Discovery failed for some groups, 1 failing: {group}/v1: stale GroupVersion discovery: {group}/v1"
        namespace = await doomed(stage, ("NamespaceDeletionDiscoveryFailure", message))
        await until(stage.client, API_SERVICES, dead.key, _unavailable)
        explanation = await ask(stage, namespace)
        step = the(explanation, CauseCode.NAMESPACE_DISCOVERY_FAILURE)
        assert message in step.evidence[0]
        below = [cause for cause in all_causes(explanation) if name_of(cause.subject).kind == "APIService"]
        assert [name_of(cause.subject).name for cause in below] == [f"v1.{group}"]
        assert below[0] in step.because
        assert explanation.verdict is StuckVerdict.STUCK


@pytest.mark.usefixtures("paused_controllers")
async def test_an_api_that_did_not_answer_and_does_by_now(stage: Stage) -> None:
    namespace = await doomed(stage, ("NamespaceDeletionDiscoveryFailure", "Discovery failed for some groups: a/v1"))
    step = the(await ask(stage, namespace), CauseCode.NAMESPACE_DISCOVERY_FAILURE)
    assert "All APIs answer by now" in " ".join(step.evidence)
    assert step.confidence is Confidence.MEDIUM
    assert step.remedies[0].command == "kubectl get apiservices"


@pytest.mark.usefixtures("paused_controllers")
async def test_an_api_version_that_is_none(stage: Stage) -> None:
    message = "unexpected GroupVersion string: a/b/c"
    namespace = await doomed(stage, ("NamespaceDeletionGroupVersionParsingFailure", message))
    root = the(await ask(stage, namespace), CauseCode.NAMESPACE_GROUP_VERSION_FAILURE)
    assert message in root.evidence[0]


@pytest.mark.usefixtures("paused_controllers")
async def test_deletes_of_the_namespace_controller_fail(stage: Stage) -> None:
    await stage.make(MAPS, kinds.config_map("refused"))
    message = "Failed to delete all resource types, 1 remaining: admission webhook denied the request"
    namespace = await doomed(stage, ("NamespaceDeletionContentFailure", message))
    explanation = await ask(stage, namespace)
    root = the(explanation, CauseCode.NAMESPACE_CONTENT_FAILURE)
    assert message in root.evidence[0]
    assert "configmap/refused" in root.text
    assert remedies_of(explanation)[0].command == f"kubectl describe namespace/{stage.namespace}"


@pytest.mark.usefixtures("paused_controllers")
async def test_nobody_deletes_what_is_in_it(stage: Stage) -> None:
    await stage.make(MAPS, kinds.config_map("left"))
    namespace = await doomed(stage)
    explanation = await ask(stage, namespace)
    root = the(explanation, CauseCode.NAMESPACE_CONTENT_NOT_DELETED)
    assert "configmap/left" in root.text
    assert confidence(explanation) is Confidence.MEDIUM
    assert remedies_of(explanation)[1].command == f"pilotage delete -n {stage.namespace} --all"
    left = await stage.client.get(MAPS, ObjectKey(stage.namespace, "left"))
    about_it = await stage.why(MAPS, left)
    assert root_codes(about_it) == {CauseCode.NAMESPACE_TERMINATING}
    assert about_it.verdict is StuckVerdict.NOT_STUCK


@pytest.mark.usefixtures("paused_controllers")
async def test_the_operator_lives_in_the_namespace_of_its_objects(stage: Stage, widgets: Resource) -> None:
    await stage.make(kinds.DEPLOYMENTS, kinds.deployment("tekton-chains-controller"))
    run = await stage.make(widgets, {"metadata": {"name": "run"}}, finalizers=["chains.tekton.dev"])
    namespace = await doomed(stage)
    await stage.delete(widgets, run)
    explanation = await ask(stage, namespace)
    root = the(explanation, CauseCode.NAMESPACE_OPERATOR_INSIDE)
    assert name_of(root.subject).name == "tekton-chains-controller"
    assert (
        root.remedies[0].title == "Copy Tekton Chains to another namespace, and run it there until its objects are gone"
    )
    assert any("WENT FIRST" in line and line.endswith("← root cause") for line in render(explanation))


@pytest.mark.usefixtures("paused_controllers")
async def test_a_finalizer_in_the_spec_of_the_namespace(stage: Stage, own_cluster: Cluster) -> None:
    name = f"spec-{secrets.token_hex(4)}"
    body = {"metadata": {"name": name}, "spec": {"finalizers": ["kubernetes", "hold.test/spec"]}}
    namespace = await stage.make(NAMESPACES, body)
    await stage.delete(NAMESPACES, namespace)
    try:
        explanation = await ask(stage, namespace)
        assert "waits for finalizer hold.test/spec" in the(explanation, CauseCode.FINALIZER).text
        assert root_codes(explanation) == {CauseCode.FINALIZER_UNCLAIMED}
        # It takes another request than a finalizer in the metadata, one that could let all go that is in it.
        assert [remedy.command for remedy in remedies_of(explanation)] == [f"kubectl describe namespace/{name}"]
    finally:
        current = await stage.client.get(NAMESPACES, namespace.key)
        final = {**current.to_dict(), "spec": {"finalizers": ["kubernetes"]}}
        own_cluster.request("PUT", f"/api/v1/namespaces/{name}/finalize", final)


def _all_deletes_sent(namespace: Object | None) -> bool:
    """Its controller says what waits for finalizers once it has been through all kinds, and not before."""
    conditions = namespace.to_dict()["status"].get("conditions", []) if namespace else []
    return any(each["type"] == "NamespaceFinalizersRemaining" and each["status"] == "True" for each in conditions)


def _unavailable(obj: Object | None) -> bool:
    conditions = obj.get("status", "conditions", default=[]) if obj else []
    return any(each["type"] == "Available" and each["status"] == "False" for each in conditions)
