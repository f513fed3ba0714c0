"""Supervisor, the process of ``pilotage gateway``: keeps Envoy and its control plane running; knows nothing of routes.

Envoy must die with the gateway, and traffic must go on while the control plane is away. Both hold because the control
plane is not Envoy's parent: it is another child beside it. It reads from the API, computes and speaks gRPC, so it is
what may fail; when it does, it is started again and finds Envoy as it was. This process does next to nothing, so that
there is next to nothing to fail; if it is killed all the same, the kernel kills both children.

At the end it is the other way round: no new connections, wait for the requests, end Envoy, then its control plane.
"""

import asyncio
import contextlib
import fcntl
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import structlog

from pilotage.gateway import envoy
from pilotage.gateway.accesslog import CHECK_SECONDS, rotate
from pilotage.gateway.admin import Admin, AdminUnavailable
from pilotage.gateway.child import GatewayChild, launched, readable
from pilotage.gateway.overload import machine_share
from pilotage.gateway.settings import Folder, GatewaySettings
from pilotage.private_files import NotPrivate, make_private
from pilotage.processes.census import UP_FOLDER
from pilotage.processes.ports import free_port
from pilotage.processes.run_as import NOBODY
from pilotage.runtime.process import on_signals

_log = structlog.get_logger(__name__)

PRIVILEGED_PORTS = 1024
POLL_SECONDS = 0.02
VALIDATE_SECONDS_MAX = 20.0
_SECRET_FREE = ("PATH", "LANG", "TZ", "TMPDIR", UP_FOLDER)
"""Variables that are passed on to Envoy; by the last one `pilotage down` finds it."""


class InUse(Exception):
    """Another gateway has the folder, or a program the address; the message says what to do."""


