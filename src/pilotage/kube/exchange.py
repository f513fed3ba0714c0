"""Exchange of a request for an answer or for one classified error.

Throttling by the server (429 with Retry-After) is waited for here, a bounded number of times. Nothing else is retried:
whether to try again is the caller's decision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from pilotage.kube.errors import ApiError, Status, Throttled, Unavailable, Uncertain, classify
from pilotage.kube.transport import REQUEST_SECONDS_MAX, Request, Response, Transport, TransportError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from pilotage.kube.ratelimit import TokenBucket

THROTTLED_TRIES_MAX = 10
RETRY_AFTER_SECONDS_MAX = 60.0
"""A server that asks for more than this is not waited for here: the caller has better things to do."""

T = TypeVar("T")

NOT_MODIFIED = 304
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_status = msgspec.json.Decoder(Status)


class Changed(NamedTuple):
    """An answer with its ETag. No `body`: it is still the one that was known."""

    body: bytes | None
    etag: str


class Exchange:
    """Requests over one transport, under one user agent, held back by one limiter if there is one."""

    def __init__(
        self, transport: Transport, limiter: TokenBucket | None, user_agent: str, timeout: float = REQUEST_SECONDS_MAX
    ) -> None:
        self._transport = transport
        self._limiter = limiter
        self._user_agent = user_agent
        self._timeout = timeout

    def named(self, user_agent: str) -> Exchange:
        """The same transport, limiter and time-out under another user agent."""
        return Exchange(self._transport, self._limiter, user_agent, self._timeout)

    def through(self, wrap: Callable[[Transport], Transport]) -> Exchange:
        """The same limiter, user agent and time-out over a wrapped transport."""
        return Exchange(wrap(self._transport), self._limiter, self._user_agent, self._timeout)

    def urgent(self, timeout: float) -> Exchange:
        """The same transport and user agent without a limiter, and with a time-out of its own."""
        return Exchange(self._transport, None, self._user_agent, timeout)

    async def close(self) -> None:
        """Close the transport."""
        await self._transport.close()

    async def call(
        self, request: Request, decode: Callable[[bytes], T], allowed: Callable[[], None] | None = None
    ) -> T:
        """The whole answer, as `decode` reads it, or an ApiError; also where it cannot be read (ValueError)."""
        response = await self.open(request, self._timeout, allowed)
        try:
            return decode(await response.read())
        except TransportError as error:
            raise _no_answer(error, request) from error
        except ValueError as error:  # a proxy's page, perhaps: whoever wrote that, it was not the API server
            nonsense = TransportError(f"what came back is not from a Kubernetes API ({error})", sent=True)
            raise _no_answer(nonsense, request) from error
        finally:
            response.close()

    async def changed(self, request: Request) -> Changed:
        """The whole answer with its ETag; no body where the server says that the one that is known still holds."""
        response = await self.open(request, self._timeout)
        try:
            if response.status == NOT_MODIFIED:
                return Changed(None, request.if_none_match)
            return Changed(await response.read(), response.headers.get("etag", ""))
        except TransportError as error:
            raise _no_answer(error, request) from error
        finally:
            response.close()

    async def lines(self, request: Request) -> AsyncIterator[bytes]:
        """The lines of an answer that has no end in sight, as they come. Unavailable where it breaks off."""
        response = await self.open(request)
        rest = b""
        try:
            while chunks := await response.chunks():
                *lines, rest = (rest + b"".join(chunks)).split(b"\n")
                for line in lines:
                    yield line
        except TransportError as error:
            raise _no_answer(error, request) from error
        finally:
            response.close()
        if rest:
            yield rest

    async def open(
        self, request: Request, timeout: float | None = None, allowed: Callable[[], None] | None = None
    ) -> Response:
        """The response of a request that succeeded (the caller closes it), or an ApiError.

        `allowed` is called when all waiting is over, and raises to keep the request from being sent.
        """
        method, target, body, content_type, accept, _, _, _, known = request
        request = Request(method, target, body, content_type, accept, timeout, self._user_agent, allowed, known)
        for tries_left in reversed(range(THROTTLED_TRIES_MAX)):
            if self._limiter is not None:
                await self._limiter.acquire()
            if allowed is not None:
                allowed()
            try:
                response = await self._transport.send(request)
                if response.status < 300 or (known and response.status == NOT_MODIFIED):
                    return response
                error = await _refusal(response, request)
            except TransportError as broken:
                raise _no_answer(broken, request) from broken
            if not tries_left or not _is_worth_waiting_for(error):
                raise error
            from asyncio import sleep  # not at the top: see `pilotage.kube`

            await sleep(error.retry_after or 0.0)
        raise AssertionError("the last try returns or raises")


def _is_worth_waiting_for(error: ApiError) -> bool:
    """Whether the server is busy and said for how long.

    One with a cause is no matter of load: a disruption budget stands against this one eviction.
    """
    busy = isinstance(error, Throttled) and not error.causes
    return busy and 0 < (error.retry_after or 0.0) <= RETRY_AFTER_SECONDS_MAX


async def _refusal(response: Response, request: Request) -> ApiError:
    try:
        raw = await response.read()
    finally:
        response.close()
    return classify(
        response.status,
        _status_untrusted(raw),
        text=raw[:500].decode(errors="replace"),
        write=request.method in _WRITES,
        request=str(request),
        retry_after=_retry_after(response.headers),
    )


def _status_untrusted(raw: bytes) -> Status | None:
    """The Status, or None where something else answered: a proxy's page, or plain text."""
    try:
        status = _status.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return status if status.kind == "Status" else None


def _retry_after(headers: Mapping[str, str]) -> float | None:
    seconds = headers.get("retry-after", "")
    return float(seconds) if seconds.isdigit() else None


def _no_answer(error: TransportError, request: Request) -> Unavailable | Uncertain:
    if error.sent and request.method in _WRITES:
        return Uncertain(f"no answer, it may have been applied: {error}", request=str(request))
    words = "did not answer" if error.sent else "was not reached"
    return Unavailable(f"the API server {words}: {error}", request=str(request))
