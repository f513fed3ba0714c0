"""Stand-ins for the controllers of others: they remove their finalizers, and recreate the objects that they own.

    with kserve_controller(cluster, namespace):
        …  # an InferenceService can be deleted; its Service cannot, while the InferenceService stays

Each runs in a thread with a loop of its own, so that it works on while a test blocks. Its user agent ends with
`-stand-in`: the audit log tells its requests from ours. Times are those that were measured on the real ones.
"""

import asyncio
import contextlib
import random
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from controlplane import Access
from pilotage.kube import (
    Absent,
    AlreadyExists,
    Client,
    Conflict,
    Expired,
    Forbidden,
    Json,
    Object,
    ObjectKey,
    Resource,
    Terminating,
    Unavailable,
    load_config,
    merge_patch,
    without_finalizer,
)

FINALIZE_SECONDS = 0.03
RECREATE_SECONDS = (0.015, 0.17)
POLL_SECONDS = 0.02
START_SECONDS_MAX = 20.0

DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
SERVICES = Resource("", "v1", "services", "Service")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
INGRESSES = Resource("networking.k8s.io", "v1", "ingresses", "Ingress")
INFERENCE_SERVICES = Resource("serving.kserve.io", "v1beta1", "inferenceservices", "InferenceService")

XR_GROUP, PROVIDER_GROUP = "platform.staging.example.com", "provider.staging.example.com"
ENDPOINTS = Resource(XR_GROUP, "v1", "modelendpoints", "ModelEndpoint")
DATABASES = Resource(PROVIDER_GROUP, "v1", "databases", "Database")
INSTANCES = Resource(PROVIDER_GROUP, "v1", "instances", "Instance")
PROVIDER_CONFIGS = Resource(PROVIDER_GROUP, "v1", "providerconfigs", "ProviderConfig")
PROVIDER_CONFIG_USAGES = Resource(PROVIDER_GROUP, "v1", "providerconfigusages", "ProviderConfigUsage")
USAGES = Resource("protection.crossplane.io", "v1beta1", "usages", "Usage")

KSERVE_FINALIZER = "inferenceservice.finalizers"
COMPOSITE_FINALIZER = "composite.apiextensions.crossplane.io"
MANAGED_FINALIZER = "finalizer.managedresource.crossplane.io"
PROVIDER_CONFIG_FINALIZER = "in-use.crossplane.io"
USAGE_FINALIZER = "usage.apiextensions.crossplane.io"
IN_USE = "crossplane.io/in-use"
COMPOSITE = "crossplane.io/composite"
PROVIDER_CONFIG = "crossplane.io/provider-config"

