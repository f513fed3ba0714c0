"""The same contract as our own client sees it: which error a refusal becomes, and what comes back."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable
from typing import Any

from pilotage.kube import (
    LEASES,
    PODS,
    ApiError,
    Client,
    Discovery,
    Object,
    ObjectKey,
    Propagation,
    Resource,
    exactly,
    json_patch,
    merge_patch,
    without_finalizer,
)
from tests.contract.case import Run, Theme
from tests.contract.cases.deleting import HOLD
from tests.contract.cases.evicting import budget, ready_pod
from tests.contract.kit import Kit
from tests.contract.objects import cm, deployment, lease

theme = Theme("client")

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
NOTHINGS = Resource("nothing.example.com", "v1", "nothings", "Nothing")
OTHER = "00000000-0000-0000-0000-000000000001"


class Hand:
    """Our client in the case's namespace. What it returns or raises is noted."""

    def __init__(self, kit: Kit, client: Client) -> None:
        self.kit, self.client, self.ns = kit, client, kit.ns

    def key(self, name: str) -> ObjectKey:
        """A name in the case's namespace."""
        return ObjectKey(self.ns, name)

    async def note(self, what: str, doing: Awaitable[Any]) -> Any:
        """Do it, and note how it went."""
        try:
            result = await doing
        except ApiError as error:
            causes = [[cause.reason, cause.field] for cause in error.causes]
            self.kit.note(what, [type(error).__name__, error.error_class.value, error.code, error.reason, causes])
            return None
        shown: Any = result
        if isinstance(result, Object):
            meta = result.to_dict()["metadata"]
            shown = {
                "kind": result.kind,
                "name": meta["name"],
                "finalizers": meta.get("finalizers"),
                "deleting": "deletionTimestamp" in meta,
            }
        elif hasattr(result, "items"):
            shown = [each.meta.name for each in result.items]
        self.kit.note(what, shown)
        return result


def hand(run: Any) -> Run:
    """A case that is given our client."""

    async def wrapped(kit: Kit) -> None:
        async with connected(kit) as client:
            await run(Hand(kit, client))

    wrapped.__name__ = run.__name__
    return wrapped


@contextlib.asynccontextmanager
async def connected(kit: Kit) -> AsyncIterator[Client]:
    """Our client on the case's server."""
    async with Client.connect(kit.server.config, name="contract") as client:
        yield client


@theme.case(facts=(6,))
@hand
async def create_and_delete(hand: Hand) -> None:
    made = await hand.note("create", hand.client.create(CONFIG_MAPS, cm("a"), namespace=hand.ns))
    await hand.note("again", hand.client.create(CONFIG_MAPS, cm("a"), namespace=hand.ns))
    await hand.note("get", hand.client.get(CONFIG_MAPS, hand.key("a")))
    await hand.note(
        "wrong uid", hand.client.delete(CONFIG_MAPS, hand.key("a"), uid=OTHER, propagation=Propagation.BACKGROUND)
    )
    await hand.note(
        "old version",
        hand.client.delete(
            CONFIG_MAPS, hand.key("a"), uid=made.meta.uid, resource_version="1", propagation=Propagation.BACKGROUND
        ),
    )
    await hand.note(
        "delete", hand.client.delete(CONFIG_MAPS, hand.key("a"), uid=made.meta.uid, propagation=Propagation.BACKGROUND)
    )
    await hand.note("get", hand.client.get(CONFIG_MAPS, hand.key("a")))
    await hand.note(
        "delete", hand.client.delete(CONFIG_MAPS, hand.key("a"), uid=made.meta.uid, propagation=Propagation.BACKGROUND)
    )


@theme.case(facts=(1, 7))
@hand
async def finalizers(hand: Hand) -> None:
    made = await hand.note("create", hand.client.create(CONFIG_MAPS, cm("a", finalizers=HOLD), namespace=hand.ns))
    await hand.note(
        "delete", hand.client.delete(CONFIG_MAPS, hand.key("a"), uid=made.meta.uid, propagation=Propagation.BACKGROUND)
    )
    await hand.note("create", hand.client.create(CONFIG_MAPS, cm("a"), namespace=hand.ns))
    got = await hand.client.get(CONFIG_MAPS, hand.key("a"))
    patch = without_finalizer(got, HOLD[0])
    assert patch is not None
    await hand.note("release", hand.client.patch(CONFIG_MAPS, hand.key("a"), patch))
    await hand.note("get", hand.client.get(CONFIG_MAPS, hand.key("a")))


@theme.case(facts=(6,))
@hand
async def old_versions(hand: Hand) -> None:
    made = await hand.client.create(CONFIG_MAPS, cm("a"), namespace=hand.ns)
    patch = merge_patch({"data": {"n": "1"}}, resource_version=made.meta.resource_version)
    await hand.note("patch", hand.client.patch(CONFIG_MAPS, hand.key("a"), patch))
    await hand.note("patch again", hand.client.patch(CONFIG_MAPS, hand.key("a"), patch))
    await hand.note("replace", hand.client.replace(CONFIG_MAPS, made.to_dict()))
    failing = json_patch([{"op": "test", "path": "/data/n", "value": "9"}])
    await hand.note("test", hand.client.patch(CONFIG_MAPS, hand.key("a"), failing))


@theme.case()
@hand
async def conflicts_of_apply(hand: Hand) -> None:
    body = {"metadata": {"name": "a", "namespace": hand.ns}, "data": {"n": "1"}}
    await hand.note("first", hand.client.apply(CONFIG_MAPS, body))
    async with Client.connect(hand.kit.server.config, name="other") as other:
        await hand.note("second", other.apply(CONFIG_MAPS, body | {"data": {"n": "2"}}))
        await hand.note("by force", other.apply(CONFIG_MAPS, body | {"data": {"n": "2"}}, force=True))


