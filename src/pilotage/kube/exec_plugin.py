"""Credentials from a program: when an exec plugin is run, and how long what it handed out is used.

It is run when there is no credential, when the one we have is about to expire, and after a 401; never twice at the
same time, however many requests are waiting for it.
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pilotage.kube import exec_run
from pilotage.kube.errors import CredentialsError

# A credential is replaced this long before it expires, so that no request is under way with it when it does; but not
# earlier than in the last tenth of its life, or one that lives for a minute would be replaced with every request.
REFRESH_BEFORE_EXPIRY_SECONDS = 60.0
REFRESH_BEFORE_EXPIRY_SHARE = 0.1
# When that fails, the old credential is used while it lasts, and the program left alone for so long.
RETRY_REFRESH_SECONDS = 10.0

_log = logging.getLogger(__name__)


@dataclass(slots=True, repr=False)
class _Cached:
    credential: exec_run.Credential
    refresh_at: float  # by the wall clock


@dataclass(slots=True)
class _Run:
    task: asyncio.Task[_Cached]
    waiting: int = 0


def wall_time() -> float:
    """The time of day, in seconds. A loop that has `wall_time` (virtual time) is asked for it."""
    now: Callable[[], float] = getattr(asyncio.get_running_loop(), "wall_time", time.time)
    return now()


class ExecPlugin:
    """Credentials from an exec plugin, kept until shortly before they expire, or until a 401."""

    def __init__(
        self,
        settings: exec_run.ExecSettings,
        *,
        env: Mapping[str, str] = os.environ,
        now: Callable[[], float] = wall_time,
        timeout: float = exec_run.TIMEOUT_SECONDS,
    ) -> None:
        """`env` is what the plugin inherits; `now` is the wall clock, in which expiry is given."""
        self._settings = settings
        self._env = env
        self._now = now
        self._timeout = timeout
        self._cached: _Cached | None = None
        self._run: _Run | None = None

    async def headers(self) -> Mapping[str, str]:
        """The header for its token; empty if it hands out certificates only."""
        return (await self._current()).headers

    async def client_certificate(self) -> tuple[bytes, bytes] | None:
        """Its client certificate and key, if it hands out any."""
        return (await self._current()).certificate

    def rejected(self, used: Mapping[str, str] | None = None) -> None:
        """Forget the credential, unless another has taken the place of the one that was rejected."""
        if self._cached is not None and (used is None or used == self._cached.credential.headers):
            self._cached = None

    def __repr__(self) -> str:
        return f"ExecPlugin({self._settings.command!r})"

    async def _current(self) -> exec_run.Credential:
        cached = self._cached
        if cached is not None and self._now() < cached.refresh_at:
            return cached.credential
        try:
            return (await self._shared_run()).credential
        except CredentialsError as error:
            now = self._now()
            if cached is None or cached is not self._cached or now >= cached.credential.expires_at:
                raise
            if now >= cached.refresh_at:  # else another that waited for the same run was here before
                _log.warning("%s The credential from before is used while it lasts.", error)
                cached.refresh_at = min(now + RETRY_REFRESH_SECONDS, cached.credential.expires_at)
            return cached.credential

    async def _shared_run(self) -> _Cached:
        """The outcome of one run, shared by all who ask meanwhile. When the last of them gives up, the run is ended."""
        run = self._run
        if run is None or run.task.done():
            run = self._run = _Run(asyncio.create_task(self._refresh(), name=repr(self)))
        run.waiting += 1
        try:
            return await asyncio.shield(run.task)
        finally:
            run.waiting -= 1
            if not run.waiting and not run.task.done():
                run.task.cancel()
                self._run = None

    async def _refresh(self) -> _Cached:
        credential = await exec_run.run(self._settings, self._env, timeout=self._timeout)
        now = self._now()
        early = min(REFRESH_BEFORE_EXPIRY_SECONDS, (credential.expires_at - now) * REFRESH_BEFORE_EXPIRY_SHARE)
        self._cached = _Cached(credential, refresh_at=credential.expires_at - early)
        return self._cached
