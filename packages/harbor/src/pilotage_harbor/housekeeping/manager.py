"""Starts and stops the controllers of the housekeeping: bootstrap objects, custom kinds, garbage collector, namespace
deletion, protection of volumes, aggregated roles, quotas; and admission by policies and webhooks.

In a real cluster a part of it is kube-controller-manager's. All of it runs as tasks of the running loop: time is the
loop's and the core's, chance is the core's, and the same events lead to the same work in the same order.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pilotage_harbor.admission.chain import InOrder
from pilotage_harbor.admission.policies import Policies
from pilotage_harbor.admission.webhooks import Webhooks
from pilotage_harbor.core.admission import NoAdmission
from pilotage_harbor.housekeeping.aggregation import Aggregation
from pilotage_harbor.housekeeping.bootstrap_objects import Beginnings
from pilotage_harbor.housekeeping.collector import Collector
from pilotage_harbor.housekeeping.crds import Definitions
from pilotage_harbor.housekeeping.namespaces import GRACE_SECONDS, Namespaces
from pilotage_harbor.housekeeping.protection import Protection
from pilotage_harbor.housekeeping.quota_status import QuotaStatus

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pilotage_harbor.apimachinery.calls import Call, ServerResponse, Stream
    from pilotage_harbor.core import Core
    from pilotage_harbor.core.admission import Post


class Housekeeping:
    """The controllers of one harbor. When `start` returns, bootstrap objects exist and established kinds are served.

    `namespace_grace_seconds` is how long a namespace stays as it is after its delete; `post` is how webhooks are
    reached, if not by HTTPS.
    """

    def __init__(
        self,
        core: Core,
        handle: Callable[[Call], Awaitable[ServerResponse | Stream]],
        *,
        namespace_grace_seconds: float = GRACE_SECONDS,
        post: Post | None = None,
    ) -> None:
        self._core = core
        self._handle = handle
        self._grace_seconds = namespace_grace_seconds
        self._post = post
        self._parts: list[Aggregation | Collector | Definitions | Namespaces | Protection | QuotaStatus] = []
        self._policies: Policies | None = None
        self._webhooks: Webhooks | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, *, begun: bool = False) -> None:
        """Begin. Webhooks are not asked about what is made here: one that is down would keep the server down.

        `begun`: what must exist is known to be stored, and is not looked at.
        """
        core, handle = self._core, self._handle
        collector = Collector(core, handle)
        definitions = Definitions(core, handle, collector.kinds_changed)
        namespaces = Namespaces(core, handle, grace_seconds=self._grace_seconds)
        protection = Protection(core, handle)
        aggregation = Aggregation(core, handle)
        quota_status = QuotaStatus(core, handle)
        self._parts = [definitions, collector, namespaces, protection, aggregation, quota_status]
        definitions.begin()
        if not begun:
            await Beginnings(core, handle).make()
        self._policies = Policies(core)
        self._webhooks = Webhooks(core, self._post, definitions.terminating)
        core.admission = InOrder(self._policies, self._webhooks)
        collector.begin()
        namespaces.begin()
        protection.begin()
        aggregation.begin()
        quota_status.begin()
        for part in self._parts:
            name = type(part).__name__.lower()
            self._tasks += [asyncio.create_task(work, name=f"harbor {name}") for work in part.tasks()]

    async def stop(self) -> None:
        """End all of it, in the middle of whatever it does; what is left is done after the next start."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        for part in self._parts:
            part.end()
        self._parts.clear()
        self._core.admission = NoAdmission()
        if self._policies is not None:
            self._policies.close()
            self._policies = None
        if self._webhooks is not None:
            await self._webhooks.close()
            self._webhooks = None
