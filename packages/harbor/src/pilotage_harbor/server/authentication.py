"""Authentication: by the certificate of the connection, by a bearer token, or anonymous; and impersonation."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from pilotage_harbor.access.attributes import attributes_of
from pilotage_harbor.apimachinery import errors
from pilotage_harbor.apimachinery.users import AUTHENTICATED, NOBODY, UserInfo

if TYPE_CHECKING:
    import asyncio

    from pilotage_harbor.access.rbac import Authorizer
    from pilotage_harbor.access.tokens import Tokens
    from pilotage_harbor.server.http1 import RequestHead


class Authentication:
    """Finds out who asks. Who asks to be another is checked by the authorizer; without one, nobody may."""

    def __init__(self, tokens: Tokens, authorizer: Authorizer | None = None) -> None:
        self._tokens = tokens
        self._authorizer = authorizer
        self._old_way_first: dict[str, bool] = {}

    def user(self, head: RequestHead, peer: UserInfo | None) -> UserInfo:
        """The user of a request; StatusError 401 for an invalid token, 403 for an impersonation that is not allowed."""
        values = head.headers.values
        user = peer
        if user is None:
            given = values.get("authorization")
            user = NOBODY if given is None else self._bearer(given)
        for name in values:
            if name.startswith("impersonate-"):
                from pilotage_harbor.server.impersonation import impersonated  # rare, and slow to import

                return impersonated(user, head, self._authorizer, self._old_way_first)
        return user

    def check(self, head: RequestHead, peer: UserInfo | None) -> None:
        """Raise what who asks would be told before anybody looks at the body: 401, or 403."""
        user = self.user(head, peer)
        if self._authorizer is not None:
            self._authorizer.check(user, attributes_of(head.method, head.path, head.query))

    def peer(self, transport: asyncio.BaseTransport) -> UserInfo | None:
        """The user of the client's certificate: its common name, in the groups of its organizations."""
        tls = transport.get_extra_info("ssl_object")
        certificate = tls.getpeercert() if tls is not None else None
        if not certificate:
            return None
        subject = [pair for name in certificate["subject"] for pair in name]
        name = next((value for key, value in subject if key == "commonName"), "")
        if not name:
            return None
        groups = tuple(value for key, value in subject if key == "organizationName")
        print_ = hashlib.sha256(tls.getpeercert(binary_form=True)).hexdigest()
        extra = {"authentication.kubernetes.io/credential-id": (f"X509SHA256={print_}",)}
        return UserInfo(name, groups=_with(groups, AUTHENTICATED), extra=extra)

    def _bearer(self, given: str) -> UserInfo:
        scheme, *rest = given.strip().split(" ", 2)
        if scheme.lower() != "bearer" or not rest or not rest[0]:
            return NOBODY
        user = self._tokens.user(rest[0])
        if user is None:
            raise errors.StatusError(401, "Unauthorized", "Unauthorized")
        return user if AUTHENTICATED in user.groups else user._replace(groups=_with(user.groups, AUTHENTICATED))


def _with(groups: tuple[str, ...], group: str) -> tuple[str, ...]:
    return groups if group in groups else (*groups, group)
