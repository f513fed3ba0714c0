"""Errors of sources: permanent until something is changed, or transient.

After a `PermanentError` (a missing file, a 404, a wrong checksum, …) the source is checked again at a fixed, slow
interval. After a `TransientError` (a time-out, a 5xx, a broken connection) it is retried with exponential backoff. Both
say in one sentence what happened and in one what to do; neither ever holds a secret, the query of a URL or a traceback.
The same error always has the same message, so that reporting it again changes nothing.
"""

import enum
import errno

NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})


class Reason(enum.StrEnum):
    """Reason in one word, for conditions, Events and metrics."""

    # PermanentError
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
    # TransientError
    TIMED_OUT = "TimedOut"
    CONNECTION = "ConnectionFailed"
    SERVER_ERROR = "ServerError"
    THROTTLED = "Throttled"
    TOO_SLOW = "SourceTooSlow"
    INCOMPLETE = "Incomplete"
    CHANGED = "SourceChanged"
    INTERNAL = "InternalError"


class Problem(Exception):
    """An error of a source: `what` happened, and what `to_do` about it, each without the final dot."""

    def __init__(self, reason: Reason, what: str, to_do: str = "") -> None:
        super().__init__(". ".join(filter(None, (what, to_do))) + ".")
        self.reason = reason
        self.what = what
        self.to_do = to_do


class PermanentError(Problem):
    """An error that lasts until the spec or the source changes."""


class TransientError(Problem):
    """An error that a retry may not meet again. `retry_after`: seconds that the source asked to wait, or 0."""

    def __init__(self, reason: Reason, what: str, to_do: str = "", *, retry_after: float = 0.0) -> None:
        super().__init__(reason, what, to_do)
        self.retry_after = retry_after


def storage_problem(error: OSError, where: str) -> PermanentError:
    """The problem when a file of ours could not be written, or read back, at `where`."""
    if error.errno in NO_SPACE:
        return PermanentError(
            Reason.NO_SPACE, f"there is no space left for {where}", "Free some, or use a larger volume"
        )
    why = error.strerror or type(error).__name__
    return PermanentError(
        Reason.STORAGE, f"{where} cannot be written: {why}", "Give Pilotage a folder that it may write to"
    )
