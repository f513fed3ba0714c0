"""Bearer tokens: who a token stands for. The tokens themselves are not kept, only what is left of them by SHA-256."""

from __future__ import annotations

import hashlib
import hmac
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pilotage.harbor.users import User


class _Known(NamedTuple):
    digest: bytes
    user: User
    expires: float | None


class Tokens:
    """A set of tokens. Looking one up takes the same time whether it is nearly right or altogether wrong."""

    def __init__(self) -> None:
        self._known: dict[bytes, _Known] = {}

    def add(self, digest: bytes, user: User, *, expires: float | None = None) -> None:
        """The token of this digest stands for `user`, until `expires` (in seconds since 1970)."""
        self._known[digest] = _Known(digest, user, expires)

    def forget(self, digest: bytes) -> None:
        """It stands for nobody any more."""
        self._known.pop(digest, None)

    def user(self, token: str) -> User | None:
        """Who bears this token, or None if it is not a valid one."""
        digest = digest_of(token)
        known = self._known.get(digest)
        if known is None or not hmac.compare_digest(known.digest, digest):
            return None
        if known.expires is not None and known.expires <= time.time():
            del self._known[digest]
            return None
        return known.user


def digest_of(token: str) -> bytes:
    """What is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
