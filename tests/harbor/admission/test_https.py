"""Webhooks over real HTTPS."""

from __future__ import annotations

import base64
import ssl
from typing import TYPE_CHECKING

import pytest
from aiohttp import web

from pilotage_harbor.admission.webhook_client import Failed, Https
from pilotage_harbor.server.pki import make_authority, make_server_certificate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

AUTHORITY = make_authority()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[str]:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=int(request.query.get("status", "200")), body=await request.read())

    application = web.Application()
    application.router.add_post("/check", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    pair = make_server_certificate(AUTHORITY)
    (tmp_path / "server.pem").write_bytes(pair.certificate + pair.key)
    context.load_cert_chain(tmp_path / "server.pem")
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    (address,) = runner.addresses
    yield f"https://127.0.0.1:{address[1]}/check"
    await runner.cleanup()


@pytest.fixture
async def post() -> AsyncIterator[Https]:
    post = Https()
    yield post
    await post.close()


PEM = AUTHORITY.certificate.decode()


async def test_an_answer_comes_back(server: str, post: Https) -> None:
    assert await post(server, PEM, b"x" * 1_000_000) == (200, b"x" * 1_000_000)
    assert await post(f"{server}?status=503", PEM, b"") == (503, b"")


async def test_an_unknown_authority_is_not_trusted(server: str, post: Https) -> None:
    other = make_authority().certificate.decode()
    with pytest.raises(Failed, match="x509: certificate signed by unknown authority"):
        await post(server, other, b"")


async def test_nobody_listens(post: Https) -> None:
    with pytest.raises(Failed, match=r"dial tcp 127\.0\.0\.1:1: connect: connection refused"):
        await post("https://127.0.0.1:1/check", PEM, b"")


async def test_a_bundle_that_is_none(server: str, post: Https) -> None:
    with pytest.raises(Failed, match="unable to load root certificates"):
        await post(server, base64.b64encode(b"nonsense").decode(), b"")
