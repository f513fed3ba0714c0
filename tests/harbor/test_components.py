"""A real kube-controller-manager and a real kube-scheduler run on harbor: all that they wait for is served."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from controlplane import assets
from controlplane.components import USERS, flags
from controlplane.layout import Layout
from controlplane.processes import Supervisor
from pilotage.kube import PODS, Client, ObjectKey, Propagation, Resource, load_config
from tests.contract.server import harbor
from tests.support.kinds import DEPLOYMENTS, NAMESPACES, NODES, deployment
from tests.support.waiting import eventually, soon, until

pytestmark = pytest.mark.cluster  # not that it needs one, but the components are built along with it

CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
COMPONENTS = ("kube-controller-manager", "kube-scheduler")
WAITING, SYNCED = "Waiting for caches to sync", "Caches are synced"
NODE = {
    "metadata": {"name": "node-0"},
    "status": {
        "allocatable": {"cpu": "8", "memory": "8Gi", "pods": "100"},
        "capacity": {"cpu": "8", "memory": "8Gi", "pods": "100"},
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
    },
}


@contextmanager
def components(kubeconfig: Path) -> Iterator[Supervisor]:
    """Both of them, as their own users and with the flags that they have in a control plane of ours."""
    binaries = assets.require(os.environ, set(COMPONENTS))
    with Supervisor() as supervisor:
        layout = Layout.create(supervisor.folder)
        for component in COMPONENTS:
            user = f"system:{component}"
            config = yaml.safe_load(kubeconfig.read_text())
            for each in config["users"]:
                each["user"] |= {"as": user, "as-groups": ["system:authenticated", *USERS[user]]}
            layout.kubeconfig(user).write_text(json.dumps(config))
            argv = [str(binaries[component]), *flags(component, layout)]
            supervisor.start(component, argv, env={"PATH": os.environ["PATH"], "HOME": str(supervisor.folder)})
        yield supervisor


async def test_a_deployment_is_run_scaled_and_deleted_by_real_components():
    with harbor() as place, components(place.kubeconfig) as supervisor:

        def said() -> str:
            return "".join(supervisor.log(component).read_text() for component in COMPONENTS)

        async with Client.connect(load_config(kubeconfig=str(place.kubeconfig))) as client:
            await client.create(NODES, NODE)
            await client.create(NAMESPACES, {"metadata": {"name": "shop"}})
            web = (await client.create(DEPLOYMENTS, deployment("web", replicas=2), namespace="shop")).key
            await until(client, DEPLOYMENTS, web, lambda found: found.get("status", "replicas") == 2, seconds=60)
            [replica_set] = (await client.list(REPLICA_SETS, "shop")).items
            assert replica_set.meta.owner_references[0].name == "web"
            await eventually(lambda: bound(client, 2), seconds=60)

            data = await client.create(CLAIMS, CLAIM, namespace="shop")  # both would release it
            await client.delete(CLAIMS, data.key, uid=data.meta.uid, propagation=Propagation.BACKGROUND)
            await until(client, CLAIMS, data.key, lambda found: found is None)

            await client.scale(DEPLOYMENTS, web, 3)
            await eventually(lambda: bound(client, 3), seconds=60)

            found = await client.get(DEPLOYMENTS, web)
            await client.delete(DEPLOYMENTS, web, uid=found.meta.uid, propagation=Propagation.BACKGROUND)
            await until(client, DEPLOYMENTS, web, lambda found: found is None)
            await eventually(lambda: are_leaving(client))

            shop = await client.get(NAMESPACES, ObjectKey("", "shop"))
            await client.delete(NAMESPACES, shop.key, uid=shop.meta.uid, propagation=Propagation.BACKGROUND)
            await eventually(lambda: leave(client))
            await until(client, NAMESPACES, shop.key, lambda found: found is None, seconds=60)

        soon(lambda: said().count(SYNCED) == said().count(WAITING) > 30, "all caches are synced")
        failed = [line for line in said().splitlines() if "failed to list" in line or "Failed to watch" in line]
        assert not failed, "\n".join(failed)


async def bound(client: Client, count: int) -> bool:
    """Whether this many pods are on the node."""
    pods = (await client.list(PODS, "shop")).items
    return len(pods) == count and all(pod.get("spec", "nodeName") == "node-0" for pod in pods)


async def are_leaving(client: Client) -> bool:
    """Whether every pod is marked: they go when the kubelet, which is this test, says so."""
    return all(pod.meta.deletion_timestamp for pod in (await client.list(PODS, "shop")).items)


async def leave(client: Client) -> bool:
    """Let the pods go that are marked, and say whether none is left."""
    pods = (await client.list(PODS, "shop")).items
    for pod in pods:
        await client.delete(PODS, pod.key, uid=pod.meta.uid, grace_seconds=0, propagation=Propagation.BACKGROUND)
    return not pods
