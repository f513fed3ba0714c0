"""The status of ResourceQuotas, for whoever reads it: what the limits are, and what is used of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.errors import StatusError
from pilotage_harbor.core.quotas import QUOTAS
from pilotage_harbor.housekeeping.client import Asker, controller, path_of
from pilotage_harbor.housekeeping.controller import StoreController

if TYPE_CHECKING:
    from pilotage_harbor.core import Core
    from pilotage_harbor.housekeeping.client import Handle

BACKOFF_SECONDS_MAX = 60.0


class QuotaStatus(StoreController[tuple[str, str]]):
    """The controller of quotas; its keys are their namespaces and names."""

    def __init__(self, core: Core, handle: Handle) -> None:
        super().__init__(backoff_seconds_max=BACKOFF_SECONDS_MAX)
        self._core = core
        self._asker = Asker(handle, controller("resourcequota-controller"), "kube-controller-manager")

    def begin(self) -> None:
        """Take in what is stored, and listen from now on."""
        for entry in self._core.store.entries(QUOTAS):
            self._queue.add((entry.namespace, entry.name))
        self._core.quotas.on_change = self._changed

    def end(self) -> None:
        """Listen no more."""
        super().end()
        self._core.quotas.on_change = lambda _namespace: None

    def _changed(self, namespace: str) -> None:
        for entry in self._core.store.entries(QUOTAS, namespace):
            self._queue.add((namespace, entry.name))

    async def _sync(self, key: tuple[str, str]) -> None:
        namespace, name = key
        quota, status = self._core.get(QUOTAS, namespace, name), self._core.quotas.status(namespace, name)
        if quota is None or status is None or quota.get("status") == status:
            return
        kind = self._core.registry.storage(QUOTAS)
        assert kind is not None
        try:
            body = {**quota, "status": status}
            await self._asker.ask("PUT", path_of(kind, namespace, name, "status"), body)
        except StatusError as error:
            if error.code != 404:
                raise
