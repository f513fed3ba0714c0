"""A server with a stand-in for the core behind it, and raw sockets to talk to it."""

import asyncio
from contextlib import asynccontextmanager

from pilotage_harbor.access.tokens import Tokens, digest_of
from pilotage_harbor.apimachinery.calls import Call, ServerResponse
from pilotage_harbor.apimachinery.users import UserInfo
from pilotage_harbor.server.authentication import Authentication
from pilotage_harbor.server.host import ClientLimits
from pilotage_harbor.server.server import Server

TOKEN = "sesame"
ADMIN = UserInfo("admin", groups=("system:masters", "system:authenticated"))


class Line:
    """A stream that sends the lines that it is given."""

    status = 200
    finite = False

    def __init__(self):
        self.headers = {"Content-Type": "application/json"}
        self.closed = False
        self._queue = asyncio.Queue()

    def say(self, *pieces: bytes):
        self._queue.put_nowait(list(pieces))

    @property
    def left(self):
        return self._queue.qsize()

    async def chunks(self):
        return await self._queue.get()

    def close(self):
        self.closed = True


class Core:
    """Answers each call with what `answers` says for its path, and remembers the calls."""

    def __init__(self):
        self.calls: list[Call] = []
        self.answers = {}

    async def handle(self, call):
        self.calls.append(call)
        answer = self.answers.get(call.path, ServerResponse(200, b"{}"))
        if asyncio.isfuture(answer):
            return await answer
        if isinstance(answer, Exception):
            raise answer
        return answer


def tokens() -> Tokens:
    known = Tokens()
    known.add(digest_of(TOKEN), ADMIN)
    return known


class Client:
    """One connection, byte by byte."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    def send(self, data: bytes):
        self.writer.write(data)

    async def head(self) -> bytes:
        return await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), 10)

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        first, *lines = (await self.head()).decode().rstrip("\r\n").split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        body = await self.reader.readexactly(int(headers.get("content-length", 0)))
        return int(first.split()[1]), headers, body

    async def rest(self):
        """Everything until the server closes."""
        return await asyncio.wait_for(self.reader.read(), 10)

    async def chunk(self) -> bytes:
        size = int(await asyncio.wait_for(self.reader.readuntil(b"\r\n"), 10), 16)
        chunk: bytes = (await self.reader.readexactly(size + 2))[:-2]
        return chunk

    async def close(self):
        self.writer.close()


async def until(condition):
    """Let the loop run until it is so."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.001)


def request(path="/", method="GET", body: bytes = b"", **headers):
    lines = [f"{method} {path} HTTP/1.1", "Host: here"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


@asynccontextmanager
async def serving(core, *, limits=None, authorizer=None, known=None, **options):
    """A running server: gives it and a function that connects."""
    server = Server(
        core.handle, Authentication(known or tokens(), authorizer), limits=limits or ClientLimits(), **options
    )
    port = await server.start("127.0.0.1", 0)
    clients = []

    async def connect(**options):
        clients.append(Client(*await asyncio.open_connection("127.0.0.1", port, **options)))
        return clients[-1]

    try:
        yield server, connect
    finally:
        for client in clients:
            await client.close()
        await server.stop(grace=1)
