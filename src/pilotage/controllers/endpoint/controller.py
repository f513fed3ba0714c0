"""The controller of `ServingEndpoint`: from its spec to a revision that serves, and away from it again.

Deletion comes before any look-up. What is made is written into the status first. What goes, for whatever reason, goes
through a `Teardown`. One pass (`endpoint_pass`) looks at everything and does what may be done now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pilotage.api.base import InvalidField
from pilotage.api.endpoint import EndpointSpec
from pilotage.api.names import LABEL_ENDPOINT, LABEL_ENDPOINT_UID, MANAGED_BY
from pilotage.controllers.caches import endpoint_of
from pilotage.controllers.endpoint.apply_parts import EndpointProblem, PartApplier
from pilotage.controllers.endpoint.reconcile import Pass, Tools
from pilotage.controllers.endpoint.teardown_records import TeardownRecords
from pilotage.controllers.routing import Routing
from pilotage.controllers.teardown_targets import target_of
from pilotage.kube import ObjectKey
from pilotage.runtime import TerminalError, clipped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pilotage.controllers.caches import Caches
    from pilotage.kube import Json, Object
    from pilotage.runtime import Context, Reconcile, Result
    from pilotage.runtime.store import Store
    from pilotage.serving.parts import Capabilities
    from pilotage.traffic.contract import ProxyObserver

BY_MODEL = "model"
ERROR_CHARS_MAX = 1000


class Surroundings(NamedTuple):
    """The inputs of the controller."""

    caches: Caches
    observer: ProxyObserver
    models: Store
    teardowns: Store
    namespace: str
    """The operator's own: records of endpoints whose namespace goes are kept there."""
    watched: str
    """Where endpoints are; empty: in all namespaces."""
    capabilities: Callable[[], Capabilities]
    ttl_seconds: int
    """For how long the record of a teardown stays."""
    gateway_url: str = ""


def endpoints(around: Surroundings) -> Callable[[Context], Reconcile]:
    """What `Manager.add` makes the controller from."""

    def make(context: Context) -> Reconcile:
        return EndpointController(context, around).reconcile

    return make


def by_model(obj: Object) -> Iterable[str]:
    """An indexer: the Model that an endpoint serves."""
    name = obj.get("spec", "model", "name")
    return (f"{obj.meta.namespace}/{name}",) if name else ()


def keys_for_part(store: Store, obj: Object) -> list[ObjectKey]:
    """A mapper: the endpoint that a part was made for, whether it is still there or not.

    One that is being deleted has to know its Teardown alone, which says how far it is.
    """
    if LABEL_ENDPOINT not in obj.meta.labels:
        return []
    key = endpoint_of(obj)
    endpoint = store.get(key)
    own = endpoint is not None and endpoint.meta.uid == obj.meta.labels.get(LABEL_ENDPOINT_UID)
    return [] if own and endpoint is not None and endpoint.meta.terminating else [key]


def keys_for_teardown(home: str, obj: Object) -> list[ObjectKey]:
    """A mapper: the endpoint whose parts go. `home`: the operator's own namespace."""
    target = target_of(obj, home)
    return [ObjectKey(target.namespace, target.name)] if target is not None else []


class EndpointController:
    """See the module."""

    def __init__(self, context: Context, around: Surroundings) -> None:
        self._store = context.store
        self._client = context.client
        self._seals = around.caches.seals
        maker = PartApplier(context.client.named(MANAGED_BY), around.caches)
        self._tools = Tools(
            context.client,
            context.events,
            around.caches,
            around.models,
            maker,
            Routing(context.client, maker, around.caches, around.observer),
            TeardownRecords(
                context.client,
                context.events,
                around.caches,
                around.teardowns,
                around.namespace,
                around.watched,
                around.ttl_seconds,
            ),
            around.capabilities,
            around.gateway_url,
        )

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """See `Reconcile`."""
        await self._seals.unlock(self._client)
        obj = self._store.get(key)
        await self._tools.departures.sweep(key, obj.meta.uid if obj is not None else "")
        if obj is None:
            return None
        if obj.meta.terminating:
            return await self._tools.departures.depart(obj)
        body = obj.to_dict()
        status = body.get("status", {})
        try:
            spec = EndpointSpec.read(body.get("spec"))
        except InvalidField as error:
            nothing = EndpointSpec.read({"model": {}})
            trouble = EndpointProblem("InvalidSpec", f"{error.below('spec')}: {error.reason}")
            return await self._pass(obj, nothing, status).refuse(trouble)
        return await self._pass(obj, spec, status).run()

    def _pass(self, obj: Object, spec: EndpointSpec, status: Json) -> Pass:
        try:
            return Pass(self._tools, obj, spec, status)
        except ValueError as error:  # InvalidField is one
            raise TerminalError(
                "UnreadableHistory",
                f"status.history cannot be read, so nothing is changed: {clipped(str(error), ERROR_CHARS_MAX)}. "
                "Restore the status, or delete the endpoint and create it again.",
            ) from error
