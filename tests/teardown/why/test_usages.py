"""Usages: what they protect, what keeps them, and the webhook that speaks for them. The CRDs are Crossplane's own."""

from typing import Any

import pytest

from controlplane import Access
from pilotage.kube import Json, Object, Resource
from pilotage.teardown.diagnosis.why.explain import explain
from pilotage.teardown.diagnosis.why.model import StuckVerdict
from pilotage.teardown.relations import relate
from tests.support.kinds import CLUSTER_ROLES, CONFIG_MAPS, NAMESPACES, config_map
from tests.teardown.staged import install, theirs
from tests.teardown.why import worlds
from tests.teardown.why.objects import deleting, refusing, unique, webhook
from tests.teardown.why.staging import Stage, root_codes, the

USAGES = Resource("protection.crossplane.io", "v1beta1", "usages", "Usage")
CLUSTER_USAGES = Resource("protection.crossplane.io", "v1beta1", "clusterusages", "ClusterUsage", False)
LEGACY = Resource("apiextensions.crossplane.io", "v1beta1", "usages", "Usage", False)
OURS = Resource("pilotage.dev", "v1alpha1", "usages", "Usage")
FINALIZER = "usage.apiextensions.crossplane.io"
IN_USE = {"crossplane.io/in-use": "true"}


@pytest.fixture(autouse=True)
def usages(request: pytest.FixtureRequest) -> None:
    """Their kinds, for the tests that have a cluster."""
    if "stage" not in request.fixturenames:
        return
    cluster: Access = request.getfixturevalue("cluster")
    install(cluster, theirs("crossplane", str(USAGES), str(CLUSTER_USAGES)))


def reference(name: str, **more: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "resourceRef": {"name": name, **more}}


def usage(name: str, of: Json, by: Json | None = None, **more: Any) -> Json:
    return {"metadata": {"name": name}, "spec": {"of": of, **({"by": by} if by else {"reason": "precious"}), **more}}


async def test_a_usage_protects_what_it_is_about(stage: Stage):
    attempt = {"usage.crossplane.io/deletion-attempt-with-policy": "Background"}
    used = await stage.make(CONFIG_MAPS, config_map("used", labels=IN_USE, annotations=attempt))
    await stage.make(CONFIG_MAPS, config_map("user"))
    await stage.make(USAGES, usage("guard", reference("used"), reference("user")))
    found = await stage.why(CONFIG_MAPS, used)
    assert found.verdict is StuckVerdict.STUCK
    assert root_codes(found) == {"usage-protects"}
    root = the(found, "usage-protects")
    assert str(root.subject) == f"usage/guard -n {stage.namespace}"
    assert root.evidence[0] == f"it is used by configmap/user -n {stage.namespace}"
    assert "a delete was refused already (propagation Background)" in root.evidence
    assert root.remedies[0].command == f"kubectl delete configmap/user -n {stage.namespace}"
    assert root.remedies[-1].command.startswith("kubectl delete usages.protection.crossplane.io/guard")


async def test_a_usage_protects_nothing_else(stage: Stage):
    other = await stage.make(CONFIG_MAPS, config_map("other"))
    await stage.make(USAGES, usage("guard", reference("used")))
    await stage.make(USAGES, usage("far", reference("other", namespace="elsewhere"), reference("other")))
    found = await stage.why(CONFIG_MAPS, other)
    assert found.verdict is StuckVerdict.NOT_STUCK
    assert found.causes == ()


async def test_a_usage_gives_its_reason(stage: Stage):
    used = await stage.make(CONFIG_MAPS, config_map("used", labels=IN_USE))
    await stage.make(USAGES, usage("guard", reference("used")))
    found = await stage.why(CONFIG_MAPS, used)
    assert the(found, "usage-protects").evidence == ("the reason it gives: precious",)


@pytest.mark.parametrize("kind", [OURS, LEGACY], ids=str)
def test_usages_of_other_groups_protect_as_well(kind: Resource):
    used, other = worlds.item(CLUSTER_ROLES, "used"), worlds.item(CLUSTER_ROLES, "other")
    of = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "resourceRef": {"name": "used"}}
    guard = worlds.item(kind, "guard", spec={"of": of, "reason": "precious"})
    world = worlds.world(used, other, guard)
    protects = the(explain(world, relate(world), used), "usage-protects")
    assert protects.subject is guard
    assert explain(world, relate(world), other).causes == ()


async def test_the_webhook_that_keeps_usages_is_dead(stage: Stage):
    used = await stage.make(CONFIG_MAPS, config_map("used", labels=IN_USE))
    await stage.make(USAGES, usage("guard", reference("used")))
    missing = {"service": {"namespace": stage.namespace, "name": "crossplane-webhooks"}}
    guard = webhook(
        stage,
        "DELETE",
        missing,
        name="nousages.protection.crossplane.io",
        objectSelector={"matchLabels": IN_USE},
    )
    async with refusing(stage, deleting(stage, CONFIG_MAPS, used), guard):
        found = await stage.why(CONFIG_MAPS, used)
    assert root_codes(found) == {"service-missing"}
    assert "not replayed later" in the(found, "usage-webhook-fails").text
    assert the(found, "usage-protects").because


async def composed_usage(stage: Stage, user: Object) -> Object:
    """A usage that a composition made, and that is being deleted."""
    body = usage("guard", reference("used"), reference(user.meta.name))
    made = await stage.make(USAGES, body, finalizers=[FINALIZER], labels={"crossplane.io/composite": "xr"})
    await stage.delete(USAGES, made)
    return made


async def test_a_usage_waits_for_what_uses(stage: Stage):
    user = await stage.make(CONFIG_MAPS, config_map("user"))
    found = await stage.why(USAGES, await composed_usage(stage, user))
    assert found.verdict is StuckVerdict.STUCK
    assert root_codes(found) == {"usage-waits-for-user"}
    assert str(found.roots[0].subject) == f"configmap/user -n {stage.namespace}"
    assert found.roots[0].remedies[0].command == f"kubectl delete configmap/user -n {stage.namespace}"


async def test_a_cluster_usage_about_an_object_in_a_namespace_sticks(stage: Stage):
    name = unique("used")
    used = await stage.make(CONFIG_MAPS, config_map(name))
    body = usage(unique("guard"), reference(name))
    made = await stage.make(CLUSTER_USAGES, body, finalizers=[FINALIZER])
    assert (await stage.why(CONFIG_MAPS, used)).causes == ()  # it protects nothing either
    await stage.delete(CLUSTER_USAGES, made)
    found = await stage.why(CLUSTER_USAGES, made)
    assert root_codes(found) == {"usage-of-wrong-scope"}
    assert f"configmap/{name} -n {stage.namespace}" in found.roots[0].text


async def test_a_cluster_usage_protects_what_is_in_no_namespace(stage: Stage):
    protected = await stage.make(NAMESPACES, {"metadata": {"name": unique("used")}})
    of = {"apiVersion": "v1", "kind": "Namespace", "resourceRef": {"name": protected.meta.name}}
    made = await stage.make(CLUSTER_USAGES, usage(unique("guard"), of))
    found = await stage.why(NAMESPACES, protected)
    assert str(the(found, "usage-protects").subject) == f"clusterusage/{made.meta.name}"


async def test_a_label_without_a_usage(stage: Stage):
    marked = await stage.make(CONFIG_MAPS, config_map("marked", labels=IN_USE))
    found = await stage.why(CONFIG_MAPS, marked)
    assert found.verdict is StuckVerdict.NOT_STUCK
    assert root_codes(found) == {"usage-label-left"}
