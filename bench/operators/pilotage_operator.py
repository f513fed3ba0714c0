"""The operator on Pilotage: see the package."""

import asyncio
import sys

from bench.meter import end_with_parent
from bench.operators import GROUP, KIND, PLURAL, POLL_SECONDS, VERSION, World
from pilotage.kube import Client, Object, ObjectKey, Resource, load_config, merge_patch, without_finalizer
from pilotage.runtime.controller import Context
from pilotage.runtime.logs import configure_logging
from pilotage.runtime.manager import Manager
from pilotage.runtime.process import on_signals, tune_gc
from pilotage.runtime.types import Reconcile, Result

WIDGETS = Resource(GROUP, VERSION, PLURAL, KIND)
FINALIZER = "bench.pilotage.dev/hold"
WORKERS = 16


def widgets(context: Context, world: World) -> Reconcile:
    async def reconcile(key: ObjectKey) -> Result | None:
        widget = context.store.get(key)
        if widget is None:
            return None
        if widget.meta.terminating:
            await release(widget)
            return None
        if FINALIZER not in widget.meta.finalizers:
            widget = await hold(widget)
        if not world.ready_for(key.name):
            return Result(requeue_after=POLL_SECONDS)
        size = widget.get("spec", "size")
        if widget.get("status", "size") != size:
            patch = merge_patch({"status": {"phase": "Ready", "size": size}})
            await context.client.patch(WIDGETS, key, patch, subresource="status")
        return None

    async def hold(widget: Object) -> Object:
        finalizers = [*widget.meta.finalizers, FINALIZER]
        patch = merge_patch({"metadata": {"finalizers": finalizers}}, resource_version=widget.meta.resource_version)
        return await context.client.patch(WIDGETS, widget.key, patch)

    async def release(widget: Object) -> None:
        patch = without_finalizer(widget, FINALIZER)
        if patch is not None:
            await context.client.patch(WIDGETS, widget.key, patch)

    return reconcile


async def main() -> None:
    kubeconfig, namespace, polls = sys.argv[1:]
    async with Client.connect(load_config(kubeconfig=kubeconfig)) as client:
        manager = Manager(client, name="widgets")
        informer = manager.informer(WIDGETS, namespace=namespace)
        manager.add("widgets", informer, lambda context: widgets(context, World(int(polls))), workers=WORKERS)
        with on_signals(manager.stop):
            end_with_parent()
            tune_gc()
            await manager.run()


if __name__ == "__main__":
    configure_logging(level="WARNING")
    asyncio.run(main())
