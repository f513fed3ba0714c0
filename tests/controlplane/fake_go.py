"""A Go compiler for tests: it writes a file where a binary belongs, and can be held, broken or outdated."""

import stat
import sys
from pathlib import Path

SCRIPT = """\
#!{python}
import os, pathlib, sys, time
state = pathlib.Path({state!r})
if sys.argv[1] == "version":
    (state / "asked").touch()
    if (state / "too-old").exists():
        sys.exit("go: go.mod requires go >= 1.26.0 (running go 1.21.0; GOTOOLCHAIN=local)")
    sys.exit()
target = pathlib.Path(sys.argv[sys.argv.index("-o") + 1])
with (state / "calls").open("a") as calls:
    print(target.name, file=calls)
target.write_text("half a binary")
while (state / "hold").exists():
    time.sleep(0.01)
if (state / "broken").exists():
    sys.exit("no space left on device")
target.write_text("#!/bin/sh\\nexit 1\\n")
target.chmod(0o755)
"""


class FakeGo:
    """Puts `go` into a folder that is to be the whole PATH."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "bin"
        self.path.mkdir()
        script = self.path / "go"
        script.write_text(SCRIPT.format(python=sys.executable, state=str(folder)))
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        self._state = folder

    @property
    def was_asked(self) -> bool:
        """Whether its version was asked for."""
        return (self._state / "asked").exists()

    @property
    def calls(self) -> list[str]:
        """The binaries that it was asked for, in order."""
        log = self._state / "calls"
        return log.read_text().split() if log.exists() else []

    def set(self, name: str, *, to: bool = True) -> None:
        """Switch `hold`, `broken` or `too-old`."""
        if to:
            (self._state / name).touch()
        else:
            (self._state / name).unlink()
