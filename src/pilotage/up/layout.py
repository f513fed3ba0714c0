"""Layout of the one folder of a machine, and the file in it that says what runs."""

import contextlib
import json
import os
import secrets
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pilotage.private_files import make_private, open_private, read_private, write_private
from pilotage.processes.identity import ProcessId, is_running

SOCKETS_PATH_MAX = 80
"""Length limit in bytes. Systems end at 104 or 108, with the name of the socket."""
_SHORTCUT = "shortcut"
"""File with the path of the folder in which `Layout.shorten` made a symbolic link."""
_STATE, _LOCK, _ACCESS, _SETTINGS = "up.json", "up.lock", "access", "settings.json"
_FILES = (_STATE, _SHORTCUT, _SETTINGS)
_FOLDERS = ("harbor", "operator", "models", "agent", "gateway", "logs", _ACCESS)
_SHOWN = 3
"""Names shown of a folder that is not ours."""


class NotOurs(OSError):
    """A folder with files that are not Pilotage's."""


def default_folder() -> Path:
    """The folder that is meant where none is named."""
    if named := os.environ.get("PILOTAGE_DATA"):
        return Path(named).absolute()
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "pilotage"


class UpState(NamedTuple):
    """The processes of a folder, as its supervisor wrote them down before it told anybody."""

    supervisor: ProcessId
    components: Mapping[str, ProcessId]
    ports: Mapping[str, int]
    gateway: str
    """The address that requests go to."""
    ready: bool = False


class Layout(NamedTuple):
    """The paths of one folder."""

    folder: Path

    @property
    def option(self) -> str:
        """``--data`` as a printed command needs it here, with a space before it; empty where it is the default."""
        return "" if self.folder == default_folder() else f" --data {shlex.quote(str(self.folder))}"

    @property
    def harbor(self) -> Path:
        """The API server's own folder."""
        return self.folder / "harbor"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.harbor / "kubeconfig"

    @property
    def settings(self) -> Path:
        """The file of the settings that the next `up` takes over."""
        return self.folder / _SETTINGS

    @property
    def models(self) -> Path:
        """Weights that the operator fetched."""
        return self.folder / "models"

    @property
    def logs(self) -> Path:
        """One file for each component."""
        return self.folder / "logs"

    @property
    def supervisor_log(self) -> Path:
        """The supervisor's own log, where it has no terminal."""
        return self.logs / "up.log"

    @property
    def lock(self) -> Path:
        """Held by the supervisor as long as it lives. A folder that has one is ours."""
        return self.folder / _LOCK

    def open_lock(self) -> int:
        """A descriptor of the lock, which is made if it is missing. Raises OSError."""
        with contextlib.suppress(FileNotFoundError):
            self.lock.chmod(0o600)  # earlier versions left it to the umask, which often lets a group write
        return open_private(self.lock)

    @property
    def gateway(self) -> Path:
        """The gateway's own folder: its sockets, and the access log. By the short path, if `shorten` made one."""
        own = self.of("gateway")
        shortcut = self._shortcut()
        return own if shortcut is None else shortcut / own.name

    def of(self, component: str) -> Path:
        """The folder of a component."""
        return self.folder / component

    def access(self, component: str) -> Path:
        """The kubeconfig of a component."""
        return self.folder / _ACCESS / f"{component}.kubeconfig"

    def token(self, component: str) -> Path:
        """The token file that its kubeconfig names; replaced from time to time."""
        return self.folder / _ACCESS / f"{component}.token"

    def shorten(self) -> None:
        """Make a short link to the gateway's folder if its path is too long for sockets. Raises OSError.

        It is recorded before it is made: `pilotage down` may run with another folder for temporary files.
        """
        self._forget_shortcut()
        own = self.of("gateway")
        if _fits(own):
            return
        bases = (Path(tempfile.gettempdir()), Path("/tmp"))  # noqa: S108 - for a folder of a name that nobody can know
        name = f"pilotage-{secrets.token_hex(6)}"
        shortcut = next((base / name for base in bases if _fits(base / name / own.name)), bases[0] / name)
        own.mkdir(mode=0o700, exist_ok=True)
        write_private(self.folder / _SHORTCUT, os.fsencode(shortcut))
        shortcut.mkdir(mode=0o700)
        (shortcut / own.name).symlink_to(own)

    def _shortcut(self) -> Path | None:
        """The folder with the link, if there is one."""
        try:
            return Path(os.fsdecode(read_private(self.folder / _SHORTCUT)))
        except FileNotFoundError:
            return None

    def _forget_shortcut(self) -> None:
        shortcut = self._shortcut()
        if shortcut is not None:
            with contextlib.suppress(OSError):  # it may be gone; other files in it are not ours
                (shortcut / self.of("gateway").name).unlink(missing_ok=True)
                shortcut.rmdir()
            (self.folder / _SHORTCUT).unlink()

    def make(self) -> None:
        """Make the folders, readable by their owner only, and the lock, which marks them as ours.

        Raises OSError; NotOurs for a folder with other things in it, NotPrivate for one of somebody else.
        """
        make_private(self.folder)
        if not self.lock.exists() and (found := sorted(each.name for each in self.folder.iterdir())):
            shown = ", ".join(found[:_SHOWN]) + (", …" if len(found) > _SHOWN else "")
            raise NotOurs(
                f"{self.folder} holds files that are not Pilotage's ({shown}), which needs a folder of its own"
            )
        os.close(self.open_lock())
        for each in (self.models, self.logs, self.folder / _ACCESS):
            make_private(each)

    def remove(self) -> list[str]:
        """Remove what is ours, and the folder itself if that is all. Returns the names of the rest. Raises OSError."""
        for each in self.folder.iterdir():
            if each.name in _FOLDERS and not each.is_symlink():
                shutil.rmtree(each)
            elif each.name in _FILES or each.name.startswith(tuple(f".{name}." for name in _FILES)):
                each.unlink()
        left = sorted(each.name for each in self.folder.iterdir() if each != self.lock)
        self.lock.unlink(missing_ok=True)
        if not left:
            self.folder.rmdir()
        return left

    def read_state(self) -> UpState | None:
        """The recorded processes, which may have ended; None where there is no record."""
        try:
            state = json.loads(read_private(self.folder / _STATE))
            components = {name: ProcessId(*process) for name, process in state["components"].items()}
            return UpState(
                ProcessId(*state["supervisor"]), components, state["ports"], state["gateway"], state["ready"]
            )
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def running(self) -> UpState | None:
        """The recorded processes, if the supervisor among them runs."""
        state = self.read_state()
        return state if state is not None and is_running(state.supervisor) else None

    def write_state(self, state: UpState) -> None:
        """Record the processes, whole or not at all. Raises OSError."""
        write_private(self.folder / _STATE, json.dumps(state._asdict()).encode())

    def remove_state(self) -> None:
        """Record that nothing runs any more."""
        self._forget_shortcut()
        with contextlib.suppress(FileNotFoundError):
            (self.folder / _STATE).unlink()


def _fits(folder: Path) -> bool:
    """Whether there can be sockets in it."""
    return len(os.fsencode(folder)) <= SOCKETS_PATH_MAX