async def run(settings: GatewaySettings, on_ready: Callable[[GatewaySettings], None]) -> int:
    """Run until SIGTERM or SIGINT; a second one does not wait for requests. Returns how many requests were cut.

    `on_ready` is called once, when it takes connections, with the settings as they came out: port 0 is a free one.
    Raises `NoEnvoy`, `InUse`, and OSError for a folder that cannot be used.
    """
    told, hurry = asyncio.Event(), asyncio.Event()

    def stop() -> None:
        (hurry if told.is_set() else told).set()

    with on_signals(stop), contextlib.ExitStack() as around:
        program = envoy.find(settings.envoy)
        folder = around.enter_context(_locked(Folder(settings.run)))
        _take(folder)
        settings = msgspec.structs.replace(settings, port=_free_port(settings.host, settings.port, "--listen"))
        if settings.metrics_port:
            _free_port(settings.metrics_host, settings.metrics_port, "--metrics-address")
        settings = msgspec.structs.replace(settings, user=_unprivileged(program, folder, settings))
        admin = Admin(folder.admin)
        env = {name: os.environ[name] for name in _SECRET_FREE if name in os.environ}
        memory_bytes = settings.memory_bytes or machine_share()
        proxy = envoy.child(program, folder, env=env, memory_bytes=memory_bytes, user=settings.user)
        control = GatewayChild("control plane", _control(settings), env=os.environ, cwd=str(Path.cwd()))
        tasks = [asyncio.create_task(each) for each in (control.run(), proxy.run())]
        tasks.append(asyncio.create_task(_announce(settings, proxy, on_ready)))
        logs = [folder.measured_log, *([Path(settings.access_log)] if settings.access_log else [])]
        tasks += [asyncio.create_task(_rotate(each, admin)) for each in logs]
        try:
            waiting = asyncio.create_task(told.wait())
            await asyncio.wait({waiting, *tasks[:2]}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            for each in tasks[:2]:
                if each.done():
                    each.result()  # it could not be started
            left = await envoy.drain(admin, settings.drain_seconds, hurry)
            if left:
                _log.warning("requests were cut off", requests=left)
            return left
        finally:
            await proxy.stop()
            await control.stop()
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for path in (folder.ads, folder.admin, *folder.path.glob(f"{folder.measured_log.name}*")):
                path.unlink(missing_ok=True)


def _control(settings: GatewaySettings) -> list[str]:
    return [sys.executable, "-m", "pilotage.gateway.control", msgspec.json.encode(settings).decode()]


async def _announce(
    settings: GatewaySettings, proxy: GatewayChild, on_ready: Callable[[GatewaySettings], None]
) -> None:
    """Announce the gateway as soon as the listener takes connections."""
    while True:
        if proxy.id is not None:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection(_reachable(settings.host), settings.port)
                writer.close()
                on_ready(settings)
                return
        await asyncio.sleep(POLL_SECONDS)


async def _rotate(log: Path, admin: Admin) -> None:
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        try:
            await rotate(log, admin)
        except (AdminUnavailable, OSError) as error:
            _log.warning("the access log could not be rotated", why=str(error))


@contextlib.contextmanager
def _locked(folder: Folder) -> Iterator[Folder]:
    """The folder, made if need be. One gateway for each."""
    if folder.too_long():
        raise InUse(f"The path {folder.path} is too long for a socket. Choose a shorter one with --run.")
    try:
        # Who can write there could put another socket in the place of ours, and tell Envoy what to do.
        make_private(folder.path, besides={NOBODY} if os.geteuid() == 0 else ())
    except NotPrivate as error:
        raise InUse(f"{error}. Choose another --run.") from error
    lock = os.open(folder.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InUse(
                f"{folder.path} is in use by another gateway. Stop that one, or choose another --run."
            ) from None
        yield folder
    finally:
        os.close(lock)


def _free_port(host: str, port: int, option: str) -> int:
    """Free port, as `free_port`. Raises InUse: a child would find out too, but later, and say so only in its log."""
    try:
        return free_port(host, port)
    except OSError as error:
        raise InUse(f"{host}:{port} cannot be used ({error.strerror}). Choose another {option}.") from error


def _unprivileged(program: Path, folder: Folder, settings: GatewaySettings) -> int | None:
    """The uid for Envoy: nobody, where we are root and that is possible; else ours (None)."""
    if os.geteuid() != 0:
        return None
    if settings.port < PRIVILEGED_PORTS:
        _log.warning(
            "Envoy runs as root: a port below 1024 needs that. Another --listen avoids it.", port=settings.port
        )
        return None
    if settings.access_log and Path(settings.access_log).parent != folder.path:
        _log.warning(
            "Envoy runs as root: another user could not write --access-log. Without that option it can.",
            log=settings.access_log,
        )
        return None
    try:
        _give(folder, NOBODY)
        why = _refusal(program, folder, NOBODY)
    except OSError as error:
        why = str(error)
    if why is None:
        return NOBODY
    _take(folder)
    _log.warning(
        "Envoy runs as root: another user cannot run it. Another --envoy may help.", program=str(program), why=why
    )
    return None


def _take(folder: Folder) -> None:
    """Make it root's, where we are root, and remove links that were put there while it was nobody's."""
    if os.geteuid() != 0:
        return
    os.chown(folder.path.resolve(), 0, 0)  # first: from here on user nobody cannot change it
    for each in list(os.scandir(folder.path)):
        found = each.stat(follow_symlinks=False)
        if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
            os.chown(each.path, 0, 0, follow_symlinks=False)
        elif not stat.S_ISDIR(found.st_mode):
            os.unlink(each.path)  # noqa: PTH108 - sockets of one that was killed, too


def _give(folder: Folder, user: int) -> None:
    """Give Envoy's user the files that it writes. `_take` came before, so there are no links."""
    for each in (folder.access_log, folder.measured_log):
        with contextlib.suppress(FileNotFoundError):
            os.chown(each, user, user, follow_symlinks=False)
    os.chown(folder.path.resolve(), user, user)


def _refusal(program: Path, folder: Folder, user: int) -> str | None:
    """Why Envoy cannot start as a user; None where it can."""
    with readable(envoy.written_bootstrap(folder, machine_share())) as stdin:
        try:
            tried = subprocess.run(
                launched([*envoy.command(program), "--mode", "validate"], user),
                stdin=stdin,
                cwd=folder.path,
                env={},
                capture_output=True,
                text=True,
                errors="replace",
                timeout=VALIDATE_SECONDS_MAX,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"it took longer than {VALIDATE_SECONDS_MAX:.0f} s to validate its bootstrap"
    lines = tried.stderr.strip().splitlines()
    return None if tried.returncode == 0 else lines[-1] if lines else f"it ended with {tried.returncode}"


def _reachable(host: str) -> str:
    """An address of this machine on which a listener for all addresses can be reached."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - to connect, not to listen
