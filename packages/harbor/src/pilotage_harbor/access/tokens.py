"""Bearer tokens: the user that a token stands for.

There are two sorts. Those that were added are known by their SHA-256; they are for administrators. Those of
ServiceAccounts are signed and say themselves whom they stand for, so that they outlive the process that issued them.
Neither sort is kept: only digests are.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from typing import TYPE_CHECKING, NamedTuple

from pilotage_harbor.access import signed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pilotage_harbor.apimachinery.users import UserInfo

AUDIENCE = "https://kubernetes.default.svc"
"""Audience of tokens for this server."""
_HERE = (AUDIENCE,)
VERIFIED_MAX = 4096
"""Number of signed tokens that are cached."""


class Bearer(NamedTuple):
    """The user that a token stands for, until `expires` (seconds since 1970), while `alive` says so."""

    user: UserInfo
    expires: float | None = None
    alive: Callable[[], bool] | None = None
    audiences: tuple[str, ...] = _HERE


class Tokens:
    """A set of tokens. Looking one up takes the same time whether it is nearly right or altogether wrong.

    `key` signs the tokens of accounts; who passes the same one again accepts those of an earlier process.
    """

    def __init__(self, now: Callable[[], float] = time.time, key: bytes = b"") -> None:
        self.key = key or secrets.token_bytes(signed.KEY_BYTES)
        self.resolve: Callable[[bytes], Bearer | None] | None = None
        """The bearer of a token with these claims, whose signature is ours."""
        self._now = now
        self._added: dict[bytes, tuple[bytes, Bearer]] = {}
        self._verified: dict[bytes, tuple[bytes, Bearer]] = {}
        """Signed tokens that were used lately: their signatures are not computed again."""

    def add(self, digest: bytes, user: UserInfo) -> None:
        """Accept the token of this digest."""
        self._added[digest] = (digest, Bearer(user))

    def user(self, token: str, audiences: Collection[str] = _HERE) -> UserInfo | None:
        """The bearer of a token; None if it is invalid, or meant for none of these audiences."""
        bearer = self._valid(token)
        return bearer.user if bearer is not None and not set(bearer.audiences).isdisjoint(audiences) else None

    def audiences(self, token: str) -> tuple[str, ...]:
        """Audiences of a valid token."""
        bearer = self._valid(token)
        return bearer.audiences if bearer is not None else ()

    def _valid(self, token: str) -> Bearer | None:
        digest = digest_of(token)
        known = self._added.get(digest) or self._verified.get(digest)
        if known is not None and hmac.compare_digest(known[0], digest):
            bearer = known[1]
        elif (found := self._signed(token)) is not None:
            bearer = found
            if len(self._verified) >= VERIFIED_MAX:  # whoever may ask for tokens may ask for any number of them
                self._verified.clear()
            self._verified[digest] = (digest, bearer)
        else:
            return None
        if not self._stands(bearer):
            self._verified.pop(digest, None)
            return None
        return bearer

    def _signed(self, token: str) -> Bearer | None:
        claims = signed.read(token, self.key) if self.resolve is not None else None
        return self.resolve(claims) if self.resolve is not None and claims is not None else None

    def _stands(self, bearer: Bearer) -> bool:
        expired = bearer.expires is not None and bearer.expires <= self._now()
        return not expired and (bearer.alive is None or bearer.alive())


def digest_of(token: str) -> bytes:
    """Digest under which a token is kept."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
