"""The controller of `ServingEndpoint`: from its spec to a revision that serves, and away from it again.

An endpoint that is being deleted is finalized, whatever else is wrong with it. Any other one is reconciled (`reconcile`
executes what `decide` says). Whatever goes, for whatever reason, goes through a `Teardown` (`teardown_records`).
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from pilotage.api.base import InvalidField
from pilotage.api.endpoint import EndpointSpec
from pilotage.api.names import LABEL_ENDPOINT, LABEL_ENDPOINT_UID, MANAGED_BY
from pilotage.controllers.caches import Caches, endpoint_of
from pilotage.controllers.endpoint.apply_parts import PartApplier
from pilotage.controllers.endpoint.problem import EndpointProblem
from pilotage.controllers.endpoint.reconcile import Dependencies, EndpointReconcile
from pilotage.controllers.endpoint.teardown_records import TeardownRecords
from pilotage.controllers.routing import Routing
from pilotage.controllers.teardown_targets import target_of
from pilotage.kube import Json, Object, ObjectKey
from pilotage.runtime.conditions import clipped
from pilotage.runtime.controller import Context
from pilotage.runtime.store import Store
from pilotage.runtime.types import Reconcile, Result, TerminalError
from pilotage.serving.parts import Capabilities
from pilotage.traffic.contract import ProxyObserver

BY_MODEL = "model"
ERROR_CHARS_MAX = 1000


class EndpointOptions(NamedTuple):
    """Inputs of the controller."""

    caches: Caches
    observer: ProxyObserver
    models: Store
    teardowns: Store
    namespace: str
    """The operator's own: it takes the Teardowns of endpoints whose namespace is being deleted."""
    watched: str
    """Namespace of the endpoints; empty: all."""
    capabilities: Callable[[], Capabilities]
    ttl_seconds: int
    """Lifetime of a finished Teardown."""
    experiments: Callable[[ObjectKey], Iterable[Object]]
    """The Experiments on an endpoint."""
    is_silent: Callable[[str], bool]
    """Whether the agent of a Host is not known to be alive, by the Host's name."""
    gateway_url: str = ""


def endpoints(options: EndpointOptions) -> Callable[[Context], Reconcile]:
    """The factory of the controller, for `Manager.add`."""

    def make(context: Context) -> Reconcile:
        return EndpointController(context, options).reconcile

    return make


def by_model(obj: Object) -> Iterable[str]:
    """Index endpoints by the Model that they serve."""
    name = obj.get("spec", "model", "name")
    return (f"{obj.meta.namespace}/{name}",) if name else ()


def keys_for_part(store: Store, obj: Object) -> list[ObjectKey]:
    """Map a part to the endpoint that it was made for, whether that still exists or not.

    An endpoint that is being deleted needs to see its Teardown alone.
    """
    if LABEL_ENDPOINT not in obj.meta.labels:
        return []
    key = endpoint_of(obj)
    endpoint = store.get(key)
    own = endpoint is not None and endpoint.meta.uid == obj.meta.labels.get(LABEL_ENDPOINT_UID)
    return [] if own and endpoint is not None and endpoint.meta.terminating else [key]


def keys_for_teardown(home: str, obj: Object) -> list[ObjectKey]:
    """Map a Teardown to the endpoint whose parts it removes. `home`: the operator's own namespace."""
    target = target_of(obj, home)
    return [ObjectKey(target.namespace, target.name)] if target is not None else []


class EndpointController:
    """Reconciles and finalizes ServingEndpoints."""

    def __init__(self, context: Context, options: EndpointOptions) -> None:
        self._store = context.store
        self._client = context.client
        self._seals = options.caches.seals
        applier = PartApplier(context.client.named(MANAGED_BY), options.caches)
        self._with = Dependencies(
            context.client,
            context.events,
            options.caches,
            options.models,
            applier,
            Routing(context.client, applier, options.caches, options.observer),
            TeardownRecords(
                context.client,
                context.events,
                options.caches,
                options.teardowns,
                options.namespace,
                options.watched,
                options.ttl_seconds,
            ),
            options.capabilities,
            options.is_silent,
            options.experiments,
            options.gateway_url,
        )

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """Reconcile or finalize one endpoint."""
        await self._seals.unlock(self._client)
        obj = self._store.get(key)
        await self._with.records.sweep(key, obj.meta.uid if obj is not None else "")
        if obj is None:
            return None
        if obj.meta.terminating:
            return await self._with.records.finalize(obj)
        body = obj.to_dict()
        status = body.get("status", {})
        try:
            spec = EndpointSpec.read(body.get("spec"))
        except InvalidField as error:
            nothing = EndpointSpec.read({"model": {}})
            problem = EndpointProblem("InvalidSpec", f"{error.below('spec')}: {error.reason}")
            return await self._prepare(obj, nothing, status).refuse(problem)
        return await self._prepare(obj, spec, status).run()

    def _prepare(self, obj: Object, spec: EndpointSpec, status: Json) -> EndpointReconcile:
        try:
            return EndpointReconcile(self._with, obj, spec, status)
        except ValueError as error:  # InvalidField is one
            raise TerminalError(
                "UnreadableHistory",
                f"status.history cannot be read, so nothing is changed: {clipped(str(error), ERROR_CHARS_MAX)}. "
                "Restore the status, or delete the endpoint and create it again.",
            ) from error
