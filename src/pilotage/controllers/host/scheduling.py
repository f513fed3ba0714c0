"""The scheduling of a process to a Host. Pure: from the Hosts and the requirements to a Host, or why there is none.

A Host by name is taken whatever its free memory: its agent knows better than we whether there is enough. Of those that
a selector matches, the one with the most free memory is taken.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

LABEL_MAX = 63
"""Longest name of a Host: it becomes a label."""
NAMED_MAX = 5
"""Number of Hosts that a message names."""


class CandidateHost(NamedTuple):
    """A Host, as far as scheduling needs it."""

    name: str
    labels: Mapping[str, str] = {}
    alive: bool = True
    """Whether its agent was seen to renew its Lease."""
    phase: str = "Ready"
    unschedulable: bool = False
    deleting: bool = False
    free_bytes: int | None = None
    """Free memory by its agent; None: unknown."""
    promised_bytes: int = 0
    """Memory of processes that were placed there and that its agent does not account for yet."""
    processes: int = 0
    namespaces: Collection[str] = ()
    """Namespaces that its spec accepts; empty for all."""
    agent_namespaces: Collection[str] = ()
    """Namespaces that its agent was started for; empty for all."""

    @property
    def left_bytes(self) -> int | None:
        """Memory that is free for one more process."""
        return None if self.free_bytes is None else self.free_bytes - self.promised_bytes


class Requirements(NamedTuple):
    """Requirements of a process."""

    host: str = ""
    """The only Host that it may run on; empty: any with these labels."""
    labels: Mapping[str, str] = {}
    memory_bytes: int | None = None
    namespace: str = ""
    """Namespace of the process."""


class Scheduled(NamedTuple):
    """The Host that a process is placed on."""

    host: str


class Unschedulable(NamedTuple):
    """Why a process is placed nowhere now, for people."""

    text: str


def schedule(need: Requirements, hosts: Sequence[CandidateHost]) -> Scheduled | Unschedulable:
    """The Host for a process."""
    if need.host:
        named = next((each for each in hosts if each.name == need.host), None)
        if named is None:
            return Unschedulable(f"host/{need.host} does not exist; is its agent installed?")
        lacks = _unable(named, need)
        return Unschedulable(f"host/{named.name} {lacks}") if lacks else Scheduled(named.name)
    matching = [each for each in hosts if need.labels.items() <= dict(each.labels).items()]
    if not matching:
        wanted = ", ".join(f"{name}={value}" for name, value in sorted(need.labels.items())) or "any"
        return Unschedulable(f"none of {len(hosts)} Hosts has the labels {wanted}" if hosts else "there are no Hosts")
    lacking = {each.name: _unable(each, need) or _too_small(each, need) for each in matching}
    fitting = [each for each in matching if not lacking[each.name]]
    if not fitting:
        return Unschedulable(_listed(f"host/{name} {lacks}" for name, lacks in sorted(lacking.items())))
    return Scheduled(min(fitting, key=_rank).name)


def _rank(host: CandidateHost) -> tuple[bool, int, int, str]:
    """The most free memory first, then the fewest processes; those that do not say how much they have come last."""
    left = host.left_bytes
    return left is None, -(left or 0), host.processes, host.name


def _unable(host: CandidateHost, need: Requirements) -> str:
    """Why nothing new of this namespace can run there; empty if it can."""
    if len(host.name) > LABEL_MAX:
        return f"has a name of more than {LABEL_MAX} characters"
    if host.deleting:
        return "is being deleted"
    for allowed, where in (
        (host.namespaces, "spec.allowedNamespaces"),
        (host.agent_namespaces, "agent's --namespaces"),
    ):
        if allowed and need.namespace not in allowed:
            return f"runs nothing of namespace {need.namespace}, which its {where} does not name"
    if host.unschedulable:
        return "is unschedulable"
    if not host.alive and host.phase != "Stopped":
        return "is lost: its agent does not renew its Lease"
    if host.phase != "Ready":
        return f"is {host.phase}" if host.phase else "is not ready yet"
    return ""


def _too_small(host: CandidateHost, need: Requirements) -> str:
    left = host.left_bytes
    if need.memory_bytes is None or left is None or left >= need.memory_bytes:
        return ""
    return f"has {_size(max(left, 0))} free, and {_size(need.memory_bytes)} are needed"


def _size(amount: int) -> str:
    return f"{amount / 2**30:.1f} GiB"


def _listed(texts: Iterable[str]) -> str:
    found = list(texts)
    more = f"; and {len(found) - NAMED_MAX} more" if len(found) > NAMED_MAX else ""
    return "; ".join(found[:NAMED_MAX]) + more
