"""Service account tokens of the components: replaced long before they expire, and at once when they are refused.

A token expires by the wall clock, which can be set, and which goes on while a laptop is suspended. So the wall clock is
read every second; nothing here sleeps until a token is due. The API server is also asked whether it still accepts the
tokens: it does not if an account was recreated, or its signing key.
"""

import asyncio
from collections.abc import Callable

from pilotage.kube import ApiError, Client, Resource
from pilotage.runtime.clock import monotonic, utc_now
from pilotage.up import access
from pilotage.up.components import WORKERS
from pilotage.up.layout import Layout

CHECK_SECONDS = 1.0
REVIEW_SECONDS = 10.0
SKEW_SECONDS = 60.0
"""A clock that was set back by less than this has not been set back."""
REPORTED_AFTER = 10
"""Failed attempts, one a second, before they are reported: a restart of the API server is not worth a line."""
_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", False)


def due(issued: float, now: float) -> bool:
    """Whether tokens are to be replaced: a quarter of their life is over, or the clock was set to before it began."""
    return not issued - SKEW_SECONDS <= now < issued + access.SECONDS / 4


class ComponentTokens:
    """The tokens of all components. `connect` makes a client of the administrator; `host` names our own Host."""

    def __init__(self, layout: Layout, connect: Callable[[], Client], say: Callable[[str], None], host: str) -> None:
        self._layout = layout
        self._host = host
        self._connect = connect
        self._say = say
        self._issued = float("-inf")
        self._failures = 0

    def renew(self) -> None:
        """Replace them as soon as the API server answers."""
        self._issued = float("-inf")

    async def issue(self) -> list[str]:
        """Issue a token to each component. Returns the components whose kubeconfig has changed."""
        issued = utc_now().timestamp()
        async with self._connect() as client:
            moved = [each for each in WORKERS if await access.give_access(client, self._layout, each, self._host)]
        self._issued = issued
        return moved

    async def keep(self, moved: Callable[[str], None]) -> None:
        """Replace them when they are due or refused, until cancelled. `moved` is called with what `issue` returns."""
        review_at = monotonic() + REVIEW_SECONDS
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                if monotonic() >= review_at:
                    review_at = monotonic() + REVIEW_SECONDS
                    if await self._refused():
                        self.renew()
                if due(self._issued, utc_now().timestamp()):
                    for component in await self.issue():
                        moved(component)
            except (ApiError, OSError) as error:
                self._failures += 1
                if self._failures == REPORTED_AFTER:
                    self._say(f"the tokens of the components cannot be renewed, which is retried: {error}")
            else:
                self._failures = 0

    async def _refused(self) -> bool:
        """Whether the API server does not accept the token of a component, or there is none to be read."""
        async with self._connect() as client:
            for component in WORKERS:
                try:
                    token = self._layout.token(component).read_text(encoding="utf-8")
                except (OSError, UnicodeDecodeError):
                    return True
                body = {"apiVersion": "authentication.k8s.io/v1", "kind": _REVIEWS.kind, "spec": {"token": token}}
                answer = await client.create(_REVIEWS, body)
                if answer.get("status", "authenticated", default=False) is not True:
                    return True
        return False
