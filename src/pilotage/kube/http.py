"""The transport over HTTP/1.1, on aiohttp. Imported by the first `Client.connect`, because aiohttp takes a while.

It knows nothing of Kubernetes beyond HTTP. aiohttp's exceptions stop here, turned into the one distinction that matters
above: was the request certainly not sent, or may it have arrived?
"""

from __future__ import annotations

import io
import os
import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from pilotage.kube.config import CredentialsError
from pilotage.kube.transport import Request, Response, TransportError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pilotage.kube.config import ClusterConfig


class AiohttpTransport:
    """HTTP/1.1 with keep-alive on one cluster. Opened lazily; credentials are asked before each request."""

    def __init__(self, config: ClusterConfig) -> None:
        self._config = config
        self._session: aiohttp.ClientSession | None = None
        self._certificate: tuple[bytes, bytes] | None = None
        self._proxy = config.proxy_url or _proxy_of_the_environment(config.server)
        self._timeouts: dict[float | None, aiohttp.ClientTimeout] = {}

    async def send(self, request: Request) -> Response:
        """The answer; a 401 makes the credentials start afresh, and the request is sent once more."""
        try:
            proof = await self._config.credentials.headers()
            response = await self._send(request, proof)
            if response.status == 401:
                response.close()
                self._config.credentials.rejected(proof)
                response = await self._send(request, await self._config.credentials.headers())
        except CredentialsError as error:
            raise TransportError(str(error), sent=False) from error
        return response

    async def close(self) -> None:
        """Close all connections; the transport can be used again after it."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _send(self, request: Request, proof: Mapping[str, str]) -> _AiohttpResponse:
        session = await self._open()
        headers = CIMultiDict(proof.items())  # not a dict: Impersonate-Group repeats
        headers["Accept"] = request.accept
        headers["User-Agent"] = request.user_agent
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        try:
            answer = await session.request(
                request.method,
                URL(self._config.server + request.target, encoded=True),
                data=_payload(request.body),
                headers=headers,
                timeout=self._timeout(request.timeout),
                allow_redirects=False,
                proxy=self._proxy,
                server_hostname=self._config.tls.server_name,
                middlewares=_ONCE if request.method in ("PUT", "DELETE") else (),
            )
        except _NOT_SENT as error:
            raise TransportError(_describe(error), sent=False) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise TransportError(_describe(error), sent=True) from error
        return _AiohttpResponse(answer)

    async def _open(self) -> aiohttp.ClientSession:
        """The session, made anew when an exec plugin handed out another client certificate."""
        certificate = await self._config.credentials.client_certificate()
        if self._session is not None and certificate == self._certificate:
            return self._session
        tls = self._config.tls
        context = (tls if certificate is None else tls.with_certificate(*certificate)).ssl_context()
        connector = aiohttp.TCPConnector(
            ssl=context, limit=0, keepalive_timeout=60, socket_factory=_socket_that_notices_dead_peers
        )
        # No Accept-Encoding: on a local network gzip costs more CPU, on both sides, than the bytes do.
        session = aiohttp.ClientSession(
            connector=connector, skip_auto_headers=("Accept-Encoding", "Accept", "Content-Type"), auto_decompress=True
        )
        old, self._session, self._certificate = self._session, session, certificate
        if old is not None:
            await old.close()
        return session

    def _timeout(self, total: float | None) -> aiohttp.ClientTimeout:
        timeout = self._timeouts.get(total)
        if timeout is None:
            timeout = self._timeouts[total] = aiohttp.ClientTimeout(total=total, sock_connect=10)
        return timeout


class _AiohttpResponse:
    __slots__ = ("_answer",)

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer

    @property
    def status(self) -> int:
        return self._answer.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._answer.headers

    async def read(self) -> bytes:
        try:
            return await self._answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise TransportError(_describe(error), sent=True) from error

    async def chunk(self) -> bytes:
        try:
            return await self._answer.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise TransportError(_describe(error), sent=True) from error

    def close(self) -> None:
        # Not read to its end: aborted, or TLS would wait for a farewell of a peer that may be the reason for this.
        connection = self._answer.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        self._answer.close()


def _proxy_of_the_environment(server: str) -> str | None:
    """What HTTPS_PROXY, HTTP_PROXY and NO_PROXY say, as for kubectl."""
    address = urlsplit(server)
    if proxy_bypass(address.netloc):
        return None
    return getproxies().get(address.scheme)


def _payload(body: bytes | None) -> bytes | io.BytesIO | None:
    """The body as aiohttp wants it: it warns of more than 1 MiB at once, because that would hold up all others."""
    return body if body is None or len(body) <= 2**20 else io.BytesIO(body)


class _BrokenOff(aiohttp.ClientError):
    """The connection broke after the request was sent, or while it was."""


async def _once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Keep aiohttp from sending a PUT or a DELETE again of its own accord: the first may have been applied."""
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _BrokenOff(_describe(error)) from error


_ONCE = (_once,)
_NOT_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError)


def _describe(error: BaseException) -> str:
    """In words. aiohttp's own would show an SSL context where it means a port, and nothing for a time-out."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"the certificate of {error.host}:{error.port} is not trusted ({error.certificate_error})"
    if isinstance(error, aiohttp.ClientConnectorError):
        cause = error.os_error
        words = os.strerror(cause.errno) if isinstance(cause, ConnectionError) and cause.errno else cause.strerror
        return f"cannot connect to {error.host}:{error.port} ({words or cause})"
    return str(error) or ("time is up" if isinstance(error, TimeoutError) else type(error).__name__)


def _socket_that_notices_dead_peers(address: tuple[int, int, int, str, tuple[Any, ...]]) -> socket.socket:
    """A TCP socket whose peer, when it vanishes without a word, is noticed within about 30 s by the kernel."""
    family, kind, protocol, _, _ = address
    sock = socket.socket(family, kind, protocol)
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", 15),
        ("TCP_KEEPINTVL", 5),
        ("TCP_KEEPCNT", 3),
        ("TCP_USER_TIMEOUT", 30_000),
    ):
        option = getattr(socket, name, None)  # each platform has its own subset
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
    return sock
