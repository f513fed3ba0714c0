"""`pilotage` with an agent that probes often, and is short of memory while a file exists: MEMORY_IS_SHORT names it."""

import inspect
import os
from pathlib import Path

from pilotage.agent.intervals import Intervals
from pilotage.agent.pressure import KernelPressure, MemoryStrain
from pilotage.cli import main

SHORT = {"probe": 0.2, "probe_again": 0.1, "pressure": 0.1}


def read(self: KernelPressure) -> MemoryStrain:
    return MemoryStrain(0.0 if Path(os.environ["MEMORY_IS_SHORT"]).exists() else 1.0)


if __name__ == "__main__":
    made = inspect.signature(Intervals).parameters.values()
    Intervals.__init__.__defaults__ = tuple(SHORT.get(each.name, each.default) for each in made)
    KernelPressure.read = read  # type: ignore[method-assign]
    main()
