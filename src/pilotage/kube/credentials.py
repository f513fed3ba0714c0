"""Credentials, asked before each request: fixed headers, a token file that rotates, impersonation on top.

Exec plugins have a module of their own. Nothing here prints a secret: not a repr, not an error, not a log line.
"""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from pilotage.kube.errors import ConfigError

# Half of the time between the kubelet's refresh of a projected token and the end of the old one, as in client-go.
TOKEN_FILE_MAX_AGE_SECONDS = 60.0

_log = logging.getLogger(__name__)


class Credentials(Protocol):
    """Source of the authentication headers, asked before each request."""

    async def headers(self) -> Mapping[str, str]:
        """The headers to send; cheap when nothing changed.

        It may be a multidict with several values for one name (Impersonate-Group): copy it by `.items()`, pair by pair.
        CredentialsError when there are none to be had.
        """

    async def client_certificate(self) -> tuple[bytes, bytes] | None:
        """The certificate and key (PEM) to connect with, if these credentials bring one. CredentialsError as above."""

    def rejected(self, used: Mapping[str, str] | None = None) -> None:
        """The server answered 401: forget what was cached, so that the caller's one retry starts afresh.

        Of many requests that were under way with the same old credentials, only the first should cost a refresh: a
        caller that passes what `headers()` had given it makes the others no-ops.
        """


def bearer(token: str) -> Mapping[str, str]:
    """The header for a token; ValueError, without the token in it, where a header cannot carry it."""
    if not token:
        raise ValueError("is empty")
    if not (token.isascii() and token.isprintable()):
        raise ValueError("holds characters that a token cannot have")
    return {"Authorization": f"Bearer {token}"}


def basic(username: str, password: str) -> Mapping[str, str]:
    """The header for a user name and a password."""
    from base64 import b64encode

    return {"Authorization": "Basic " + b64encode(f"{username}:{password}".encode()).decode()}


class FixedCredentials:
    """The same headers for ever: none (anonymous, or a client certificate), a token, or basic."""

    def __init__(self, headers: Mapping[str, str] | None = None) -> None:
        self._headers = headers or {}

    async def headers(self) -> Mapping[str, str]:
        """The headers."""
        return self._headers

    async def client_certificate(self) -> None:
        """None: a fixed certificate is part of the TLS settings."""

    def rejected(self, used: Mapping[str, str] | None = None) -> None:
        """Nothing to forget."""

    def __repr__(self) -> str:
        return f"FixedCredentials({', '.join(f'{name}: …' for name in self._headers)})"


class TokenFile:
    """A bearer token in a file that someone else rotates.

    Read again when the last reading is older than 60 s by the loop's clock, and at once after a 401. When that fails,
    the last good token stays in use: the writer may be in the middle of replacing it. `fallback` is used until the
    first good reading; without it, a file that cannot be read now is a ConfigError that names `origin`.
    """

    def __init__(self, path: Path, *, origin: str, fallback: Mapping[str, str] | None = None) -> None:
        self._path = path
        self._read_at: float | None = None
        self._failing = False
        try:
            self._headers = self._read()
        except (OSError, ValueError) as error:
            if fallback is None:
                raise ConfigError(f"{origin}: {_unreadable(path, error)}. Put a token there.") from error
            self._headers = fallback

    async def headers(self) -> Mapping[str, str]:
        """The header with the token as last read."""
        now = asyncio.get_running_loop().time()
        if self._read_at is None or now - self._read_at > TOKEN_FILE_MAX_AGE_SECONDS:
            try:
                self._headers, self._read_at, self._failing = self._read(), now, False
            except (OSError, ValueError) as error:
                if not self._failing:  # once, not with every request
                    _log.warning("%s; the token read before stays in use", _unreadable(self._path, error))
                self._failing = True
        return self._headers

    async def client_certificate(self) -> None:
        """None."""

    def rejected(self, used: Mapping[str, str] | None = None) -> None:
        """Read the file again before the next request. That is cheap, so it does not matter what was rejected."""
        del used
        self._read_at = None

    def _read(self) -> Mapping[str, str]:
        return bearer(self._path.read_text(encoding="utf-8").strip())

    def __repr__(self) -> str:
        return f"TokenFile({str(self._path)!r})"


def _unreadable(path: Path, error: OSError | ValueError) -> str:
    if isinstance(error, OSError):
        return f"{path} cannot be read ({error.strerror})"
    # Not the text of a UnicodeDecodeError: it quotes a byte of the secret.
    return f"{path} {'is not text' if isinstance(error, UnicodeDecodeError) else error}"


class Impersonating:
    """Other credentials, acting as someone else: the headers of `kubectl --as` on top of theirs."""

    def __init__(self, base: Credentials, act_as: list[tuple[str, str]]) -> None:
        self._base = base
        self._act_as = act_as
        self._theirs: Mapping[str, str] | None = None
        self._all: Mapping[str, str] = {}

    async def headers(self) -> Mapping[str, str]:
        """Theirs and ours; several groups are several values of one name."""
        theirs = await self._base.headers()
        if theirs is not self._theirs:
            from multidict import CIMultiDict, CIMultiDictProxy

            self._theirs = theirs
            self._all = CIMultiDictProxy(CIMultiDict([*theirs.items(), *self._act_as]))
        return self._all

    async def client_certificate(self) -> tuple[bytes, bytes] | None:
        """Theirs."""
        return await self._base.client_certificate()

    def rejected(self, used: Mapping[str, str] | None = None) -> None:
        """Tell them, in terms of their own headers."""
        self._base.rejected(self._theirs if used == self._all else used)

    def __repr__(self) -> str:
        return f"Impersonating({self._base!r}, {self._act_as!r})"
