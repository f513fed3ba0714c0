"""Probes of a server: whether it can serve, whether it is ours that answers, and how many requests it has.

On a port that another program has, that program answers, and it may well say 200. So the answer counts only if our
process runs, and if /v1/models names our model, where the server has that.
"""

import asyncio
import enum
from typing import NamedTuple, Self

import aiohttp
import msgspec

from pilotage.agent.journal import JournalEntry
from pilotage.processes.identity import is_running
from pilotage.serving.runtimes import RUNTIMES
from pilotage.serving.runtimes.contract import METRICS_PATH

SECONDS_MAX = 3.0
ANSWER_BYTES_MAX = 1 << 20
"""Bytes of an answer that are read at most; the rest is never asked for. The metrics of vLLM take some 100 KiB."""
OK = 200
_PLAIN = {"Accept-Encoding": "identity"}
UNAVAILABLE = 503


class ProbeResult(enum.Enum):
    """Results of a probe."""

    HEALTHY = "healthy"
    LOADING = "loading"
    """It answers that it is not ready yet, or does not answer yet."""
    UNHEALTHY = "unhealthy"
    """It answers with an error, or not in time."""
    FOREIGN = "foreign"
    """Another program answers on its port."""
    DEAD = "dead"


class Health(NamedTuple):
    """The result of a probe, and why, for people."""

    result: ProbeResult
    why: str = ""


class Prober:
    """Probes servers over HTTP. Use it with ``async with``."""

    def __init__(self, host: str, seconds_max: float = SECONDS_MAX) -> None:
        """`host` is the address that servers listen on."""
        self._host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
        self._seconds_max = seconds_max
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(force_close=True, limit=0)  # a connection left open is one to wait for
        timeout = aiohttp.ClientTimeout(total=self._seconds_max)
        # Nothing is decompressed: a small answer would become a large one.
        self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def check(self, entry: JournalEntry) -> Health:
        """Probe a server."""
        health = await self._check(entry)
        # Checked last: another program may have answered because ours has just ended.
        if not is_running(entry.process):
            return Health(ProbeResult.DEAD)
        return health

    async def in_flight(self, entry: JournalEntry) -> int | None:
        """Requests in flight, those in its queue included; None if it is not known."""
        names = RUNTIMES[entry.runtime].request_metrics
        if not names:
            return None
        try:
            status, body = await self._get(entry.port, METRICS_PATH, ANSWER_BYTES_MAX)
        except (aiohttp.ClientError, TimeoutError, OSError):
            return None
        return count(body.decode(errors="replace"), names) if status == OK else None

    async def _check(self, entry: JournalEntry) -> Health:
        if not entry.health:
            return await self._connect(entry.port)
        try:
            status, _ = await self._get(entry.port, entry.health)
            if status == UNAVAILABLE:
                return Health(ProbeResult.LOADING, f"{entry.health} answers 503")
            if status != OK:
                return Health(ProbeResult.UNHEALTHY, f"{entry.health} answers {status}")
            if RUNTIMES[entry.runtime].lists_models:
                return await self._identify(entry)
        except TimeoutError:
            return Health(ProbeResult.UNHEALTHY, f"{entry.health} does not answer within {self._seconds_max:g} s")
        except (aiohttp.ClientError, OSError):
            return Health(ProbeResult.LOADING, f"nothing answers on port {entry.port}")
        return Health(ProbeResult.HEALTHY)

    async def _identify(self, entry: JournalEntry) -> Health:
        status, body = await self._get(entry.port, "/v1/models", ANSWER_BYTES_MAX)
        served = names_of(body) if status == OK else []
        if entry.alias in served:
            return Health(ProbeResult.HEALTHY)
        shown = ", ".join(served) or f"/v1/models answers {status}"
        return Health(ProbeResult.FOREIGN, f"on port {entry.port} something else answers ({shown})")

    async def _connect(self, port: int) -> Health:
        try:
            async with asyncio.timeout(self._seconds_max):
                _, writer = await asyncio.open_connection(self._host, port)
        except (TimeoutError, OSError):
            return Health(ProbeResult.LOADING, f"nothing listens on port {port}")
        writer.close()
        return Health(ProbeResult.HEALTHY)

    async def _get(self, port: int, path: str, bytes_max: int = 0) -> tuple[int, bytes]:
        """The status, and the first bytes of the answer: of a server that may be hostile."""
        assert self._session is not None
        host = f"[{self._host}]" if ":" in self._host else self._host
        async with self._session.get(f"http://{host}:{port}{path}", headers=_PLAIN, allow_redirects=False) as answer:
            body = bytearray()
            while len(body) < bytes_max and (chunk := await answer.content.read(bytes_max - len(body))):
                body += chunk
            return answer.status, bytes(body)


def names_of(body: bytes) -> list[str]:
    """The models of an answer of /v1/models."""
    try:
        said = msgspec.json.decode(body)
        return [str(each["id"]) for each in said["data"]]
    except (msgspec.DecodeError, KeyError, TypeError):
        return []


def count(text: str, names: tuple[str, ...]) -> int | None:
    """The sum of some metrics, over all their labels; None unless each of them is there."""
    sums: dict[str, float] = {}
    for line in text.splitlines():
        name = line.partition(" ")[0].partition("{")[0]
        if name in names:
            try:
                sums[name] = sums.get(name, 0.0) + float(line.rsplit(" ", 1)[1])
            except (ValueError, IndexError):
                return None
    return round(sum(sums.values())) if len(sums) == len(names) else None
