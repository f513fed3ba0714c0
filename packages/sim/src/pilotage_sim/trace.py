"""The trace of a world, one line for each write: when, who, what, to which object, with which outcome.

The text of a trace is the same for the same seed and the same fault plan, also in another process: it is how runs are
compared, and what to read when one has failed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from pilotage.kube.errors import Status
from pilotage.kube.wire import Object
from pilotage_harbor.access.attributes import attributes_of

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.calls import Call, ServerResponse

_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_REVIEWS = ("authorization.k8s.io", "authentication.k8s.io")


class Write(NamedTuple):
    """One write. `resource` is as in ``deployments.apps/status``; of a create, `key` is from its answer."""

    at: float
    who: str
    verb: str
    resource: str
    key: str
    code: int
    reason: str
    version: str
    uid: str

    @property
    def applied(self) -> bool:
        """Whether the API server took it."""
        return self.code < 300

    def __str__(self) -> str:
        outcome = f"{self.code} {self.reason}".strip()
        version = f" rv={self.version}" if self.version else ""
        return f"{self.at:12.6f}  {self.who:<20} {self.verb:<7} {self.resource} {self.key} -> {outcome}{version}"


class Trace:
    """Writes in the order in which they were answered, and remarks between them."""

    def __init__(self) -> None:
        self.writes: list[Write] = []
        self.lines: list[str] = []

    @property
    def text(self) -> str:
        """All of it."""
        return "\n".join(self.lines) + "\n"

    def remark(self, text: str) -> None:
        """Record an event other than a write: a fault, a crash, a restart."""
        self.lines.append(f"{asyncio.get_running_loop().time():12.6f}  ** {text}")

    def record(self, call: Call, answer: ServerResponse) -> None:
        """Note a call and its answer, if it was a write."""
        if call.method not in _WRITES or call.option("dryRun"):
            return
        wanted = attributes_of(call.method, call.path, call.query)
        if not wanted.resource or wanted.group in _REVIEWS:
            return
        name, reason, version, uid = wanted.name, "", "", ""
        if answer.status < 300:
            shown = Object.decode(answer.body)
            name, version, uid = name or shown.meta.name, shown.meta.resource_version, shown.meta.uid
            if shown.kind == "Status" and (details := shown.decode_as(Status).details) is not None:
                uid = details.uid  # of what was deleted
        elif answer.body.startswith(b"{"):  # a path that nobody serves is answered in plain text
            reason = Object.decode(answer.body).decode_as(Status).reason
        resource = f"{wanted.resource}.{wanted.group}" if wanted.group else wanted.resource
        if wanted.subresource:
            resource += f"/{wanted.subresource}"
        namespace = "" if wanted.resource == "namespaces" else wanted.namespace
        key = f"{namespace}/{name}" if namespace else name
        now = asyncio.get_running_loop().time()
        write = Write(now, call.user.name, wanted.verb, resource, key, answer.status, reason, version, uid)
        self.writes.append(write)
        self.lines.append(str(write))
