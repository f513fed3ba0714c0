"""A small HTTPS server for admission and conversion webhooks: each path is one case's, and so are its reviews."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from aiohttp import web

from controlplane.certs import Authority

Json = dict[str, Any]
Reply = Callable[[Json], Any]
"""Makes the `response` of a review from its `request`; None answers with 500."""


class Hook:
    """One webhook: where it is, and what it was asked."""

    def __init__(self, url: str, ca_bundle: str, reply: Reply) -> None:
        self.client_config = {"url": url, "caBundle": ca_bundle}
        self.reply = reply
        self.asked: list[Json] = []


class HookServer:
    """All webhooks of a run."""

    def __init__(self, base: str, ca_bundle: str) -> None:
        self._base = base
        self._ca_bundle = ca_bundle
        self._hooks: dict[str, Hook] = {}

    @classmethod
    @contextlib.asynccontextmanager
    async def started(cls) -> AsyncIterator[HookServer]:
        """Serve on a free port of loopback, for the time of the block."""
        with tempfile.TemporaryDirectory(prefix="contract-hooks-") as folder:
            authority = Authority.create(Path(folder), "hooks-ca")
            pair = authority.server(Path(folder), "hooks")
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(pair.certificate, pair.key)
            ca_bundle = base64.b64encode(authority.pair.certificate.read_bytes()).decode()
            application = web.Application()
            runner = web.AppRunner(application)
            server = cls("", ca_bundle)
            application.router.add_route("*", "/{tail:.*}", server._answer)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
            await site.start()
            port = runner.addresses[0][1]
            server._base = f"https://127.0.0.1:{port}"
            try:
                yield server
            finally:
                await runner.cleanup()
                await asyncio.sleep(0)

    def hook(self, name: str, reply: Reply) -> Hook:
        """A new webhook; `name` is its path."""
        hook = Hook(f"{self._base}/{name}", self._ca_bundle, reply)
        self._hooks[f"/{name}"] = hook
        return hook

    async def _answer(self, request: web.Request) -> web.Response:
        hook = self._hooks.get(request.path)
        if hook is None:
            return web.Response(status=404)
        review = json.loads(await request.read())
        hook.asked.append(review["request"])
        response = hook.reply(review["request"])
        if response is None:
            return web.Response(status=500, text="out of order")
        if isinstance(response, web.Response):
            return response
        answer = {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
        response.setdefault("uid", review["request"]["uid"])
        return web.json_response(answer)


def allow(_: Json) -> Json:
    """Let it pass."""
    return {"allowed": True}


def deny(message: str, code: int = 0, reason: str = "") -> Reply:
    """Refuse it."""
    status: Json = {"message": message}
    if code:
        status["code"] = code
    if reason:
        status["reason"] = reason
    return lambda _: {"allowed": False, "status": status}


def patching(*operations: Json) -> Reply:
    """Let it pass, changed by a JSON patch."""
    encoded = base64.b64encode(json.dumps(operations).encode()).decode()
    return lambda _: {"allowed": True, "patchType": "JSONPatch", "patch": encoded}
