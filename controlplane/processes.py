"""Processes that never outlive the test run: the near side of `supervisor`."""

import contextlib
import itertools
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from controlplane.supervisor import remove

SUPERVISOR = Path(__file__).with_name("supervisor.py")


class ProcessError(Exception):
    """A process could not be started, or the supervisor is gone."""


class Supervisor:
    """Starts and ends processes through one supervisor process, which also makes and removes a folder for the run.

    In `folder` there is a sub-folder `logs`, with one file per process. However this process ends, the others
    end and the folder is removed (`supervisor`).
    """

    def __init__(self) -> None:
        self._kept: Path | None = None
        self._ids = itertools.count()
        self._closed = False
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(SUPERVISOR)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._commands, self._answers = self._process.stdin, self._process.stdout
        self.folder = Path(json.loads(self._answers.readline())["folder"])
        self.logs = self.folder / "logs"

    @property
    def pid(self) -> int:
        """The process id of the supervisor itself."""
        return self._process.pid

    def start(self, name: str, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path | None = None) -> int:
        """Start a process and return its id; its output is appended to its log. Raises `ProcessError`."""
        answer = self._ask(
            do="start", name=name, argv=list(argv), env=dict(env), cwd=str(cwd or self.folder), log=str(self.log(name))
        )
        return int(answer["pid"])

    def exit_code(self, name: str) -> int | None:
        """The exit code of a process that ended (negative: the signal), None while it runs."""
        code = self._ask(do="status")["status"].get(name, 0)
        return None if code is None else int(code)

    def is_running(self, name: str) -> bool:
        """Whether the process was started and has not ended."""
        return self.exit_code(name) is None

    def signal(self, name: str, number: int) -> None:
        """Send a signal to a process and to everything that it started."""
        self._ask(do="signal", name=name, number=number)

    def kill(self, *names: str) -> None:
        """Kill processes with SIGKILL and wait until they are gone."""
        self._ask(do="kill", names=names)

    def keep_logs(self) -> None:
        """Let the logs stay where they are when everything else in the folder is removed."""
        self._kept = self.logs
        self._ask(do="keep", path=str(self.logs))

    def close(self) -> None:
        """End all processes, remove the folder, and wait for that. May be called again."""
        if self._closed:
            return
        with contextlib.suppress(BrokenPipeError):  # it was killed
            self._commands.close()
        code = self._process.wait()
        self._answers.close()
        self._closed = True
        if code:  # its children went with it, but the folder is still there
            remove(self.folder, self._kept)

    def log(self, name: str) -> Path:
        """The file that holds the output of a process."""
        return self.logs / f"{name}.log"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, **command: object) -> dict[str, Any]:
        number = next(self._ids)
        answer: dict[str, Any] = {}
        try:
            self._commands.write(json.dumps({"id": number, **command}) + "\n")
            self._commands.flush()
            while answer.get("id") != number:  # an earlier answer is left over where a Ctrl-C came before it was read
                answer = json.loads(self._answers.readline())
        except (BrokenPipeError, ValueError) as error:  # ValueError: closed, or ended in mid-answer
            raise ProcessError(f"the supervisor is gone; see {self.log('supervisor')}") from error
        if "error" in answer:
            raise ProcessError(answer["error"])
        return answer


def tail(log: Path, lines: int = 15) -> str:
    """The last lines of a log, for an error message."""
    if not log.exists():
        return ""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
