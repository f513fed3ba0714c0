"""Files that were fetched, and the Models that use them.

One folder for each thing that was asked for: the source, the checksum, and whose credentials it was read with (what one
namespace may read with its Secret is not given to another). Two Models that ask for the same share it. A user is a
Model's uid, written down in the folder before anything is fetched into it; a folder whose last user has gone is
removed, unless it is to be retained. All of it survives a crash at any point: what is half removed has another name
already, and `sweep` finds it. Nothing outside of the root is ever touched. Everything here blocks.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pilotage.models.partial import write_whole

_ENTRY = re.compile(r"[0-9a-f]{32}")
_TRASH = re.compile(r"\.trash-[0-9a-f]{16}")
_USER = re.compile(r"[A-Za-z0-9-]{1,64}")


class Removed(NamedTuple):
    """A file that was removed, or that stays because somebody else uses it, or because it is to be retained."""

    path: str
    size: int
    kept_for: str = ""


class Mark(NamedTuple):
    """A user of an entry: its owner, and whether the files stay when it goes."""

    owner: str
    retain: bool


class ModelCache:
    """One root, which other things may share; `owner` tells the users of one operator from those of another."""

    def __init__(self, root: Path, owner: str = "") -> None:
        self.root = root
        self._owner = owner

    def entry(self, *identity: str) -> CacheEntry:
        """The place for what this identity names. Nothing is made yet."""
        name = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:32]
        return CacheEntry(self.root / name, self._owner)

    def release(self, user: str, *, retain: bool | None = None, but: CacheEntry | None = None) -> list[Removed]:
        """A user goes, from all entries `but` one; what nobody uses any more goes too. Says what became of each file.

        `retain` (without it: what the user said before) lets files stay. It can be called again after a failure
        (OSError), and then says what was left to do.
        """
        told: list[Removed] = []
        for entry in self._entries():
            if (but is not None and entry.folder == but.folder) or user not in entry.users():
                continue
            mark = entry.users()[user]
            if len(entry.users()) > 1:
                told += [file._replace(kept_for="another Model") for file in entry.files()]
                entry.forget(user)
            elif mark.retain if retain is None else retain:
                told += [file._replace(kept_for="its cache policy") for file in entry.files()]
                entry.retain()
                entry.forget(user)
            else:
                told += entry.files()
                self._throw_away(entry)
        self._empty_trash()
        return told

    def sweep(self, users: Collection[str]) -> list[Removed]:
        """Forget users of this owner that are not among `users`, and remove what is then of no use to anybody."""
        told: list[Removed] = []
        for entry in self._entries():
            for user, mark in entry.users().items():
                if mark.owner == self._owner and user not in users:
                    if mark.retain:
                        entry.retain()
                    entry.forget(user)
            if not entry.users() and not entry.is_retained():
                told += entry.files()
                self._throw_away(entry)
        self._empty_trash()
        return told

    def _entries(self) -> Iterator[CacheEntry]:
        for folder in _folders(self.root, _ENTRY):
            yield CacheEntry(folder, self._owner)

    def _throw_away(self, entry: CacheEntry) -> None:
        entry.folder.rename(self.root / f".trash-{secrets.token_hex(8)}")

    def _empty_trash(self) -> None:
        for folder in _folders(self.root, _TRASH):
            try:
                shutil.rmtree(folder)
            except OSError as error:  # it names a file below the folder, without the way to it
                raise OSError(error.errno, error.strerror, str(folder)) from error


class CacheEntry:
    """One folder of the cache."""

    def __init__(self, folder: Path, owner: str) -> None:
        self.folder = folder
        self._owner = owner
        self._users = folder / ".users"
        self._note = folder / ".note"
        self._retained = folder / ".retained"

    def use(self, user: str, *, retain: bool = False) -> None:
        """Write down that somebody uses it, and whether it is to `retain` when they go."""
        if not _USER.fullmatch(user):
            raise ValueError(f"{user!r} cannot be a user")
        mark = Mark(self._owner, retain)
        if self._mark(user) != mark:
            self._users.mkdir(parents=True, exist_ok=True)
            write_whole(self._users / user, json.dumps(mark).encode())
        self._retained.unlink(missing_ok=True)  # whether it stays is for its users to say, as long as it has some

    def users(self) -> dict[str, Mark]:
        """The users of the entry."""
        try:
            names = sorted(path.name for path in self._users.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return {}
        # One whose mark cannot be read is a user all the same, of nobody known: it stays.
        return {name: self._mark(name) or Mark("?", retain=True) for name in names if _USER.fullmatch(name)}

    def _mark(self, user: str) -> Mark | None:
        try:
            return Mark(*json.loads((self._users / user).read_bytes()))
        except (OSError, ValueError, TypeError):
            return None

    def forget(self, user: str) -> None:
        """Remove a user."""
        (self._users / user).unlink(missing_ok=True)

    def retain(self) -> None:
        """Let it stay without users."""
        self._retained.touch()

    def is_retained(self) -> bool:
        """Whether it stays without users."""
        return self._retained.exists()

    def files(self) -> list[Removed]:
        """The files of the entry, half-fetched ones included."""
        return [
            Removed(str(path), path.stat().st_size)
            for path in sorted(self.folder.iterdir())
            if path.is_file() and not path.is_symlink() and (path.suffix == ".partial" or not path.name.startswith("."))
        ]

    def note(self) -> dict[str, Any]:
        """The note about its content; empty if there is none that can be read."""
        try:
            said = json.loads(self._note.read_bytes())
        except (OSError, ValueError):
            return {}
        return said if isinstance(said, dict) else {}

    def write_note(self, said: dict[str, Any]) -> None:
        """Write down something about its content."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(self._note, json.dumps(said).encode())


def _folders(root: Path, name: re.Pattern[str]) -> list[Path]:
    """The folders of this kind below a root; links are not followed."""
    try:
        found = [entry.name for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    return [root / each for each in sorted(found) if name.fullmatch(each)]
