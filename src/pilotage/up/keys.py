"""The keys of the parts: tokens that are replaced long before they end, and at once when they are refused.

A token ends by the wall clock, which can be set, and which goes on while a laptop is suspended. So the wall clock is
asked every second whether a key is due; nothing here sleeps until then. In addition the API server is asked whether it
still accepts the keys: it does not if an account was made anew, or its signing key.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pilotage.kube import ApiError, Resource
from pilotage.runtime.clock import monotonic, utc_now
from pilotage.up import access
from pilotage.up.parts import WORKERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pilotage.kube import Client
    from pilotage.up.layout import Layout

LOOK_SECONDS = 1.0
REVIEW_SECONDS = 10.0
SKEW_SECONDS = 60.0
"""A clock that was set back by less than this has not been set back."""
SAID_AFTER = 10
"""Attempts that fail, one a second, before a person is told: an API server that starts anew is no news."""
_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", False)


def due(issued: float, now: float) -> bool:
    """Whether keys are to be replaced: a quarter of their life is over, or the clock was set to before it began."""
    return not issued - SKEW_SECONDS <= now < issued + access.SECONDS / 4


class Keys:
    """The keys of all parts of a folder. `connect` makes a client of the administrator; `host` names our own Host."""

    def __init__(self, layout: Layout, connect: Callable[[], Client], say: Callable[[str], None], host: str) -> None:
        self._layout = layout
        self._host = host
        self._connect = connect
        self._say = say
        self._issued = float("-inf")
        self._failures = 0

    def renew(self) -> None:
        """Replace them as soon as the API server answers, because it was started anew."""
        self._issued = float("-inf")

    async def give(self) -> list[str]:
        """Give a new key to each part. Returns the parts that have to reach the server in another way than before."""
        issued = utc_now().timestamp()
        async with self._connect() as client:
            moved = [part for part in WORKERS if await access.give_access(client, self._layout, part, self._host)]
        self._issued = issued
        return moved

    async def keep(self, moved: Callable[[str], None]) -> None:
        """Replace them when they are due or refused, until cancelled. `moved` gets the parts that `give` names."""
        review_at = monotonic() + REVIEW_SECONDS
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                if monotonic() >= review_at:
                    review_at = monotonic() + REVIEW_SECONDS
                    if await self._refused():
                        self.renew()
                if due(self._issued, utc_now().timestamp()):
                    for part in await self.give():
                        moved(part)
            except (ApiError, OSError) as error:
                self._failures += 1
                if self._failures == SAID_AFTER:
                    self._say(f"the keys of the parts cannot be renewed, which is tried on: {error}")
            else:
                self._failures = 0

    async def _refused(self) -> bool:
        """Whether the API server does not accept the key of a part, or there is none to be read."""
        async with self._connect() as client:
            for part in WORKERS:
                try:
                    token = self._layout.token(part).read_text(encoding="utf-8")
                except (OSError, UnicodeDecodeError):
                    return True
                body = {"apiVersion": "authentication.k8s.io/v1", "kind": _REVIEWS.kind, "spec": {"token": token}}
                answer = await client.create(_REVIEWS, body)
                if answer.get("status", "authenticated", default=False) is not True:
                    return True
        return False
