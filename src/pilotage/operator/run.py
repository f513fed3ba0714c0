"""The operator's process: a manager with the controllers, until it is told to stop."""

import asyncio
import contextlib
import os
import secrets
import socket
from collections.abc import AsyncIterator

import structlog

from pilotage.api.names import ENDPOINTS, HOSTS, MODELS, PROCESSES, TEARDOWNS
from pilotage.controllers.model.controller import Models
from pilotage.controllers.wiring import NoProxyObserver, Options, add_endpoints
from pilotage.kube import NAMESPACES, Absent, AlreadyExists, Client, Forbidden, KindNotServed, ObjectKey
from pilotage.models import FileModelStore, ModelCache
from pilotage.models.blocking import Blocking, in_thread
from pilotage.models.limits import BYTES_MAX
from pilotage.operator.metrics import OperatorMetrics
from pilotage.operator.settings import OperatorSettings
from pilotage.runtime.leader import Election, Leader, LeaseLost
from pilotage.runtime.manager import Manager
from pilotage.runtime.process import on_signals
from pilotage.traffic.contract import ExpectedRoute, RouteStatus
from pilotage.traffic.proxies import Proxies, envoy_source, observe

_log = structlog.get_logger(__name__)

LEASE = "pilotage-operator"


class Envoys:
    """Reads the Envoys of the settings."""

    def __init__(self, proxies: Proxies) -> None:
        self._proxies = proxies

    async def observe(self, expected: ExpectedRoute) -> RouteStatus | None:
        """Status in the Envoys."""
        return await observe(self._proxies, expected)


async def add_controllers(
    manager: Manager,
    settings: OperatorSettings,
    server: str,
    around: contextlib.AsyncExitStack,
    *,
    blocking: Blocking = in_thread,
) -> None:
    """Everything that the operator runs. What has to be put in order after the manager goes onto the stack."""
    proxies = Proxies([envoy_source(each, manager.client) for each in settings.envoy_admins])
    around.push_async_callback(proxies.close)
    observer = Envoys(proxies) if proxies else NoProxyObserver()
    options = Options(
        observer,
        settings.namespace,
        server,
        settings.fetch_image,
        _for_pods(settings),
        gateway_url=settings.gateway_url,
    )
    processes = add_endpoints(manager, options).informers[PROCESSES]
    watched = (manager.informer(ENDPOINTS), manager.informer(TEARDOWNS), manager.informer(HOSTS, optional=True))
    manager.metrics.registry.register(OperatorMetrics(*(each.store for each in (*watched, processes))))
    # Two clusters whose operators share a folder must not sweep each other's files.
    cache = ModelCache(settings.cache_root, owner=f"{server} {settings.namespace}")
    store = FileModelStore(cache, settings.access, blocking=blocking)
    await around.enter_async_context(Models(manager, store, by_pods=settings.fetch == "pods"))


def _for_pods(settings: OperatorSettings) -> tuple[tuple[str, str], ...]:
    """Variables by which `pilotage fetch` in a pod is held to the operator's settings."""
    networks = " ".join(map(str, settings.networks))
    found = {
        "PILOTAGE_NETWORKS": networks,
        "PILOTAGE_PLAIN_HTTP": "1" if settings.plain_http else "",
        "PILOTAGE_MODEL_BYTES_MAX": str(settings.model_bytes_max) if settings.model_bytes_max != BYTES_MAX else "",
    }
    return tuple((name, value) for name, value in found.items() if value)


async def run(settings: OperatorSettings, client: Client, server: str = "") -> None:
    """Run until SIGTERM or SIGINT. Raises LeaseLost, OSError where the address is taken, and ApiError at the start.

    `server` is the address of the API server, for receipts.
    """
    await prepare(settings, client)
    async with operating(settings, client, server) as manager:
        with on_signals(manager.stop):
            await manager.run()


@contextlib.asynccontextmanager
async def operating(
    settings: OperatorSettings, client: Client, server: str = "", *, blocking: Blocking = in_thread
) -> AsyncIterator[Manager]:
    """The manager with its controllers, to be run within the context. `blocking` runs what waits for files."""
    election = Election(ObjectKey(settings.namespace, LEASE), identity())
    gate = election if settings.leader_election else None
    manager = Manager(client, name="operator", election=gate, address=settings.address)
    async with contextlib.AsyncExitStack() as around:
        if gate is None:
            await around.enter_async_context(_heartbeat(manager, election))
        await add_controllers(manager, settings, server, around, blocking=blocking)
        yield manager


async def prepare(settings: OperatorSettings, client: Client) -> None:
    """Check the prerequisites of a start: the namespace is created if that is allowed; what is missing is reported."""
    await _have_namespace(settings.namespace, client)
    for resource in (ENDPOINTS, MODELS, TEARDOWNS):
        try:
            await client.list(resource, settings.namespace, metadata_only=True)
        except KindNotServed:
            _log.error(
                "a kind is not served; waiting for it. Install it: pilotage install --print | kubectl apply "
                "--server-side -f -",
                resource=str(resource),
            )
        except Forbidden as error:
            _log.error("the operator lacks permissions; see `pilotage install --print`", error=str(error))


async def _have_namespace(name: str, client: Client) -> None:
    """Create the operator's namespace if it does not exist, which is normal outside of a cluster."""
    try:
        await client.get(NAMESPACES, ObjectKey("", name), metadata_only=True)
    except Absent:
        try:
            await client.create(NAMESPACES, {"metadata": {"name": name}})
            _log.info("created the operator's namespace", namespace=name)
        except AlreadyExists:
            return
        except Forbidden as error:
            _log.error(
                "the operator's namespace does not exist and cannot be created", namespace=name, error=str(error)
            )
    except Forbidden as error:
        _log.error("the operator's namespace cannot be read", namespace=name, error=str(error))


def identity() -> str:
    """Identity of this process, unique."""
    return f"{socket.gethostname()}_{os.getpid()}_{secrets.token_hex(4)}"


@contextlib.asynccontextmanager
async def _heartbeat(manager: Manager, election: Election) -> AsyncIterator[None]:
    """Sign of life of an operator without leader election: hold its Lease within the context, whenever it is available.

    Others know an operator by the Lease that it renews: `pilotage delete` leaves endpoints to one that runs, and an
    alert fires where none does. One that needs no Lease takes it for their sake. It works without it as well, and never
    takes it from somebody who holds it.
    """
    leader = Leader(manager.client, election, manager.rng)
    manager.metrics.leader.labels(str(election.lease)).set_function(lambda: _is_held(leader))
    task = asyncio.create_task(_beat(leader))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await leader.release()


async def _beat(leader: Leader) -> None:
    while True:
        await leader.acquire()
        with contextlib.suppress(LeaseLost):
            await leader.keep()


def _is_held(leader: Leader) -> int:
    try:
        leader.check()
    except LeaseLost:
        return 0
    return 1
