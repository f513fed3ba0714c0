"""Bearer tokens: who a token stands for. The tokens themselves are not kept, only what is left of them by SHA-256."""

from __future__ import annotations

import hashlib
import hmac
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pilotage.harbor.access.users import User

AUDIENCE = "https://kubernetes.default.svc"
"""Whom a token is meant for if it is to be used here."""
_HERE = (AUDIENCE,)
_SWEPT_FIRST_AT = 1024


class _Known(NamedTuple):
    digest: bytes
    user: User
    expires: float | None
    alive: Callable[[], bool] | None
    audiences: tuple[str, ...]


class Tokens:
    """A set of tokens. Looking one up takes the same time whether it is nearly right or altogether wrong."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._known: dict[bytes, _Known] = {}
        self._sweep_at = _SWEPT_FIRST_AT

    def add(
        self,
        digest: bytes,
        user: User,
        *,
        expires: float | None = None,
        alive: Callable[[], bool] | None = None,
        audiences: tuple[str, ...] = _HERE,
    ) -> None:
        """The token of this digest stands for `user` until `expires` (seconds since 1970), while `alive` says so."""
        if len(self._known) >= self._sweep_at:
            self._known = {digest: known for digest, known in self._known.items() if self._stands(known)}
            self._sweep_at = max(_SWEPT_FIRST_AT, 2 * len(self._known))
        self._known[digest] = _Known(digest, user, expires, alive, audiences)

    def forget(self, digest: bytes) -> None:
        """It stands for nobody any more."""
        self._known.pop(digest, None)

    def user(self, token: str, audiences: Collection[str] = _HERE) -> User | None:
        """Who bears this token, or None if it is not a valid one, or meant for none of these audiences."""
        known = self._valid(token)
        return known.user if known is not None and not set(known.audiences).isdisjoint(audiences) else None

    def audiences(self, token: str) -> tuple[str, ...]:
        """Whom a valid token is meant for."""
        known = self._valid(token)
        return known.audiences if known is not None else ()

    def _valid(self, token: str) -> _Known | None:
        digest = digest_of(token)
        known = self._known.get(digest)
        if known is None or not hmac.compare_digest(known.digest, digest):
            return None
        if not self._stands(known):
            del self._known[digest]
            return None
        return known

    def _stands(self, known: _Known) -> bool:
        expired = known.expires is not None and known.expires <= self._now()
        return not expired and (known.alive is None or known.alive())


def digest_of(token: str) -> bytes:
    """What is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
