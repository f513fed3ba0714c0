"""What the agent can be told; `pilotage.runtime.settings` says where. Its variables begin with ``PILOTAGE_AGENT_``."""

from __future__ import annotations

import os
import re
import socket
from ipaddress import IPv4Network, IPv6Network, ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field

from pilotage.models.limits import BYTES_MAX
from pilotage.processes.run_as import SERVER_USER, find_user
from pilotage.runtime.settings import SettingsBase, is_place, load, parse_address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pilotage.processes.run_as import User
    from pilotage.runtime import Address

PREFIX = "PILOTAGE_AGENT_"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_LABEL = re.compile(r"([A-Za-z0-9.-]+/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?=[-A-Za-z0-9_.]{0,63}")


def _own_name() -> str:
    """The machine's, as far as a Host can be called so."""
    name = re.sub(r"[^a-z0-9.-]+", "-", socket.gethostname().lower().removesuffix(".local"))[:63].strip("-.")
    return name or "host"


def _base(variable: str, default: str) -> Path:
    base = os.environ.get(variable)
    return (Path(base) if base else Path.home() / default) / "pilotage"


def _is_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError("a Host's name has at most 63 characters of a-z, 0-9, '-' and '.'")
    return text


def _is_address(text: str) -> str:
    if text:
        ip_address(text)
    return text


def _is_label(text: str) -> str:
    if not _LABEL.fullmatch(text):
        raise ValueError("it is KEY=VALUE, as labels are")
    return text


def _is_namespace(text: str) -> str:
    if not _NAMESPACE.fullmatch(text):
        raise ValueError("it is the name of a namespace")
    return text


def _is_user(text: str) -> str:
    try:
        find_user(text)
    except LookupError as error:
        raise ValueError(str(error)) from error
    return text


def _absolute(path: Path) -> Path:
    return path.absolute()


class Settings(SettingsBase):
    """All settings. A test sees that each has its flag."""

    name: Annotated[str, AfterValidator(_is_name), Field(description="Of the Host that this machine is.")] = Field(
        default_factory=_own_name
    )
    address: Annotated[
        str,
        AfterValidator(_is_address),
        Field(description="Where others reach the servers; the one that reaches the API server, if it is not given."),
    ] = ""
    bind: Annotated[str, AfterValidator(_is_address), Field(description="Where the servers listen.", min_length=1)] = (
        "127.0.0.1"
    )
    labels: Annotated[
        tuple[Annotated[str, AfterValidator(_is_label)], ...],
        Field(description="Of the Host, as KEY=VALUE: placements choose by them."),
    ] = ()
    data: Annotated[
        Path, AfterValidator(_absolute), Field(description="Where the journal and the logs of servers are.")
    ] = Field(default_factory=lambda: _base("XDG_STATE_HOME", ".local/state") / "agent")
    cache_root: Annotated[
        Path, AfterValidator(_absolute), Field(description="Where fetched weights are kept while they are used.")
    ] = Field(default_factory=lambda: _base("XDG_CACHE_HOME", ".cache") / "models")
    file_roots: Annotated[
        tuple[Path, ...], Field(description="Folders below which file:// sources may be read; none without it.")
    ] = ()
    networks: Annotated[
        tuple[IPv4Network | IPv6Network, ...],
        Field(description="Networks that are not public and that weights may be fetched from all the same."),
    ] = ()
    plain_http: Annotated[bool, Field(description="Whether weights may be fetched over http://.")] = False
    model_bytes_max: Annotated[int, Field(gt=0, description="The largest file of weights that is fetched.")] = BYTES_MAX
    ambient_credentials: Annotated[
        bool, Field(description="Whether buckets may be read with the agent's own identity.")
    ] = False
    llama_server: Annotated[
        Path | None, Field(description="The llama-server to run, instead of the one on PATH or of the extra `llama`.")
    ] = None
    allow_commands: Annotated[
        bool,
        Field(description="Whether specs may name any command, argument and variable; else presets with safe ones."),
    ] = False
    namespaces: Annotated[
        tuple[Annotated[str, AfterValidator(_is_namespace)], ...],
        Field(description="Namespaces whose processes this machine runs; all without it."),
    ] = ()
    reserved_ports: Annotated[
        tuple[Annotated[int, Field(ge=1, le=65535)], ...],
        Field(description="Ports of this machine that no server gets; the agent's own and the API's are among them."),
    ] = ()
    run_as: Annotated[
        str,
        AfterValidator(_is_user),
        Field(description="Whom servers run as where the agent is root: a name, or a number; root has to be named."),
    ] = SERVER_USER
    priority_max: Annotated[
        int, Field(description="A greater priority of a spec counts as this one when memory runs out.")
    ] = 0
    allow_protected: Annotated[
        bool, Field(description="Whether a spec may say that its server is never stopped when memory runs out.")
    ] = False
    metrics_address: Annotated[
        str,
        AfterValidator(is_place),
        Field(description="Where /metrics, /healthz and /readyz are served, as HOST:PORT; empty for nowhere."),
    ] = "127.0.0.1:8082"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Field(description="From which level up it logs.")
    ] = "info"

    @property
    def health_address(self) -> Address | None:
        """Where the health server listens."""
        return parse_address(self.metrics_address)

    @property
    def server_user(self) -> User | None:
        """Whom servers run as; None: as the agent does, because it is not root, or because it is to be so."""
        user = find_user(self.run_as)
        return user if os.geteuid() == 0 and user.uid != 0 else None

    @property
    def label_map(self) -> dict[str, str]:
        """The labels."""
        pairs = (each.partition("=") for each in self.labels)
        return {name: value for name, _, value in pairs}


def load_settings(
    flags: Mapping[str, object] | None = None, env: Mapping[str, str] = os.environ, file: Path | None = None
) -> Settings:
    """See `pilotage.runtime.settings.load`."""
    return load(Settings, PREFIX, flags or {}, env, file)
