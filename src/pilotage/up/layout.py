"""The one folder that everything of one machine lies in, and the note in it about what runs."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pilotage.system.folders import make_private, open_private, read_private, write_private

if TYPE_CHECKING:
    from collections.abc import Mapping

MARK = "PILOTAGE_UP"
"""A variable in the environment of every process that belongs to a folder: the folder."""
SOCKETS_PATH_MAX = 80
"""In bytes. Systems end at 104 or 108, with the name of the socket."""
_SHORTCUT = "shortcut"
"""The file with the path of the folder in which `Layout.shorten` made a way."""
_NOTE, _LOCK, _ACCESS = "up.json", "up.lock", "access"
_FILES = (_NOTE, _SHORTCUT)
_FOLDERS = ("harbor", "operator", "models", "agent", "gateway", "logs", _ACCESS)
_SHOWN = 3
"""How many of the names in a folder that is not ours are said."""


class NotOurs(OSError):
    """A folder with things of somebody else in it."""


class Seen(NamedTuple):
    """A process, and no other one that later got its number."""

    pid: int
    born: str
    """The moment it began, in no time of day: see `system.processes`."""


class Note(NamedTuple):
    """What runs for a folder, as its supervisor wrote it down before it told anybody."""

    supervisor: Seen
    parts: Mapping[str, Seen]
    ports: Mapping[str, int]
    gateway: str
    """The address that requests go to."""
    ready: bool = False


class Layout(NamedTuple):
    """Where things are."""

    folder: Path

    @property
    def harbor(self) -> Path:
        """The API server's own folder."""
        return self.folder / "harbor"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.harbor / "kubeconfig"

    @property
    def models(self) -> Path:
        """Weights that the operator fetched."""
        return self.folder / "models"

    @property
    def logs(self) -> Path:
        """One file for each part."""
        return self.folder / "logs"

    @property
    def supervisor_log(self) -> Path:
        """The supervisor's own, where it has no terminal."""
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
        """The gateway's own folder: its sockets, and the log of requests. `shorten` may have made another way to it."""
        own = self.of("gateway")
        shortcut = self._shortcut()
        return own if shortcut is None else shortcut / own.name

    def of(self, part: str) -> Path:
        """The folder of a part."""
        return self.folder / part

    def access(self, part: str) -> Path:
        """The kubeconfig of a part."""
        return self.folder / _ACCESS / f"{part}.kubeconfig"

    def token(self, part: str) -> Path:
        """What its kubeconfig names; changed from time to time."""
        return self.folder / _ACCESS / f"{part}.token"

    def shorten(self) -> None:
        """Where the path of the gateway's folder is too long for sockets, make a short way to it. Raises OSError.

        It is written down before it is made: who takes all this down may have another folder for such things.
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
        """The folder with the short way in it, if there is one."""
        try:
            return Path(os.fsdecode(read_private(self.folder / _SHORTCUT)))
        except FileNotFoundError:
            return None

    def _forget_shortcut(self) -> None:
        shortcut = self._shortcut()
        if shortcut is not None:
            with contextlib.suppress(OSError):  # it may be gone; whatever else is in it is not ours
                (shortcut / self.of("gateway").name).unlink(missing_ok=True)
                shortcut.rmdir()
            (self.folder / _SHORTCUT).unlink()

    def make(self) -> None:
        """Make the folders, for nobody else's eyes, and the lock, which marks them as ours.

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

    def read(self) -> Note | None:
        """What runs, or ran; None where nothing is known."""
        try:
            note = json.loads(read_private(self.folder / _NOTE))
            parts = {name: Seen(*seen) for name, seen in note["parts"].items()}
            return Note(Seen(*note["supervisor"]), parts, note["ports"], note["gateway"], note["ready"])
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def write(self, note: Note) -> None:
        """Put it down, whole or not at all."""
        write_private(self.folder / _NOTE, json.dumps(note._asdict()).encode())

    def forget(self) -> None:
        """Nothing runs any more."""
        self._forget_shortcut()
        with contextlib.suppress(FileNotFoundError):
            (self.folder / _NOTE).unlink()


def _fits(folder: Path) -> bool:
    """Whether there can be sockets in it."""
    return len(os.fsencode(folder)) <= SOCKETS_PATH_MAX
