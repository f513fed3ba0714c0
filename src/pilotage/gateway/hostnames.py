"""Hosts that a route may have: never an address, never a name by which clients reach the gateway itself. Pure.

A host leads past everything else that the gateway serves. A route that had the gateway's own address or name as its
host would get the requests of all tenants. The gateway knows its own names only as far as it is told (`--name`), and
those of its machine; `--hosts` says which hosts a namespace may have, and from then on no others are taken.
"""

import re
import string
from collections.abc import Iterator
from typing import NamedTuple

WILDCARD = "*."
_NAME = re.compile(r"(\*\.)?([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)+[a-z]([-a-z0-9]*[a-z0-9])?")
"""Two words or more, so that no single one, and no wildcard above it, is taken; and the last begins with a letter, so
that it is no address, in whatever form: 127.1, 0x7f.1."""
_LOCAL = "localhost"
_LETTERS = frozenset(f"{string.ascii_lowercase}{string.digits}-.")


class HostRules(NamedTuple):
    """The administrator's rules about hosts."""

    own: frozenset[str] = frozenset()
    """The gateway's own names, in small letters."""
    allowed: tuple[tuple[str, str], ...] = ()
    """A namespace and a host, or a wildcard, that it may have. Empty: any namespace may have any host."""

    def refusal(self, host: str, namespace: str) -> str:
        """Why a route of the namespace cannot have this host; empty where it can."""
        if not _NAME.fullmatch(host) or host.rpartition(".")[2] == _LOCAL:
            return (
                f"host {host} is refused: a host is a name with a dot in it, such as chat.example.com, and no address"
            )
        if host in self.own:
            return f"host {host} is refused: it is a name of the gateway itself"
        if self.allowed and not any(each == namespace and covers(by, host) for each, by in self.allowed):
            return f"host {host} is refused: the gateway's setting --hosts does not allow it for namespace {namespace}"
        return ""


def is_name(text: str) -> bool:
    """Whether Envoy can match requests for it: a name or an address, in small letters."""
    return bool(text) and set(text) <= _LETTERS


def covers(pattern: str, host: str) -> bool:
    """Whether requests for `host` (or for all that it covers) are requests for `pattern`."""
    return pattern == host or pattern in wildcards_above(host)


def wildcards_above(host: str) -> Iterator[str]:
    """The wildcards that would get the requests of a host if it had no route of its own."""
    words = host.removeprefix(WILDCARD).split(".")
    for number in range(1, len(words)):
        yield f"{WILDCARD}{'.'.join(words[number:])}"
