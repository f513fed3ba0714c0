"""What can go wrong with a source: it stands until somebody changes something, or it passes by itself.

A `Standing` problem (a missing file, a 404, a wrong checksum, …) is looked at again every few minutes and never retried
in a hurry. A `Passing` one (a time-out, a 5xx, a connection that broke) is retried with growing pauses. Both say in one
sentence what happened and in one what to do; neither ever holds a secret, the query of a URL or a traceback. The same
trouble always gives the same words, so that telling it again changes nothing.
"""

from __future__ import annotations

import enum
import errno

NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})


class Reason(enum.StrEnum):
    """Why, in one word: for conditions, Events and metrics."""

    # Standing
    INVALID_SOURCE = "InvalidSource"
    NOT_SUPPORTED = "SourceNotSupported"
    NOT_ALLOWED = "SourceNotAllowed"
    ADDRESS_NOT_ALLOWED = "AddressNotAllowed"
    FILE_MISSING = "FileNotFound"
    NOT_READABLE = "PermissionDenied"
    NOT_A_FILE = "NotAFile"
    NOT_FOUND = "NotFound"
    UNAUTHORIZED = "Unauthorized"
    FORBIDDEN = "AccessDenied"
    REFUSED = "RequestRefused"
    BAD_REDIRECT = "BadRedirect"
    HOST_UNKNOWN = "HostNotFound"
    CERTIFICATE = "CertificateInvalid"
    CHECKSUM = "ChecksumMismatch"
    BAD_FORMAT = "InvalidFormat"
    SECRET_MISSING = "SecretNotFound"  # noqa: S105 - the name of a reason
    SECRET_UNUSABLE = "SecretUnusable"  # noqa: S105
    TOO_LARGE = "SourceTooLarge"
    NO_SPACE = "StorageFull"
    STORAGE = "StorageNotWritable"
    # Passing
    TIMED_OUT = "TimedOut"
    CONNECTION = "ConnectionFailed"
    SERVER_ERROR = "ServerError"
    THROTTLED = "Throttled"
    TOO_SLOW = "SourceTooSlow"
    INCOMPLETE = "Incomplete"
    CHANGED = "SourceChanged"
    INTERNAL = "InternalError"


class Problem(Exception):
    """Something is wrong with a source: `what` happened, and what `to_do` about it, each without the final dot."""

    def __init__(self, reason: Reason, what: str, to_do: str = "") -> None:
        super().__init__(". ".join(filter(None, (what, to_do))) + ".")
        self.reason = reason
        self.what = what
        self.to_do = to_do


class Standing(Problem):
    """It lasts until the spec or the world changes."""


class Passing(Problem):
    """It may be over at the next try, which should not come before `retry_after` seconds, where the source said so."""

    def __init__(self, reason: Reason, what: str, to_do: str = "", *, retry_after: float = 0.0) -> None:
        super().__init__(reason, what, to_do)
        self.retry_after = retry_after


def storage_problem(error: OSError, where: str) -> Standing:
    """What it means that a file of ours could not be written (or read back) at `where`."""
    if error.errno in NO_SPACE:
        return Standing(Reason.NO_SPACE, f"there is no space left for {where}", "Free some, or use a larger volume")
    why = error.strerror or type(error).__name__
    return Standing(Reason.STORAGE, f"{where} cannot be written: {why}", "Give Pilotage a folder that it may write to")
