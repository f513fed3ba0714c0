"""A process with a manager that writes its name into every Thing of a namespace, for as long as it leads.

``python -m tests.runtime.writer KUBECONFIG NAMESPACE IDENTITY``; it prints "leads" when it does, and exits with 3 when
it has lost the Lease.
"""

import asyncio
import sys
from collections.abc import Callable

from pilotage.kube import Client, ObjectKey, load_config, merge_patch
from pilotage.runtime.controller import Context
from pilotage.runtime.leader import Election, LeaseLost
from pilotage.runtime.logs import configure_logging
from pilotage.runtime.manager import Manager
from pilotage.runtime.process import on_signals
from pilotage.runtime.types import Reconcile, Result
from tests.runtime.objects import THINGS

LEASE_SECONDS, RENEW_SECONDS, RETRY_SECONDS = 3.0, 2.0, 0.25


def writing(identity: str) -> Callable[[Context], Reconcile]:
    """A reconcile that writes all the time, and does not care whether it may."""

    def make(context: Context) -> Reconcile:
        async def reconcile(key: ObjectKey) -> Result:
            await context.client.patch(THINGS, key, merge_patch({"status": {"by": identity}}), subresource="status")
            await context.client.patch(THINGS, key, merge_patch({"status": {"by": ""}}), subresource="status")
            return Result(requeue_after=0.01)

        return reconcile

    return make


async def main(kubeconfig: str, namespace: str, identity: str) -> int:
    lease = ObjectKey(namespace, "writers")
    election = Election(lease, identity, LEASE_SECONDS, RENEW_SECONDS, RETRY_SECONDS)
    async with Client.connect(load_config(kubeconfig=kubeconfig)) as client:
        manager = Manager(client, name=identity, election=election)
        manager.add("writer", manager.informer(THINGS, namespace=namespace), writing(identity))
        with on_signals(manager.stop):
            running = asyncio.create_task(manager.run())
            started = asyncio.create_task(manager.started.wait())
            await asyncio.wait({running, started}, return_when=asyncio.FIRST_COMPLETED)
            started.cancel()
            sys.stdout.write("leads\n")
            sys.stdout.flush()
            try:
                await running
            except LeaseLost:
                return 3
    return 0


if __name__ == "__main__":
    configure_logging()
    sys.exit(asyncio.run(main(*sys.argv[1:])))
