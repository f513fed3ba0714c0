"""Questions about a live cluster beyond what was gathered. Values only; `resolve` answers them.

None of them changes anything. The two dry runs are writes that the server checks, admission included, and does not do.

Two questions of different kinds are never equal, which tuples with the same fields would be.
"""

import msgspec

from pilotage.kube import Json
from pilotage.kube.errors import ErrorClass


class FullObject(msgspec.Struct, frozen=True):
    """All of one object. The answer's `body`; the world's item is replaced as well."""

    uid: str


class EventsAbout(msgspec.Struct, frozen=True):
    """The Events that are about one object, newest last, in `items`."""

    uid: str


class DryRunUpdate(msgspec.Struct, frozen=True):
    """Would the API let go of this finalizer of this object? A server-side dry run of its removal."""

    uid: str
    finalizer: str


class DryRunDelete(msgspec.Struct, frozen=True):
    """Would the API take the delete of this object? A server-side dry run, with its uid."""

    uid: str


class MayI(msgspec.Struct, frozen=True):
    """Whether we may do this (SelfSubjectAccessReview): `allowed` of the answer."""

    verb: str
    group: str
    plural: str
    namespace: str


class MayThey(msgspec.Struct, frozen=True):
    """Whether another user may (SubjectAccessReview), such as ``system:serviceaccount:kserve:manager``."""

    user: str
    verb: str
    group: str
    plural: str
    namespace: str
    subresource: str = ""


Question = FullObject | EventsAbout | DryRunUpdate | DryRunDelete | MayI | MayThey


class Answer(msgspec.Struct, frozen=True):
    """The answer to a question. `error_class` and `message` where the server refused, in its own words."""

    allowed: bool = True
    body: Json | None = None
    items: tuple[Json, ...] = ()
    error_class: ErrorClass | None = None
    message: str = ""
