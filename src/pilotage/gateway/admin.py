"""Envoy's admin interface, on its unix socket."""

import asyncio
from pathlib import Path

from pilotage.kube.connection import Connection
from pilotage.kube.http1 import encode_request
from pilotage.kube.transport import TransportError

ANSWER_SECONDS_MAX = 3.0
OK = 200


class AdminUnavailable(Exception):
    """Envoy does not answer, or refuses; one line that says why."""


class AdminTimeout(AdminUnavailable):
    """Envoy did not answer in time: it may have any number of requests in flight."""


class Admin:
    """A client of one Envoy, with a new connection for each request."""

    def __init__(self, socket: Path) -> None:
        self._socket = str(socket)

    async def get(self, target: str) -> bytes:
        """GET; the answer. Raises `AdminUnavailable`, after `ANSWER_SECONDS_MAX` at the latest."""
        return await self._ask("GET", target)

    async def post(self, target: str) -> bytes:
        """POST, for requests that change something."""
        return await self._ask("POST", target)

    async def _ask(self, method: str, target: str) -> bytes:
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                return await self._exchange(method, target)
        except TimeoutError:
            raise AdminTimeout(f"Envoy gave no answer within {ANSWER_SECONDS_MAX:g} s") from None
        except (OSError, TransportError) as error:
            raise AdminUnavailable(f"Envoy cannot be asked: {error}") from error

    async def _exchange(self, method: str, target: str) -> bytes:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_unix_connection(lambda: Connection(lambda _: None), self._socket)
        try:
            headers = [("Host", "envoy"), ("Connection", "close")]
            body = b"" if method == "POST" else None
            head = await connection.send(encode_request(method, target, headers, body), None)
            answer = await connection.read()
        finally:
            connection.finish()
        if head.status != OK:
            raise AdminUnavailable(f"Envoy answered {head.status}: {answer[:100].decode(errors='replace')}")
        return answer
