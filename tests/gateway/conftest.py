"""One gateway for all tests that do not break it, and the stream that begins with it and is never cut."""

import asyncio
import time
from dataclasses import dataclass

import pytest
import pytest_asyncio

from tests.gateway.gateway_host import Server, running_gateway


@dataclass
class LongStream:
    """A stream that has begun, and sends nothing more until its server is told to."""

    began: float
    server: Server
    answer: asyncio.Task[str]


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("gw") / "run"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def gateway(run_folder):
    async with running_gateway(run_folder) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def ns(gateway):
    return await gateway.namespace()


@pytest_asyncio.fixture(scope="session", loop_scope="session", autouse=True)
async def long_stream(gateway):
    """Begins with the session, so that no test has to wait for long to see that it was not cut."""
    namespace = await gateway.namespace()
    server = await gateway.server(namespace, "long-1")
    await gateway.route(namespace, "long", {"long-1": 100})

    async def read() -> str:
        async with gateway.http.post(
            f"{gateway.url}/endpoints/{namespace}/long/", json={"stream": 4, "pause": True}
        ) as answer:
            text: str = await answer.text()
            return text

    stream = LongStream(time.monotonic(), server, asyncio.create_task(read()))
    yield stream
    stream.answer.cancel()
    await asyncio.gather(stream.answer, return_exceptions=True)
