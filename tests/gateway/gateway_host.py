"""A gateway at work: harbor, a real Envoy, its control plane in this process, and small servers behind it."""

import asyncio
import contextlib
import io
import itertools
import json
import os
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Self

import aiohttp
import msgspec
from aiohttp import web

from pilotage.api.names import GATEWAY_ROUTES
from pilotage.gateway import envoy
from pilotage.gateway.control import Control
from pilotage.gateway.inputs import ENDPOINT_SLICES, LABEL_SERVICE
from pilotage.gateway.settings import Folder, GatewaySettings
from pilotage.kube import Client, Json, Object, ObjectKey, Propagation, merge_patch
from pilotage.operator.crds import crds
from pilotage_sim.world import SimulatedWorld
from tests.api.objects import install
from tests.support.kinds import NAMESPACES
from tests.support.waiting import eventually, until

_numbers = itertools.count(1)


class Server:
    """A server of a model: says who it is. Bodies may ask for more, see `_answer`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.requests: list[tuple[str, str]] = []
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.release = asyncio.Event()
        """Set when held requests may continue."""
        self.port = 0
        self._runner: web.AppRunner | None = None

    async def start(self, *, keep_alive: float = 75.0) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, keepalive_timeout=keep_alive, shutdown_timeout=0.0)
        await self._runner.setup()
        # Room for all that a test asks at a time.
        await web.TCPSite(self._runner, "127.0.0.1", self.port, backlog=2000).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def stop(self) -> None:
        self.release.set()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.method, request.path_qs))
        self.headers.append(dict(request.headers))
        body = await request.read()
        self.bodies.append(body)
        wish: Json = {}
        with contextlib.suppress(ValueError):
            wish = json.loads(body) if body else {}
        if wish.get("reset") and request.transport is not None:
            request.transport.abort()
        if wish.get("hold"):
            await self.release.wait()
        if tokens := wish.get("stream"):
            return await self._stream(request, tokens, pause=bool(wish.get("pause")))
        return web.json_response({"server": self.name}, status=wish.get("status", 200))

    async def _stream(self, request: web.Request, tokens: int, *, pause: bool) -> web.StreamResponse:
        """Half of the tokens, then those that wait for `release`, if there is to be a pause."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for number in range(tokens):
            if pause and number == tokens // 2:
                await self.release.wait()
            await response.write(f"data: {self.name} {number}\n\n".encode())
        await response.write_eof()
        return response


