"""kubernetes_asyncio, the official client's generated code on aiohttp."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kubernetes_asyncio import client, config
from kubernetes_asyncio import watch as watches

from bench.meter import Meter
from bench.peers import FROM_THE_START, WARM_UP, Job, change, let_the_server_lead
from bench.peers.parallel import in_parallel


def lists(job: Job, meter: Meter) -> None:
    async def run() -> None:
        async with _connect(job) as api:
            await api.list_namespaced_deployment(job.namespace, limit=WARM_UP)
            with meter:
                listed = await api.list_namespaced_deployment(job.namespace)
                cache = {each.metadata.name: each for each in listed.items}
                del listed
            assert len(cache) == job.objects

    asyncio.run(run())


def watch(job: Job, meter: Meter) -> None:
    async def run() -> None:
        async with _connect(job) as api:
            await _follow(api, job, WARM_UP)
            with meter:
                await _follow(api, job, job.objects)

    asyncio.run(run())


def patch(job: Job, meter: Meter) -> None:
    async def run() -> None:
        async with _connect(job) as api:

            async def one(number: int) -> None:
                await api.patch_namespaced_deployment(
                    job.name(number), job.namespace, change(number), _content_type="application/merge-patch+json"
                )

            await in_parallel(one, range(-job.concurrency, 0), job.concurrency)
            with meter:
                await in_parallel(one, range(job.patches), job.concurrency)

    asyncio.run(run())


@asynccontextmanager
async def _connect(job: Job) -> AsyncIterator[Any]:
    await config.load_kube_config(job.kubeconfig)
    async with client.ApiClient() as connection:
        yield client.AppsV1Api(connection)


async def _follow(api: Any, job: Job, events: int) -> None:  # noqa: ANN401
    number = 0
    async with watches.Watch().stream(
        api.list_namespaced_deployment, job.namespace, resource_version=FROM_THE_START, timeout_seconds=300
    ) as stream:
        async for event in stream:
            assert event["object"].metadata.name
            number += 1
            let_the_server_lead(number)
            if number == events:
                return
    raise RuntimeError("the watch ended too early")
