"""The programs that we are measured against, built with Go once per machine, into the cache of the control plane."""

import os
from collections.abc import Callable
from pathlib import Path

from controlplane.assets import Binary, NoControlPlane, cache_folder
from controlplane.build import fill
from field.modules import FieldError, module_dir
from field.table import TOOLS

Say = Callable[[str], None]


def tool(name: str, say: Say) -> Path:
    """The program, which takes minutes to build on the first call: `say` gets the progress. Raises `FieldError`."""
    binary, path = _place(name)
    if not path.is_file():
        try:
            fill(
                path.parent,
                lambda: [] if path.is_file() else [binary],
                os.environ,
                lambda line: say(line.replace("control plane:", f"{TOOLS[name].module}:", 1)),
            )
        except NoControlPlane as error:
            raise FieldError(str(error)) from error
    return path


def built(name: str) -> Path | None:
    """The program, if it was built before. Raises `FieldError`."""
    path = _place(name)[1]
    return path if path.is_file() else None


def _place(name: str) -> tuple[Binary, Path]:
    """Build command and path of a tool."""
    if name not in TOOLS:
        raise FieldError(f"no tool {name!r} here; there are {', '.join(TOOLS)}")
    module = TOOLS[name].module
    folder = module_dir(module.path, module.version, module.sum)
    # In their own folder: some of them have `replace` lines, which `go install` refuses.
    binary = Binary(name, TOOLS[name].package, folder, verb=("build", "-mod=readonly"))
    return binary, cache_folder(os.environ, (binary,)) / name
