"""`python -m bench.teardown.lists NAMESPACE`: the metadata of a namespace, and of what is in none, by parallel lists.

The least work of any tool that reads a whole namespace: of the answers, the bytes are counted. Events
are left out, which nobody who looks at objects reads all of. Prints how many bytes came, in how many seconds from the
first request on.
"""

import asyncio
import json
import sys
import time

from pilotage.kube import Client, Discovery, load_config

AT_ONCE = 8
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


async def read(namespace: str) -> tuple[int, float]:
    """Bytes and seconds."""
    async with Client.connect(load_config(), name="bench") as client:
        started = time.perf_counter()
        surface = await Discovery(client).surface()
        kinds = [each.resource for each in surface.resources if "list" in each.verbs and each.resource.kind != "Event"]
        gate = asyncio.Semaphore(AT_ONCE)

        async def size(number: int) -> int:
            async with gate:
                return len(await client.get_path(kinds[number].path(namespace), accept=METADATA))

        read_bytes = sum(await asyncio.gather(*map(size, range(len(kinds)))))
        return read_bytes, time.perf_counter() - started


if __name__ == "__main__":
    print(json.dumps(asyncio.run(read(sys.argv[1]))))
