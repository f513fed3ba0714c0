"""The control plane: from the API to Envoy, and from Envoy back into the status of routes. A process of its own.

It keeps nothing that it could not find again: routes and addresses are in the API, and what Envoy has, Envoy says.
"""

import asyncio
import contextlib
import socket
import sys
from collections.abc import AsyncIterator, Iterable

import structlog

from pilotage.api.names import GATEWAY_ROUTES
from pilotage.gateway.admin import Admin, AdminUnavailable
from pilotage.gateway.ads import Ads
from pilotage.gateway.counts import COPIES, GAUGES, Counts, clusters, read_copies
from pilotage.gateway.division import read_slots, with_slots
from pilotage.gateway.envoy import NoEnvoy, find
from pilotage.gateway.explain import explain
from pilotage.gateway.hostnames import HostRules, is_name
from pilotage.gateway.inputs import (
    ENDPOINT_SLICES,
    ProxiedRoute,
    Service,
    read_hosts,
    read_route,
    service_of,
)
from pilotage.gateway.measured_log import LogFollower, parsed_line
from pilotage.gateway.measuring import Measuring
from pilotage.gateway.metrics import Traffic
from pilotage.gateway.program import GRACE_SECONDS, RESERVE_SECONDS, Program
from pilotage.gateway.records import read_records
from pilotage.gateway.settings import Folder, GatewaySettings
from pilotage.gateway.snapshot import ListenerConfig
from pilotage.gateway.status import RouteStatusController
from pilotage.kube import Client, Object, load_config
from pilotage.runtime.clock import monotonic, utc_now
from pilotage.runtime.informer import Change
from pilotage.runtime.logs import configure_logging
from pilotage.runtime.manager import Manager
from pilotage.runtime.process import on_signals

_log = structlog.get_logger(__name__)

MEASURED_SECONDS = 2.0
"""Interval between two reports of what is measured."""
LINES_AT_ONCE = 500


