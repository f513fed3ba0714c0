"""Webhooks for tests: configurations, and a post that answers from a function."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

    from pilotage_harbor.kinds import Json
    from tests.harbor.housekeeping.support import World

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
URL = "https://webhook.test/check"


class Webhook:
    """A `Post`: remembers the requests, and answers each with the result of `answer`."""

    def __init__(self, answer: Callable[[Json], Json] = lambda _: {"allowed": True}) -> None:
        self.answer = answer
        self.requests: list[Json] = []
        self.urls: list[str] = []

    async def __call__(self, url: str, authorities: str, body: bytes) -> tuple[int, bytes]:
        review = msgspec.json.decode(body)
        self.urls.append(url)
        self.requests.append(review["request"])
        response = {"uid": review["request"]["uid"], **self.answer(review["request"])}
        return 200, msgspec.json.encode({**review, "request": None, "response": response})

    @property
    def asked_about(self) -> list[str]:
        """Operation and name of each request."""
        return [f"{request['operation']} {request.get('name', '')}" for request in self.requests]


def patch(*operations: Json) -> Json:
    """An answer that changes the object."""
    encoded = base64.b64encode(msgspec.json.encode(operations)).decode()
    return {"allowed": True, "patch": encoded, "patchType": "JSONPatch"}


def rule(**changes: Any) -> Json:
    """A rule for ConfigMaps."""
    return {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], **changes}


def webhook(name: str = "check.webhook.test", **changes: Any) -> Json:
    """One webhook of a configuration."""
    return {
        "name": name,
        "clientConfig": {"url": URL},
        "rules": [rule()],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **changes,
    }


async def configure(world: World, kind: str, *webhooks: Json, name: str = "checks") -> None:
    """Create a configuration: `kind` is Mutating or Validating."""
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": list(webhooks) or [webhook()],
    }
    await world.ask("POST", f"{CONFIGURATIONS}/{kind.lower()}webhookconfigurations", body)
