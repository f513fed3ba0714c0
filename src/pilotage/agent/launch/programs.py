"""The programs of this host that can serve, found without running or importing anything."""

import importlib.util
import os
import shutil
from pathlib import Path
from typing import NamedTuple

from pilotage.serving.runtimes import RUNTIMES

SET_PROGRAM = "llama-server"
"""The program whose path the settings can give."""


class RuntimeProgram(NamedTuple):
    """An executable for a runtime."""

    runtime: str
    path: str


def find(runtime: str, llama_server: Path | None = None) -> RuntimeProgram | None:
    """The program of a runtime: by setting, on PATH, or from a Python package, in this order."""
    known = RUNTIMES[runtime]
    if not known.program:
        return None
    if known.program == SET_PROGRAM and llama_server is not None:
        return RuntimeProgram(runtime, str(llama_server)) if _runs(llama_server) else None
    found = shutil.which(known.program) or _from_wheel(known.wheel, known.program)
    return RuntimeProgram(runtime, found) if found else None


def find_all(llama_server: Path | None = None) -> list[RuntimeProgram]:
    """The programs of all runtimes that are installed."""
    return [found for runtime in RUNTIMES if (found := find(runtime, llama_server)) is not None]


def _from_wheel(package: str, program: str) -> str | None:
    spec = importlib.util.find_spec(package) if package else None
    for folder in spec.submodule_search_locations or () if spec is not None else ():
        path = Path(folder, "bin", program)
        if _runs(path):
            return str(path)
    return None


def _runs(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
