"""Builds the binaries with Go, once per machine, from the modules whose versions `kubernetes` and `kwok` pin.

One builder works at a time; another waits for it, and then finds its work done. A binary appears under its name only
when it is complete, so a build that was cut off goes on where it stood.
"""

import contextlib
import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from controlplane.assets import Binary, NoControlPlane, cache_folder, missing
from controlplane.processes import tail

PROGRESS_SECONDS = 30

_FLAGS = ("-trimpath", "-gcflags=all=-dwarf=false")
"""Flags that omit debug information: the linker drops it anyway, and omitting it saves a tenth of the work."""

Say = Callable[[str], None]


class NoGo(NoControlPlane):
    """There is no Go here that could build it."""


def check_go(binaries: Sequence[Binary], env: Mapping[str, str]) -> None:
    """Raise `NoGo` where there is no Go that could build these."""
    names = ", ".join(binary.name for binary in binaries)
    go = shutil.which("go", path=env.get("PATH"))
    if go is None:
        raise NoGo(
            f"no control plane ({names} missing): install Go and run `make kube` (about 10 minutes, once),"
            " or set KUBEBUILDER_ASSETS to a folder of envtest binaries,"
            " or PILOTAGE_TEST_KUBECONFIG to the kubeconfig of a cluster of your own"
        )
    for module in {binary.module for binary in binaries}:
        # In the module's folder: there Go says whether it is new enough, and gets a newer one if it is allowed to.
        done = subprocess.run([go, "version"], cwd=module, env=dict(env), capture_output=True, text=True, check=False)
        if done.returncode:
            raise NoGo(f"this Go cannot build the control plane: {' '.join(done.stderr.split())}")


def build(env: Mapping[str, str], say: Say) -> Path:
    """Build what is missing, and return the cache folder. Raises `NoControlPlane`, also when a build fails."""
    folder = cache_folder(env)
    if missing(env):
        fill(folder, lambda: missing(env), env, say)
    else:
        say("control plane: everything is there, nothing to build")
    return folder


def fill(folder: Path, missing: Callable[[], Sequence[Binary]], env: Mapping[str, str], say: Say) -> None:
    """Build into a folder what is missing there, as soon as no other process does. Raises `NoControlPlane`."""
    folder.mkdir(parents=True, exist_ok=True)
    with _lock(folder, say) as lock:
        lacking = missing()  # another builder may have been at work
        check_go(lacking, env)
        scratch = folder / "scratch"
        shutil.rmtree(scratch, ignore_errors=True)  # of a build that was cut off
        scratch.mkdir()
        start = time.monotonic()
        try:
            for number, binary in enumerate(lacking, 1):
                say(f"control plane: building {binary.name} ({number} of {len(lacking)})")
                _build_one(binary, folder, scratch, env, lock, say)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        say(f"control plane: {len(lacking)} binaries built in {time.monotonic() - start:.0f} s: {folder}")


def _build_one(binary: Binary, folder: Path, scratch: Path, env: Mapping[str, str], lock: int, say: Say) -> None:
    target = scratch / binary.name
    log = scratch / f"{binary.name}.log"
    start = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["go", *binary.verb, *_FLAGS, f"-ldflags={binary.ldflags}", "-o", str(target), binary.package],
            cwd=binary.module,
            env={**env, "CGO_ENABLED": "0", "GOTMPDIR": str(scratch)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=[lock],  # should this process be killed, then Go holds the lock until it has ended as well
        )
        try:
            while process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(PROGRESS_SECONDS)
                if process.returncode is None:
                    say(f"control plane: {binary.name}, {time.monotonic() - start:.0f} s so far")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if process.returncode:
        raise NoControlPlane(f"Go could not build {binary.name}:\n{tail(log)}")
    target.replace(folder / binary.name)
    say(f"control plane: {binary.name} built in {time.monotonic() - start:.0f} s")


@contextlib.contextmanager
def _lock(folder: Path, say: Say) -> Iterator[int]:
    """Hold the folder against other builders; the kernel releases it when all holders have ended, in any way."""
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("control plane: another process is building it; waiting for that one")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)
