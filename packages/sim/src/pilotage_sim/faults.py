"""The faults of a plan, done to one process: a transport around its own.

A `FaultInjection` belongs to a process and outlives its crashes: it counts the calls, reads, writes and events of all
incarnations. Each incarnation has a `FaultyTransport`, which dies with it: what a dying process still tries to send in
its cleanup never leaves it, as with one that was killed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import parse_qs, urlencode

import msgspec

from pilotage.kube.transport import REQUEST_SECONDS_MAX, TransportError
from pilotage_harbor.access.attributes import AccessAttributes, attributes_of
from pilotage_harbor.apimachinery import errors
from pilotage_sim.faulty_watch import FaultyWatch
from pilotage_sim.plan import LIES, SUBJECT, Counts, Failure, Fault, FaultKind, Plan
from pilotage_sim.transport import Whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from pilotage.kube.transport import Request, Response, Transport
    from pilotage_sim.world import World

_REFUSALS = (
    Failure.ABSENT,
    Failure.CONFLICT,
    Failure.FOREIGN,
    Failure.TERMINATING,
    Failure.FORBIDDEN,
    Failure.INVALID,
    Failure.THROTTLED,
)


class FaultInjection:
    """The faults of one process, and its calls and writes so far."""

    def __init__(self, world: World, plan: Plan = (), process: str = SUBJECT, *, lies: bool = True) -> None:
        self.process = process
        self.lies = lies
        """Whether an answer may be untrue. An earlier fault may have moved one to a call where it would be."""
        self.counts = Counts()
        self.done: list[Fault] = []
        """The faults that have happened, in their order."""
        self.crash: Callable[[], None] = lambda: None
        """Ends the running incarnation."""
        self.watches: set[FaultyWatch] = set()
        self.expired: set[str] = set()
        """Paths whose next watch begins at a version that is no longer known."""
        self.replayed: dict[str, str] = {}
        """Paths whose next watch begins at an earlier version than asked for."""
        self.unreachable: dict[str, float] = {}
        """Paths that cannot be reached until a time."""
        self.partitioned_until = 0.0
        self._world = world
        self._faults = {(fault.kind, fault.number): fault for fault in plan if fault.process == process}

    def due(self, kind: FaultKind, number: int) -> Fault | None:
        """The fault of this kind that happens to this call, write, read or event, if one does."""
        fault = self._faults.get((kind, number))
        if fault is not None:
            self.done.append(fault)
            self._world.trace.remark(f"fault {fault}")
        return fault

    @property
    def over(self) -> bool:
        """Whether everything that was planned has happened."""
        return len(self.done) == len(self._faults)

    def stale_version(self, wanted: AccessAttributes, versions: int) -> int:
        """The version before the last so many changes of what is read."""
        qualified = f"{wanted.resource}.{wanted.group}" if wanted.group else wanted.resource
        kind = self._world.core.registry.storage(qualified)
        if kind is None:
            return 0
        key = f"{wanted.namespace if kind.namespaced else ''}/{wanted.name}" if wanted.name else ""
        return self._world.version_before(kind.storage, versions, key)

    def part(self, seconds: float) -> None:
        """Cut the process off from the API server."""
        self.partitioned_until = asyncio.get_running_loop().time() + seconds
        self.cut()

    def reaches(self, path: str) -> bool:
        """Whether a request to this path gets through at the moment."""
        return asyncio.get_running_loop().time() >= max(self.partitioned_until, self.unreachable.get(path, 0.0))

    def cut(self) -> None:
        """Break all watches of the process."""
        for watch in sorted(self.watches, key=lambda each: each.number):
            watch.break_off()


class FaultyTransport:
    """The way of one incarnation to the API server."""

    def __init__(self, inner: Transport, disturbance: FaultInjection) -> None:
        self._inner = inner
        self._disturbance = disturbance
        self._alive = True

    def kill(self) -> None:
        """Nothing gets through any more, in either direction."""
        self._alive = False
        self._disturbance.cut()
        self._disturbance.watches.clear()

    async def close(self) -> None:
        """See `Transport`."""
        await self._inner.close()

    async def send(self, request: Request) -> Response:
        """See `Transport`."""
        if not self._alive:
            raise TransportError("this process is dead", sent=False)
        path, _, query = request.target.partition("?")
        options = parse_qs(query, keep_blank_values=True)
        wanted = attributes_of(request.method, path, options)
        if not wanted.resource:  # discovery, health: not disturbed, not counted
            return await self._inner.send(request)
        disturbance, verb = self._disturbance, _verb(wanted)
        counts = disturbance.counts
        reading, watching, reading_many = verb in ("get", "list"), verb == "watch", verb in ("list", "watch")
        cached = reading and "resourceVersion" in options
        counts.called(verb, cached=cached)
        writing = not reading and not watching
        if writing and disturbance.due(FaultKind.CRASH_BEFORE_WRITE, counts.writes):
            await self._die()
        crash_after = disturbance.due(FaultKind.CRASH_AFTER_WRITE, counts.writes) if writing else None
        failure = disturbance.due(FaultKind.FAIL_CALL, len(counts.calls))
        stale = disturbance.due(FaultKind.STALE_READ, counts.reads) if reading else None
        partition = disturbance.due(FaultKind.PARTITION, len(counts.calls))
        if partition is not None:
            disturbance.part(float(partition.detail))
        if not disturbance.reaches(path):
            raise TransportError("the API server cannot be reached", sent=False)
        if failure is not None and (disturbance.lies or reading_many or failure.detail not in LIES):
            return await self._fail(request, wanted, Failure(failure.detail))
        if (
            stale is not None
            and (disturbance.lies or cached)
            and (old := disturbance.stale_version(wanted, int(stale.detail)))
        ):
            return await self._stale(request, wanted, old)
        if watching:
            return await self._watch(request, path)
        response = await self._inner.send(request)
        if crash_after is not None:
            response.close()
            await self._die()
        return response

    async def _die(self) -> NoReturn:
        self._disturbance.crash()
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nobody lives on after a crash")

    async def _fail(self, request: Request, wanted: AccessAttributes, failure: Failure) -> Response:
        if failure in _REFUSALS:
            return _refusal(wanted, failure)
        if failure is Failure.UNAVAILABLE:
            raise TransportError("connection refused", sent=False)
        if failure is not Failure.LOST:
            (await self._inner.send(request)).close()
        if failure is Failure.HANGS:
            await asyncio.sleep(request.timeout or REQUEST_SECONDS_MAX)
        raise TransportError("the connection broke before the answer came", sent=True)

    async def _stale(self, request: Request, wanted: AccessAttributes, version: int) -> Response:
        """Read at an earlier version: what a lagging cache would say."""
        path, _, query = request.target.partition("?")
        options = {name: values[0] for name, values in parse_qs(query).items()}
        if "continue" in options:
            return await self._inner.send(request)
        at = {"resourceVersion": str(version), "resourceVersionMatch": "Exact"}
        if not wanted.name:
            return await self._inner.send(request._replace(target=f"{path}?{urlencode(options | at)}"))
        collection = path.rpartition("/")[0]
        selected = urlencode({"fieldSelector": f"metadata.name={wanted.name}", **at})
        response = await self._inner.send(request._replace(target=f"{collection}?{selected}"))
        items = msgspec.json.decode(await response.read()).get("items") or []
        if response.status >= 300 or not items:
            return _refusal(wanted, Failure.ABSENT)
        return Whole(200, msgspec.json.encode(items[0]))

    async def _watch(self, request: Request, path: str) -> Response:
        disturbance = self._disturbance
        if path in disturbance.expired:
            disturbance.expired.discard(path)
            return _refused(errors.expired("too old resource version"))
        version = disturbance.replayed.pop(path, "")
        if version:
            options = {name: values[0] for name, values in parse_qs(request.target.partition("?")[2]).items()}
            options["resourceVersion"] = version
            request = request._replace(target=f"{path}?{urlencode(options)}")
        response = await self._inner.send(request)
        if response.status != 200:
            return response
        return FaultyWatch(response, disturbance, path, request)


def _verb(wanted: AccessAttributes) -> str:
    return "delete" if wanted.verb == "deletecollection" else wanted.verb


def _refused(error: errors.StatusError) -> Whole:
    return Whole(error.code, msgspec.json.encode(error.status), error.headers)


def _refusal(wanted: AccessAttributes, failure: Failure) -> Whole:
    """The answer by which a server says so."""
    group, plural, name = wanted.group, wanted.resource, wanted.name
    if failure is Failure.ABSENT:
        return _refused(errors.not_found(group, plural, name) if name else errors.no_such_path())
    if failure is Failure.CONFLICT and wanted.verb in ("list", "watch"):
        return _refused(errors.expired("The resourceVersion for the provided list is too old."))
    if failure is Failure.CONFLICT:
        return _refused(errors.conflict(group, plural, name, errors.MODIFIED))
    if failure is Failure.FOREIGN:
        words = "Precondition failed: UID in precondition: 0, UID in object meta: 1"
        return _refused(errors.conflict(group, plural, name, words))
    if failure is Failure.TERMINATING:
        words = f"unable to create new content in namespace {wanted.namespace} because it is being terminated"
        error = errors.forbidden(group, plural, name, words)
        cause = {"reason": "NamespaceTerminating", "message": words, "field": "metadata.namespace"}
        error.details = {**(error.details or {}), "causes": [cause]}
        return _refused(error)
    if failure is Failure.FORBIDDEN:
        return _refused(errors.forbidden(group, plural, name, "no rule allows it"))
    if failure is Failure.INVALID:
        return _refused(errors.bad_request("the server could not understand the request"))
    return _refused(errors.StatusError(429, "TooManyRequests", "too many requests, please try again later"))
