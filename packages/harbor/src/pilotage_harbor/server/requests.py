"""Requests out of the bytes of one connection, wherever those are cut. No I/O: it is fed, and asked what is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.server.http1 import (
    HEAD_BYTES_MAX,
    BadRequest,
    ChunkedBody,
    RequestHead,
    TooLarge,
    parse_headers,
    parse_request_line,
)

if TYPE_CHECKING:
    from pilotage_harbor.server.http1 import Headers


_BLANK_LINES_MAX = 2
"""Tolerated before a request: there are clients that send one behind a body. With one more it is no request."""


class Requests:
    """Feed it, then take requests with `next` until there is none. After an exception it must not be used again."""

    __slots__ = ("_blank_lines", "_block", "_body", "_body_max", "_buffer", "_headers", "_searched", "expects", "head")

    def __init__(self, body_bytes_max: int) -> None:
        self.expects = False
        """Whether the client waits for a word before it sends the rest. To be reset when it got that."""
        self.head: RequestHead | None = None
        """Head of the request whose body is under way."""
        self._body_max = body_bytes_max
        self._buffer = b""
        self._blank_lines = 0
        self._searched = 0  # how much of the buffer has been searched for the end of a head
        self._block = b""
        self._headers: Headers | None = None
        self._body: ChunkedBody | bytearray | None = None

    @property
    def waiting(self) -> int:
        """Number of bytes that were fed and not taken."""
        return len(self._buffer)

    @property
    def begun(self) -> str:
        """Incomplete part of the next request: its ``head``, its ``body``, or nothing."""
        if self.head is not None:
            return "body"
        return "head" if self._buffer or self._blank_lines else ""

    @property
    def held(self) -> int:
        """Number of bytes that have come of a body that is under way."""
        body = self._body
        return 0 if body is None else len(body.data) if isinstance(body, ChunkedBody) else len(body)

    def feed(self, data: bytes) -> None:
        """Append bytes that have arrived."""
        self._buffer = self._buffer + data if self._buffer else data

    def clear(self) -> None:
        """Discard the received bytes."""
        self._buffer = b""
        self._body = None

    def next(self) -> tuple[RequestHead, bytes] | None:
        """The next request and its body, or None while it is not complete. Raises BadRequest and TooLarge."""
        head = self.head
        if head is None:
            head = self.head = self._take_head()
            if head is None:
                return None
        length, data = head.headers.length, self._buffer
        if length == 0:
            body = b""
        elif self._body is None and 0 < length <= len(data) and length <= self._body_max:
            body, self._buffer = data[:length], data[length:]
        else:
            whole = self._take_body(head, length, data)
            if whole is None:
                return None
            body = whole
        self.head = None
        return head, body

    def _take_head(self) -> RequestHead | None:
        data = self._buffer
        if not data:
            return None
        while self._blank_lines < _BLANK_LINES_MAX and data.startswith(b"\r\n"):
            self._blank_lines += 1
            data = self._buffer = data[2:]
        end = data.find(b"\r\n\r\n", self._searched)
        if end < 0:
            self._searched = max(len(data) - 3, 0)
            _check_beginning(data)
            return None
        self._searched = self._blank_lines = 0
        if end > HEAD_BYTES_MAX:
            raise BadRequest(status=431)
        first = data.find(b"\r\n")
        method, path, query, newer = parse_request_line(data[:first])
        block = data[first + 2 : end + 2]
        headers = self._headers
        if headers is None or block != self._block:  # most clients say the same in every request
            headers = self._headers = parse_headers(block)
            self._block = block
        if newer and "host" not in headers.values:
            raise BadRequest("missing required Host header")
        self._buffer = data[end + 4 :]
        return RequestHead(method, path, query, headers, newer)

    def _take_body(self, head: RequestHead, length: int, data: bytes) -> bytes | None:
        if length > self._body_max:
            raise TooLarge(head, length - len(data))
        body = self._body
        if body is None:
            self.expects = head.headers.expects
            body = self._body = bytearray() if length > 0 else ChunkedBody(self._body_max)
        if isinstance(body, bytearray):
            missing = length - len(body)
            body += data[:missing]
            self._buffer = data[missing:]
            if len(body) < length:
                return None
            self._body = None
            return bytes(body)
        self._buffer = b""
        if not body.feed(data):
            raise TooLarge(head, None)
        if not body.complete:
            return None
        self._buffer, self._body = body.rest, None
        return bytes(body.data)


def _check_beginning(data: bytes) -> None:
    """Half a head: is it one at all, and not too much of one?"""
    if len(data) > HEAD_BYTES_MAX:
        raise BadRequest(status=431)
    first, found, _ = data.partition(b"\n")
    if found:
        if not first.endswith(b"\r"):
            raise BadRequest
        parse_request_line(first[:-1])
    elif b"\0" in data or data[:1] in (b"\x16", b"\x80"):  # TLS, where none is spoken
        raise BadRequest
