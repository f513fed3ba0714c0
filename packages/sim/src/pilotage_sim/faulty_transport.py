"""The transport of one incarnation of a process, with the faults of its plan.

It dies with its incarnation: what a dying process still tries to send in its cleanup never leaves it, as with one that
was killed.
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
from pilotage_sim.plan import LIES, Failure, FaultKind
from pilotage_sim.transport import Whole

if TYPE_CHECKING:
    from pilotage.kube.transport import Request, Response, Transport
    from pilotage_sim.fault_injection import FaultInjection

_REFUSALS = (
    Failure.ABSENT,
    Failure.CONFLICT,
    Failure.FOREIGN,
    Failure.TERMINATING,
    Failure.FORBIDDEN,
    Failure.INVALID,
    Failure.THROTTLED,
)


class FaultyTransport:
    """The way of one incarnation to the API server."""

    def __init__(self, inner: Transport, injection: FaultInjection) -> None:
        self._inner = inner
        self._injection = injection
        self._alive = True

    def kill(self) -> None:
        """Nothing gets through any more, in either direction."""
        self._alive = False
        self._injection.cut()
        self._injection.watches.clear()

    async def close(self) -> None:
        """Close the real transport."""
        await self._inner.close()

    async def send(self, request: Request) -> Response:
        """Send the request, unless a fault of the plan is due at this call."""
        if not self._alive:
            raise TransportError("this process is dead", sent=False)
        path, _, query = request.target.partition("?")
        options = parse_qs(query, keep_blank_values=True)
        wanted = attributes_of(request.method, path, options)
        if not wanted.resource:  # discovery, health: no faults, not counted
            return await self._inner.send(request)
        injection, verb = self._injection, _verb(wanted)
        counts = injection.counts
        reading, watching, reading_many = verb in ("get", "list"), verb == "watch", verb in ("list", "watch")
        cached = reading and "resourceVersion" in options
        counts.called(verb, cached=cached)
        writing = not reading and not watching
        if writing and injection.due(FaultKind.CRASH_BEFORE_WRITE, counts.writes):
            await self._die()
        crash_after = injection.due(FaultKind.CRASH_AFTER_WRITE, counts.writes) if writing else None
        failure = injection.due(FaultKind.FAIL_CALL, len(counts.calls))
        slow = injection.due(FaultKind.SLOW_CALL, len(counts.calls))
        stale = injection.due(FaultKind.STALE_READ, counts.reads) if reading else None
        partition = injection.due(FaultKind.PARTITION, len(counts.calls))
        if partition is not None:
            injection.part(float(partition.detail))
        if not injection.reaches(path):
            raise TransportError("the API server cannot be reached", sent=False)
        if failure is not None and (injection.lies or reading_many or failure.detail not in LIES):
            return await self._fail(request, wanted, Failure(failure.detail))
        if (
            stale is not None
            and (injection.lies or cached)
            and (old := injection.stale_version(wanted, int(stale.detail)))
        ):
            return await self._stale(request, wanted, old)
        if watching:
            return await self._watch(request, path)
        response = await (self._inner.send(request) if slow is None else self._send_slowly(request, int(slow.detail)))
        if crash_after is not None:
            response.close()
            await self._die()
        return response

    async def _die(self) -> NoReturn:
        self._injection.crash()
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nobody lives on after a crash")

    async def _send_slowly(self, request: Request, seconds: int) -> Response:
        """Let each way take so long, within the time-out of the request."""
        if request.allowed is not None:
            request.allowed()  # it is asked when the request leaves, not when it arrives
        try:
            async with asyncio.timeout(request.timeout):
                await asyncio.sleep(seconds)
                response = await self._inner.send(request._replace(allowed=None))
                await asyncio.sleep(seconds)
        except TimeoutError:
            raise TransportError(f"no answer within {request.timeout:g} s", sent=True) from None
        return response

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
        injection = self._injection
        if path in injection.expired:
            injection.expired.discard(path)
            return _refused(errors.expired("too old resource version"))
        version = injection.replayed.pop(path, "")
        if version:
            options = {name: values[0] for name, values in parse_qs(request.target.partition("?")[2]).items()}
            options["resourceVersion"] = version
            request = request._replace(target=f"{path}?{urlencode(options)}")
        response = await self._inner.send(request)
        if response.status != 200:
            return response
        return FaultyWatch(response, injection, path, request)


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
