"""All watches, and for whom: a watch ends soon after its user may no longer watch, or is no more.

kube-apiserver lets a watch go on to its end, which is the client's choice. Here it is judged again when a rule changes,
and ended when the account that it belongs to is deleted.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pilotage_harbor.access.rbac import STORAGES
from pilotage_harbor.apimachinery.calls import pause
from pilotage_harbor.apimachinery.users import MASTERS
from pilotage_harbor.storage.store import DELETED

if TYPE_CHECKING:
    from pilotage_harbor.access.attributes import AccessAttributes
    from pilotage_harbor.apimachinery.users import UserInfo
    from pilotage_harbor.core import Core
    from pilotage_harbor.kinds import Kind
    from pilotage_harbor.storage.store import Event
    from pilotage_harbor.verbs.watches import WatchStream

CHECK_SECONDS = 1.0
"""Rules often change several at a time: they are looked at together, so long after the first."""
_CHECKED_AT_ONCE = 100
_ACCOUNTS = "serviceaccounts"


class Watchers:
    """Open watches, and who may go on with them."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._watches: dict[WatchStream, tuple[UserInfo, AccessAttributes]] = {}
        self._due: asyncio.TimerHandle | None = None
        self._check: asyncio.Task[None] | None = None
        for storage in STORAGES:
            core.store.listen(storage, self._rules_changed)
        core.store.listen(_ACCOUNTS, self._account_changed)
        core.registry.on_end(self._kind_ended)

    def add(self, watch: WatchStream, user: UserInfo, wanted: AccessAttributes) -> None:
        """Register a watch that has begun."""
        self._watches[watch] = (user, wanted)

    def discard(self, watch: WatchStream) -> None:
        """Remove a watch that has ended."""
        self._watches.pop(watch, None)

    def stop(self) -> None:
        """End them all, each with what it has to say."""
        if self._due is not None:
            self._due.cancel()
        if self._check is not None:
            self._check.cancel()
        for watch in [*self._watches]:
            watch.end()

    def _kind_ended(self, kind: Kind) -> None:
        """Whoever watches a kind that is now another has to begin again."""
        for watch in [each for each in self._watches if each.kind is kind]:
            watch.end()

    def _account_changed(self, event: Event) -> None:
        if event.type != DELETED:
            return
        account = event.entry
        name = f"system:serviceaccount:{account.namespace}:{account.name}"
        for watch, (user, _) in [*self._watches.items()]:
            if user.name == name and user.uid in ("", account.uid) and MASTERS not in user.groups:
                watch.break_off()

    def _rules_changed(self, _event: Event) -> None:
        if self._due is None and any(MASTERS not in user.groups for user, _ in self._watches.values()):
            self._due = asyncio.get_running_loop().call_later(CHECK_SECONDS, self._begin_check)

    def _begin_check(self) -> None:
        loop = asyncio.get_running_loop()
        if self._check is not None and not self._check.done():  # it may have seen some watches by the rules of before
            self._due = loop.call_later(CHECK_SECONDS, self._begin_check)
            return
        self._due = None
        self._check = loop.create_task(self._check_all())

    async def _check_all(self) -> None:
        for at, (watch, (user, wanted)) in enumerate([*self._watches.items()], 1):
            if not self._core.authorizer.decide(user, wanted).allowed:
                watch.break_off()
            if not at % _CHECKED_AT_ONCE:
                await pause()
