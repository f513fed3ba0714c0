"""A user, as authentication names it and as authorization and admission see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

ANONYMOUS = "system:anonymous"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"
"""The group that no rule is asked about: it may do everything."""

_NO_EXTRA: Mapping[str, tuple[str, ...]] = {}


class UserInfo(NamedTuple):
    """A name, and what else is known about who bears it."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = _NO_EXTRA


NOBODY = UserInfo(ANONYMOUS, groups=(UNAUTHENTICATED,))
"""The user of requests without credentials."""

LOOPBACK = UserInfo("system:apiserver", groups=(MASTERS, AUTHENTICATED))
"""Harbor itself: its collector and its namespace controller ask as this one."""