class Control:
    """All of it, for one Envoy. `run` until `stop`."""

    def __init__(
        self,
        settings: GatewaySettings,
        client: Client,
        *,
        grace_seconds: float = GRACE_SECONDS,
        reserve_seconds: float = RESERVE_SECONDS,
    ) -> None:
        self._settings = settings
        self._folder = Folder(settings.run)
        self.ads = Ads()
        self.admin = Admin(self._folder.admin)
        self.counts = Counts(self.admin)
        self.measuring = Measuring()
        machine = socket.gethostname().lower()
        names = tuple(sorted({*settings.names, *([machine] if is_name(machine) else [])}))
        log = self._folder.log_of_envoy(settings.access_log)
        address = ListenerConfig(settings.host, settings.port, log, names, self._folder.measured_log.name)
        rules = HostRules(frozenset(names), settings.hosts)
        self.program = Program(
            address, self.ads, rules=rules, grace_seconds=grace_seconds, reserve_seconds=reserve_seconds
        )
        self.manager = Manager(client, name="gateway")
        self.metrics_port = 0
        self._routes = self.manager.informer(GATEWAY_ROUTES)
        self._slices = self.manager.informer(ENDPOINT_SLICES)
        self._slices.add_index("service", lambda each: map(str, filter(None, [service_of(each)])))
        self._routes.add_handler(self._on_route)
        self._slices.add_handler(self._on_slice)
        self._controller = self.manager.add(
            "gateway",
            self._routes,
            lambda context: RouteStatusController(
                context, self.program, self.counts, lambda: self.ads.connected, self.measuring
            ),
            workers=4,
        )
        self.program.on_change = self._on_programmed
        self.program.explain = self._explain
        self.program.busy = self._busy

    def stop(self) -> None:
        """Ask `run` to end."""
        self.manager.stop()

    async def run(self) -> None:
        """Serve Envoy and write statuses. Raises OSError where an address is taken."""
        async with self._health(), asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._feed()), group.create_task(self._measure())]
            await self.manager.run()
            for each in tasks:
                each.cancel()

    async def _feed(self) -> None:
        """Feed Envoy as soon as all routes and addresses are known: an Envoy that runs must not lose any."""
        await self._routes.synced.wait()
        await self._slices.synced.wait()
        with contextlib.suppress(AdminUnavailable):
            self.program.learn(clusters(await self.admin.get(GAUGES)))
        self.program.remember({each.meta.uid: read_records(each) for each in self._routes.store.list()})
        self.program.touch()
        async with self.ads.serving(self._folder.ads, self._settings.user):
            await self.program.run()

    async def _measure(self) -> None:
        """Read what Envoy writes about requests, and have it written into the status of routes."""
        log = LogFollower(self._folder.measured_log)
        lost: float | None = None
        try:
            while True:
                await asyncio.sleep(MEASURED_SECONDS)
                try:
                    for number, each in enumerate(log.read()):
                        if (line := parsed_line(each)) is not None:
                            self.measuring.take(line, monotonic())
                        if number % LINES_AT_ONCE == LINES_AT_ONCE - 1:
                            await asyncio.sleep(0)
                except OSError as error:
                    _log.warning("what is measured cannot be read", why=str(error))
                    self.measuring.miss(MEASURED_SECONDS)
                lost = self._missed(lost)
                await self._count_copies()
                for uid in self.measuring.publish(utc_now(), monotonic()):
                    if uid in self.program.wanted:
                        self._controller.queue.add(self.program.wanted[uid].key)
        finally:
            log.close()

    async def _count_copies(self) -> None:
        measured = (self.program.accepted[uid] for uid in self.measuring.uids if uid in self.program.accepted)
        if any(each.copies for each in measured):
            with contextlib.suppress(AdminUnavailable):
                self.measuring.copies = read_copies(await self.admin.get(COPIES))

    def _missed(self, lost: float | None) -> float | None:
        """Note how long Envoy was away, as far as that is seen; since when it is."""
        if not self.ads.connected:
            return lost or monotonic()
        if lost is not None:
            self.measuring.miss(monotonic() - lost + MEASURED_SECONDS)
        return None

    async def _busy(self) -> set[str] | None:
        try:
            await self.counts.refresh()
        except AdminUnavailable:
            return None
        return {name for name, number in self.counts.under_way.items() if number}

    async def _explain(self, route: ProxiedRoute) -> str:
        try:
            return await explain(find(self._settings.envoy), route, self._settings.user)
        except (NoEnvoy, OSError):
            return ""

    def _on_route(self, change: Change) -> None:
        wanted = self.program.wanted
        if change.old is not None and change.new is None:
            wanted.pop(change.old.meta.uid, None)
        if change.new is not None:
            uid, route = change.new.meta.uid, read_route(change.new)
            before = wanted[uid].slots if uid in wanted else read_slots(change.new, route)
            wanted[uid] = with_slots(route, before)
        if change.old is None or change.new is None or change.old.meta.generation != change.new.meta.generation:
            for uid in {each.meta.uid for each in (change.old, change.new) if each is not None}:
                self.program.touch(route=uid)

    def _on_slice(self, change: Change) -> None:
        for service in {each for obj in (change.old, change.new) if (each := _service(obj)) is not None}:
            hosts = read_hosts(self._slices.store.indexed("service", str(service)))
            if hosts != self.program.hosts.get(service, ()):
                self.program.hosts[service] = hosts
                self.program.touch(service=service)
            if not hosts:
                self.program.hosts.pop(service, None)

    def _on_programmed(self, uids: Iterable[str], clusters: Iterable[str]) -> None:
        """Count the clusters that get no requests any more; the routes in question may have another state."""
        changed = {*clusters}
        served = {each for each in changed if self.program.gets_requests(each)}
        self.counts.end(served)
        self.counts.begin(changed - served, {each for each in changed if self.program.is_live(each)})
        wanted = self.program.wanted
        for uid in uids:
            self._note_shares(uid)
            if uid in wanted:
                self._controller.queue.add(wanted[uid].key)

    def _note_shares(self, uid: str) -> None:
        """Tell the measuring what Envoy has of a route."""
        snapshot, route = self.program.snapshot, self.program.accepted.get(uid)
        if route is None or snapshot is None:
            self.measuring.forget(uid)
        elif uid in snapshot.divisions:
            obj = self._routes.store.get(route.key)
            earlier = (lambda: obj.get("status", "measured", default=[]) or []) if obj is not None else list
            self.measuring.programmed(route, snapshot.divisions[uid], snapshot.version, utc_now(), earlier)

    @contextlib.asynccontextmanager
    async def _health(self) -> AsyncIterator[None]:
        if self._settings.metrics_port is None:
            yield
            return
        from pilotage.runtime.health import HealthServer

        traffic = Traffic(self.admin, self.program, self.ads)
        self.manager.metrics.registry.register(traffic)
        health = HealthServer(self.manager.metrics, unready=self._unready, refresh=traffic.refresh)
        await health.start(self._settings.metrics_host, self._settings.metrics_port)
        self.metrics_port = health.port
        try:
            yield
        finally:
            await health.stop()

    def _unready(self) -> list[str]:
        wrong = [f"{each.resource}: {each.problem}" for each in (self._routes, self._slices) if each.problem]
        wrong += [
            f"{each.resource}: not listed yet" for each in (self._routes, self._slices) if not each.synced.is_set()
        ]
        if self.program.problem:
            wrong.append(f"Envoy: {self.program.problem}")
        elif not self.ads.connected:
            wrong.append("Envoy is not connected")
        elif self.program.snapshot is None:
            wrong.append("Envoy has acknowledged nothing yet")
        return wrong


def _service(obj: Object | None) -> Service | None:
    return None if obj is None else service_of(obj)


async def run(settings: GatewaySettings) -> None:
    """Run until SIGTERM or SIGINT."""
    config = load_config(kubeconfig=settings.kubeconfig, context=settings.context)
    async with Client.connect(config) as client:
        control = Control(settings, client)
        with on_signals(control.stop):
            await control.run()


def main() -> None:
    """Entry point of the supervisor's child: the settings are its argument."""
    import msgspec

    settings = msgspec.json.decode(sys.argv[1], type=GatewaySettings)
    configure_logging(level=settings.log_level)
    asyncio.run(run(settings))


if __name__ == "__main__":
    main()
