"""Settings of the agent, read as `pilotage.runtime.settings` says. Its variables begin with ``PILOTAGE_AGENT_``."""

import os
import re
import socket
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

from msgspec import field

from pilotage.models.settings import FetchSettings, absolute, user_folder
from pilotage.processes.run_as import SERVER_USER, RunAsUser, find_user
from pilotage.runtime.manager import Address
from pilotage.runtime.settings import (
    LogLevel,
    between,
    is_namespace,
    is_place,
    load,
    parse_address,
)

PREFIX = "PILOTAGE_AGENT_"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")
_LABEL = re.compile(r"([A-Za-z0-9.-]+/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?=[-A-Za-z0-9_.]{0,63}")


def _own_name() -> str:
    """The name of the machine, without characters that the name of a Host cannot have."""
    name = re.sub(r"[^a-z0-9.-]+", "-", socket.gethostname().lower().removesuffix(".local"))[:63].strip("-.")
    return name or "host"


def _is_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError("a Host's name has at most 63 characters of a-z, 0-9, '-' and '.'")
    return text


def _is_address(text: str) -> str:
    ip_address(text)
    return text


def _is_address_or_empty(text: str) -> str:
    return _is_address(text) if text else text


def _is_label(text: str) -> str:
    if not _LABEL.fullmatch(text):
        raise ValueError("it is KEY=VALUE, as labels are")
    return text


def _is_user(text: str) -> str:
    try:
        find_user(text)
    except LookupError as error:
        raise ValueError(str(error)) from error
    return text


class AgentSettings(FetchSettings, frozen=True, kw_only=True):
    """Settings of the agent. Each has its flag; a test holds that."""

    name: Annotated[str, _is_name] = field(default_factory=_own_name)
    """Name of the Host that stands for this machine."""
    address: Annotated[str, _is_address_or_empty] = ""
    """Address of the servers for others. Defaults to the address from which the API server is reached."""
    bind: Annotated[str, _is_address] = "127.0.0.1"
    """Address that the servers listen on."""
    labels: tuple[Annotated[str, _is_label], ...] = ()
    """Labels of the Host, as KEY=VALUE: placements select Hosts by them."""
    data: Annotated[Path, absolute] = field(
        default_factory=lambda: user_folder("XDG_STATE_HOME", ".local/state") / "agent"
    )
    """Folder of the journal and of the servers' logs."""
    llama_server: Path | None = None
    """Path of llama-server. Defaults to the one on PATH, or the one of the extra `llama`."""
    allow_commands: bool = False
    """Whether specs may set any command, argument and variable, and not only safe ones of the presets."""
    namespaces: tuple[Annotated[str, is_namespace], ...] = ()
    """Namespaces whose processes this machine runs. If empty, all."""
    reserved_ports: tuple[Annotated[int, between(1, 65535)], ...] = ()
    """Ports that no server gets, besides the agent's own and the API server's."""
    run_as: Annotated[str, _is_user] = SERVER_USER
    """User that servers run as where the agent is root: a name or a number. Root has to be named."""
    priority_max: int = 0
    """Highest priority that a spec can have when memory runs out."""
    allow_protected: bool = False
    """Whether a spec may exempt its server from eviction."""
    metrics_address: Annotated[str, is_place] = "127.0.0.1:8082"
    """Address of /metrics, /healthz and /readyz, as HOST:PORT. If empty, they are not served."""
    log_level: LogLevel = "info"
    """Lowest level that is logged."""

    @property
    def health_address(self) -> Address | None:
        """Address of the health server, parsed."""
        return parse_address(self.metrics_address)

    @property
    def server_user(self) -> RunAsUser | None:
        """User that servers run as. None: the agent's own, because it is not root, or because root is asked for."""
        user = find_user(self.run_as)
        return user if os.geteuid() == 0 and user.uid != 0 else None

    @property
    def label_map(self) -> dict[str, str]:
        """Labels of the Host, by key."""
        pairs = (each.partition("=") for each in self.labels)
        return {name: value for name, _, value in pairs}


def load_settings(
    flags: Mapping[str, object] | None = None, env: Mapping[str, str] = os.environ, file: Path | None = None
) -> AgentSettings:
    """The settings from all places; as `pilotage.runtime.settings.load`."""
    return load(AgentSettings, PREFIX, flags or {}, env, file)
