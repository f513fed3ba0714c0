"""Missing permissions, reported before the request is tried."""

from collections.abc import AsyncIterator

import pytest

from controlplane import Cluster
from pilotage.kube import Client, Discovery, Json, Resource, load_config
from pilotage.teardown.diagnosis.why.explain import explain
from pilotage.teardown.diagnosis.why.model import Explanation, StuckVerdict
from pilotage.teardown.relations import relate
from pilotage.teardown.snapshot.gather import gather
from pilotage.teardown.snapshot.resolve import until_resolved
from tests.support.kinds import CONFIG_MAPS, NAMESPACES, config_map
from tests.teardown.why.objects import FINALIZER, unique
from tests.teardown.why.staging import Stage, root_codes, the

RBAC = "rbac.authorization.k8s.io"
ROLES = Resource(RBAC, "v1", "clusterroles", "ClusterRole", False)
BINDINGS = Resource(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", False)


def rule(verbs: list[str], *resources: str) -> Json:
    return {"apiGroups": [""], "resources": list(resources), "verbs": verbs}


@pytest.fixture
async def reader(stage: Stage, own_cluster: Cluster) -> AsyncIterator[Client]:
    """A user who may read ConfigMaps and Namespaces, and nothing else."""
    name = unique("reader")
    rules = [rule(["get", "list"], "configmaps", "namespaces")]
    await stage.make(ROLES, {"metadata": {"name": name}, "rules": rules})
    subject = {"apiGroup": RBAC, "kind": "User", "name": name}
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": name}
    await stage.make(BINDINGS, {"metadata": {"name": name}, "subjects": [subject], "roleRef": role})
    async with Client.connect(load_config(kubeconfig=str(own_cluster.user(name)))) as client:
        yield client


async def why(client: Client, uid: str, *namespaces: str) -> Explanation:
    world = await gather(client, Discovery(client), namespaces=namespaces)
    item = world.get(uid)
    assert item is not None
    return await until_resolved(client, world, lambda known: explain(known, relate(known), item))


async def test_somebody_who_may_not_delete(stage: Stage, reader: Client):
    made = await stage.make(CONFIG_MAPS, config_map("settings"))
    found = await why(reader, made.meta.uid, stage.namespace)
    assert found.verdict is StuckVerdict.STUCK
    assert root_codes(found) == {"may-not-delete"}
    root = the(found, "may-not-delete")
    assert f"in namespace {stage.namespace}" in root.evidence[0]
    assert root.remedies[0].command == (
        f"kubectl create role pilotage-teardown -n {stage.namespace} --verb=delete,get,list,watch --resource=configmaps"
    )


async def test_somebody_who_may_not_delete_what_has_no_namespace(stage: Stage, reader: Client):
    made = await stage.make(NAMESPACES, {"metadata": {"name": unique("staged")}})
    found = await why(reader, made.meta.uid)
    root = the(found, "may-not-delete")
    assert "cluster-wide" in root.evidence[0]
    assert root.remedies[0].command.startswith("kubectl create clusterrole pilotage-teardown --verb=delete")


async def test_somebody_who_may_not_see_what_holds_a_namespace(stage: Stage, reader: Client):
    made = await stage.make(NAMESPACES, {"metadata": {"name": unique("staged")}})
    secrets = Resource("", "v1", "secrets", "Secret")
    await stage.make(secrets, {"metadata": {"name": "hidden"}}, made.meta.name, finalizers=[FINALIZER])
    await stage.delete(NAMESPACES, made)
    found = await why(reader, made.meta.uid, made.meta.name)
    assert "may-not-list" in root_codes(found)
    assert "secrets" in the(found, "may-not-list").remedies[0].command


async def test_somebody_who_may_not_let_go_of_it(stage: Stage, reader: Client):
    made = await stage.make(CONFIG_MAPS, config_map("held", finalizers=[FINALIZER]))
    await stage.delete(CONFIG_MAPS, made)
    found = await why(reader, made.meta.uid, stage.namespace)
    assert "cannot remove a finalizer" in the(found, "may-not-patch").text
    assert "--verb=patch,get,list,watch" in the(found, "may-not-patch").remedies[0].command
    allowed = await why(stage.client, made.meta.uid, stage.namespace)
    assert "may-not-patch" not in root_codes(allowed)


async def test_somebody_who_may(stage: Stage):
    made = await stage.make(CONFIG_MAPS, config_map("settings"))
    found = await why(stage.client, made.meta.uid, stage.namespace)
    assert found.causes == ()
