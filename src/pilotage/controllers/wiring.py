"""The controllers of the operator: the caches that each reads, and the objects that wake it."""

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from pilotage.api.names import ENDPOINTS, EXPERIMENTS, GATEWAY_ROUTES, HOST_LEASES, HOSTS, MODELS, PROCESSES, TEARDOWNS
from pilotage.api.teardown import TTL_SECONDS
from pilotage.controllers import teardown_targets
from pilotage.controllers.caches import MADE_FROM_OURS, Caches
from pilotage.controllers.endpoint import controller as endpoint
from pilotage.controllers.experiment import controller as experiment
from pilotage.controllers.host import controller as host
from pilotage.controllers.host import process_controller
from pilotage.controllers.host.liveness import HostLiveness
from pilotage.controllers.seals import Seals
from pilotage.controllers.teardown import controller as teardown
from pilotage.kube import LEASES, Object, ObjectKey
from pilotage.runtime.manager import Manager
from pilotage.serving.parts import Capabilities
from pilotage.serving.resources import INFERENCE_SERVICES, SCALED_OBJECTS
from pilotage.traffic.contract import ExpectedRoute, ProxyObserver, RouteStatus

WORKERS = 8
"""Number of endpoints that are reconciled at a time: most of it is waiting for the API server."""


class Options(NamedTuple):
    """Options of the controllers of endpoints."""

    observer: ProxyObserver
    namespace: str = "pilotage-system"
    """The operator's own namespace."""
    server: str = ""
    """Address of the API server, for receipts."""
    fetch_image: str = ""
    fetch_env: tuple[tuple[str, str], ...] = ()
    ttl_seconds: int = TTL_SECONDS
    """Lifetime of a finished Teardown."""
    watched: str = ""
    """The only namespace that is watched; empty: all."""
    gateway_url: str = ""
    """URL of Pilotage's own gateway, for clients."""
    key: bytes = b""
    """Key that seals parts; empty: the one in a Secret of the operator's namespace, created if it does not exist."""


class NoProxyObserver:
    """A `ProxyObserver` where no proxy can be asked."""

    async def observe(self, _expected: ExpectedRoute) -> RouteStatus | None:
        """None, always."""
        return None


def add_endpoints(manager: Manager, options: Options) -> Caches:
    """Add the controllers of endpoints, teardowns and hosts."""
    caches = Caches(manager, Seals(options.namespace, options.key), options.watched)
    endpoints = manager.informer(ENDPOINTS, namespace=options.watched)
    models = manager.informer(MODELS, namespace=options.watched)
    teardowns = manager.informer(TEARDOWNS)
    experiments = manager.informer(EXPERIMENTS, namespace=options.watched, optional=True)
    experiments.add_index(experiment.BY_ENDPOINT, experiment.by_endpoint)
    endpoints.add_index(endpoint.BY_MODEL, endpoint.by_model)
    teardowns.add_index(teardown_targets.BY_TARGET, teardown_targets.by_target(options.namespace))

    def users(model: Object) -> Iterable[ObjectKey]:
        name = f"{model.meta.namespace}/{model.meta.name}"
        return [each.key for each in endpoints.store.indexed(endpoint.BY_MODEL, name)]

    def capabilities() -> Capabilities:
        return Capabilities(
            keda=caches.serves(SCALED_OBJECTS),
            fetch_image=options.fetch_image,
            fetch_env=options.fetch_env,
            kserve=caches.serves(INFERENCE_SERVICES),
        )

    liveness = HostLiveness(manager.informer(LEASES, namespace=HOST_LEASES).store)
    endpoint_options = endpoint.EndpointOptions(
        caches,
        options.observer,
        models.store,
        teardowns.store,
        options.namespace,
        options.watched,
        capabilities,
        options.ttl_seconds,
        lambda key: experiments.store.indexed(experiment.BY_ENDPOINT, str(key)),
        liveness.is_silent,
        options.gateway_url,
    )
    parts = [each for each in caches if each.resource not in MADE_FROM_OURS]
    manager.add(
        "endpoint",
        endpoints,
        endpoint.endpoints(endpoint_options),
        workers=WORKERS,
        watches=[
            *((each, partial(endpoint.keys_for_part, endpoints.store)) for each in parts),
            (teardowns, partial(endpoint.keys_for_teardown, options.namespace)),
            (models, users),
            (experiments, experiment.endpoint_of_experiment),
        ],
    )
    manager.add(
        "teardown",
        teardowns,
        teardown.teardowns(
            teardown.TeardownOptions(caches, options.observer, endpoints.store, options.namespace, options.server)
        ),
        workers=WORKERS,
        watches=[(each, partial(teardown_targets.keys_for_part, teardowns.store)) for each in caches],
    )
    _add_experiments(manager, caches, options.watched)
    _add_hosts(manager, caches, liveness, options.watched)
    return caches


def _add_experiments(manager: Manager, caches: Caches, watched: str) -> None:
    """Add the controller of Experiments. A cluster that was upgraded may not have the kind yet."""
    endpoints = manager.informer(ENDPOINTS, namespace=watched)
    experiments = manager.informer(EXPERIMENTS, namespace=watched, optional=True)
    wakes = partial(experiment.keys_of_endpoint, experiments.store)
    manager.add(
        "experiment",
        experiments,
        experiment.experiments(endpoints.store, caches),
        watches=[(endpoints, wakes), (caches.informers[GATEWAY_ROUTES], wakes)],
    )


def _add_hosts(manager: Manager, caches: Caches, liveness: HostLiveness, watched: str) -> None:
    """Add the controllers of Hosts and HostProcesses."""
    machines = manager.informer(HOSTS, optional=True)
    leases = manager.informer(LEASES, namespace=HOST_LEASES)
    processes = caches.informers[PROCESSES]
    processes.add_index(process_controller.BY_HOST, process_controller.by_host)
    manager.add(
        "host",
        machines,
        host.hosts(liveness),
        workers=WORKERS,
        watches=[(leases, host.host_of_lease), (processes, process_controller.host_of_process)],
    )
    manager.add(
        "hostprocess",
        processes,
        process_controller.processes(machines.store, liveness, watched),
        watches=[(machines, partial(process_controller.keys_for_host, processes.store))],
    )
