"""A clock that can be set: Python imports this module at its start wherever its folder is on PYTHONPATH.

`time.time` and `time.time_ns` of that process are ahead of the machine's by the seconds in the file that
`PILOTAGE_FAULTS_CLOCK` names, which is mapped and so read each time. No other clock is touched, nor the machine's.
"""

import mmap
import os
import struct
import time

_SECONDS = struct.Struct("d")


def _install(path: str) -> None:
    with open(path, "rb") as file:  # noqa: PTH123 - each process starts with this
        shared = mmap.mmap(file.fileno(), _SECONDS.size, prot=mmap.PROT_READ)
    seconds, nanoseconds = time.time, time.time_ns

    def ahead() -> float:
        return float(_SECONDS.unpack(shared[: _SECONDS.size])[0])

    time.time = lambda: seconds() + ahead()
    time.time_ns = lambda: nanoseconds() + int(ahead() * 1_000_000_000)


if "PILOTAGE_FAULTS_CLOCK" in os.environ:
    _install(os.environ["PILOTAGE_FAULTS_CLOCK"])
