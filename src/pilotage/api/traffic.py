"""Parts of specs that say which requests take part in a split, who stays where, and who gets copies."""

from typing import Annotated, Literal

from msgspec import Meta

from pilotage.api.base import Schema, map_list, matches

HeaderName = Annotated[str, matches("^[a-z0-9]([-_a-z0-9]*[a-z0-9])?$", max_length=128)]
"""The name of a header, in small letters, as proxies compare it."""
FieldName = Annotated[str, matches("^[A-Za-z_][A-Za-z0-9_]*$", max_length=64)]
Percent = Annotated[int, Meta(ge=0, le=100)]
CopiedPercent = Annotated[int, Meta(ge=1, le=100)]
"""A share of copies. Never 0: for some proxies that means all of them."""


class HeaderRule(Schema, frozen=True):
    """Header that a request must have, with exactly this value."""

    name: HeaderName
    """Name of the header, in lower case."""
    exact: Annotated[str, Meta(min_length=1, max_length=256)]
    """Value of the header."""


class RequestMatch(Schema, frozen=True):
    """Requests by their headers, all of which must match."""

    headers: Annotated[list[HeaderRule], Meta(min_length=1, max_length=8, extra_json_schema=map_list("name"))]
    """Headers of the requests."""


class AssignmentKey(Schema, frozen=True):
    """Place of a key in a request: exactly one of `header` and `body`."""

    header: HeaderName | None = None
    """Name of a header, in lower case."""
    body: FieldName | None = None
    """Name of a field at the top of the JSON body, such as `user`."""


class Assignment(Schema, frozen=True):
    """Assignment of requests to the sides of a split."""

    by: Literal["Request", "Key"] = "Request"
    """Request: each request by itself. Key: requests with the same key go to the same side."""
    key: Annotated[list[AssignmentKey], Meta(max_length=4)] = []
    """Keys, of which the first that a request has is taken. Required for Key."""


class MirrorRule(Schema, frozen=True):
    """Copies of requests, whose answers nobody sees."""

    percent: CopiedPercent = 100
    """Percentage of the requests that are copied."""
    max_concurrent: Annotated[int, Meta(ge=1, le=10000)] | None = None
    """Number of copies in flight, beyond which none are sent. If unset, no limit."""
