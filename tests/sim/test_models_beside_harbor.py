"""The models as a process of their own, in real time, beside a harbor that is another one."""

import asyncio
import sys

from pilotage.kube import Client, ObjectKey, load_config
from pilotage_sim.models.common import SERVICE_ACCOUNTS
from tests.contract.server import harbor
from tests.sim.stories import deploy
from tests.support.waiting import until


async def test_they_make_a_cluster_of_it():
    with harbor() as place:
        command = ("-m", "pilotage_sim.models", "--kubeconfig", str(place.kubeconfig), "--without", "job")
        process = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=asyncio.subprocess.DEVNULL)
        try:
            async with Client.connect(load_config(kubeconfig=str(place.kubeconfig))) as client:
                await until(client, SERVICE_ACCOUNTS, ObjectKey("default", "default"), lambda account: account)
                await deploy(client, "default", 2)
        finally:
            process.terminate()
            assert await process.wait() == 0
