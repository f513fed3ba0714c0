"""The parent of every process of one control plane; it ends them all when the test run is gone, however it went.

Run as a program of its own, in its own session, by `processes.Supervisor`. Its standard input is a pipe whose other end
only the test run holds: commands come in as JSON lines, and its end, which the kernel brings about also for a run that
was killed with SIGKILL, means "end everything". Should this process itself be killed, the kernel takes its children
along (Linux only). Standard library only, one thread, nothing imported from this package: it must not fail.

It makes a folder for the run, whose path is its first answer, and removes it at the end, but for what `keep` names.
"""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1


class Children:
    """The processes by name. Each leads a session of its own, so that a signal reaches what it started, too."""

    def __init__(self) -> None:
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    def start(self, name: str, argv: list[str], env: dict[str, str], cwd: str, log: str) -> int:
        """Start one; its output is appended to `log`."""
        parent = os.getpid()

        def die_with_parent() -> None:
            assert self._libc is not None
            self._libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:  # it died before the line above
                os._exit(1)

        with Path(log).open("ab") as output:
            self._running[name] = subprocess.Popen(
                argv,
                env=env,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=die_with_parent if self._libc else None,
            )
        return self._running[name].pid

    def status(self) -> dict[str, int | None]:
        """The exit code of each; None while it runs."""
        return {name: process.poll() for name, process in self._running.items()}

    def signal(self, name: str, number: int) -> None:
        """Send a signal to a process and to its children; no effect where it is gone. After SIGSTOP it is stopped."""
        process = self._running[name]
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
                if number == signal.SIGSTOP and hasattr(os, "waitid"):  # its threads stop one by one, and later
                    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def kill(self, *names: str) -> None:
        """Kill with SIGKILL, which also ends a stopped process, and wait until they are gone."""
        for name in names:
            self.signal(name, signal.SIGKILL)
        for name in names:
            self._running.pop(name).wait()

    def kill_all(self) -> None:
        """Kill every process there is."""
        self.kill(*self._running)


def remove(folder: Path, keep: Path | None) -> None:
    """Remove the folder, or everything in it but the part to keep."""
    if keep is None:
        shutil.rmtree(folder, ignore_errors=True)
        return
    for entry in folder.iterdir():
        if entry == keep:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


def serve(folder: Path) -> None:
    """Obey commands until the standard input ends; then end all processes and remove the folder."""
    children = Children()
    keep: Path | None = None
    try:
        print(json.dumps({"folder": str(folder)}), flush=True)
        for line in sys.stdin:
            command: dict[str, Any] = json.loads(line)
            answer: dict[str, Any] = {"id": command.pop("id")}
            try:
                match command.pop("do"):
                    case "start":
                        answer["pid"] = children.start(**command)
                    case "status":
                        answer["status"] = children.status()
                    case "signal":
                        children.signal(**command)
                    case "kill":
                        children.kill(*command["names"])
                    case "keep":
                        keep = Path(command["path"])
            except KeyError as error:
                answer["error"] = f"there is no process {error}"
            except (OSError, subprocess.SubprocessError) as error:
                answer["error"] = str(error)
            print(json.dumps(answer), flush=True)
    except BrokenPipeError:  # the run went away before it could read the answer
        pass
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        children.kill_all()
        remove(folder, keep)


def terminate(*_: object) -> None:
    """A polite request to end is the same as the end of the input."""
    sys.exit()


def main() -> None:
    """Create the run folder, detach from the terminal, and serve."""
    signal.signal(signal.SIGTERM, terminate)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    folder = Path(tempfile.mkdtemp(prefix="pilotage-"))
    (folder / "logs").mkdir()
    with (folder / "logs" / "supervisor.log").open("wb") as log:
        os.dup2(log.fileno(), sys.stderr.fileno())
    serve(folder)


if __name__ == "__main__":
    main()
