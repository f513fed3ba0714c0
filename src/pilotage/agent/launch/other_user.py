"""Servers that run as another user than the agent: whether it can run their program, and how they read their weights.

The folders of the agent are closed to it, as they have to be: there are the agent's key, its journal and, where all of
Pilotage runs on one machine, the keys of the API server. Weights may lie below one of them. A file that the user may
read is then given to it open: to programs that open it themselves, not in other processes that they start.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pilotage.agent.launch.failures import LaunchFailure
from pilotage.agent.launch.process import FOLDER, OPENED
from pilotage.processes.run_as import RunAsUser, closed_to
from pilotage.serving.runtimes import RUNTIMES

_PERSONAL = ("USER", "LOGNAME", "SHELL", "TMPDIR")
"""Variables about the agent's own user."""


class ReadableWeights(NamedTuple):
    """The path of weights for a server, and the file that it finds open."""

    path: str
    opened: str = ""


def weights(user: RunAsUser | None, path: str, runtime: str) -> ReadableWeights | LaunchFailure:
    """The access of a server to its weights. A name is fetched by the server, unless it would be taken for a path."""
    if not path.startswith("/"):
        taken = Path(FOLDER if user is not None else Path.cwd(), path)
        return _no_repository(path, taken, runtime) if os.path.lexists(taken) else ReadableWeights(path)
    if user is None:
        return ReadableWeights(path)
    try:
        closed = closed_to(user, Path(path), os.R_OK)
    except OSError as error:
        return LaunchFailure("FileNotFound", f"{path} cannot be read: {error.strerror}")
    if closed is None:
        return ReadableWeights(path)
    if closed.is_dir() and RUNTIMES[runtime].reads_open_files and _may_read(user, path):
        return ReadableWeights(OPENED, path)
    why = f"{closed} is closed to user {user}, as which servers run here, so that it cannot read {path}"
    return LaunchFailure(
        "NotReadable", f"{why}. Let others read it, or have the agent started with another --run-as", True
    )


def program_problem(user: RunAsUser | None, executable: str) -> LaunchFailure | None:
    """Why a user cannot run a program; None if it can."""
    closed = closed_to(user, Path(executable), os.X_OK) if user is not None else None
    if closed is None:
        return None
    why = f"{closed} is closed to user {user}, as which servers run here, so that it cannot run {executable}"
    return LaunchFailure(
        "NoProgram", f"{why}. Install it elsewhere, or have the agent started with another --run-as", True
    )


def own_variables(user: RunAsUser | None, environment: Mapping[str, str]) -> dict[str, str]:
    """The agent's environment, without the variables about its user where servers have another."""
    if user is None:
        return dict(environment)
    return {name: value for name, value in environment.items() if name not in _PERSONAL} | {"HOME": user.home}


def _no_repository(name: str, taken: Path, runtime: str) -> LaunchFailure:
    """Programs that load repositories look for a folder first, and this one is not below any root."""
    why = f"{runtime} would take the repository {name} for {taken}, which is on this machine and is no source"
    return LaunchFailure(
        "NotAllowed", f"{why}. Use another repository, or file:// for a file of this machine", permanent=True
    )


def _may_read(user: RunAsUser, path: str) -> bool:
    """Whether the file itself lets a user read it, whatever its folders do."""
    return closed_to(user, Path(path), os.R_OK, folders=False) is None
