"""The HTTPS client of webhooks, with the certificate authority of each. aiohttp is loaded with the first call."""

from __future__ import annotations

import asyncio
import base64
import os
import socket
import ssl
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

import msgspec

if TYPE_CHECKING:
    from pilotage_harbor.core.admission import Post
    from pilotage_harbor.kinds import Json, View

ANSWER_BYTES_MAX = 3 * 1024 * 1024
_WORDS = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    413: "the request is too large",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


class Failed(Exception):
    """The webhook could not be asked, or did not answer. The words are those of kube-apiserver's client."""


class Reached(Protocol):
    """The address of a webhook, and its time-out."""

    client: Json
    timeout_seconds: int


async def call(view: View, post: Post, hook: Reached, review: Json) -> bytes:
    """The answer of a webhook to a review; raises Failed."""
    url = _url(view, hook)
    await asyncio.sleep(0)  # a time-out needs a task, which a call that has not waited yet may not be
    try:
        async with asyncio.timeout(hook.timeout_seconds):
            status, body = await post(url, _authorities(hook), msgspec.json.encode(review))
    except TimeoutError:
        raise Failed(f'Post "{url}": context deadline exceeded') from None
    except Failed as error:
        raise Failed(f'Post "{url}": {error}') from None
    if status >= 300:
        raise Failed(_refusal(status, body))
    return body


def _url(view: View, hook: Reached) -> str:
    query = f"timeout={hook.timeout_seconds}s"
    url = hook.client.get("url")
    if url:
        return f"{url}?{query}"
    service = hook.client.get("service")
    if not service:
        raise Failed("webhook configuration must have either service or URL")
    name, namespace, port = service["name"], service["namespace"], service.get("port") or 443
    path = (service.get("path") or "").lstrip("/")
    url = f"https://{name}.{namespace}.svc:{port}/{path}?{query}"
    entry = view.get("services", namespace, name)
    if entry is None:
        raise Failed(f'Post "{url}": service "{name}" not found')
    address = (entry.get("spec") or {}).get("clusterIP") or "None"
    raise Failed(f'Post "{url}": dial tcp {address}:{port}: connect: no route to host')


def _authorities(hook: Reached) -> str:
    encoded = hook.client.get("caBundle") or ""
    return base64.b64decode(encoded).decode("ascii", "replace") if encoded else ""


def _refusal(status: int, body: bytes) -> str:
    try:
        said = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        said = None
    if isinstance(said, dict) and said.get("kind") == "Status" and said.get("message"):
        return str(said["message"])
    if status in _WORDS:
        return _WORDS[status]
    text = body.decode(errors="replace").strip()
    if status == 403:
        return text or "the server does not allow access to the requested resource"
    if status < 500:
        return f"the server responded with the status code {status} but did not return more information"
    words = f'"{text}"' if text else '"unknown"'
    return f"an error on the server ({words}) has prevented the request from succeeding"


class Https:
    """Posts by aiohttp, over connections that are kept."""

    def __init__(self) -> None:
        self._session: Any = None
        self._contexts: dict[str, ssl.SSLContext] = {}

    async def __call__(self, url: str, authorities: str, body: bytes) -> tuple[int, bytes]:
        """Send the body to a webhook and return its status and answer, as `Post` says."""
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(headers={"Content-Type": "application/json"})
        try:
            async with self._session.post(
                url, data=body, ssl=self._context(authorities), allow_redirects=False
            ) as answer:
                content: bytes = await answer.content.read(ANSWER_BYTES_MAX)
                while chunk := await answer.content.read(ANSWER_BYTES_MAX - len(content)):
                    content += chunk
                return answer.status, content
        except aiohttp.ClientConnectorCertificateError:
            words = "tls: failed to verify certificate: x509: certificate signed by unknown authority"
            raise Failed(words) from None
        except aiohttp.ClientConnectorError as error:
            raise Failed(_dial(url, error.os_error)) from None
        except (aiohttp.ClientError, ValueError) as error:
            raise Failed("EOF" if isinstance(error, aiohttp.ServerDisconnectedError) else str(error)) from None

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _context(self, authorities: str) -> ssl.SSLContext:
        context = self._contexts.get(authorities)
        if context is None:
            try:
                context = ssl.create_default_context(cadata=authorities or None)
            except ssl.SSLError:
                raise Failed("unable to load root certificates: unable to parse bytes as PEM block") from None
            self._contexts[authorities] = context
        return context


def _dial(url: str, error: OSError) -> str:
    parts = urlsplit(url)
    if isinstance(error, socket.gaierror):
        return f"dial tcp: lookup {parts.hostname}: no such host"
    words = os.strerror(error.errno).lower() if error.errno and error.errno > 0 else str(error)
    return f"dial tcp {parts.hostname}:{parts.port or 443}: connect: {words}"
