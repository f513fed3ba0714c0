"""The lines that Envoy writes about requests that are measured: a file of their own, which is read as it grows."""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pilotage.gateway.inputs import parsed_name

CHUNK_BYTES = 256 * 1024
LINE_BYTES_MAX = 64 * 1024
_RESET = frozenset({"UC", "UR", "UPE", "URX", "LR"})
"""Flags of answers that the server broke off."""
REFUSED = 400
"""Lowest status that counts as an error. Those that blame the client count, too: clients are the same on both sides, so
a side with more of them has a broken template, or a model that nobody finds there."""

FIELDS = (
    "%ACCESS_LOG_TYPE%",
    "%METADATA(ROUTE:pilotage.dev:measured)%",
    "%UPSTREAM_CLUSTER%",
    "%STREAM_ID%",
    "%START_TIME(%s.%3f)%",
    "%RESPONSE_CODE%",
    "%RESPONSE_FLAGS%",
    "%DURATION%",
    "%COMMON_DURATION(DS_RX_BEG:DS_RX_END:us)%",
    "%COMMON_DURATION(DS_RX_END:US_RX_BODY_BEG:us)%",
    "%COMMON_DURATION(DS_RX_END:US_RX_END:us)%",
    "%DYNAMIC_METADATA(pilotage.dev:tokens)%",
    "%DYNAMIC_METADATA(pilotage.dev:bucket)%",
)
"""Fields of a line, in this order, with tabs between them."""


class RequestLine(NamedTuple):
    """A request that has ended, or is under way. Durations are in seconds; None: there was none."""

    ended: bool
    stratum: str
    service: str
    stream: str
    start: float
    status: int
    flags: frozenset[str]
    age: float
    received: bool
    """Whether all of the request has arrived."""
    first: float | None
    """Time from the end of the request to the first byte of the body of the answer."""
    last: float | None
    tokens: int | None
    bucket: int | None

    @property
    def gave_up(self) -> bool:
        """Whether the client left before the first token."""
        return "DC" in self.flags and self.first is None

    @property
    def failed(self) -> bool:
        """Whether the request got no proper answer."""
        return not self.gave_up and (self.status >= REFUSED or bool(self.flags & _RESET))


def parsed_line(line: str) -> RequestLine | None:
    """A line of the log; None for one that is cut off, or about nothing that is measured."""
    parts = line.rstrip("\n").split("\t")
    if len(parts) != len(FIELDS) or (cluster := parsed_name(parts[2])) is None:
        return None
    kind, stratum, _, stream, start, status, flags, age, received, first, last, tokens, bucket = parts
    seen = _seconds(first)
    return RequestLine(
        kind == "DownstreamEnd",
        stratum,
        cluster.service.name,
        stream,
        float(start),
        int(status) if status.isdecimal() else 0,
        frozenset(flags.split(",")),
        int(age) / 1e3 if age.isdecimal() else 0.0,
        received.isdecimal(),
        seen,
        _seconds(last),
        _whole(tokens),
        _whole(bucket),
    )


def _seconds(micros: str) -> float | None:
    return int(micros) / 1e6 if micros.isdecimal() else None


def _whole(text: str) -> int | None:
    try:
        return int(float(text))
    except (ValueError, OverflowError):
        return None


class LogFollower:
    """Reads a log from where it ends now, and goes on with the next file when it is rotated."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self._rest = b""
        with contextlib.suppress(OSError):
            self._open(os.SEEK_END)

    def read(self) -> Iterator[str]:
        """The lines that were written since. OSError where the file cannot be read."""
        if self._file is None and not self._open():
            return
        yield from self._lines()
        if self._is_another():
            yield from self._lines()  # it was written to until the other one was there
            self.close()
            if self._open():
                yield from self._lines()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
        self._file, self._rest = None, b""

    def _open(self, whence: int = os.SEEK_SET) -> bool:
        try:
            # The folder may be the one of Envoy's user: no link is followed, and nothing that would block is opened.
            file = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            return False
        os.lseek(file, 0, whence)
        self._file = file
        return True

    def _lines(self) -> Iterator[str]:
        assert self._file is not None
        while found := os.read(self._file, CHUNK_BYTES):
            *lines, self._rest = (self._rest + found).split(b"\n")
            self._rest = b"" if len(self._rest) > LINE_BYTES_MAX else self._rest
            yield from (each.decode(errors="replace") for each in lines)

    def _is_another(self) -> bool:
        assert self._file is not None
        try:
            return self._path.lstat().st_ino != os.fstat(self._file).st_ino
        except FileNotFoundError:
            return False
