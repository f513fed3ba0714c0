"""The transport over HTTP/1.1: a pool of connections to one server, and who we are on each request.

It is our own, over asyncio's TLS, for two reasons. A general client decides things that only the caller may decide
(aiohttp sends a PUT or a DELETE again when the connection breaks, though the first may have been applied), and costs
twice the CPU for each request and event (`make bench` shows ours).
"""

import asyncio
import base64
import contextlib
import os
import socket
import ssl
from collections.abc import Iterator, Mapping
from urllib.parse import SplitResult, unquote, urlsplit

from pilotage.kube.config import ClusterConfig, CredentialsError
from pilotage.kube.connection import Connection
from pilotage.kube.http1 import Head, encode_request
from pilotage.kube.names import is_address
from pilotage.kube.pool import Pool
from pilotage.kube.proxies import proxy_for
from pilotage.kube.transport import Request, Response, TransportError

CONNECT_SECONDS_MAX = 10.0
CONNECTIONS_MIN = 4
"""Fewer are not shared: another one is made at once. More bring little as long as answers come quickly."""

_PORTS = {"https": 443, "http": 80}


class HttpTransport:
    """Keep-alive connections to one cluster. Opened when needed; credentials are asked before each request."""

    def __init__(self, config: ClusterConfig) -> None:
        self._config = config
        self._server = urlsplit(config.server)
        self._proxy = proxy_for(config)
        self._context: ssl.SSLContext | None = None
        self._certificate: tuple[bytes, bytes] | None = None
        self._pool = Pool()
        self._open: set[Connection] = set()
        self._closings = 0

    async def send(self, request: Request) -> Response:
        """The answer; a 401 makes the credentials start afresh, and the request is sent once more."""
        try:
            proof = await self._config.credentials.headers()
            response = await self._send(request, proof)
            if response.status == 401:
                try:
                    await response.read()  # to its end, so that the connection can be used again
                finally:
                    response.close()
                self._config.credentials.rejected(proof)
                response = await self._send(request, await self._config.credentials.headers())
        except CredentialsError as error:
            raise TransportError(str(error), sent=False) from error
        return response

    async def close(self) -> None:
        """Close all connections, those in use too; the transport can be used again after it."""
        self._closings += 1
        connections = [*self._open]
        for connection in connections:
            connection.abort("the client was closed")
        self._pool.close()
        await asyncio.gather(*(connection.closed for connection in connections))

    async def _send(self, request: Request, proof: Mapping[str, str]) -> "_HttpResponse":
        raw = self._encode(request, proof)
        await self._refresh_certificate()
        pool = self._pool
        while True:
            connection, reused = await self._take(pool, request), True
            if connection is None:
                pool.coming += 1
                try:
                    connection, reused = await self._connect(), False
                finally:
                    pool.coming -= 1
            try:
                if request.allowed is not None:
                    request.allowed()
                head = await connection.send(raw, request.timeout)
            except TransportError:
                connection.finish()
                # The server may have closed it while it was idle. To ask again is harmless; to write again is not.
                if reused and connection.lost and request.method == "GET":
                    continue
                raise
            except BaseException:
                connection.finish()
                raise
            return _HttpResponse(head, connection, pool)

    def _encode(self, request: Request, proof: Mapping[str, str]) -> bytes:
        headers = [
            ("Host", self._server.netloc.rpartition("@")[2]),
            ("User-Agent", request.user_agent),
            ("Accept", request.accept),
            *proof.items(),
        ]
        if request.body is not None:
            headers.append(("Content-Type", request.content_type))
        if request.if_none_match:
            headers.append(("If-None-Match", request.if_none_match))
        try:
            return encode_request(request.method, self._server.path + request.target, headers, request.body)
        except ValueError as error:
            raise TransportError(str(error), sent=False) from error

    async def _take(self, pool: Pool, request: Request) -> Connection | None:
        """A connection that is there; None: a new one is due. Only reads wait for one: writes are worth a handshake."""
        idle = pool.take()
        while idle is None and request.method == "GET" and len(self._open) + pool.coming >= CONNECTIONS_MIN:
            idle = await pool.wait()
            if idle is None or idle.usable:
                break
            idle = pool.take()
        return idle

    async def _refresh_certificate(self) -> None:
        """Start over with new connections when an exec plugin hands out another client certificate."""
        certificate = await self._config.credentials.client_certificate()
        if self._context is not None and certificate == self._certificate:
            return
        tls = self._config.tls
        self._context = (tls if certificate is None else tls.with_certificate(*certificate)).ssl_context()
        self._certificate = certificate
        self._pool.drop("the client certificate is another now")
        self._pool = Pool()  # a response under way gives its connection back to the old one

    async def _connect(self) -> Connection:
        host, port = _address(self._server)
        closings = self._closings
        with _naming(f"{host}:{port}"):
            async with asyncio.timeout(CONNECT_SECONDS_MAX):
                connection = await (self._dial(host, port) if self._proxy is None else self._tunnel(self._proxy))
        if closings != self._closings:
            connection.abort("the client was closed")
            raise TransportError("the client was closed", sent=False)
        self._open.add(connection)
        return connection

    async def _dial(self, host: str, port: int) -> Connection:
        secure = self._server.scheme == "https"
        transport, connection = await asyncio.get_running_loop().create_connection(
            lambda: Connection(self._open.discard),
            host,
            port,
            ssl=self._context if secure else None,
            server_hostname=self._config.tls.server_name or host if secure else None,
            # Not where there is just one address: whoever is cancelled in a race of one would leave its socket open.
            happy_eyeballs_delay=None if is_address(host) else 0.25,
        )
        _notice_dead_peers(transport)
        return connection

    async def _tunnel(self, proxy: SplitResult) -> Connection:
        """Open a tunnel through an HTTP proxy: CONNECT to the server, then TLS inside of it."""
        assert self._context is not None
        loop = asyncio.get_running_loop()
        host, port = _address(self._server)
        proxy_host, proxy_port = _address(proxy)
        with _naming(f"the proxy {proxy_host}:{proxy_port}"):
            transport, first = await loop.create_connection(
                lambda: Connection(lambda _: None), proxy_host, proxy_port, ssl=proxy.scheme == "https" or None
            )
        _notice_dead_peers(transport)
        target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        headers = [("Host", target)]
        if proxy.username is not None:
            login = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
            headers.append(("Proxy-Authorization", "Basic " + base64.b64encode(login.encode()).decode()))
        connection = Connection(self._open.discard)
        try:
            await _ask_for_tunnel(first, encode_request("CONNECT", target, headers, None))
            if self._server.scheme == "https":
                server_hostname = self._config.tls.server_name or host
                secured = await loop.start_tls(transport, connection, self._context, server_hostname=server_hostname)
                assert secured is not None
                transport = secured
            else:
                transport.set_protocol(connection)
        except TransportError as error:
            transport.abort()
            raise TransportError(f"the proxy {proxy_host}:{proxy_port} refused: {error}", sent=False) from error
        except BaseException:
            transport.abort()
            raise
        connection.connection_made(transport)
        return connection


