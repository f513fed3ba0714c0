"""Room on the disk for deletions: a file that is given up when the disk is full.

A disk is mostly full of something that a deletion would free, and a deletion has to be written down, too. With the file
gone there is room for what ends things: deletions, changes to what is being deleted, and changes that make nothing
larger (leases, above all: without them no controller works). Small objects are taken as long as they use up no more
than a part of it, since a deletion may need a record of its own. All else is refused until the file is back.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RESERVE_BYTES = 8 * 1024 * 1024
_SMALL_BYTES = 16 * 1024
_SMALL_SHARE = 1 / 4
_TRIED_AGAIN_SECONDS = 1.0


class Reserve:
    """The reserve on the disk. `held` is whether the file is there."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._spent = 0
        self._tried = 0.0
        self.held = self._make()

    def restore(self) -> bool:
        """Whether the file is there, perhaps again; that is tried once a second."""
        if not self.held and self._clock() - self._tried >= _TRIED_AGAIN_SECONDS:
            self.held = self._make()
        return self.held

    def has_room(self) -> bool:
        """Whether there is as much room again beside it."""
        disk = os.statvfs(self._path.parent)
        return disk.f_bavail * disk.f_frsize >= RESERVE_BYTES

    def give_up(self) -> None:
        """Let its room be used."""
        self.held, self._tried, self._spent = False, self._clock(), 0
        self._path.unlink(missing_ok=True)

    def allows(self, growth: int) -> bool:
        """Whether something may be written that makes what is stored larger by so much; if so, it is counted."""
        if growth <= 0:
            return True
        if growth > _SMALL_BYTES or self._spent + growth > RESERVE_BYTES * _SMALL_SHARE:
            return False
        self._spent += growth
        return True

    def _make(self) -> bool:
        self._tried = self._clock()
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                if os.fstat(file).st_size < RESERVE_BYTES:
                    _allocate(file)
            finally:
                os.close(file)
        except OSError:
            self._path.unlink(missing_ok=True)
            return False
        return True


def _allocate(file: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, RESERVE_BYTES)
        return
    block = b"\0" * (1024 * 1024)
    for at in range(0, RESERVE_BYTES, len(block)):
        os.pwrite(file, block, at)
