"""A harbor in virtual time, with its housekeeping, and short ways to write objects into it."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Any, Self

from pilotage_harbor.api import Harbor
from pilotage_harbor.apimachinery.errors import StatusError
from pilotage_harbor.apimachinery.users import MASTERS, UserInfo
from pilotage_harbor.core import Core
from pilotage_harbor.housekeeping.client import Asker
from pilotage_harbor.housekeeping.manager import Housekeeping
from pilotage_sim.loop import VirtualTimeLoop

if TYPE_CHECKING:
    from pilotage_harbor.core.admission import Post
    from pilotage_harbor.kinds import Json
    from pilotage_harbor.storage.store import Event, Journal

CONFIG_MAPS, SECRETS, PODS = "configmaps", "secrets", "pods"
_KINDS = {
    CONFIG_MAPS: ("v1", "ConfigMap"),
    SECRETS: ("v1", "Secret"),
    PODS: ("v1", "Pod"),
    "namespaces": ("v1", "Namespace"),
    "clusterroles": ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    "widgets": ("example.com/v1", "Widget"),
}


class World:
    """Harbor in virtual time with its housekeeping. Use it with `async with`, on a virtual loop."""

    def __init__(
        self, *, namespace_grace_seconds: float = 5.0, post: Post | None = None, journal: Journal | None = None
    ) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        self.core = Core(journal, now=loop.wall_time, seed=1)
        harbor = Harbor(self.core)
        self.handle = harbor.handle
        self.housekeeping = Housekeeping(
            self.core, harbor.handle, namespace_grace_seconds=namespace_grace_seconds, post=post
        )
        self._asker = Asker(harbor.handle, UserInfo("tester", groups=(MASTERS,)), "tester")
        self.events: list[tuple[str, str, str]] = []
        self._names = (f"x{at}" for at in itertools.count())

    async def __aenter__(self) -> Self:
        await self.housekeeping.start()
        self.core.store.listen_to_all(self._note)
        await self.settle()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.housekeeping.stop()

    def _note(self, event: Event) -> None:
        self.events.append((event.type, event.storage, event.entry.name))

    async def settle(self, seconds: float = 0.001) -> None:
        """Let this much time pass: what can happen now happens before the clock moves."""
        await asyncio.sleep(seconds)

    async def ask(self, method: str, path: str, body: Json | None = None, media: str = "application/json") -> Json:
        """Send a request as the user "tester", who may do everything."""
        return await self._asker.ask(method, path, body, media)

    async def create(
        self,
        plural: str,
        name: str = "",
        namespace: str = "default",
        *,
        owners: list[Json] | None = None,
        finalizers: list[str] | None = None,
        labels: dict[str, str] | None = None,
        **content: Any,
    ) -> Json:
        """Create an object."""
        api_version, kind = _KINDS[plural]
        meta: Json = {"name": name or next(self._names)}
        if plural == PODS:
            content.setdefault("spec", {"containers": [{"name": "main", "image": "image"}]})
        for field, value in (("ownerReferences", owners), ("finalizers", finalizers), ("labels", labels)):
            if value:
                meta[field] = value
        body = {"apiVersion": api_version, "kind": kind, "metadata": meta, **content}
        return await self.ask("POST", path(plural, namespace), body)

    async def delete(self, plural: str, name: str, namespace: str = "default", policy: str = "Background") -> Json:
        """Delete an object."""
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy}
        return await self.ask("DELETE", f"{path(plural, namespace)}/{name}", options)

    async def set_finalizers(self, plural: str, name: str, finalizers: list[str], namespace: str = "default") -> None:
        """Replace the finalizers of an object."""
        patch = {"metadata": {"finalizers": finalizers or None}}
        await self.ask("PATCH", f"{path(plural, namespace)}/{name}", patch, "application/merge-patch+json")

    async def get(self, plural: str, name: str, namespace: str = "default") -> Json | None:
        """An object, or None if it is gone."""
        try:
            return await self.ask("GET", f"{path(plural, namespace)}/{name}")
        except StatusError as error:
            if error.code != 404 or error.details == {}:
                raise
            return None

    async def names(self, plural: str, namespace: str = "default") -> list[str]:
        """Names of the objects that exist."""
        listed = await self.ask("GET", path(plural, namespace))
        return [item["metadata"]["name"] for item in listed["items"]]


def path(plural: str, namespace: str = "default") -> str:
    """Path of a collection."""
    api_version, _ = _KINDS[plural]
    root = "/api" if "/" not in api_version else "/apis"
    if plural in ("namespaces", "clusterroles"):
        return f"{root}/{api_version}/{plural}"
    return f"{root}/{api_version}/namespaces/{namespace}/{plural}"


def owner(obj: Json, *, block: bool | None = None, **changes: str) -> Json:
    """A reference to an object."""
    reference = {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
        **changes,
    }
    return reference if block is None else {**reference, "blockOwnerDeletion": block}


def definition(**changes: Any) -> Json:
    """A CustomResourceDefinition of Widgets."""
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    spec: Json = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        **changes,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{spec['names']['plural']}.{spec['group']}"},
        "spec": spec,
    }


DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def conditions(obj: Json) -> dict[str, tuple[str, str, str]]:
    """Status, reason and message by type."""
    return {
        each["type"]: (each["status"], each["reason"], each["message"])
        for each in obj["status"].get("conditions") or ()
    }
