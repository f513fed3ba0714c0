"""A Go that knows one module, and nothing of the real one's cache."""

import json
import stat
import sys
from pathlib import Path

import pytest

from field.definitions import _read
from field.modules import module_dir

SCRIPT = """\
#!{python}
import pathlib, sys
state = pathlib.Path({state!r})
with (state / "calls").open("a") as calls:
    print(*sys.argv[1:], file=calls)
if sys.argv[1] == "mod":
    sys.stdout.write((state / "answer").read_text())
    sys.exit((state / "broken").exists())
if sys.argv[1] == "build":
    if (state / "broken").exists():
        sys.exit("no space left on device")
    pathlib.Path(sys.argv[sys.argv.index("-o") + 1]).write_text("a program")
"""


class FakeGo:
    """All there is on the PATH. `module` is the folder that it says any module is in."""

    def __init__(self, folder: Path) -> None:
        self._state = folder
        self.module = folder / "module"
        self.module.mkdir()
        (self.module / "go.mod").write_text("module example.com/theirs\n")
        (self.module / "go.sum").write_text("")
        script = folder / "go"
        script.write_text(SCRIPT.format(python=sys.executable, state=str(folder)))
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        self.answer(Dir=str(self.module), Sum="h1:theirs=")

    def answer(self, **fields: str) -> None:
        """Output of `go mod download -json`."""
        (self._state / "answer").write_text(json.dumps(fields))

    def break_down(self) -> None:
        """Make it end with an error from here on."""
        (self._state / "broken").touch()

    @property
    def calls(self) -> list[str]:
        log = self._state / "calls"
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def fresh():
    """Nothing is remembered of an earlier question, and nothing of this one later."""
    for remembered in (module_dir, _read):
        remembered.cache_clear()
    yield
    for remembered in (module_dir, _read):
        remembered.cache_clear()


@pytest.fixture
def go(tmp_path: Path, fresh: None, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    folder = tmp_path / "go"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return FakeGo(folder)
