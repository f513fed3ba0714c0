"""HTTP/1.1 without I/O: a request into bytes, and bytes into an answer.

Only what a Kubernetes API server and the proxies in front of it use: no pipelining, no upgrades, no compression (we
ask for none). What does not parse is `BadAnswer`; nothing is guessed.
"""

import re
from collections.abc import Iterable

import msgspec

HEAD_BYTES_MAX = 64 * 1024
_LINE_BYTES_MAX = 4096
_HEX = frozenset(b"0123456789abcdefABCDEF")
_TARGET = re.compile(r"[!-~]+")
_NO_BODY = frozenset({204, 304})


class BadAnswer(Exception):
    """Received bytes that are no HTTP answer."""


class Head(msgspec.Struct, frozen=True):
    """Status and headers; the names in lower case, and of a repeated one the last."""

    status: int
    headers: dict[str, str]
    keep_alive: bool


def encode_request(method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes | None) -> bytes:
    """The bytes of a request. ValueError for a target or a header that would be more than that."""
    if not _TARGET.fullmatch(target):
        raise ValueError(f"{target!r} has characters that a path cannot have")
    lines = [f"{method} {target} HTTP/1.1"]
    for name, value in headers:
        if "\r" in value or "\n" in value:
            raise ValueError(f"the value of the header {name} has more than one line")
        lines.append(f"{name}: {value}")
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
    return head if body is None else head + body


class AnswerParser:
    """One answer: feed it what arrives; it gives back what that adds to the body."""

    __slots__ = ("_after_chunk", "_chunked", "_left", "_pending", "_trailer", "complete", "head")

    def __init__(self) -> None:
        self.head: Head | None = None
        self.complete = False
        self._pending = b""  # not understood yet: half a head, half a line
        self._left: int | None = 0  # of the body, or of the chunk; None: until the connection ends
        self._chunked = False
        self._after_chunk = False
        self._trailer = False

    def feed(self, data: bytes) -> list[bytes]:
        """Take what has arrived; raises BadAnswer. Chunks stay apart: in a watch, each is an event."""
        if self.head is None:
            data = self._take_head(self._pending + data)
            if self.head is None:
                return []
        if self._chunked:
            return self._take_chunks(data)
        if self._left is None:
            return [data] if data else []
        if len(data) > self._left:
            raise BadAnswer("more came than was announced")
        self._left -= len(data)
        self.complete = self._left == 0
        return [data] if data else []

    def end(self) -> None:
        """The connection has ended; raises BadAnswer if something is missing."""
        if self.head is not None and self._left is None and not self._chunked:
            self.complete = True
        if not self.complete:
            raise BadAnswer("the connection ended in the middle of the answer" if self.head else "it was cut off")

    def _take_head(self, data: bytes) -> bytes:
        """The rest behind the head, which is then known; or nothing, and all is kept for later."""
        while (end := data.find(b"\r\n\r\n")) >= 0:
            head, data = _parse_head(data[:end]), data[end + 4 :]
            if head.status >= 200:
                self._begin(head)
                return data
        if len(data) > HEAD_BYTES_MAX:
            raise BadAnswer("its head has no end")
        if not b"HTTP/1.".startswith(data[:7]):
            raise BadAnswer("it does not begin as HTTP/1")
        self._pending = data
        return b""

    def _begin(self, head: Head) -> None:
        self.head, self._pending = head, b""
        length = head.headers.get("content-length")
        if "chunked" in head.headers.get("transfer-encoding", "").lower():
            self._chunked = True
        elif head.status in _NO_BODY:
            self.complete = True
        elif length is None:
            self._left = None
        elif length.isascii() and length.isdigit():
            self._left = int(length)
            self.complete = self._left == 0
        else:
            raise BadAnswer(f"Content-Length is {length!r}")

    def _take_chunks(self, data: bytes) -> list[bytes]:
        data, self._pending = self._pending + data, b""
        pieces: list[bytes] = []
        at = 0
        while not self.complete:
            if self._left:
                piece = data[at : at + self._left]
                pieces.append(piece)
                at += len(piece)
                self._left -= len(piece)
                if self._left:
                    break
                if data.startswith(b"\r\n", at):  # as good as always
                    at += 2
                else:
                    self._after_chunk = True
            end = data.find(b"\r\n", at)
            if end < 0:
                if len(data) - at > _LINE_BYTES_MAX:
                    raise BadAnswer("a line between chunks has no end")
                self._pending = data[at:]
                break
            self._take_line(data[at:end])
            at = end + 2
        if self.complete and at < len(data):
            raise BadAnswer("more came than was announced")
        return pieces

    def _take_line(self, line: bytes) -> None:
        """Parse the text between chunks: an empty line after each, then the size of the next; trailers at the end."""
        if self._after_chunk:
            if line:
                raise BadAnswer("a chunk is longer than announced")
            self._after_chunk = False
        elif self._trailer:
            self.complete = not line
        else:
            size = line.partition(b";")[0].strip()
            if not size or not _HEX.issuperset(size):
                raise BadAnswer(f"{line[:40]!r} is no chunk size")
            self._left = int(size, 16)
            self._trailer = self._left == 0


def _parse_head(raw: bytes) -> Head:
    first, *lines = raw.decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    code = rest[:3]
    if version not in ("HTTP/1.1", "HTTP/1.0") or not (code.isascii() and code.isdigit()):
        raise BadAnswer(f"it begins with {first[:40]!r}")
    headers: dict[str, str] = {}
    try:
        for line in lines:
            name, value = line.split(":", 1)
            headers[name.lower().strip()] = value.strip()
    except ValueError:
        raise BadAnswer(f"{line[:40]!r} is no header") from None
    keep_alive = version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"
    return Head(int(code), headers, keep_alive)
