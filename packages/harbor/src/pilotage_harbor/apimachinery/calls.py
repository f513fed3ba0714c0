"""Requests and answers, and the options in a query."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from pilotage_harbor.apimachinery import errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pilotage_harbor.apimachinery.users import UserInfo

JSON = "application/json"
BODY_BYTES_MAX = 3 * 1024 * 1024
MANAGER_BYTES_MAX = 128


class Call(NamedTuple):
    """One request. `path` is decoded and without the query; header names are in lower case."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes
    user: UserInfo

    def option(self, name: str) -> str:
        """The first value of a query parameter, or nothing."""
        values = self.query.get(name)
        return values[0] if values else ""

    def flag(self, name: str) -> bool:
        """Whether a query parameter says yes, as Go's conversion understands it."""
        values = self.query.get(name)
        return values is not None and values[:1] != [] and values[0].lower() not in ("false", "0")


class ServerResponse(NamedTuple):
    """A whole answer. Without a Content-Type it is an object as JSON, which the server ends with a newline."""

    status: int
    body: bytes
    headers: Mapping[str, str] = {}


class Stream(Protocol):
    """An answer that comes piece by piece: a watch, or a large list."""

    @property
    def finite(self) -> bool:
        """Whether it ends by itself, and is worth nothing without its end: a list. A watch can be ended at any time."""

    @property
    def status(self) -> int:
        """The status code."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers."""

    async def chunks(self) -> list[bytes]:
        """The next pieces, as soon as there are some; empty at the end. Whoever cancels it has lost nothing."""

    def close(self) -> None:
        """Stop the stream: the client has gone."""


async def whole(answered: ServerResponse | Stream) -> ServerResponse | Stream:
    """The same in one piece, unless it has no end."""
    if isinstance(answered, ServerResponse) or not answered.finite:
        return answered
    pieces: list[bytes] = []
    while chunks := await answered.chunks():
        pieces += chunks
    return ServerResponse(answered.status, b"".join(pieces), answered.headers)


async def pause() -> None:
    """Let others be served. Whoever takes longer than some milliseconds over one request calls it now and then."""
    await asyncio.sleep(0)


def answer(body: object, status: int = 200, warnings: tuple[str, ...] | list[str] = ()) -> ServerResponse:
    """An answer of JSON."""
    return ServerResponse(status, msgspec.json.encode(body), warning_headers(warnings))


def refuse(error: errors.StatusError) -> ServerResponse:
    """The answer that says no."""
    return ServerResponse(error.code, msgspec.json.encode(error.status), error.headers)


def warning_headers(warnings: tuple[str, ...] | list[str]) -> dict[str, str]:
    """The header of several warnings; the server writes each line of it as a header of its own."""
    if not warnings:
        return {}
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") for text in dict.fromkeys(warnings))
    return {"Warning": "\n".join(f'299 - "{text}"' for text in quoted)}


@contextmanager
def telling(warnings: list[str]) -> Iterator[None]:
    """Add the warnings so far to a refusal that is raised in the block."""
    try:
        yield
    except errors.StatusError as error:
        headers = [each for each in (warning_headers(warnings).get("Warning"), error.headers.get("Warning")) if each]
        if headers:
            error.headers = {**error.headers, "Warning": "\n".join(headers)}
        raise


def integer(call: Call, name: str) -> int | None:
    """A number of the query, or None where it is not given; 400 for what is no number."""
    text = call.option(name)
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise errors.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def dry_run(call: Call, options: Mapping[str, object] | None = None) -> bool:
    """Whether nothing is to be stored."""
    asked = call.query.get("dryRun") or []
    if options is not None and not asked:
        given = options.get("dryRun")
        asked = [str(each) for each in given] if isinstance(given, list) else []
    for value in asked:
        if value != "All":
            cause = errors.StatusCause("dryRun", "FieldValueNotSupported", _unsupported([*asked], ["All"]))
            raise errors.invalid("meta.k8s.io", options_kind(call), "", [cause])
    return bool(asked)


def check_manager(call: Call) -> None:
    """Refuse a fieldManager that cannot be one (422)."""
    name = call.option("fieldManager")
    if not name:
        return
    if len(name.encode()) > MANAGER_BYTES_MAX:
        words = f"Too long: may not be more than {MANAGER_BYTES_MAX} bytes"
        cause = errors.StatusCause("fieldManager", "FieldValueTooLong", words)
        raise errors.invalid("meta.k8s.io", options_kind(call), "", [cause])
    for at, character in enumerate(name):
        if not character.isprintable():
            shown = msgspec.json.encode(name).decode()
            words = f"Invalid value: {shown}: invalid character U+{ord(character):04X} (at position {at})"
            cause = errors.StatusCause("fieldManager", "FieldValueInvalid", words)
            raise errors.invalid("meta.k8s.io", options_kind(call), "", [cause])


def options_kind(call: Call) -> str:
    """Kubernetes' kind of the options of this request."""
    named = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions", "DELETE": "DeleteOptions"}
    return named.get(call.method, "ListOptions")


def _unsupported(given: list[str], supported: list[str]) -> str:
    values = ", ".join(f'"{each}"' for each in supported)
    shown = "[" + ",".join(f'"{each}"' for each in given) + "]"
    return f"Unsupported value: {shown}: supported values: {values}"