@theme.case()
@hand
async def lists_in_chunks(hand: Hand) -> None:
    for name in "abcde":
        await hand.client.create(LEASES, lease(name), namespace=hand.ns)
    found = await hand.note("list", hand.client.list(LEASES, hand.ns, chunk=2))
    gone = await hand.client.get(LEASES, hand.key("c"))
    await hand.client.delete(LEASES, hand.key("c"), uid=gone.meta.uid, propagation=Propagation.BACKGROUND)
    await hand.note("list", hand.client.list(LEASES, hand.ns, chunk=2))
    await hand.note("as it was", hand.client.list(LEASES, hand.ns, version=exactly(found.resource_version)))
    await hand.note("metadata", hand.client.list(LEASES, hand.ns, metadata_only=True))


@theme.case()
@hand
async def watches(hand: Hand) -> None:
    found = await hand.client.list(LEASES, hand.ns)
    async with hand.client.watch(LEASES, hand.ns, resource_version=found.resource_version) as watch:
        made = await hand.client.create(LEASES, lease("a"), namespace=hand.ns)
        await hand.client.patch(LEASES, hand.key("a"), merge_patch({"spec": {"holderIdentity": "me"}}))
        await hand.client.delete(LEASES, hand.key("a"), uid=made.meta.uid, propagation=Propagation.BACKGROUND)
        seen = []
        async for event in watch:
            if event.type != "BOOKMARK":
                seen.append([str(event.type), event.object.meta.name])
            if len(seen) == 3:
                break
    hand.kit.note("events", seen)


@theme.case()
@hand
async def scales(hand: Hand) -> None:
    await hand.client.create(DEPLOYMENTS, deployment("a"), namespace=hand.ns)
    await hand.note("scale", hand.client.scale(DEPLOYMENTS, hand.key("a"), 3))
    await hand.note("scale of nothing", hand.client.scale(DEPLOYMENTS, hand.key("b"), 3))
    got = await hand.client.get(DEPLOYMENTS, hand.key("a"))
    hand.kit.note("replicas", got.to_dict()["spec"]["replicas"])


@theme.case(facts=(20,))
@hand
async def evicts(hand: Hand) -> None:
    uid = await ready_pod(hand.kit)
    await budget(hand.kit, 0)
    await hand.note("budget", hand.client.evict(hand.key("p"), uid=uid))
    await hand.note("uid", hand.client.evict(hand.key("p"), uid=OTHER))
    await hand.note("absent", hand.client.evict(hand.key("q"), uid=uid))
    await hand.note(
        "delete", hand.client.delete(PODS, hand.key("p"), uid=uid, propagation=Propagation.BACKGROUND, grace_seconds=0)
    )


@theme.case(facts=(8,))
@hand
async def unknown_is_not_gone(hand: Hand) -> None:
    await hand.note("kind", hand.client.list(NOTHINGS, hand.ns))
    await hand.note("kind by name", hand.client.get(NOTHINGS, hand.key("a")))
    await hand.note("name", hand.client.get(CONFIG_MAPS, hand.key("a")))
    await hand.note("subresource", hand.client.get(CONFIG_MAPS, hand.key("a"), subresource="nonsense"))


@theme.case(facts=(7,))
@hand
async def namespaces(hand: Hand) -> None:
    await hand.note("absent", hand.client.create(CONFIG_MAPS, cm("a"), namespace="never-made"))
    await hand.client.create(CONFIG_MAPS, cm("held", finalizers=HOLD), namespace=hand.ns)
    await hand.kit.quiet.delete("/namespaces", hand.ns)
    await hand.note("terminating", hand.client.create(CONFIG_MAPS, cm("a"), namespace=hand.ns))
    await hand.client.patch(CONFIG_MAPS, hand.key("held"), merge_patch({"metadata": {"finalizers": None}}))
    await hand.kit.until_gone("/namespaces", hand.ns)


@theme.case()
@hand
async def invalid(hand: Hand) -> None:
    await hand.note("name", hand.client.create(CONFIG_MAPS, cm("Not_Valid"), namespace=hand.ns))
    await hand.note("field", hand.client.create(DEPLOYMENTS, deployment("a", replicas=-1), namespace=hand.ns))
    await hand.note("type", hand.client.create(DEPLOYMENTS, deployment("a", replicas="x"), namespace=hand.ns))
    await hand.note("selector", hand.client.list(CONFIG_MAPS, hand.ns, labels="a b"))


@theme.case()
@hand
async def discovers(hand: Hand) -> None:
    surface = await Discovery(hand.client).surface()
    wanted = {"pods", "configmaps", "deployments", "leases", "customresourcedefinitions"}
    found = sorted(
        [str(each.resource), each.resource.kind, each.resource.namespaced]
        for each in surface.resources
        if each.resource.plural in wanted
        and each.resource.group in ("", "apps", "coordination.k8s.io", "apiextensions.k8s.io")
        and each.resource.version == "v1"
    )
    hand.kit.note("resources", found)


@theme.case()
@hand
async def dry_runs(hand: Hand) -> None:
    await hand.note("create", hand.client.create(CONFIG_MAPS, cm("a"), namespace=hand.ns, dry_run=True))
    await hand.note("get", hand.client.get(CONFIG_MAPS, hand.key("a")))
    made = await hand.client.create(CONFIG_MAPS, cm("a", finalizers=HOLD), namespace=hand.ns)
    await hand.note(
        "delete",
        hand.client.delete(
            CONFIG_MAPS, hand.key("a"), uid=made.meta.uid, propagation=Propagation.FOREGROUND, dry_run=True
        ),
    )
    await hand.note("get", hand.client.get(CONFIG_MAPS, hand.key("a")))
