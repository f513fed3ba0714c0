"""HTTP/1.1 without I/O, the server's side: bytes into a request, and an answer into bytes.

What does not parse is `BadRequest`, with the answer that Go's server gives to it; nothing is guessed. A head that two
readers could understand differently (two lengths, a length and chunks) is one that does not parse.
"""

from __future__ import annotations

import re
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote_to_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

HEAD_BYTES_MAX = 64 * 1024
_LINE_BYTES_MAX = 4096
_CACHED_TARGET_BYTES_MAX = 512
_HEADERS = re.compile(rb"(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[^\r\n\0]*\r\n)*")
_METHOD = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_CONTROL = re.compile(r"[\x00-\x20\x7f]")
_HEX = frozenset(b"0123456789abcdefABCDEF")
_REASONS = {status.value: status.phrase for status in HTTPStatus}
_REASONS |= {413: "Request Entity Too Large", 422: "Unprocessable Entity"}
_NO_QUERY: Mapping[str, list[str]] = {}


class BadRequest(Exception):
    """A malformed request. `status` and the text are for its sender."""

    def __init__(self, why: str = "", status: int = 400) -> None:
        super().__init__(why)
        self.status = status


class TooLarge(Exception):
    """The body is larger than a request may be. `coming` is how much of it is still under way, if that is known."""

    def __init__(self, head: RequestHead, coming: int | None) -> None:
        super().__init__()
        self.head = head
        self.coming = coming


class Headers(NamedTuple):
    """Names in lower case, and of a repeated one the first value; the others are in `more`. `length` -1: in chunks."""

    values: dict[str, str]
    more: tuple[tuple[str, str], ...]
    length: int
    close: bool
    keep: bool
    """Whether `Connection` says close, or keep-alive."""
    expects: bool
    """Whether the client waits for a word before it sends the body."""


class RequestHead(NamedTuple):
    """A request but for its body."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Headers
    newer: bool
    """HTTP/1.1 and not 1.0: chunks can be sent, and the connection stays."""

    @property
    def keep_alive(self) -> bool:
        """Whether another request can come after this one."""
        return not self.headers.close if self.newer else self.headers.keep


def parse_request_line(line: bytes) -> tuple[str, str, Mapping[str, list[str]], bool]:
    """Method, path, query and whether it is HTTP/1.1."""
    try:
        method, target, version = line.decode().split(" ")
    except ValueError:
        raise BadRequest from None
    if version != "HTTP/1.1" and version != "HTTP/1.0":
        if re.fullmatch(r"HTTP/\d\.\d", version):
            raise BadRequest("unsupported protocol version", 505)
        raise BadRequest
    if not _METHOD.fullmatch(method):
        raise BadRequest
    parse = _cached_target if len(target) < _CACHED_TARGET_BYTES_MAX else parse_target
    path, query = parse(target)
    return method, path, query, version == "HTTP/1.1"


def parse_target(target: str) -> tuple[str, Mapping[str, list[str]]]:
    """The decoded path, and the query. Neither may be changed: they are shared."""
    if _CONTROL.search(target):
        raise BadRequest
    if not target.startswith("/"):
        target = _origin_form(target)
    path, _, query = target.partition("?")
    if "%" in path:
        if _BAD_ESCAPE.search(path):
            raise BadRequest
        path = unquote_to_bytes(path).decode("utf-8", "replace")
    return path, _parse_query(query) if query else _NO_QUERY


_cached_target = lru_cache(maxsize=4096)(parse_target)


def _origin_form(target: str) -> str:
    scheme, found, rest = target.partition("://")
    if found and scheme.lower() in ("http", "https"):
        return "/" + rest.partition("/")[2]
    if target == "*":
        return target
    raise BadRequest


def _parse_query(text: str) -> dict[str, list[str]]:
    query: dict[str, list[str]] = {}
    for pair in text.split("&"):
        if not pair or ";" in pair:
            continue
        name, _, value = pair.partition("=")
        if "%" in pair or "+" in pair:
            if _BAD_ESCAPE.search(pair):
                continue
            name, value = _unescaped(name), _unescaped(value)
        query.setdefault(name, []).append(value)
    return query


def _unescaped(text: str) -> str:
    return unquote_to_bytes(text.replace("+", " ")).decode("utf-8", "replace")


def parse_headers(block: bytes) -> Headers:
    """All lines behind the first, each with its end."""
    if not _HEADERS.fullmatch(block):
        raise BadRequest(_bad_header(block))
    values: dict[str, str] = {}
    more: list[tuple[str, str]] = []
    for line in block.decode("utf-8", "replace").split("\r\n")[:-1]:
        name, _, value = line.partition(":")
        name, value = name.lower(), value.strip(" \t")
        if name not in values:
            values[name] = value
        elif name not in ("host", "content-length", "transfer-encoding"):
            more.append((name, value))
        elif values[name] != value or name != "content-length":
            raise BadRequest
    connection = values.get("connection", "").lower()
    expected = values.get("expect", "").lower()
    if expected and expected != "100-continue":
        raise BadRequest(status=417)
    return Headers(
        values, tuple(more), _length(values), "close" in connection, "keep-alive" in connection, bool(expected)
    )


def _bad_header(block: bytes) -> str:
    """Go's message about it."""
    for line in block.split(b"\r\n"):
        name, found, value = line.partition(b":")
        if not found or not name or name[:1] in b" \t" or b"\n" in line:
            return ""
        if not _METHOD.fullmatch(name.decode("latin-1")):
            return "invalid header name"
        if b"\0" in value or b"\r" in value:
            return "invalid header value"
    return ""


