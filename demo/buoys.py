"""A whole controller in one file: a Buoy lights a ConfigMap, and is gone only when its light is.

It shows what the runtime gives to every controller: deletion before anything else, nothing deleted without its uid,
nothing released before it is proven gone, a terminal error that is reported once, and no write where nothing changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pilotage.kube import (
    Absent,
    Client,
    Object,
    ObjectKey,
    Propagation,
    Resource,
    merge_patch,
    without_finalizer,
)
from pilotage.runtime.types import Reconcile, Result, TerminalError

if TYPE_CHECKING:
    from pilotage.runtime.controller import Context

BUOYS = Resource("demo.pilotage.dev", "v1", "buoys", "Buoy")
CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
FINALIZER = "demo.pilotage.dev/light"
LABEL = "demo.pilotage.dev/buoy"
COLOURS = ("red", "green", "white")

CRD: dict[str, Any] = {
    "metadata": {"name": f"{BUOYS.plural}.{BUOYS.group}"},
    "spec": {
        "group": BUOYS.group,
        "scope": "Namespaced",
        "names": {"plural": BUOYS.plural, "singular": "buoy", "kind": BUOYS.kind},
        "versions": [
            {
                "name": BUOYS.version,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"colour": {"type": "string"}}},
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


def light_of(buoy: ObjectKey) -> ObjectKey:
    """Key of a buoy's light."""
    return ObjectKey(buoy.namespace, f"{buoy.name}-light")


def buoys(context: Context) -> Reconcile:
    """The reconcile of a Buoy."""

    async def reconcile(key: ObjectKey) -> Result | None:
        buoy = context.store.get(key)
        if buoy is None:
            return None
        if buoy.meta.terminating:  # before the spec is read: an invalid one must not keep the object
            return await _put_out(context, buoy)
        colour = buoy.get("spec", "colour")
        if colour not in COLOURS:
            raise TerminalError("UnknownColour", f"a buoy is {', '.join(COLOURS)}; not {colour!r}")
        buoy = await _hold(context.client, buoy)  # before anything is made that would have to be taken down
        await _light(context.client, buoy, colour)
        return None

    return reconcile


async def _hold(client: Client, buoy: Object) -> Object:
    if FINALIZER in buoy.meta.finalizers:
        return buoy
    finalizers = [*buoy.meta.finalizers, FINALIZER]
    patch = merge_patch({"metadata": {"finalizers": finalizers}}, resource_version=buoy.meta.resource_version)
    return await client.patch(BUOYS, buoy.key, patch)


async def _light(client: Client, buoy: Object, colour: str) -> None:
    key = light_of(buoy.key)
    light = await _find(client, key)
    if light is not None and light.meta.labels.get(LABEL) != buoy.meta.uid:
        raise TerminalError("NameTaken", f"configmap/{key.name} belongs to somebody else; it is not touched")
    if light is None or light.get("data", "colour") != colour:
        meta = {"namespace": key.namespace, "name": key.name, "labels": {LABEL: buoy.meta.uid}}
        await client.apply(CONFIGMAPS, {"metadata": meta, "data": {"colour": colour}})
    if buoy.get("status", "colour") != colour:
        patch = merge_patch({"status": {"colour": colour}}, resource_version=buoy.meta.resource_version)
        await client.patch(BUOYS, buoy.key, patch, subresource="status")


async def _put_out(context: Context, buoy: Object) -> Result | None:
    """Delete this buoy's light, and let the buoy go only when the server has said that the light is gone."""
    if FINALIZER not in buoy.meta.finalizers:
        return None
    key = light_of(buoy.key)
    light = await _find(context.client, key)
    if light is not None and light.meta.labels.get(LABEL) == buoy.meta.uid:
        left = await context.client.delete(CONFIGMAPS, key, uid=light.meta.uid, propagation=Propagation.BACKGROUND)
        if left is not None:
            return Result(requeue_after=0.2)  # another controller's finalizer keeps it
        context.events.normal(buoy, "LightOut", f"configmap/{key.name} is gone")
    patch = without_finalizer(buoy, FINALIZER)
    if patch is not None:
        await context.client.patch(BUOYS, buoy.key, patch)
    return None


async def _find(client: Client, key: ObjectKey) -> Object | None:
    try:
        return await client.get(CONFIGMAPS, key)
    except Absent:
        return None
