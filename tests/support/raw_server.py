"""A server that sends exactly the given bytes over plain HTTP: for answers that no real one would give."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pilotage.kube import ClusterConfig
from pilotage.kube.credentials import FixedCredentials
from pilotage.kube.tls import TlsSettings


@asynccontextmanager
async def raw_server(*answers: bytes, reset: bool = False) -> AsyncIterator[ClusterConfig]:
    """Answers the first request on each connection with the next of the answers, and closes the connection.

    `reset`: it does so rudely, as if it had crashed.
    """
    left = list(answers)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        for line in head.lower().splitlines():
            if line.startswith(b"content-length:"):
                await reader.readexactly(int(line.partition(b":")[2]))
        writer.write(left.pop(0))
        if reset:
            await writer.drain()
            connection = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield plain_config(f"http://127.0.0.1:{port}")
    finally:
        server.close()
        await server.wait_closed()


def plain_config(server: str) -> ClusterConfig:
    """A cluster without TLS and without a user."""
    return ClusterConfig(
        server=server,
        tls=TlsSettings(),
        credentials=FixedCredentials(),
        namespace="default",
        proxy_url=None,
        context=None,
        source="",
    )


def http(status: str, body: bytes = b"", **headers: str) -> bytes:
    """An answer with its length; `location="/x"` is the header Location."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-').title()}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chunked(*chunks: bytes) -> bytes:
    """The beginning of a stream: the end of it is missing."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
