"""Whether the owner of this machine lets a process run here. Pure.

Whoever may create a ServingEndpoint writes the spec of a HostProcess, and the agent runs it as a user of this machine:
so the spec is a stranger's wish, and the machine decides. Without ``--allow-commands`` it runs the programs that it has
itself, with arguments and variables from the runtime's own table (`serving.runtimes.allowed`). The rules hold for every
start; a server that runs goes on.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from pilotage.agent.launch.failures import LaunchFailure
from pilotage.agent.settings import AgentSettings
from pilotage.api.endpoint import Runtime
from pilotage.api.host import ProcessSpec
from pilotage.serving.runtimes import RUNTIMES
from pilotage.serving.runtimes.allowed import shown

REASON = "NotAllowed"
PORT_MIN = 1024
"""Lower ports are for the services of the machine."""
_PATH = re.compile(r"/[!-~]{0,1023}")
_ASK = "The owner of this machine can allow it with `pilotage agent --allow-commands`"


class LaunchRules(NamedTuple):
    """The rules of the machine's owner: from the agent's settings and from its Host."""

    commands: bool
    namespaces: Collection[str]
    """Namespaces of the agent's settings; empty for all."""
    host_namespaces: Collection[str]
    """Namespaces of the Host; empty for all."""
    reserved_ports: Collection[int]

    @classmethod
    def of(cls, settings: AgentSettings, host_namespaces: Collection[str], api_port: int) -> LaunchRules:
        """Rules of the settings, with the port of an API server on this machine (0: it is elsewhere)."""
        health = settings.health_address
        own = {api_port, health.port if health is not None else 0} - {0}
        return cls(settings.allow_commands, settings.namespaces, host_namespaces, {*settings.reserved_ports, *own})


def refusal(rules: LaunchRules, namespace: str, spec: ProcessSpec) -> LaunchFailure | None:
    """Why a process may not be started here, and what can be done; None if it may."""
    why = _of_namespace(rules, namespace) or _of_address(rules, spec)
    if not why and spec.runtime.name not in RUNTIMES:
        why = f"this agent has no runtime {shown(spec.runtime.name)}. Upgrade it, or choose another runtime"
    if not why and not rules.commands:
        why = _of_program(spec)
    return LaunchFailure(REASON, why, permanent=True) if why else None


def _of_namespace(rules: LaunchRules, namespace: str) -> str:
    if rules.namespaces and namespace not in rules.namespaces:
        return f"this machine runs nothing of namespace {namespace}: the agent's --namespaces does not name it"
    if rules.host_namespaces and namespace not in rules.host_namespaces:
        return (
            f"this machine runs nothing of namespace {namespace}: spec.allowedNamespaces of its Host does not name it"
        )
    return ""


def _of_address(rules: LaunchRules, spec: ProcessSpec) -> str:
    """A port that something else of this machine has, or had a moment ago, would get that one's requests."""
    port, path = spec.port or spec.runtime.port, spec.runtime.health_path
    if port is not None and port < PORT_MIN:
        return f"runtime.port is {port}, and ports below {PORT_MIN} are for the machine's own services. Leave it out"
    if port is not None and port in rules.reserved_ports:
        return f"runtime.port is {port}, which a service of this machine has. Leave it out"
    if path is not None and not _PATH.fullmatch(path):
        return f"runtime.healthPath {shown(path)} is no path of printable ASCII characters"
    return ""


def _of_program(spec: ProcessSpec) -> str:
    runtime, name = spec.runtime, spec.model.name
    known = RUNTIMES[runtime.name]
    if known.custom or runtime.command:
        return f"runtime.command is not run on this machine, which runs the presets it has itself. {_ASK}"
    if name.startswith("-") or not name.isprintable():
        return f"the model's name {shown(name)} could be taken for an option of the server. Choose another name"
    if argument := known.allowed.refused_argument(runtime.args):
        return f"the argument {argument} of runtime.args is not among those that this machine takes. {_ASK}"
    if variable := known.allowed.refused_variable(_variables(runtime)):
        return f"the variable {variable} of runtime.env is not among those that this machine takes. {_ASK}"
    return ""


def _variables(runtime: Runtime) -> dict[str, str]:
    return {each.name: each.value for each in runtime.env}
