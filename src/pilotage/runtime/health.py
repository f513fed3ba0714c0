"""HTTP server of a running manager: /metrics, /healthz (it is alive) and /readyz (its caches are in sync)."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from pilotage.runtime.metrics import Metrics


class HealthServer:
    """Serves until stopped; `port` says where, also when port 0 was asked for. That it answers is its health."""

    def __init__(
        self,
        metrics: Metrics,
        *,
        unready: Callable[[], list[str]],
        refresh: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`unready` names what is not ready; an empty list is good. `refresh` is awaited before metrics are shown."""
        self._metrics = metrics
        self._unready = unready
        self._refresh = refresh
        app = web.Application()
        app.router.add_get("/metrics", self._render)
        app.router.add_get("/healthz", self._alive)
        app.router.add_get("/readyz", self._ready)
        self._runner = web.AppRunner(app, access_log=None)
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Listen. OSError if the port is taken."""
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host, port).start()
        except OSError:
            await self._runner.cleanup()
            raise
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Close the listener and its connections."""
        await self._runner.cleanup()

    async def _render(self, _request: web.Request) -> web.Response:
        if self._refresh is not None:
            await self._refresh()
        return web.Response(body=self._metrics.render(), content_type="text/plain", charset="utf-8")

    async def _alive(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _ready(self, _request: web.Request) -> web.Response:
        wrong = self._unready()
        return web.Response(status=503, text="\n".join(wrong) + "\n") if wrong else web.Response(text="ok\n")
