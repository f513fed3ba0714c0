"""One run of an exec plugin: a program of client.authentication.k8s.io, v1 or v1beta1, that prints a credential.

It is run directly, never by a shell, and never for longer than a bound. What it prints is a secret, and so may be its
arguments: of all that only its standard error is ever shown. When to run it is decided in `exec_plugin`.
"""

import asyncio
import contextlib
import math
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec

from pilotage.kube.credentials import bearer
from pilotage.kube.errors import ConfigError, CredentialsError
from pilotage.kube.tls import TlsSettings
from pilotage.terminal import printable

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")

TIMEOUT_SECONDS = 60.0
# A person who logs in with a browser, a password and a second factor takes longer than a program.
INTERACTIVE_TIMEOUT_SECONDS = 300.0

STDERR_SHOWN_CHARACTERS = 2000


@dataclass(frozen=True, slots=True, repr=False)
class ExecSettings:
    """Plugin to run. `origin` is the file and the field it came from; `cluster` is None unless it is to be told."""

    origin: str
    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    install_hint: str = ""
    interactive_mode: str = "Never"
    cluster: Mapping[str, Any] | None = None

    def error(self, problem: str, stderr: bytes | bytearray = b"") -> CredentialsError:
        """An error about this plugin, with what it had to say."""
        said = printable(stderr.decode("utf-8", "replace"))[-STDERR_SHOWN_CHARACTERS:].strip()
        return CredentialsError(f"{self.origin}: {problem}" + (f" It said: {said}" if said else ""))


@dataclass(frozen=True, slots=True, repr=False)
class Credential:
    """Credential that a plugin printed. `expires_at` is by the wall clock, and infinite where it named no expiry."""

    headers: Mapping[str, str]
    certificate: tuple[bytes, bytes] | None
    expires_at: float


async def run(settings: ExecSettings, env: Mapping[str, str], *, timeout: float = TIMEOUT_SECONDS) -> Credential:
    """Run the plugin and read its answer; CredentialsError for anything that goes wrong.

    Cancelling it ends the program. `timeout` is longer where a person at a terminal may have to answer.
    """
    interactive = _is_interactive(settings)
    transport, process = await _start(settings, env, interactive=interactive)
    limit = max(timeout, INTERACTIVE_TIMEOUT_SECONDS) if interactive else timeout
    try:
        async with asyncio.timeout(limit):
            await process.gone.wait()
    except TimeoutError:
        problem = f"{settings.command} did not finish within {limit:g} s, and was ended."
        raise settings.error(problem, process.stderr) from None
    finally:
        if not process.gone.is_set() and not interactive:
            _kill_group(transport)
        transport.close()
        await process.gone.wait()
    code = transport.get_returncode()
    if code:
        how = f"with exit code {code}" if code > 0 else f"by signal {-code}"
        raise settings.error(f"{settings.command} ended {how}. Run it by hand to see why.", process.stderr)
    return parse(bytes(process.output), settings)


def parse(output: bytes, settings: ExecSettings) -> Credential:
    """The credential in a plugin's answer; CredentialsError where the answer breaks the protocol."""
    try:
        answer = msgspec.json.decode(output, type=_ExecCredential)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:  # neither quotes the input
        raise settings.error(f"{settings.command} printed no ExecCredential ({error}). Update the plugin.") from None
    if answer.kind != "ExecCredential" or answer.api_version != settings.api_version:
        raise settings.error(
            f"{settings.command} answered with {answer.api_version} {answer.kind}, asked for {settings.api_version} "
            "ExecCredential. Set apiVersion to what the plugin speaks, or update the plugin."
        )
    status = answer.status or _Status()
    cert, key = status.client_certificate_data, status.client_key_data
    if not status.token and not cert and not key:
        raise settings.error(
            f"{settings.command} answered with neither a token nor a certificate. Log in again with it."
        )
    if bool(cert) != bool(key):
        raise settings.error(f"{settings.command} answered with only one of certificate and key. Update the plugin.")
    try:
        headers = bearer(status.token) if status.token else {}
    except ValueError as error:
        raise settings.error(f"status.token of {settings.command} {error}. Update the plugin.") from None
    expiry = status.expiration_timestamp
    return Credential(
        headers,
        _checked_pair(cert, key, settings) if cert and key else None,
        expiry.timestamp() if expiry else math.inf,
    )


class _Status(msgspec.Struct, rename="camel"):
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None

    def __repr__(self) -> str:
        return "_Status(…)"


class _ExecCredential(msgspec.Struct, rename="camel"):
    kind: str | None = None
    api_version: str | None = None
    status: _Status | None = None


def _checked_pair(cert: str, key: str, settings: ExecSettings) -> tuple[bytes, bytes]:
    pair = cert.encode(), key.encode()
    try:
        TlsSettings(insecure=True, client_origin=settings.origin).with_certificate(*pair).ssl_context()
    except ConfigError as error:
        raise CredentialsError(str(error)) from error
    return pair


def _is_interactive(settings: ExecSettings) -> bool:
    if settings.interactive_mode == "Never":
        return False
    terminal = os.isatty(0)
    if settings.interactive_mode == "Always" and not terminal:
        raise settings.error(
            f"interactiveMode is Always, but standard input is no terminal, so {settings.command} was not run. "
            "Run this on a terminal, or use credentials that need no person."
        )
    return terminal


class _Process(asyncio.SubprocessProtocol):
    """Output of a program so far, and whether it, and all processes that could print more, are gone."""

    def __init__(self) -> None:
        self.output = bytearray()
        self.stderr = bytearray()
        self.gone = asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        (self.output if fd == 1 else self.stderr).extend(data)

    def connection_lost(self, _: Exception | None) -> None:
        self.gone.set()


async def _start(
    settings: ExecSettings, env: Mapping[str, str], *, interactive: bool
) -> tuple[asyncio.SubprocessTransport, _Process]:
    program = _find(settings, env)
    try:
        return await asyncio.get_running_loop().subprocess_exec(
            _Process,
            program,
            *settings.args,
            env={**env, **dict(settings.env), "KUBERNETES_EXEC_INFO": _exec_info(settings, interactive=interactive)},
            stdin=None if interactive else subprocess.DEVNULL,
            # On a terminal its questions must be seen as they come. Elsewhere they are kept for the message, and a
            # session of its own keeps it off the terminal and lets us end it together with its children.
            stderr=None if interactive else subprocess.PIPE,
            start_new_session=not interactive,
        )
    except (OSError, ValueError) as error:  # a ValueError: a zero byte in an argument
        reason = getattr(error, "strerror", None) or error
        raise settings.error(f"{program} cannot be run ({reason}). Correct the command or the file.") from error


def _find(settings: ExecSettings, env: Mapping[str, str]) -> str:
    """The program's absolute path. One that is found only because of the folder we happen to be in does not count."""
    import shutil

    found = shutil.which(settings.command, path=env.get("PATH", os.defpath))
    if found is None or not Path(found).is_absolute():
        hint = printable(settings.install_hint).strip() or "Install it, or correct the command."
        raise settings.error(f"{settings.command} is not there, or cannot be executed. {hint}")
    return found


def _exec_info(settings: ExecSettings, *, interactive: bool) -> str:
    spec: dict[str, Any] = {"interactive": interactive}
    if settings.cluster is not None:
        spec["cluster"] = settings.cluster
    return msgspec.json.encode({"kind": "ExecCredential", "apiVersion": settings.api_version, "spec": spec}).decode()


def _kill_group(transport: asyncio.SubprocessTransport) -> None:
    """End it together with its children: one of them may be what keeps its output open."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(transport.get_pid(), signal.SIGKILL)
