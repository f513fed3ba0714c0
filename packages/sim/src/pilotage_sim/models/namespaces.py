"""The objects of every namespace: the ServiceAccount `default` and the ConfigMap `kube-root-ca.crt`. Both come back.

Deleting namespaces and collecting garbage are harbor's own work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.kube import Absent, AlreadyExists, ObjectKey, Terminating
from pilotage_sim.models.common import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS

if TYPE_CHECKING:
    from pilotage.kube import Json, Object, Resource
    from pilotage.runtime.controller import Context
    from pilotage.runtime.manager import Manager
    from pilotage.runtime.types import Reconcile

ACCOUNT = "default"
ROOT_CA = "kube-root-ca.crt"
_DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


def add(manager: Manager, ca: str = "") -> None:
    """Run it in a manager. `ca` is the certificate that the ConfigMap holds."""
    accounts = manager.informer(SERVICE_ACCOUNTS, fields=f"metadata.name={ACCOUNT}")
    maps = manager.informer(CONFIG_MAPS, fields=f"metadata.name={ROOT_CA}")

    def make(context: Context) -> Reconcile:
        async def reconcile(key: ObjectKey) -> None:
            namespace = context.store.get(key)
            if namespace is None or namespace.meta.terminating:
                return
            inside = key.name
            if ObjectKey(inside, ACCOUNT) not in accounts.store:
                await _ensure(context, SERVICE_ACCOUNTS, {"metadata": {"namespace": inside, "name": ACCOUNT}})
            if ObjectKey(inside, ROOT_CA) not in maps.store:
                metadata: Json = {
                    "namespace": inside,
                    "name": ROOT_CA,
                    "annotations": {"kubernetes.io/description": _DESCRIPTION},
                }
                await _ensure(context, CONFIG_MAPS, {"metadata": metadata, "data": {"ca.crt": ca}})

        return reconcile

    def of(obj: Object) -> list[ObjectKey]:
        return [ObjectKey("", obj.meta.namespace)]

    manager.add("namespace-model", manager.informer(NAMESPACES), make, watches=[(accounts, of), (maps, of)])


async def _ensure(context: Context, resource: Resource, body: Json) -> None:
    try:
        await context.client.create(resource, body)
    except (AlreadyExists, Terminating, Absent):
        return
