"""lightkube: its plain client, and its asynchronous one where patches are to go out in parallel."""

import asyncio

from lightkube import AsyncClient, Client, KubeConfig
from lightkube.resources.apps_v1 import Deployment
from lightkube.types import PatchType

from bench.meter import Meter
from bench.peers import FROM_THE_START, WARM_UP, Job, change, let_the_server_lead
from bench.peers.parallel import in_parallel


def lists(job: Job, meter: Meter) -> None:
    client = _connect(job)
    for _ in zip(range(WARM_UP), client.list(Deployment, namespace=job.namespace, chunk_size=WARM_UP), strict=False):
        pass
    with meter:
        cache = {each.metadata.name: each for each in client.list(Deployment, namespace=job.namespace)}
    assert len(cache) == job.objects


def watch(job: Job, meter: Meter) -> None:
    client = _connect(job)
    _follow(client, job, WARM_UP)
    with meter:
        _follow(client, job, job.objects)


def patch(job: Job, meter: Meter) -> None:
    if job.concurrency > 1:
        asyncio.run(_patch_in_parallel(job, meter))
        return
    client = _connect(job)

    def one(number: int) -> None:
        client.patch(Deployment, job.name(number), change(number), namespace=job.namespace, patch_type=PatchType.MERGE)

    for number in range(-WARM_UP, 0):
        one(number)
    with meter:
        for number in range(job.patches):
            one(number)


async def _patch_in_parallel(job: Job, meter: Meter) -> None:
    client = AsyncClient(KubeConfig.from_file(job.kubeconfig).get())

    async def one(number: int) -> None:
        await client.patch(
            Deployment, job.name(number), change(number), namespace=job.namespace, patch_type=PatchType.MERGE
        )

    await in_parallel(one, range(-job.concurrency, 0), job.concurrency)
    with meter:
        await in_parallel(one, range(job.patches), job.concurrency)
    await client.close()


def _connect(job: Job) -> Client:
    return Client(KubeConfig.from_file(job.kubeconfig).get())


def _follow(client: Client, job: Job, events: int) -> None:
    stream = client.watch(Deployment, namespace=job.namespace, resource_version=FROM_THE_START)
    for number, (_, deployment) in enumerate(stream, 1):
        assert deployment.metadata.name
        let_the_server_lead(number)
        if number == events:
            stream.close()
            return
    raise RuntimeError("the watch ended too early")
