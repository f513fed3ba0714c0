"""The garbage collector: which objects are deleted, which stay, and in which order."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from pilotage_harbor.apimachinery.errors import StatusError
from pilotage_sim.loop import virtual
from tests.harbor.housekeeping.support import CONFIG_MAPS, DEFINITIONS, SECRETS, World, definition, owner

if TYPE_CHECKING:
    from pilotage_harbor.kinds import Json


@virtual
async def test_dependents_go_after_their_owner_in_the_background() -> None:
    async with World() as world:
        top = await world.create(CONFIG_MAPS, "top")
        middle = await world.create(SECRETS, "middle", owners=[owner(top)])
        await world.create(CONFIG_MAPS, "leaf", owners=[owner(middle)])
        await world.create(CONFIG_MAPS, "bystander")
        await world.settle()
        assert await world.names(CONFIG_MAPS) == ["bystander", "leaf", "top"]

        await world.delete(CONFIG_MAPS, "top")
        await world.settle()

        assert await world.names(CONFIG_MAPS) == ["bystander"]
        gone = [name for type_, _, name in world.events if type_ == "DELETED"]
        assert gone == ["top", "middle", "leaf"]


@virtual
async def test_one_live_owner_keeps_it_and_the_dead_references_are_stripped() -> None:
    async with World() as world:
        first, second = await world.create(CONFIG_MAPS, "first"), await world.create(CONFIG_MAPS, "second")
        await world.create(SECRETS, "shared", owners=[owner(first), owner(second)])
        await world.delete(CONFIG_MAPS, "first")
        await world.settle()
        shared = await world.get(SECRETS, "shared")
        assert shared is not None
        assert shared["metadata"]["ownerReferences"] == [owner(second)]


@virtual
async def test_the_last_owner_takes_it_along() -> None:
    async with World() as world:
        owners = [owner(await world.create(CONFIG_MAPS, name)) for name in ("first", "second")]
        await world.create(SECRETS, "shared", owners=owners)
        for name in ("first", "second"):
            await world.delete(CONFIG_MAPS, name)
            await world.settle()
        assert await world.get(SECRETS, "shared") is None


@virtual
async def test_a_reference_to_another_uid_leads_to_nobody() -> None:
    async with World() as world:
        top = await world.create(CONFIG_MAPS, "top")
        await world.create(SECRETS, "child", owners=[owner(top, uid="11111111-1111-4111-8111-111111111111")])
        await world.settle()
        assert await world.get(SECRETS, "child") is None
        assert await world.get(CONFIG_MAPS, "top") is not None


@virtual
async def test_an_owner_made_anew_under_the_same_name_does_not_save_its_dependents() -> None:
    async with World() as world:
        child = await world.create(SECRETS, "child", owners=[owner(await world.create(CONFIG_MAPS, "top"))])
        await world.delete(CONFIG_MAPS, "top")
        await world.create(CONFIG_MAPS, "top")
        await world.settle()
        assert await world.get(SECRETS, child["metadata"]["name"]) is None


@virtual
async def test_a_namespaced_owner_elsewhere_counts_as_absent() -> None:
    async with World() as world:
        top = await world.create(CONFIG_MAPS, "top", namespace="kube-system")
        await world.create(SECRETS, "child", owners=[owner(top)])
        await world.settle()
        assert await world.get(SECRETS, "child") is None


@virtual
async def test_a_cluster_scoped_owner_can_own_anything() -> None:
    async with World() as world:
        role = await world.create("clusterroles", "top", rules=[])
        await world.create(SECRETS, "child", owners=[owner(role)])
        await world.settle()
        assert await world.get(SECRETS, "child") is not None
        await world.delete("clusterroles", "top")
        await world.settle()
        assert await world.get(SECRETS, "child") is None


@virtual
async def test_a_cluster_scoped_dependent_of_a_namespaced_owner_is_never_collected() -> None:
    async with World() as world:
        top = await world.create(CONFIG_MAPS, "top")
        await world.create("clusterroles", "child", rules=[], owners=[owner(top)])
        await world.delete(CONFIG_MAPS, "top")
        await world.settle(3600)
        assert await world.get("clusterroles", "child") is not None


@virtual
async def test_an_owner_of_an_unknown_kind_is_unknown_until_the_kind_is_served() -> None:
    async with World() as world:
        reference = {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "name": "top",
            "uid": "11111111-1111-4111-8111-111111111111",
        }
        await world.create(SECRETS, "child", owners=[reference])
        await world.settle(3600)
        assert await world.get(SECRETS, "child") is not None

        await world.ask("POST", DEFINITIONS, definition())
        await world.settle()
        assert await world.get(SECRETS, "child") is None


@virtual
async def test_foreground_waits_for_those_that_block_and_for_no_others() -> None:
    async with World() as world:
        top = await world.create(CONFIG_MAPS, "top")
        await world.create(SECRETS, "blocking", owners=[owner(top, block=True)], finalizers=["example.com/hold"])
        await world.create(SECRETS, "other", owners=[owner(top)], finalizers=["example.com/hold"])
        answer = await world.delete(CONFIG_MAPS, "top", policy="Foreground")
        assert answer["metadata"]["finalizers"] == ["foregroundDeletion"]
        await world.settle()

        for name in ("blocking", "other"):
            child = await world.get(SECRETS, name)
            assert child is not None
            assert "deletionTimestamp" in child["metadata"], "all dependents are deleted at once"
        assert await world.get(CONFIG_MAPS, "top") is not None

        await world.set_finalizers(SECRETS, "blocking", [])
        await world.settle()
        assert await world.get(CONFIG_MAPS, "top") is None
        assert await world.get(SECRETS, "other") is not None


@virtual
async def test_foreground_reaches_all_generations_from_the_leaves_up() -> None:
    async with World() as world:
        top = await world.create(CONFIG_MAPS, "top")
        middle = await world.create(CONFIG_MAPS, "middle", owners=[owner(top, block=True)])
        await world.create(CONFIG_MAPS, "leaf", owners=[owner(middle, block=True)])
        await world.delete(CONFIG_MAPS, "top", policy="Foreground")
        await world.settle()
        assert [name for type_, _, name in world.events if type_ == "DELETED"] == ["leaf", "middle", "top"]


@virtual
async def test_a_foreground_deletion_is_freed_when_the_dependent_stops_blocking() -> None:
    async with World() as world:
        top = await world.create(CONFIG_MAPS, "top")
        await world.create(SECRETS, "child", owners=[owner(top, block=True)], finalizers=["example.com/hold"])
        await world.delete(CONFIG_MAPS, "top", policy="Foreground")
        await world.settle()
        patch = {"metadata": {"ownerReferences": [owner(top, block=False)]}}
        path = "/api/v1/namespaces/default/secrets/child"
        await world.ask("PATCH", path, patch, "application/merge-patch+json")
        await world.settle()
        assert await world.get(CONFIG_MAPS, "top") is None


@virtual
async def test_owners_in_a_circle_go_in_the_foreground() -> None:
    async with World() as world:
        one = await world.create(CONFIG_MAPS, "one")
        two = await world.create(CONFIG_MAPS, "two", owners=[owner(one, block=True)])
        patch = {"metadata": {"ownerReferences": [owner(two, block=True)]}}
        await world.ask("PATCH", "/api/v1/namespaces/default/configmaps/one", patch, "application/merge-patch+json")
        await world.delete(CONFIG_MAPS, "one", policy="Foreground")
        await world.settle()
        assert await world.names(CONFIG_MAPS) == []


@virtual
async def test_orphans_lose_their_reference_and_live_on() -> None:
    async with World() as world:
        await world.ask("POST", DEFINITIONS, definition())
        await world.settle()
        top, other = await world.create(CONFIG_MAPS, "top"), await world.create(CONFIG_MAPS, "other")
        await world.create(SECRETS, "child", owners=[owner(top), owner(other)])
        await world.create("widgets", "custom", owners=[owner(top)])
        answer = await world.delete(CONFIG_MAPS, "top", policy="Orphan")
        assert answer["metadata"]["finalizers"] == ["orphan"]
        await world.settle()

        assert await world.get(CONFIG_MAPS, "top") is None
        child, custom = await world.get(SECRETS, "child"), await world.get("widgets", "custom")
        assert child is not None
        assert child["metadata"]["ownerReferences"] == [owner(other)]
        assert custom is not None
        assert "ownerReferences" not in custom["metadata"]


@virtual
async def test_a_background_delete_frees_one_that_waits_in_the_foreground() -> None:
    async with World() as world:
        top = await world.create(CONFIG_MAPS, "top")
        await world.create(SECRETS, "child", owners=[owner(top, block=True)], finalizers=["example.com/hold"])
        await world.delete(CONFIG_MAPS, "top", policy="Foreground")
        await world.settle()
        await world.delete(CONFIG_MAPS, "top", policy="Background")
        assert await world.get(CONFIG_MAPS, "top") is None


@virtual
async def test_what_is_left_from_before_a_start_is_collected_after_it() -> None:
    async with World() as world:
        top = await world.create(CONFIG_MAPS, "top")
        await world.create(SECRETS, "child", owners=[owner(top)])
        waiting = await world.create(CONFIG_MAPS, "waiting")
        await world.create(SECRETS, "blocking", owners=[owner(waiting, block=True)])
        await world.housekeeping.stop()
        await world.delete(CONFIG_MAPS, "top")
        await world.delete(CONFIG_MAPS, "waiting", policy="Foreground")
        await world.settle()
        assert await world.names(SECRETS) == ["blocking", "child"]

        await world.housekeeping.start()
        await world.settle()
        assert await world.names(SECRETS) == []
        assert await world.names(CONFIG_MAPS) == []


@virtual
async def test_a_refused_delete_is_tried_again_ever_later() -> None:
    tries: list[float] = []

    class Refusing:
        async def mutate(self, attributes: object) -> list[str]:
            return []

        async def validate(self, attributes: object) -> list[str]:
            operation, scope = attributes.operation, attributes.scope  # type: ignore[attr-defined]
            if operation == "DELETE" and scope.name == "child":
                tries.append(world.core.now())
                raise StatusError(403, "Forbidden", "no")
            return []

    async with World() as world:
        top = await world.create(CONFIG_MAPS, "top")
        await world.create(SECRETS, "child", owners=[owner(top)])
        world.core.admission = Refusing()
        await world.delete(CONFIG_MAPS, "top")
        await world.settle(10_000)
        gaps = [round(later - earlier, 3) for earlier, later in pairwise(tries)]
        assert gaps[:4] == [0.005, 0.01, 0.02, 0.04]
        assert max(gaps) == 1000
        assert await world.get(SECRETS, "child") is not None


@virtual
async def test_its_deletes_name_the_uid_the_version_and_the_propagation() -> None:
    seen: list[Json] = []

    class Watching:
        async def mutate(self, attributes: object) -> list[str]:
            return []

        async def validate(self, attributes: object) -> list[str]:
            if attributes.operation == "DELETE":  # type: ignore[attr-defined]
                user = attributes.scope.call.user.name  # type: ignore[attr-defined]
                seen.append({"user": user, **attributes.options})  # type: ignore[attr-defined]
            return []

    async with World() as world:
        top = await world.create(CONFIG_MAPS, "top")
        child = await world.create(SECRETS, "child", owners=[owner(top)])
        world.core.admission = Watching()
        await world.delete(CONFIG_MAPS, "top")
        await world.settle()
        meta = child["metadata"]
        assert seen[1:] == [
            {
                "user": "system:serviceaccount:kube-system:generic-garbage-collector",
                "kind": "DeleteOptions",
                "apiVersion": "v1",
                "preconditions": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]},
                "propagationPolicy": "Background",
            }
        ]


@pytest.mark.parametrize("policy", ["Background", "Foreground", "Orphan"])
def test_the_same_seed_gives_the_same_events(policy: str) -> None:
    def run() -> list[tuple[str, str, str]]:
        @virtual
        async def events() -> list[tuple[str, str, str]]:
            async with World() as world:
                top = await world.create(CONFIG_MAPS, "top")
                for at in range(20):
                    await world.create(SECRETS, f"child-{at}", owners=[owner(top, block=at % 2 == 0)])
                await world.delete(CONFIG_MAPS, "top", policy=policy)
                await world.settle()
                return world.events

        return events()

    assert run() == run()
