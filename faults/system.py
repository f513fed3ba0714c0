"""A machine with `pilotage up` on it: its own clock, its own disk if need be, and the processes of its parts."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import psutil

from demo import tiny_gguf
from demo.machine import Machine
from faults.cases import PARTS
from pilotage.api.names import ENDPOINTS
from pilotage.kube import Absent, ApiError, Client, ConfigError, ObjectKey, Propagation, load_config
from pilotage.processes.census import Marked
from pilotage.processes.identity import is_running
from pilotage.processes.terminate import StillRunning, terminate
from pilotage.up import leftovers
from pilotage.up.layout import Layout

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from pilotage.kube import Object

T = TypeVar("T")

CLOCK = Path(__file__).parent / "clock"
DISK_MEGABYTES = 64
_CONTROL = "pilotage.gateway.control"


class NotRecovered(Exception):
    """A state that did not come about in the time that it was given."""


class System:
    """One of them, in an empty folder. `show` gets all that is typed and said."""

    def __init__(self, folder: Path, show: Callable[[str], None]) -> None:
        self.machine = Machine(folder, show)
        self.layout = Layout(self.machine.data)
        self.model = folder / "model.gguf"
        tiny_gguf.write(self.model, sentence="I am still here.", endless=True)
        self._clock = folder / "clock"
        self._clock.write_bytes(struct.pack("d", 0.0))
        path = os.pathsep.join([str(CLOCK), *filter(None, [os.environ.get("PYTHONPATH")])])
        self.machine.env |= {"PILOTAGE_FAULTS_CLOCK": str(self._clock), "PYTHONPATH": path}

    def up(self) -> None:
        """Bring it up."""
        self.machine.run(f"pilotage up --detach --port {self.machine.port} --file-roots {self.machine.folder}")

    def down(self) -> None:
        """Take it down, with proof. UnexpectedEnd where that fails."""
        self.machine.run("pilotage down --now --timeout 60")

    def deploy(self, name: str, *flags: str) -> None:
        """Deploy the endpoint, as a person does."""
        words = f"--model file://{self.model} --arg --threads --arg 1 --on local --route PilotageGateway --timeout 120"
        self.machine.run(f"pilotage deploy {name} {words} {' '.join(flags)}")

    def delete(self, name: str) -> None:
        """Delete the endpoint, as a person does, until it is proven gone."""
        receipt = self.machine.folder / f"{name}.json"
        self.machine.run(f"pilotage delete servingendpoint/{name} --yes --timeout 120 --receipt {receipt}")

    def ask_to_delete(self, name: str) -> None:
        """Request the deletion, as kubectl does with --wait=false."""

        async def ask(client: Client) -> None:
            found = await client.get(ENDPOINTS, ObjectKey("default", name))
            await client.delete(ENDPOINTS, found.key, uid=found.meta.uid, propagation=Propagation.BACKGROUND)

        self._ask(ask)

    def find(self, name: str) -> Object | None:
        """The endpoint."""

        async def ask(client: Client) -> Object | None:
            with contextlib.suppress(Absent):
                return await client.get(ENDPOINTS, ObjectKey("default", name))
            return None

        return self._ask(ask)

    def is_whole(self) -> bool:
        """Whether the API server answers, and all parts run. The supervisor is not one that others need."""
        try:
            self.find("any")
            return all(self.process(part) is not None for part in PARTS if part not in ("llama-server", "supervisor"))
        except (ApiError, ConfigError, OSError, psutil.Error):
            return False

    def serves(self, name: str) -> bool:
        """Whether requests to it are answered."""
        return self.machine.answers(name)

    def is_gone(self, name: str) -> bool:
        """Whether neither the endpoint nor a server of it is there. What cannot be read is not gone."""
        try:
            return self.find(name) is None and not any(name in each.cmdline() for each in self._servers())
        except (ApiError, ConfigError, OSError, psutil.Error):
            return False

    def set_clock(self, seconds: float) -> None:
        """Move the clock of all its processes, against where it is now."""
        (ahead,) = struct.unpack("d", self._clock.read_bytes())
        with self._clock.open("r+b") as file:
            file.write(struct.pack("d", ahead + seconds))

    def process(self, part: str) -> psutil.Process | None:
        """The process that is this part now."""
        note = self.layout.read_state()
        if note is None:
            return None
        with contextlib.suppress(psutil.Error):
            known = note.supervisor if part == "supervisor" else note.components.get(part)
            if known is not None:
                return psutil.Process(known.pid) if is_running(known) else None
            if part == "llama-server":
                return next(iter(self._servers()), None)
            for each in leftovers.find(self.layout, None).processes:
                words = psutil.Process(each.pid).cmdline()
                if (_CONTROL in words) if part == "control plane" else "".join(words[:1]).endswith("/envoy"):
                    return psutil.Process(each.pid)
        return None

    def _servers(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter(["cmdline"]):
            words = process.info["cmdline"] or []
            if words and words[0].endswith("llama-server") and str(self.model) in words:
                found.append(process)
        return found

    def _ask(self, question: Callable[[Client], Awaitable[T]]) -> T:
        async def ask() -> T:
            async with Client.connect(load_config(kubeconfig=str(self.layout.kubeconfig))) as client:
                return await question(client)

        return asyncio.run(ask())


@contextlib.contextmanager
def made(show: Callable[[str], None], *, disk: bool) -> Iterator[System]:
    """One in a folder of its own; nothing is left of it. `disk`: its data are on a small disk, which root can make."""
    folder = Path(tempfile.mkdtemp(prefix="pilotage-faults-"))
    folder.chmod(0o755)  # its servers may be another user's
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        system = System(folder, show)
        if disk:
            system.layout.folder.mkdir(mode=0o700)
            size = f"size={DISK_MEGABYTES}m,mode=700"
            mount = ["mount", "-t", "tmpfs", "-o", size, "pilotage-faults", str(system.layout.folder)]
            subprocess.run(mount, check=True, capture_output=True)
            stack.callback(subprocess.run, ["umount", "--lazy", str(system.layout.folder)], check=False)
        stack.callback(_end, system)
        yield system


def _end(system: System) -> None:
    """End every process, in any case: none outlives the player."""
    command = [sys.executable, "-m", "pilotage", "down", "--now", "--timeout", "20"]
    subprocess.run(command, env=system.machine.env, capture_output=True, check=False, timeout=120)

    async def kill() -> None:
        until = asyncio.get_running_loop().time() + 2
        with contextlib.suppress(StillRunning):
            await terminate(Marked(leftovers.mark(system.layout)), lambda: until)

    asyncio.run(kill())


def wait(condition: Callable[[], bool], what: str, seconds: float) -> float:
    """Wait until it is so; returns how long that took. NotRecovered where it takes longer than `seconds`."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            raise NotRecovered(f"after {seconds:.0f} s it is not so that {what}")
        time.sleep(0.1)
    return time.monotonic() - began
