"""The real API server accepts and refuses the same values of the matrix as harbor."""

import asyncio

from pilotage.kube import ApiError, Client, load_config
from pilotage_sim.loop import run_virtual
from pilotage_sim.world import SimulatedWorld
from tests.api.objects import install
from tests.hostile.fields import Case, cases

AT_A_TIME = 20


async def refusals(client: Client, namespace: str) -> list[str]:
    """The cases that a server refuses to create."""
    room = asyncio.Semaphore(AT_A_TIME)

    async def taken(case: Case) -> bool:
        async with room:
            try:
                await client.create(case.resource, case.body, namespace=namespace, dry_run=True)
            except ApiError as error:
                if error.code >= 500:
                    raise
                return False
            return True

    found = [case for case in cases() if case.status is None]
    answers = await asyncio.gather(*map(taken, found))
    return [case.what for case, took in zip(found, answers, strict=True) if not took]


async def on_harbor() -> list[str]:
    async with SimulatedWorld(1) as world:
        client = world.client("user")
        await install(client)
        return await refusals(client, "default")


async def test_both_servers_refuse_the_same(cluster, namespace):
    async with Client.connect(load_config(kubeconfig=str(cluster.kubeconfig))) as client:
        await install(client)
        real = await refusals(client, namespace)
    harbor = await asyncio.to_thread(run_virtual, on_harbor())
    assert sorted(set(real) ^ set(harbor)) == []
