"""Pilotage: its client, and the informer on top of it, whose store is the cache of a controller."""

import asyncio
import random
import re

from bench.meter import Meter
from bench.peers import FROM_THE_START, WARM_UP, Job, change, let_the_server_lead
from bench.peers.parallel import in_parallel
from pilotage.kube import Client, ObjectKey, Resource, load_config, merge_patch
from pilotage.kube.transport import Request, Response, Transport
from pilotage.runtime.informer import Change, Informer

DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")


def lists(job: Job, meter: Meter) -> None:
    async def run() -> None:
        async with _connect(job) as client:
            await client.list(DEPLOYMENTS, job.namespace, fields=f"metadata.name={job.name(0)}")
            informer = Informer(client, DEPLOYMENTS, rng=random.Random(0), namespace=job.namespace)
            with meter:
                task = asyncio.create_task(informer.run())
                await informer.synced.wait()
            assert len(informer.store) == job.objects
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())


def watch(job: Job, meter: Meter) -> None:
    """Variant "informer" is the same stream into an informer's store; else it is the bare watch."""
    follow = _follow_with_informer if job.variant == "informer" else _follow

    async def run() -> None:
        async with _connect(job) as client:
            await follow(client, job, WARM_UP)
            with meter:
                await follow(client, job, job.objects)

    asyncio.run(run())


def patch(job: Job, meter: Meter) -> None:
    async def run() -> None:
        async with _connect(job) as client:

            async def one(number: int) -> None:
                key = ObjectKey(job.namespace, job.name(number))
                await client.patch(DEPLOYMENTS, key, merge_patch(change(number)))

            await in_parallel(one, range(-job.concurrency, 0), job.concurrency)
            with meter:
                await in_parallel(one, range(job.patches), job.concurrency)

    asyncio.run(run())


def _connect(job: Job) -> Client:
    return Client.connect(load_config(kubeconfig=job.kubeconfig))


async def _follow(client: Client, job: Job, events: int) -> None:
    number = 0
    async with client.watch(DEPLOYMENTS, job.namespace, resource_version=FROM_THE_START) as stream:
        async for event in stream:
            assert event.object.meta.name
            number += 1
            let_the_server_lead(number)
            if number == events:
                return
    raise RuntimeError("the watch ended too early")


async def _follow_with_informer(client: Client, job: Job, events: int) -> None:
    """The informer is made to list nothing, and to watch from the start, so that each object comes as an event."""
    client = client.through(_ListsNothing)
    informer = Informer(client, DEPLOYMENTS, rng=random.Random(0), namespace=job.namespace)
    done = asyncio.Event()

    def seen(_: Change) -> None:
        let_the_server_lead(len(informer.store))
        if len(informer.store) == events:
            done.set()

    informer.add_handler(seen)
    task = asyncio.create_task(informer.run())
    await done.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


class _ListsNothing:
    """A transport whose lists are empty and whose watches begin with everything."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def send(self, request: Request) -> Response:
        if "watch=1" in request.target:
            target = re.sub(r"resourceVersion=\d+", f"resourceVersion={FROM_THE_START}", request.target)
        else:
            target = f"{request.target}&fieldSelector=metadata.name%3Dnone"
        return await self._transport.send(request._replace(target=target))

    async def close(self) -> None:
        await self._transport.close()