def _length(values: Mapping[str, str]) -> int:
    coding, length = values.get("transfer-encoding"), values.get("content-length")
    if coding is not None:
        if length is not None:
            raise BadRequest
        if coding.lower() != "chunked":
            raise BadRequest("Unsupported transfer encoding", 501)
        return -1
    if length is None:
        return 0
    if not (length.isascii() and length.isdigit()) or len(length) > 18:
        raise BadRequest
    return int(length)


class ChunkedBody:
    """A body that comes in chunks: feed it what arrives; `data` is the body so far, `rest` what came behind its end."""

    __slots__ = ("_after", "_left", "_max", "_pending", "_trailer", "complete", "data", "rest")

    def __init__(self, size_max: int) -> None:
        self.data = bytearray()
        self.rest = b""
        self.complete = False
        self._max = size_max
        self._left = 0
        self._after = False  # a chunk has ended, its line has not
        self._trailer = False
        self._pending = b""

    def feed(self, data: bytes) -> bool:
        """Take what has arrived; False as soon as it is certain to be too much. Raises BadRequest."""
        data, self._pending, at = self._pending + data, b"", 0
        while not self.complete:
            if self._left:
                piece = data[at : at + self._left]
                self.data += piece
                at += len(piece)
                self._left -= len(piece)
                if self._left:
                    return True
                self._after = True
            end = data.find(b"\r\n", at)
            if end < 0:
                if len(data) - at > _LINE_BYTES_MAX:
                    raise BadRequest
                self._pending = data[at:]
                return True
            self._take_line(data[at:end])
            if len(self.data) + self._left > self._max:
                return False
            at = end + 2
        self.rest = data[at:]
        return True

    def _take_line(self, line: bytes) -> None:
        if self._after:
            if line:
                raise BadRequest
            self._after = False
        elif self._trailer:
            self.complete = not line
        else:
            size = line.partition(b";")[0].strip()
            if not size or len(size) > 15 or not _HEX.issuperset(size):
                raise BadRequest
            self._left = int(size, 16)
            self._trailer = self._left == 0


@lru_cache(maxsize=64)
def _opening(status: int, content_type: str | None, *, cached: bool = False) -> bytes:
    lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Unknown')}"]
    if not cached:
        lines.append("Cache-Control: no-cache, private")
    if content_type is not None:
        lines.append(f"Content-Type: {content_type}")
    return ("\r\n".join(lines) + "\r\n").encode()


def encode_head(status: int, headers: Mapping[str, str], date: bytes, length: int | None, *, close: bool) -> bytes:
    """The head of an answer. `length` None: the body comes in chunks. A value of several lines is several headers."""
    if headers:
        start = _opening(status, None, cached="Cache-Control" in headers) + _lines(headers)
    else:
        start = _opening(status, "application/json")
    framing = b"Transfer-Encoding: chunked\r\n" if length is None else b"Content-Length: %d\r\n" % length
    return b"%b%b%b%b" % (start, framing, date, b"Connection: close\r\n\r\n" if close else b"\r\n")


def _lines(headers: Mapping[str, str]) -> bytes:
    lines: list[str] = []
    typed = False
    for name, value in headers.items():
        typed = typed or name.lower() == "content-type"
        lines += [f"{name}: {line}\r\n" for line in value.replace("\r", " ").split("\n")]
    if not typed:
        lines.append("Content-Type: application/json\r\n")
    return "".join(lines).encode("utf-8", "replace")


def encode_refusal(error: BadRequest) -> bytes:
    """The whole answer to what is no request, after which the connection is closed."""
    status, text = error.status, str(error)
    if status == 417:
        return b"HTTP/1.1 417 Expectation Failed\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    title = f"{status} {_REASONS[status]}"
    if status != 501:
        title = text = f"{title}: {text}" if text else title
    head = f"HTTP/1.1 {title}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
    return f"{head}{text}".encode()


def encode_chunks(pieces: list[bytes]) -> bytes:
    """Pieces of a body, each as a chunk of its own."""
    if len(pieces) == 1 and pieces[0]:
        return b"%x\r\n%b\r\n" % (len(pieces[0]), pieces[0])
    return b"".join([b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece])


LAST_CHUNK = b"0\r\n\r\n"
