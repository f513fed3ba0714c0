"""Refusals: the Status that kube-apiserver would give, as an exception.

The words are kube-apiserver's, because people search for them and tools match them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class StatusCause(NamedTuple):
    """One thing that is wrong with an object, at one field of it."""

    field: str
    reason: str
    message: str
    """Message in the Status, after the field's name."""

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


class StatusError(Exception):
    """A refusal. `status` is the body of the answer, `headers` go with it."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.headers = headers or {}
        self.metadata: dict[str, Any] = {}

    @property
    def status(self) -> dict[str, Any]:
        """The meta/v1 Status."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status


def bad_request(message: str) -> StatusError:
    """400: the request itself makes no sense."""
    return StatusError(400, "BadRequest", message)


def not_found(group: str, plural: str, name: str) -> StatusError:
    """404: no such object."""
    qualified = f"{plural}.{group}" if group else plural
    return StatusError(404, "NotFound", f'{qualified} "{name}" not found', details=_details(name, group, plural))


class PageNotFound(Exception):
    """404 in plain text: no group, version or path of that name is served."""


def no_such_path() -> StatusError:
    """404: nothing is served there. A client must not take it for an absent object."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", details={})


def already_exists(group: str, plural: str, name: str, *, being_deleted: bool = False) -> StatusError:
    """409: the name is taken."""
    qualified = f"{plural}.{group}" if group else plural
    words = f'{qualified} "{name}" already exists'
    if being_deleted:
        words = f"object is being deleted: {words}"
    return StatusError(409, "AlreadyExists", words, details=_details(name, group, plural))


def conflict(group: str, plural: str, name: str, why: str) -> StatusError:
    """409: it is not what the request said it was."""
    qualified = f"{plural}.{group}" if group else plural
    words = f'Operation cannot be fulfilled on {qualified} "{name}": {why}'
    return StatusError(409, "Conflict", words, details=_details(name, group, plural))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def invalid(group: str, kind: str, name: str, causes: Sequence[StatusCause]) -> StatusError:
    """422: the object is not allowed to be like that. At least one cause."""
    qualified = f"{kind}.{group}" if group else kind
    details = _details(name, group, kind)
    details["causes"] = [{"reason": c.reason, "message": c.message, "field": c.field} for c in causes]
    return StatusError(422, "Invalid", f'{qualified} "{name}" is invalid: {_aggregated(causes)}', details=details)


def forbidden(group: str, plural: str, name: str, why: str) -> StatusError:
    """403: who asks may not, or nobody may."""
    qualified = f"{plural}.{group}" if group else plural
    words = f'{qualified} "{name}" is forbidden: {why}' if name else f"{qualified} is forbidden: {why}"
    if not qualified and not name:
        words = f"forbidden: {why}"
    details = {key: value for key, value in _details(name, group, plural).items() if value}
    return StatusError(403, "Forbidden", words, details=details)


def method_not_allowed() -> StatusError:
    """405: not with this verb."""
    words = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", words, details={})


def not_implemented(group: str, plural: str, name: str, why: str) -> StatusError:
    """501: a real cluster could do it, and this one never will."""
    qualified = f"{plural}.{group}" if group else plural
    words = f'{qualified} "{name}": {why}'
    return StatusError(501, "NotImplemented", words, details=_details(name, group, plural))


def expired(message: str) -> StatusError:
    """410: the version, or the continue token, is older than what is remembered."""
    return StatusError(410, "Expired", message)


def too_large(limit: int) -> StatusError:
    """413: the body is larger than a request may be."""
    words = f"Request entity too large: limit is {limit}"
    return StatusError(413, "RequestEntityTooLarge", words)


def too_large_to_store() -> StatusError:
    """500, as kube-apiserver passes on what etcd says of an object that is too large."""
    return StatusError(500, "", "etcdserver: request is too large")


def too_many_requests() -> StatusError:
    """429: not now."""
    words = "Too many requests, please try again later."
    details = {"retryAfterSeconds": 1}
    return StatusError(429, "TooManyRequests", words, details=details, headers={"Retry-After": "1"})


def unsupported_media_type(accepted: Iterable[str]) -> StatusError:
    """415: the body has a type that cannot be read."""
    words = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return StatusError(415, "UnsupportedMediaType", words)


def not_acceptable(accepted: Iterable[str]) -> StatusError:
    """406: the answer cannot be written in any type that the client would take."""
    words = f"406: Not Acceptable\n\nAvailable representations: {', '.join(accepted)}"
    return StatusError(406, "NotAcceptable", words, details={})


def internal(message: str) -> StatusError:
    """500: something of ours, or of a webhook's, went wrong."""
    words = f"Internal error occurred: {message}"
    return StatusError(500, "InternalError", words, details={"causes": [{"message": message}]})


def _details(name: str, group: str, kind: str) -> dict[str, Any]:
    details: dict[str, Any] = {"name": name} if name else {}
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    return details


def _aggregated(causes: Sequence[StatusCause]) -> str:
    """Field errors joined as apimachinery does: the same one only once, several in brackets."""
    words = list(dict.fromkeys(map(str, causes)))
    return words[0] if len(words) == 1 else f"[{', '.join(words)}]"
