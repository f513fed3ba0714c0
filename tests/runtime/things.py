"""A kind of our own on the real API server, for controllers to work on."""

import asyncio

from pilotage.kube import AlreadyExists, Client, KindNotServed, ObjectKey, Resource
from tests.runtime.objects import THINGS

CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
CRD = {
    "metadata": {"name": f"{THINGS.plural}.{THINGS.group}"},
    "spec": {
        "group": THINGS.group,
        "scope": "Namespaced",
        "names": {"plural": THINGS.plural, "singular": "thing", "kind": THINGS.kind},
        "versions": [
            {
                "name": THINGS.version,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": ANYTHING, "status": ANYTHING}}},
            }
        ],
    },
}


async def install_things(client: Client, namespace: str) -> None:
    """Make the kind, unless it is there, and wait until objects of it can be made."""
    try:
        await client.create(CRDS, CRD)
    except AlreadyExists:
        return
    async with asyncio.timeout(30):
        while True:
            try:
                await client.create(THINGS, {"metadata": {"namespace": namespace, "name": "try"}}, dry_run=True)
            except KindNotServed:
                await asyncio.sleep(0.05)
            else:
                return


async def make_thing(client: Client, namespace: str, name: str = "a", **spec: object) -> ObjectKey:
    """A Thing with this spec."""
    made = await client.create(THINGS, {"metadata": {"namespace": namespace, "name": name}, "spec": spec})
    return made.key
