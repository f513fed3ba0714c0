"""The rules of aggregated ClusterRoles, written into them as the aggregation controller of a cluster does.

A role with an aggregationRule gets the rules of those that it selects, by the order of their names; whatever else is
written into it does not last. This is for whoever reads the role: what it allows is put together anew with each change
of a role, in `pilotage_harbor.access.rbac`, and never waits for this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.access.rbac import CLUSTER_ROLES, GROUP, gathered_rules
from pilotage_harbor.apimachinery.errors import StatusError
from pilotage_harbor.housekeeping.client import APPLY_PATCH, Asker, controller, path_of
from pilotage_harbor.housekeeping.controller import StoreController
from pilotage_harbor.storage.store import DELETED

if TYPE_CHECKING:
    from pilotage_harbor.core import Core
    from pilotage_harbor.housekeeping.client import Handle
    from pilotage_harbor.storage.store import Event, StoredObject

MANAGER = "clusterrole-aggregation-controller"
BACKOFF_SECONDS_MAX = 60.0

_AGGREGATES = b'"aggregationRule"'


class Aggregation(StoreController[str]):
    """The controller of aggregated roles; its keys are their names."""

    def __init__(self, core: Core, handle: Handle) -> None:
        super().__init__(backoff_seconds_max=BACKOFF_SECONDS_MAX)
        self._core = core
        self._asker = Asker(handle, controller(MANAGER), "kube-controller-manager")
        self._aggregated: dict[str, None] = {}
        """The names of the roles that have an aggregationRule, or had."""

    def begin(self) -> None:
        """Take in what is stored, and listen from now on."""
        for entry in self._core.store.entries(CLUSTER_ROLES):
            self._see(entry)
        self._stop_listening = self._core.store.listen(CLUSTER_ROLES, self._observe)
        self._all_again()

    def _observe(self, event: Event) -> None:
        if event.type == DELETED:
            self._aggregated.pop(event.entry.name, None)
        else:
            self._see(event.entry)
        self._all_again()

    def _see(self, entry: StoredObject) -> None:
        if _AGGREGATES in entry.raw:
            self._aggregated[entry.name] = None

    def _all_again(self) -> None:
        for name in self._aggregated:
            self._queue.add(name)

    async def _sync(self, name: str) -> None:
        role = self._core.get(CLUSTER_ROLES, "", name)
        if role is None or not role.get("aggregationRule"):
            self._aggregated.pop(name, None)
            return
        rules = gathered_rules(role, self._core.objects(CLUSTER_ROLES))
        if rules == (role.get("rules") or []):
            return
        kind = self._core.registry.storage(CLUSTER_ROLES)
        assert kind is not None
        body = {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": {"name": name}}
        query = {"fieldManager": [MANAGER], "force": ["true"]}
        try:
            applied = {**body, "rules": rules} if rules else body
            await self._asker.ask("PATCH", path_of(kind, "", name), applied, APPLY_PATCH, query)
        except StatusError as error:
            if error.code != 404:
                raise
