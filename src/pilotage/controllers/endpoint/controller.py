"""The controller of `ServingEndpoint`: from its spec to a revision that serves, and away from it again.

Deletion comes before any look-up. What is made is written into the status first. What goes, for whatever reason, goes
through a `Teardown`. One pass (`endpoint_pass`) looks at everything and does what may be done now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
from pydantic import ValidationError

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


class _Model(msgspec.Struct):
    name: str | None = None


class _ServesWhat(msgspec.Struct):
    model: _Model = msgspec.field(default_factory=_Model)


class _Serves(msgspec.Struct):
    """Of an endpoint what the index needs: it is asked for at every change."""

    spec: _ServesWhat = msgspec.field(default_factory=_ServesWhat)


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
    name = obj.decode_as(_Serves).spec.model.name
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
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, ("spec", *first["loc"])))
            nothing = EndpointSpec.read({"model": {}})
            trouble = EndpointProblem("InvalidSpec", f"{place}: {first['msg']}")
            return await self._pass(obj, nothing, status).refuse(trouble)
        return await self._pass(obj, spec, status).run()

    def _pass(self, obj: Object, spec: EndpointSpec, status: Json) -> Pass:
        try:
            return Pass(self._tools, obj, spec, status)
        except ValueError as error:  # pydantic's are among them
            raise TerminalError(
                "UnreadableHistory",
                f"status.history cannot be read, so nothing is changed: {clipped(str(error), ERROR_CHARS_MAX)}. "
                "Restore the status, or delete the endpoint and create it again.",
            ) from error
