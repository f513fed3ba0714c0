"""Programs that run as another user than we do, without a way back to more privileges.

The program that is started first changes the user, and then becomes the one that is wanted. It is a program of its own:
code that runs between fork and exec may find the locks of other threads held for ever. It is privileged while the
variables for the other one may be anybody's, such as LD_PRELOAD, so those are passed to it under other names.
"""

import grp
import os
import pwd
import stat
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

NOBODY = 65534
"""The uid that Envoy runs as."""
SERVER_USER = "65533"
"""The uid that servers run as: one that no system gives to a user. Not nobody: programs of one user can stop and read
each other."""
_PREFIX = "PILOTAGE_ENV_"
_DEVICE_GROUPS = ("video", "render")
"""Those that may use GPUs."""

_LAUNCHER = f"""
import ctypes, os, signal, sys
parent, user, folder, adopts, command = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:]
program = os.open(command[0], os.O_RDONLY) if user else -1
if user:
    uid, gid, *groups = map(int, user.split(","))
    os.setgroups(groups)
    os.setgid(gid)
    os.setuid(uid)
libc = ctypes.CDLL(None)
if hasattr(libc, "prctl"):
    if parent:
        libc.prctl(1, signal.SIGKILL, 0, 0, 0)
    if parent or user:
        libc.prctl(38, 1, 0, 0, 0)
    if adopts:
        libc.prctl(36, 1, 0, 0, 0)
if parent and os.getppid() != parent:
    sys.exit("the one that started this has ended")
if folder:
    os.chdir(folder)
for number in (signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(number, signal.SIG_DFL)
passed = {{name: value for name, value in os.environ.items() if not name.startswith("{_PREFIX}")}}
wrapped = {{name[{len(_PREFIX)}:]: os.environ[name] for name in os.environ if name not in passed}}
try:
    os.execve(command[0], command, wrapped | passed)
except PermissionError:
    if program < 0:
        raise
    os.execve(program, command, wrapped | passed)
"""
"""It changes the user, asks to be killed when its parent ends if that is wanted (PR_SET_PDEATHSIG, which a change of
user would undo), and gives up the way to more privileges (PR_SET_NO_NEW_PRIVS), unless it stays what it is. It can make
the program the parent of all descendants whose own parent ends (PR_SET_CHILD_SUBREAPER, which exec keeps), as it would
be in a pod. Python ignores two signals, and that would be inherited.

Another user may not get to where the program is, below /root for instance. So it is opened before, and what is open is
run where its path leads nowhere.
"""


class RunAsUser(NamedTuple):
    """The user that a program runs as."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()
    home: str = "/nonexistent"

    def __str__(self) -> str:
        try:
            return f"{pwd.getpwuid(self.uid).pw_name} ({self.uid})"
        except KeyError:
            return str(self.uid)


def find_user(text: str) -> RunAsUser:
    """A user by name or number; one by number need not be known to the system. LookupError where there is no such name.

    Of all groups it has those that may use GPUs.
    """
    try:
        found = pwd.getpwuid(int(text)) if text.isdecimal() else pwd.getpwnam(text)
    except KeyError:
        if not text.isdecimal():
            raise LookupError(f"there is no user {text}") from None
        return RunAsUser(int(text), int(text), _device_groups())
    return RunAsUser(found.pw_uid, found.pw_gid, _device_groups(), found.pw_dir)


def launched(
    command: Sequence[str], user: RunAsUser | None, *, dies_with: int = 0, folder: str = "", adopts: bool = False
) -> list[str]:
    """The command line that becomes this one, as a user (None: who we are).

    `dies_with`: the pid of our own process, with which it is to end. `folder`: where it runs, instead of where we do.
    `adopts`: it becomes the parent of descendants that lose theirs, where the system can do that (Linux).
    """
    who = "" if user is None else ",".join(map(str, (user.uid, user.gid, *user.groups)))
    options = [str(dies_with), who, folder, "adopts" if adopts else ""]
    return [sys.executable, "-I", "-S", "-c", _LAUNCHER, *options, *command]


def wrapped(environment: Mapping[str, str], but: Collection[str] = ()) -> dict[str, str]:
    """Variables for a program, as its launcher is given them; those named `but` as they are, for others to see."""
    return {name if name in but else f"{_PREFIX}{name}": value for name, value in environment.items()}


def closed_to(user: RunAsUser, path: Path, wanted: int, *, folders: bool = True) -> Path | None:
    """The first of a path's `folders`, or the file itself, that keeps a user from it; None if nothing does.

    `wanted`: ``os.R_OK`` or ``os.X_OK`` of the file. Judged by mode and owner: access control lists are not evaluated.
    """
    real = path.resolve()
    each: Path
    for each in (*(reversed(real.parents) if folders else ()), real):
        if not _lets(each.stat(), user, wanted if each == real else os.X_OK):
            return each
    return None


def _lets(found: os.stat_result, user: RunAsUser, wanted: int) -> bool:
    if found.st_uid == user.uid:
        shift = 6
    elif found.st_gid in (user.gid, *user.groups):
        shift = 3
    else:
        shift = 0
    return bool(stat.S_IMODE(found.st_mode) >> shift & wanted)


def _device_groups() -> tuple[int, ...]:
    return tuple(each.gr_gid for each in grp.getgrall() if each.gr_name in _DEVICE_GROUPS)
