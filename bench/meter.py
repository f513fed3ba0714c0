"""Measurements that a measured process takes of itself."""

import gc
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil


class Meter:
    """CPU of this process inside ``with``, and the growth of its memory from the beginning to the end.

    The memory is what stays resident after a collection, so whatever is to be weighed must still be referenced; `peak`
    is the most that it ever was.
    """

    def __enter__(self) -> Self:
        gc.collect()
        self._rss = _rss_bytes()
        self._cpu = time.process_time()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cpu_seconds = time.process_time() - self._cpu
        gc.collect()
        self.rss_bytes = _rss_bytes() - self._rss
        self.peak_bytes = _peak_bytes() - self._rss

    def report(self) -> None:
        """Tell the process that started this one."""
        figures = {"cpu_seconds": self.cpu_seconds, "rss_bytes": self.rss_bytes, "peak_bytes": self.peak_bytes}
        print(json.dumps(figures), flush=True)


def end_with_parent() -> None:
    """Stop, as by SIGTERM, as soon as the process that started this one closes our stdin or ends."""

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 1):  # below Python's own lock on stdin, which its exit would wait for
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


def _rss_bytes() -> int:
    rss: int = psutil.Process().memory_info().rss
    return rss


def _peak_bytes() -> int:
    """Peak memory. `ru_maxrss` would not do: on Linux it begins with the peak of the parent process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("no VmHWM in /proc/self/status")