MayLetGo = Callable[[Client, Object], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Finalizes:
    """A finalizer of this controller, and when it is removed."""

    finalizer: str
    may_let_go: MayLetGo | None = None


@dataclass(slots=True)
class _Controller:
    """One stand-in for a controller."""

    client: Client
    namespace: str
    finalizes: Mapping[Resource, Finalizes]
    owner: Resource
    recreates: Sequence[Resource]
    encores: dict[Resource, int] = field(default_factory=dict)
    """Number of times each is recreated although its owner is Terminating."""
    dice: random.Random = field(default_factory=lambda: random.Random(0))

    async def run(self, started: Callable[[], None]) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            resources = [*self.finalizes, *self.recreates]
            listed = [asyncio.Event() for _ in resources]
            for resource, each in zip(resources, listed, strict=True):
                tasks.create_task(self._follow(resource, each, tasks))
            for each in listed:
                await each.wait()
            started()

    async def _follow(self, resource: Resource, listed: asyncio.Event, tasks: asyncio.TaskGroup) -> None:
        while True:
            try:
                everything = await self.client.list(resource, self.namespace)
                for obj in everything.items:
                    self._see(resource, "ADDED", obj, tasks)
                async with self.client.watch(
                    resource, self.namespace, resource_version=everything.resource_version
                ) as watch:
                    listed.set()
                    async for event in watch:
                        self._see(resource, event.type, event.object, tasks)
            except (Unavailable, Expired):  # the API server restarts, or has forgotten
                await asyncio.sleep(POLL_SECONDS)

    def _see(self, resource: Resource, event: str, obj: Object, tasks: asyncio.TaskGroup) -> None:
        if event == "BOOKMARK":
            return
        rule = self.finalizes.get(resource)
        if rule and event != "DELETED" and obj.meta.terminating and rule.finalizer in obj.meta.finalizers:
            tasks.create_task(self._let_go(resource, obj.key, obj.meta.uid, rule))
        if resource in self.recreates and event == "DELETED":
            tasks.create_task(self._recreate(resource, obj))

    async def _let_go(self, resource: Resource, key: ObjectKey, uid: str, rule: Finalizes) -> None:
        await asyncio.sleep(FINALIZE_SECONDS)
        while True:
            try:
                now = await self.client.get(resource, key)
                if now.meta.uid != uid or (patch := without_finalizer(now, rule.finalizer)) is None:
                    return
                if rule.may_let_go is None or await rule.may_let_go(self.client, now):
                    await self.client.patch(resource, key, patch)
                    return
            except Absent:
                return
            except (Conflict, Unavailable):
                pass
            await asyncio.sleep(POLL_SECONDS)

    async def _recreate(self, resource: Resource, gone: Object) -> None:
        owner = next((each for each in gone.meta.owner_references if each.controller), None)
        if owner is None or owner.kind != self.owner.kind:
            return
        await asyncio.sleep(self.dice.uniform(*RECREATE_SECONDS))
        while True:
            try:
                now = await self.client.get(self.owner, ObjectKey(gone.meta.namespace, owner.name))
                if now.meta.uid == owner.uid and self._comes_back(resource, now):
                    await self.client.create(resource, _anew(gone.to_dict()))
            except (Absent, AlreadyExists, Forbidden):  # the last: in a namespace that is being deleted
                return
            except (Terminating, Unavailable):
                await asyncio.sleep(POLL_SECONDS)
            else:
                return

    def _comes_back(self, resource: Resource, owner: Object) -> bool:
        if not owner.meta.terminating:
            return True
        left = self.encores.get(resource, 0)
        self.encores[resource] = left - 1
        return left > 0


@contextlib.contextmanager
def kserve_controller(cluster: Access, namespace: str) -> Iterator[None]:
    """KServe in RawDeployment mode: 30 ms for its finalizer; all children but the HPA are recreated."""
    finalizes = {INFERENCE_SERVICES: Finalizes(KSERVE_FINALIZER)}
    children = (DEPLOYMENTS, SERVICES, INGRESSES)
    with _running(cluster, namespace, "kserve", finalizes, INFERENCE_SERVICES, children):
        yield


@contextlib.contextmanager
def stubborn_kserve_controller(cluster: Access, namespace: str, may_let_go: MayLetGo, *, times: int) -> Iterator[None]:
    """Unlike the real one: it keeps its finalizer, and its children come back though their owner is Terminating."""
    finalizes = {INFERENCE_SERVICES: Finalizes(KSERVE_FINALIZER, may_let_go)}
    children = (DEPLOYMENTS, SERVICES)
    encores = dict.fromkeys(children, times)
    with _running(cluster, namespace, "kserve", finalizes, INFERENCE_SERVICES, children, encores):
        yield


@contextlib.contextmanager
def crossplane_controllers(cluster: Access, namespace: str) -> Iterator[None]:
    """Crossplane's core and a provider.

    Composed resources are recreated while the composite exists. A managed resource is released only while its
    ProviderConfig exists; a ProviderConfig only when no usage of it is left; a Usage only when its user is gone.
    """
    managed = Finalizes(MANAGED_FINALIZER, _has_provider_config)
    finalizes = {
        ENDPOINTS: Finalizes(COMPOSITE_FINALIZER),
        DATABASES: managed,
        INSTANCES: managed,
        PROVIDER_CONFIGS: Finalizes(PROVIDER_CONFIG_FINALIZER, _is_unused),
        USAGES: Finalizes(USAGE_FINALIZER, _user_is_gone),
    }
    with _running(cluster, namespace, "crossplane", finalizes, ENDPOINTS, (DATABASES, INSTANCES, USAGES, CONFIG_MAPS)):
        yield


async def _has_provider_config(client: Client, managed: Object) -> bool:
    """Without it the provider cannot log in, and the external resource stays."""
    name = managed.to_dict()["spec"]["providerConfigRef"]["name"]
    try:
        await client.get(PROVIDER_CONFIGS, ObjectKey(managed.meta.namespace, name))
    except Absent:
        return False
    return True


async def _is_unused(client: Client, config: Object) -> bool:
    labels = f"{PROVIDER_CONFIG}={config.meta.name}"
    return not (await client.list(PROVIDER_CONFIG_USAGES, config.meta.namespace, labels=labels)).items


async def _user_is_gone(client: Client, usage: Object) -> bool:
    """Then what was used is free, and says so by losing its label."""
    spec = usage.to_dict()["spec"]
    if COMPOSITE in usage.meta.labels:
        with contextlib.suppress(Absent):
            await client.get(_managed(spec["by"]["kind"]), _key(usage, spec["by"]))
            return False
    with contextlib.suppress(Absent):
        free = merge_patch({"metadata": {"labels": {IN_USE: None}}})
        await client.patch(_managed(spec["of"]["kind"]), _key(usage, spec["of"]), free)
    return True


def _anew(body: Json) -> Json:
    """Body of a request that creates the same object again."""
    kept = ("name", "namespace", "labels", "annotations", "finalizers", "ownerReferences")
    meta = {name: value for name, value in body["metadata"].items() if name in kept}
    fresh = {name: value for name, value in body.items() if name not in ("metadata", "status")}
    if body.get("kind") == "Service":
        fresh["spec"] = {name: value for name, value in body["spec"].items() if not name.startswith("clusterIP")}
    return fresh | {"metadata": meta}


def _managed(kind: str) -> Resource:
    return {"Database": DATABASES, "Instance": INSTANCES}[kind]


def _key(usage: Object, end: Mapping[str, Any]) -> ObjectKey:
    return ObjectKey(usage.meta.namespace, end["resourceRef"]["name"])


@contextlib.contextmanager
def _running(
    cluster: Access,
    namespace: str,
    name: str,
    finalizes: Mapping[Resource, Finalizes],
    owner: Resource,
    recreates: Sequence[Resource],
    encores: Mapping[Resource, int] | None = None,
) -> Iterator[None]:
    """The controller in a thread, from when it watches until the end of the block. What went wrong is raised there."""
    ready = threading.Event()
    ends: list[Callable[[], object]] = []
    problems: list[BaseException] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        config = load_config(kubeconfig=str(cluster.kubeconfig))
        async with Client.connect(config, name=f"{name}-stand-in") as client:
            controller = _Controller(client, namespace, finalizes, owner, recreates, dict(encores or {}))
            running = loop.create_task(controller.run(ready.set))
            ends.append(lambda: loop.call_soon_threadsafe(running.cancel))
            with contextlib.suppress(asyncio.CancelledError):
                await running

    def thread() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:  # noqa: BLE001 (raised in the test's thread)
            problems.append(error)
        finally:
            ready.set()

    worker = threading.Thread(target=thread, name=f"{name}-stand-in")
    worker.start()
    try:
        if not ready.wait(START_SECONDS_MAX):
            raise TimeoutError(f"the stand-in for {name} did not start in {START_SECONDS_MAX:.0f} s")
        yield
    finally:
        for end in ends:
            with contextlib.suppress(RuntimeError):  # its loop has ended by itself
                end()
        worker.join()
    if problems:
        raise problems[0]