class GatewayHost:
    """One Envoy with its control plane. Tests take a namespace each."""

    def __init__(
        self,
        folder: Path,
        world: SimulatedWorld,
        *,
        grace_seconds: float = 605.0,
        reserve_seconds: float = 0.0,
        memory_bytes: int = 1024**3,
    ) -> None:
        self.folder = Folder(folder)
        self.world = world
        self.settings = GatewaySettings(
            run=str(self.folder.path),
            port=free_port(),
            metrics_port=0,
            access_log=str(self.folder.access_log),
        )
        self.user: Client = world.client("user")
        self.grace_seconds = grace_seconds
        self.reserve_seconds = reserve_seconds
        self.http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, force_close=False), timeout=aiohttp.ClientTimeout(total=None)
        )
        self.servers: list[Server] = []
        self._running: asyncio.Task[None] | None = None
        env = {"PATH": os.environ["PATH"]}
        self.control = self._control()
        self.envoy = envoy.child(envoy.find(), self.folder, env=env, memory_bytes=memory_bytes)
        self._keeping: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.settings.port}"

    async def start(self, *, wait: bool = True) -> None:
        self.folder.path.mkdir(parents=True, exist_ok=True)
        self._keeping = asyncio.create_task(self.envoy.run())
        await self.start_control(wait=wait)

    async def start_control(self, *, wait: bool = True) -> Control:
        self.control = self._control()
        self._running = asyncio.create_task(self.control.run())
        if wait:
            await self.programmed()
        return self.control

    def _control(self) -> Control:
        return Control(
            self.settings,
            self.world.client("gateway"),
            grace_seconds=self.grace_seconds,
            reserve_seconds=self.reserve_seconds,
        )

    async def stop_control(self) -> None:
        """Stop the control plane as abruptly as a process ends."""
        assert self._running is not None
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)

    async def programmed(self) -> None:
        async def done() -> bool:
            if self._running is not None and self._running.done():
                self._running.result()
            return self.control.ads.connected and self.control.program.snapshot is not None

        await eventually(done)

    async def stop(self) -> None:
        await self.http.close()
        if self._running is not None:
            self.control.stop()
            await self._running
        await self.envoy.stop()
        if self._keeping is not None:
            await self._keeping
        for each in self.servers:
            await each.stop()

    # Actions of users and operators

    async def namespace(self) -> str:
        name = f"ns{next(_numbers)}"
        await self.user.create(NAMESPACES, {"metadata": {"name": name}})
        return name

    async def server(self, namespace: str, service: str, **options: Any) -> Server:
        """A server, and the slice that says where it is."""
        server = await Server(service).start(**options)
        self.servers.append(server)
        await self.slice(namespace, service, server.port)
        return server

    async def slice(
        self,
        namespace: str,
        service: str,
        *ports: int,
        name: str = "",
        conditions: Json | None = None,
        address: str = "127.0.0.1",
    ) -> Object:
        """Say where a Service is; again under the same name for another word."""
        body = {
            "metadata": {"name": name or service, "namespace": namespace, "labels": {LABEL_SERVICE: service}},
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": ports[0], "protocol": "TCP"}] if ports else [],
            "endpoints": [
                {"addresses": [address], "conditions": {"ready": True} if conditions is None else conditions}
            ],
        }
        return await self.user.apply(ENDPOINT_SLICES, body, force=True)

    async def no_slice(self, namespace: str, name: str) -> None:
        key = ObjectKey(namespace, name)
        found = await self.user.get(ENDPOINT_SLICES, key)
        await self.user.delete(ENDPOINT_SLICES, key, uid=found.meta.uid, propagation=Propagation.BACKGROUND)

    async def route(self, namespace: str, name: str, backends: dict[str, int], **spec: Any) -> Object:
        """Create or change a route, and wait until it is what its status is about."""
        await self.write_route(namespace, name, backends, **spec)
        return await self.settled(namespace, name)

    async def write_route(self, namespace: str, name: str, backends: dict[str, int], **spec: Any) -> Object:
        listed = [{"service": service, "weight": weight} for service, weight in backends.items()]
        body = {
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"endpoint": name, "backends": listed, **spec},
        }
        return await self.user.apply(GATEWAY_ROUTES, body, force=True)

    async def settled(self, namespace: str, name: str, state: str = "Programmed") -> Object:
        def done(obj: Object | None) -> bool:
            if obj is None:
                return False
            status = obj.get("status", default={})
            return bool(status.get("observedGeneration") == obj.meta.generation and status.get("state") == state)

        found = await until(self.user, GATEWAY_ROUTES, ObjectKey(namespace, name), done)
        assert found is not None
        return found

    async def delete_route(self, namespace: str, name: str) -> None:
        key = ObjectKey(namespace, name)
        found = await self.user.get(GATEWAY_ROUTES, key)
        await self.user.delete(GATEWAY_ROUTES, key, uid=found.meta.uid, propagation=Propagation.BACKGROUND)
        await eventually(lambda: self._gone(found.meta.uid))

    async def _gone(self, uid: str) -> bool:
        return uid not in self.control.program.accepted

    # Actions of clients

    async def post(self, path: str, body: Any = None, **options: Any) -> tuple[int, Any]:
        """Status and decoded body."""
        headers = {"Content-Type": "application/json", **options.pop("headers", {})}
        data = io.BytesIO(json.dumps(body).encode())  # large ones would be warned of
        async with self.http.post(f"{self.url}{path}", data=data, headers=headers, **options) as answer:
            text = await answer.read()
            try:
                return answer.status, json.loads(text)
            except ValueError:
                return answer.status, text.decode(errors="replace")

    async def get(self, path: str, **options: Any) -> tuple[int, Any]:
        async with self.http.get(f"{self.url}{path}", **options) as answer:
            text = await answer.read()
            try:
                return answer.status, json.loads(text)
            except ValueError:
                return answer.status, text.decode(errors="replace")

    async def ask(self, model: str, **wish: Any) -> tuple[int, Any]:
        return await self.post("/v1/chat/completions", {"model": model, **wish})

    async def stat(self, pattern: str) -> dict[str, str]:
        """Envoy's own numbers."""
        said = await self.control.admin.get(f"/stats?filter={pattern}")
        return dict(line.split(": ", 1) for line in said.decode().splitlines() if ": " in line)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def code(answer: tuple[int, Any]) -> tuple[int, str]:
    """Status and code of an error in OpenAI's form; its message says something."""
    status, body = answer
    error = body["error"]
    assert error["message"].endswith(".")
    assert error["type"] in ("invalid_request_error", "server_error")
    return status, error["code"]


@contextlib.asynccontextmanager
async def running_gateway(
    folder: Path, *, port: int = 0, wait: bool = True, names: tuple[str, ...] = (), **options: Any
) -> AsyncIterator[GatewayHost]:
    """All of it, with our kinds installed. `wait`: until Envoy listens. `names`: the gateway's own."""
    async with SimulatedWorld(latency=(0.0, 0.0)) as world:
        gateway = GatewayHost(folder, world, **options)
        gateway.settings = msgspec.structs.replace(gateway.settings, port=port or gateway.settings.port, names=names)
        await install(gateway.user, [crd for crd in crds() if crd["metadata"]["name"] == str(GATEWAY_ROUTES)])
        await gateway.start(wait=wait)
        try:
            yield gateway
        finally:
            await gateway.stop()


Condition = Callable[[], bool]


async def holds(condition: Condition, seconds: float = 10) -> None:
    """Wait until it does."""

    async def attempt() -> bool:
        return condition()

    await eventually(attempt, seconds)


__all__ = ["GatewayHost", "Server", "code", "free_port", "holds", "merge_patch", "running_gateway"]