@contextlib.contextmanager
def _naming(peer: str) -> Iterator[None]:
    """Say to whom no connection came about, and why."""
    try:
        yield
    except TimeoutError:
        raise TransportError(f"cannot connect to {peer} (time is up)", sent=False) from None
    except ssl.SSLCertVerificationError as error:
        words = f"the certificate of {peer} is not trusted ({error.verify_message})"
        raise TransportError(words, sent=False) from error
    except OSError as error:
        words = os.strerror(error.errno) if isinstance(error, ConnectionError) and error.errno else str(error)
        words = words or "the connection was closed"
        raise TransportError(f"cannot connect to {peer} ({words})", sent=False) from error


class _HttpResponse:
    __slots__ = ("_connection", "_head", "_pool")

    def __init__(self, head: Head, connection: Connection, pool: Pool) -> None:
        self._head = head
        self._connection: Connection | None = connection
        self._pool = pool

    @property
    def status(self) -> int:
        return self._head.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._head.headers

    async def read(self) -> bytes:
        assert self._connection is not None
        return await self._connection.read()

    async def chunks(self) -> list[bytes]:
        assert self._connection is not None
        return await self._connection.chunks()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and connection.finish():
            self._pool.give(connection)


async def _ask_for_tunnel(connection: Connection, request: bytes) -> None:
    head = await connection.send(request, None)
    if head.status != 200:
        raise TransportError(str(head.status), sent=False)


def _address(url: SplitResult) -> tuple[str, int]:
    return url.hostname or "", url.port or _PORTS[url.scheme]


def _notice_dead_peers(transport: asyncio.BaseTransport) -> None:
    """Let the kernel notice within about 30 s when the peer vanishes without a word."""
    sock = transport.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", 15),
        ("TCP_KEEPINTVL", 5),
        ("TCP_KEEPCNT", 3),
        ("TCP_USER_TIMEOUT", 30_000),
    ):
        option = getattr(socket, name, None)  # each platform has its own subset
        if option is not None:
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.IPPROTO_TCP, option, value)
