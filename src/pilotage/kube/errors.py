"""Errors of requests to the API: nine classes, one for each thing a caller may have to do next; and of configuration.

A status code alone never decides: 409 may mean "read again", "someone else's object" or "wait until it is gone", and
404 may mean that the object is gone or that its kind is not served at the moment. Only the first of the two is a proof
of absence. So every answer is classified once, here, from the code, the Status reason and its causes.

The message of a `ConfigError` has one shape: `<file>: <field>: what is wrong. What to do.` It never holds a secret.
"""

import enum
import re
from typing import ClassVar
from urllib.parse import unquote

import msgspec


class ConfigError(Exception):
    """The configuration is wrong or missing. It stays so until somebody changes it."""


class NothingConfigured(ConfigError):
    """No place that is looked at names a cluster."""


class CredentialsError(ConfigError):
    """The configuration is sound, but credentials are unavailable now (an exec plugin failed): later may work."""


class ErrorClass(enum.StrEnum):
    """The taxonomy, as a value for metrics, logs and tables."""

    ABSENT = "absent"
    CONFLICT = "conflict"
    FOREIGN = "foreign"
    TERMINATING = "terminating"
    FORBIDDEN = "forbidden"
    INVALID = "invalid"
    THROTTLED = "throttled"
    UNAVAILABLE = "unavailable"
    UNCERTAIN = "uncertain"


class StatusCause(msgspec.Struct, frozen=True):
    """One cause of a Status: what, in words, and at which field."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(msgspec.Struct, frozen=True, rename="camel"):
    """The details of a Status."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """meta/v1 Status: how the API server says no (or yes, to a delete)."""

    kind: str = ""
    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = None

    @property
    def causes(self) -> tuple[StatusCause, ...]:
        """The causes, empty where there are no details."""
        return self.details.causes if self.details else ()


class ApiError(Exception):
    """A request that did not succeed. Each subclass says what its reader may do next."""

    error_class: ClassVar[ErrorClass]

    def __init__(
        self,
        message: str,
        *,
        request: str = "",
        status: Status | None = None,
        code: int = 0,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{request}: {message}" if request else message)
        self.message = message
        self.request = request
        self.code = code
        self.reason = status.reason if status else ""
        self.causes = status.causes if status else ()
        self.details = status.details if status else None
        self.retry_after = retry_after


class Absent(ApiError):
    """The object does not exist: the API server was asked for it by name, and said so."""

    error_class = ErrorClass.ABSENT


class Conflict(ApiError):
    """The write was based on an old version of the object. Read again, then decide again."""

    error_class = ErrorClass.CONFLICT


class AlreadyExists(Conflict):
    """The name is taken, by an object that is not being deleted."""


class Expired(Conflict):
    """The resourceVersion or the continue token is too old (410), or newer than all the server has. List again."""


class Foreign(ApiError):
    """The name belongs to an object with another uid. It is not ours to touch."""

    error_class = ErrorClass.FOREIGN


class Terminating(ApiError):
    """The object's name, or its namespace, is held by something that is being deleted. Wait until that is gone."""

    error_class = ErrorClass.TERMINATING


class Forbidden(ApiError):
    """RBAC or admission said no. The same request will be refused until someone changes that."""

    error_class = ErrorClass.FORBIDDEN


class Unauthorized(Forbidden):
    """The server does not know who we are (401), also after the credentials were asked for again."""


class Invalid(ApiError):
    """The request itself is wrong: it will never succeed as it is."""

    error_class = ErrorClass.INVALID


class Throttled(ApiError):
    """Too many requests (429). `retry_after` says when to come back, where the server said so."""

    error_class = ErrorClass.THROTTLED


class Unavailable(ApiError):
    """The server did not do it, and may do it later. For a read: nothing is known."""

    error_class = ErrorClass.UNAVAILABLE


class KindNotServed(Unavailable):
    """The path answers 404 because its kind is not served (now). That says nothing about any object."""


class Uncertain(ApiError):
    """A write was sent and no answer tells whether it was applied. Read before deciding anything."""

    error_class = ErrorClass.UNCERTAIN


# What kube-apiserver says, word for word, where no reason or cause says it; pinned by tests against the real one.
_UID_MISMATCHES = ("Precondition failed: UID in precondition", "the UID in the precondition", "uid mismatch")
_NO_OBJECT_AT_ALL = re.compile(r"UID in object meta:\s*$|no existing object was found")
_BEING_DELETED = "object is being deleted"
_KIND_BEING_DELETED = "while custom resource definition is terminating"
_WEBHOOK_FAILED = "failed calling webhook"


def classify(
    code: int,
    status: Status | None,
    *,
    text: str = "",
    write: bool,
    request: str = "",
    retry_after: float | None = None,
) -> ApiError:
    """The error for an answer of 300 or above. `status` is None where the answer was not a Status (`text` then is)."""
    kind = _class_of(code, status, request, write=write)
    if retry_after is None and status and status.details and status.details.retry_after_seconds:
        retry_after = float(status.details.retry_after_seconds)
    message = " ".join((status.message if status else text[:500]).split()) or f"HTTP {code}"
    if kind is KindNotServed:
        message = f"this kind is not served by the API server ({message})"
    return kind(message, request=request, status=status, code=code, retry_after=retry_after)


def _class_of(code: int, status: Status | None, request: str, *, write: bool) -> type[ApiError]:
    if status and any(cause.reason == "ResourceVersionTooLarge" for cause in status.causes):
        return Expired  # the server has gone back, to a backup perhaps: what we know is from another history
    if code == 404:
        return _class_of_missing(status, request)
    if code == 409 and status:
        return _class_of_conflict(status)
    if code in (403, 405) and status and _is_being_deleted(status):
        return Terminating
    if code == 422 and status and any(cause.field == "metadata.uid" for cause in status.causes):
        return Foreign  # a patch that names its uid met another object under the name
    if code >= 500 or code == 408:
        return _class_of_server_error(code, status, write=write)
    if code < 400:
        return Unavailable  # the API server redirects nobody: something in front of it did, to a login perhaps
    return _BY_CODE.get(code, Invalid)


def _class_of_missing(status: Status | None, request: str) -> type[ApiError]:
    """A missing object is named in the details; an unknown path answers in plain text, or with no name."""
    name = status.details.name if status and status.details else ""
    if not name:
        return KindNotServed
    # Not what was asked for, but something on the way to it: the node of the pod whose log is read.
    return Absent if name in map(unquote, request.split("/")) else Unavailable


def _class_of_conflict(status: Status) -> type[ApiError]:
    if status.reason == "AlreadyExists":
        return Terminating if _BEING_DELETED in status.message else AlreadyExists
    if any(words in status.message for words in _UID_MISMATCHES):
        return Absent if _NO_OBJECT_AT_ALL.search(status.message) else Foreign
    return Conflict


def _is_being_deleted(status: Status) -> bool:
    """Whether it is forbidden because the namespace goes, or the kind."""
    in_namespace = any(cause.reason == "NamespaceTerminating" for cause in status.causes)
    return in_namespace or _KIND_BEING_DELETED in status.message


def _class_of_server_error(code: int, status: Status | None, *, write: bool) -> type[ApiError]:
    if not write:
        return Unavailable
    # A 503 of the API server itself, and a webhook that could not be called, come before storage. Anything else (a
    # proxy's 502, a 504, an etcd time-out that surfaces as 500) may have come after it.
    refused = status is not None and (code == 503 or _WEBHOOK_FAILED in status.message)
    return Unavailable if refused else Uncertain


_BY_CODE: dict[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    409: Conflict,
    410: Expired,
    429: Throttled,
}
