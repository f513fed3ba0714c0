"""The audit log of the API server: all requests with their users, in order.

The server writes a request's line before the end of its answer leaves, so a client with the answer finds its record.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, Unpack

# The body of each write is kept: a test may want to see a precondition or a patch.
POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Request
  verbs: [create, update, patch, delete, deletecollection]
- level: Metadata
"""


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One request to the API server. What a request does not have is empty."""

    user: str
    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int
    user_agent: str
    uri: str
    received: str
    """When it arrived, so that two can be compared as text."""
    body: Any
    """Decoded body of a write; None for a read."""


class Fields(TypedDict, total=False):
    """Criteria for records of the audit log: values must be equal; of `user_agent` a part is enough."""

    user: str
    verb: str
    resource: str
    namespace: str
    user_agent: str


def read(log: Path, *, since: int = 0, **fields: Unpack[Fields]) -> list[AuditRecord]:
    """One record per request, in the order in which they were answered; a watch counts when it begins.

    `since` is the size that the log had at the moment to start from.
    """
    agent = fields.pop("user_agent", "")
    return [
        record
        for record in _records(log, since)
        if agent in record.user_agent and all(getattr(record, name) == value for name, value in fields.items())
    ]


def _records(log: Path, since: int) -> Iterator[AuditRecord]:
    if not log.exists():
        return
    seen: set[str] = set()
    with log.open("rb") as lines:
        lines.seek(since)
        for line in lines:
            if not line.endswith(b"\n"):  # still being written
                return
            event = json.loads(line)
            if event["verb"] == "watch" and event["stage"] != "ResponseStarted":  # its end, which may be much later
                continue
            if event["auditID"] not in seen:  # other long answers, as of a log, have two lines as well
                seen.add(event["auditID"])
                yield _record(event)


def _record(event: dict[str, Any]) -> AuditRecord:
    target = event.get("objectRef", {})
    return AuditRecord(
        user=event["user"].get("username", ""),
        verb=event["verb"],
        resource=target.get("resource", ""),
        subresource=target.get("subresource", ""),
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        code=event.get("responseStatus", {}).get("code", 0),
        user_agent=event.get("userAgent", ""),
        uri=event["requestURI"],
        received=event["requestReceivedTimestamp"],
        body=event.get("requestObject"),
    )
