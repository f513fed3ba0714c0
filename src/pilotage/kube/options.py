"""Options of reads and deletes that have no right default: the version, the object, the propagation."""

import enum

import msgspec

from pilotage.kube.wire import Json


class ReadVersion(msgspec.Struct, frozen=True):
    """State that a read accepts: the `resourceVersion` and `resourceVersionMatch` parameters."""

    resource_version: str
    match: str = ""

    def query(self) -> dict[str, str]:
        """Query parameters; empty ones are not sent."""
        return {"resourceVersion": self.resource_version, "resourceVersionMatch": self.match}


MOST_RECENT = ReadVersion("")
"""A consistent read: the only one that proves absence."""

ANY = ReadVersion("0")
"""Whatever the server's cache has; may be old."""


def not_older_than(resource_version: str) -> ReadVersion:
    """State at least as new as this version."""
    return ReadVersion(resource_version, "NotOlderThan")


def exactly(resource_version: str) -> ReadVersion:
    """The state at this version (lists only); Expired when it is compacted."""
    return ReadVersion(resource_version, "Exact")


class Propagation(enum.StrEnum):
    """Propagation of a delete to the object's dependents."""

    FOREGROUND = "Foreground"
    BACKGROUND = "Background"
    ORPHAN = "Orphan"


def delete_options(
    *,
    uid: str = "",
    resource_version: str = "",
    propagation: Propagation | None = None,
    grace_seconds: int | None = None,
    dry_run: bool = False,
) -> Json:
    """The body of a DELETE, or of an eviction. A uid or a version that is given is a precondition."""
    options: Json = {"apiVersion": "v1", "kind": "DeleteOptions"}
    preconditions = {name: value for name, value in (("uid", uid), ("resourceVersion", resource_version)) if value}
    if preconditions:
        options["preconditions"] = preconditions
    if propagation is not None:
        options["propagationPolicy"] = propagation.value
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    if dry_run:
        options["dryRun"] = ["All"]
    return options
