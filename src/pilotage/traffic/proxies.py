"""The Envoys of a cluster: how they are found and read, and what all of them together prove.

An Envoy is named by the address of its admin interface, or found among the pods of a namespace and read through the API
server:

    http://127.0.0.1:9901                  unix:///run/envoy/admin.sock
    pods://projectcontour/app=envoy:9001   (namespace, label selector, port)

Nothing is cached. But many callers ask at the same time, and an answer can be large, so callers that come while the
Envoys are being read share the next round. It begins after they came: no caller gets an answer that is older than its
question.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from pilotage.kube import PODS, ApiError, Client, Object
from pilotage.kube.connection import Connection
from pilotage.kube.http1 import encode_request
from pilotage.kube.transport import TransportError
from pilotage.traffic.contract import ExpectedRoute, Programming, RouteStatus
from pilotage.traffic.envoy import DUMP, STATS, EnvoyConfig, InvalidAnswer, parsed
from pilotage.traffic.programmed import effective_shares, in_flight, lacks

ANSWER_SECONDS_MAX = 3.0
"""Timeout of one answer, with the connection."""
ANSWER_BYTES_MAX = 64 * 1024 * 1024
ROUND_SECONDS = 0.1
"""Shortest time between the beginnings of two rounds."""
AT_ONCE = 8
"""Number of Envoys that are read concurrently."""


class Unreadable(Exception):
    """An Envoy, or the list of Envoys, could not be read; one line that says why."""


class EnvoyAdmin(Protocol):
    """The admin interface of one Envoy."""

    @property
    def name(self) -> str:
        """Name in messages."""

    async def get(self, target: str) -> bytes:
        """The answer to a GET. Raises `Unreadable`, after `ANSWER_SECONDS_MAX` at the latest."""


class EnvoySource(Protocol):
    """A setting that names one or more Envoys."""

    async def admins(self) -> Sequence[EnvoyAdmin]:
        """The Envoys that it names now. Raises `Unreadable`."""


class EnvoyReading(NamedTuple):
    """The state of one Envoy, or why it could not be read."""

    name: str
    loaded: EnvoyConfig | None
    problem: str = ""


class Proxies:
    """All Envoys that serve a cluster's routes. Every one of them counts."""

    def __init__(self, sources: Sequence[EnvoySource]) -> None:
        """`sources` are those of the settings. Without any, nothing can be proven: `observe` must not be called."""
        self._sources = sources
        self._next: asyncio.Task[list[EnvoyReading]] | None = None
        self._rounds: set[asyncio.Task[list[EnvoyReading]]] = set()
        self._one_at_a_time = asyncio.Lock()
        self._begun = float("-inf")

    def __bool__(self) -> bool:
        return bool(self._sources)

    async def readings(self) -> list[EnvoyReading]:
        """Read every Envoy, in a round that begins after this call and is shared by all calls before that."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._round())
            self._rounds.add(self._next)
            self._next.add_done_callback(self._rounds.discard)
        return await asyncio.shield(self._next)  # a caller that is cancelled must not cancel it for the others

    async def close(self) -> None:
        """Cancel the rounds that are running."""
        for each in [*self._rounds]:
            each.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await each

    async def _round(self) -> list[EnvoyReading]:
        async with self._one_at_a_time:
            loop = asyncio.get_running_loop()
            await asyncio.sleep(max(0.0, self._begun + ROUND_SECONDS - loop.time()))
            self._begun = loop.time()
            self._next = None  # later callers wait for the next one
            found = await asyncio.gather(*map(_find, self._sources))
            gate = asyncio.Semaphore(AT_ONCE)
            admins = [each for one in found if not isinstance(one, EnvoyReading) for each in one]
            return [
                *(one for one in found if isinstance(one, EnvoyReading)),
                *await asyncio.gather(*(_read(each, gate) for each in admins)),
            ]


async def observe(proxies: Proxies, wanted: ExpectedRoute) -> RouteStatus:
    """Status of a route in the Envoys: PROGRAMMED if each of them was read and has it, else PENDING.

    The text names the Envoys that differ. Requests in flight are unknown unless every Envoy was read.
    """
    readings = await proxies.readings()
    if not readings:
        return RouteStatus(Programming.PENDING, text="no Envoy was found")
    counts = [in_flight(each.loaded, wanted) for each in readings if each.loaded is not None]
    are_complete = len(counts) == len(readings)
    flying = {each: sum(count[each] for count in counts) for each in wanted.counted} if are_complete else {}
    missing = [
        f"{each.name} {what}"
        for each in readings
        if (what := lacks(each.loaded, wanted) if each.loaded else each.problem)
    ]
    having = f"{len(readings) - len(missing)} of {len(readings)} Envoys"
    if missing:
        return RouteStatus(Programming.PENDING, flying, f"programmed in {having}: {'; '.join(missing[:3])}")
    effective = effective_shares(wanted.mix) if wanted.mix.backends else None
    return RouteStatus(Programming.PROGRAMMED, flying, f"programmed in {having}", effective=effective)


def envoy_source(setting: str, client: Client) -> EnvoySource:
    """The Envoys that a setting names. ValueError, which says what is wrong with it."""
    url = urlsplit(setting)
    if url.scheme == "unix" and not url.netloc and url.path:
        return _Address(setting, unix_path=url.path)
    if url.scheme == "http" and url.hostname:
        return _Address(setting, host=url.hostname, port=url.port or 80)
    if url.scheme == "pods" and url.netloc:
        selector, _, port = setting.partition("://")[2].partition("/")[2].rpartition(":")
        if selector and port.isascii() and port.isdigit():
            return _Pods(client, url.netloc, selector, int(port))
    raise ValueError(
        f"{setting!r} names no Envoy: use http://HOST:PORT, unix:///PATH or pods://NAMESPACE/LABEL-SELECTOR:PORT"
    )


async def _find(source: EnvoySource) -> Sequence[EnvoyAdmin] | EnvoyReading:
    try:
        return await source.admins()
    except Unreadable as error:
        return EnvoyReading(str(source), None, str(error))


async def _read(admin: EnvoyAdmin, gate: asyncio.Semaphore) -> EnvoyReading:
    try:
        async with gate:
            dump = await admin.get(DUMP)
            loaded = parsed(dump, await admin.get(STATS))
    except (Unreadable, InvalidAnswer) as error:
        return EnvoyReading(admin.name, None, f"cannot be read ({error})")
    return EnvoyReading(admin.name, loaded)


class _Address:
    """An Envoy that is read directly, and the source with just that one."""

    def __init__(self, name: str, *, host: str = "", port: int = 0, unix_path: str = "") -> None:
        self.name = name
        self._host, self._port, self._unix_path = host, port, unix_path

    async def admins(self) -> Sequence[EnvoyAdmin]:
        return [self]

    async def get(self, target: str) -> bytes:
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                return await self._exchange(target)
        except TimeoutError:
            raise Unreadable(f"no answer within {ANSWER_SECONDS_MAX:g} s") from None
        except (OSError, TransportError) as error:
            raise Unreadable(str(error)) from error

    async def _exchange(self, target: str) -> bytes:
        loop = asyncio.get_running_loop()
        connection: Connection
        if self._unix_path:
            _, connection = await loop.create_unix_connection(_connection, self._unix_path)
        else:
            _, connection = await loop.create_connection(_connection, self._host, self._port)
        try:
            headers = [("Host", "envoy"), ("Connection", "close")]
            head = await connection.send(encode_request("GET", target, headers, None), None)
            body = bytearray()
            while pieces := await connection.chunks():
                body += b"".join(pieces)
                if len(body) > ANSWER_BYTES_MAX:
                    raise Unreadable(f"its answer is longer than {ANSWER_BYTES_MAX} bytes")
        finally:
            connection.finish()
        if head.status != 200:
            raise Unreadable(f"it answered {head.status}: {bytes(body[:100]).decode(errors='replace')}")
        return bytes(body)


class _Pods:
    """The pods of a namespace that have some labels."""

    def __init__(self, client: Client, namespace: str, selector: str, port: int) -> None:
        self._client = client.urgent(ANSWER_SECONDS_MAX)
        self._namespace, self._selector, self._port = namespace, selector, port

    def __str__(self) -> str:
        return f"pods://{self._namespace}/{self._selector}:{self._port}"

    async def admins(self) -> Sequence[EnvoyAdmin]:
        try:
            listed = await self._client.list(PODS, self._namespace, labels=self._selector)
        except ApiError as error:
            raise Unreadable(f"cannot be listed ({error})") from error
        found = [_Pod(self._client, each.key.name, self._namespace, self._port) for each in listed.items if _runs(each)]
        if not found:
            raise Unreadable("has no pod that runs")
        return found


class _Pod:
    """An Envoy in a pod, read through the API server."""

    def __init__(self, client: Client, name: str, namespace: str, port: int) -> None:
        self.name = f"pod/{name} -n {namespace}"
        self._client = client
        self._path = PODS.path(namespace, name)
        self._port = port

    async def get(self, target: str) -> bytes:
        try:
            return await self._client.get_path(f"{self._path}:{self._port}/proxy{target}", accept="*/*")
        except ApiError as error:
            raise Unreadable(str(error)) from error


def _connection() -> Connection:
    return Connection(lambda _: None)


def _runs(pod: Object) -> bool:
    """Whether any of its containers runs. One that is being deleted may, and then it still has requests."""
    status = pod.get("status", default={})
    states = status.get("containerStatuses") or ()
    return any("running" in each.get("state", {}) for each in states)
