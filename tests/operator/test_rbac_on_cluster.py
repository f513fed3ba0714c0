"""The operator on a real API server, as its own service account: with its installed rules, it is refused nothing."""

import asyncio

from pilotage.api.names import ENDPOINTS, HOST_LEASES
from pilotage.kube import Client, ObjectKey, Propagation, load_config
from pilotage.operator.install import NAME
from pilotage.operator.run import operating, prepare
from pilotage.operator.settings import OperatorSettings
from tests.api.objects import endpoint, install
from tests.support.waiting import until

SECONDS_MAX = 60
SPEC = {
    "model": {"source": "hf://org/repo/model.gguf"},
    "route": {"kind": "Ingress", "host": "a.example.com"},
    "autoscaling": {"max": 3},
    "resources": {"requests": {"cpu": 1}},
    "deletion": {"drainSeconds": 1},
}


async def test_with_the_installed_roles_an_endpoint_comes_and_goes(own_cluster, namespace_for_pods, account, tmp_path):
    settings = OperatorSettings(
        namespace=namespace_for_pods, metrics_address="", cache_root=tmp_path, fetch="pods", fetch_image="pilotage:test"
    )
    async with (
        Client.connect(load_config(kubeconfig=str(own_cluster.kubeconfig))) as admin,
        Client.connect(load_config(kubeconfig=str(account))) as client,
    ):
        await install(admin)
        mark = own_cluster.audit_mark()
        await prepare(settings, client)
        async with operating(settings, client) as manager:
            running = asyncio.create_task(manager.run())
            try:
                await admin.create(ENDPOINTS, endpoint("chat", SPEC), namespace=namespace_for_pods)
                key = ObjectKey(namespace_for_pods, "chat")
                seen = await until(
                    admin, ENDPOINTS, key, lambda obj: obj and obj.get("status", "phase") == "Serving", SECONDS_MAX
                )
                await admin.delete(ENDPOINTS, key, uid=seen.meta.uid, propagation=Propagation.BACKGROUND)
                await until(admin, ENDPOINTS, key, lambda obj: obj is None, SECONDS_MAX)
            finally:
                manager.stop()
                await running
    asked = own_cluster.audit(since=mark, user=f"system:serviceaccount:{namespace_for_pods}:{NAME}")
    assert len(asked) > 20
    # Creations in a Terminating namespace are refused; namespaces of other tests are being deleted.
    here = ("", namespace_for_pods, HOST_LEASES)
    assert [f"{each.verb} {each.uri}" for each in asked if each.code == 403 and each.namespace in here] == []
