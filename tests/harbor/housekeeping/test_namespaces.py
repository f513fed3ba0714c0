"""Deletion of a namespace, and its conditions meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage_harbor.apimachinery.errors import StatusError
from pilotage_sim.loop import virtual
from tests.harbor.housekeeping.support import CONFIG_MAPS, DEFINITIONS, PODS, SECRETS, World, conditions, definition

HOLD = "example.com/hold"
FINE = {
    "NamespaceDeletionDiscoveryFailure": (
        "False",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "False",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "False",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("False", "ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": (
        "False",
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
}


async def make(world: World) -> None:
    await world.create("namespaces", "team")


async def now(world: World) -> dict[str, tuple[str, str, str]]:
    namespace = await world.get("namespaces", "team")
    assert namespace is not None
    return conditions(namespace)


@virtual
async def test_an_empty_namespace_goes_after_its_grace_period() -> None:
    async with World() as world:
        await make(world)
        answer = await world.delete("namespaces", "team")
        assert answer["status"]["phase"] == "Terminating"
        await world.settle(4.9)
        assert await world.get("namespaces", "team") is not None
        await world.settle(0.2)
        assert await world.get("namespaces", "team") is None


@virtual
async def test_it_takes_all_its_content_along_and_nothing_else() -> None:
    async with World(namespace_grace_seconds=0) as world:
        await make(world)
        await world.ask("POST", DEFINITIONS, definition())
        await world.settle()
        for plural in (CONFIG_MAPS, SECRETS, "widgets", PODS):
            await world.create(plural, "one", namespace="team")
            await world.create(plural, "two", namespace="team")
        await world.create(CONFIG_MAPS, "elsewhere")
        await world.delete("namespaces", "team")
        await world.settle()
        assert await world.get("namespaces", "team") is None
        for plural in (CONFIG_MAPS, SECRETS, "widgets", PODS):
            assert await world.names(plural, "team") == []
        assert await world.names(CONFIG_MAPS) == ["elsewhere"]


@virtual
async def test_nothing_is_created_in_it_any_more() -> None:
    async with World() as world:
        await make(world)
        await world.delete("namespaces", "team")
        with pytest.raises(StatusError) as caught:
            await world.create(CONFIG_MAPS, "late", namespace="team")
        assert caught.value.code == 403
        assert caught.value.details is not None
        assert caught.value.details["causes"][0]["reason"] == "NamespaceTerminating"


@virtual
async def test_finalizers_hold_it_and_the_conditions_count_them() -> None:
    async with World(namespace_grace_seconds=0) as world:
        await make(world)
        await world.create(CONFIG_MAPS, "one", namespace="team", finalizers=[HOLD])
        await world.create(SECRETS, "two", namespace="team", finalizers=[HOLD, "example.com/more"])
        await world.create(SECRETS, "free", namespace="team")
        await world.delete("namespaces", "team")
        await world.settle()
        assert await world.names(SECRETS, "team") == ["two"]
        assert await now(world) == {
            **FINE,
            "NamespaceContentRemaining": (
                "True",
                "SomeResourcesRemain",
                "Some resources are remaining: configmaps. has 1 resource instances, secrets. has 1 resource instances",
            ),
            "NamespaceFinalizersRemaining": (
                "True",
                "SomeFinalizersRemain",
                (
                    "Some content in the namespace has finalizers remaining: example.com/hold in 2 resource instances, "
                    "example.com/more in 1 resource instances"
                ),
            ),
        }

        await world.set_finalizers(SECRETS, "two", [], namespace="team")
        await world.settle()
        assert (await now(world))["NamespaceContentRemaining"][2] == (
            "Some resources are remaining: configmaps. has 1 resource instances"
        )
        await world.set_finalizers(CONFIG_MAPS, "one", [], namespace="team")
        await world.settle()
        assert await world.get("namespaces", "team") is None


@virtual
async def test_while_it_is_held_nothing_is_written() -> None:
    async with World(namespace_grace_seconds=0) as world:
        await make(world)
        await world.create(CONFIG_MAPS, "one", namespace="team", finalizers=[HOLD])
        await world.delete("namespaces", "team")
        await world.settle()
        world.events.clear()
        await world.settle(3600)
        assert world.events == []


@virtual
async def test_pods_go_first_and_the_rest_waits_for_them() -> None:
    async with World(namespace_grace_seconds=0) as world:
        await make(world)
        await world.create(PODS, "pod", namespace="team", finalizers=[HOLD])
        await world.create(CONFIG_MAPS, "one", namespace="team")
        await world.delete("namespaces", "team")
        await world.settle(100)
        assert await world.names(CONFIG_MAPS, "team") == ["one"]
        assert await now(world) == FINE, "while pods remain the conditions claim that nothing does"

        await world.set_finalizers(PODS, "pod", [], namespace="team")
        await world.settle()
        assert await world.get("namespaces", "team") is None


@virtual
async def test_a_refused_delete_is_in_the_conditions_and_tried_again() -> None:
    refusing = True

    class Refusing:
        async def mutate(self, attributes: object) -> list[str]:
            return []

        async def validate(self, attributes: object) -> list[str]:
            scope = attributes.scope  # type: ignore[attr-defined]
            if refusing and attributes.operation == "DELETE" and scope.kind.kind == "ConfigMap":  # type: ignore[attr-defined]
                raise StatusError(403, "Forbidden", "keep it")
            return []

    async with World(namespace_grace_seconds=0) as world:
        await make(world)
        await world.create(CONFIG_MAPS, "one", namespace="team")
        await world.create(SECRETS, "two", namespace="team")
        world.core.admission = Refusing()
        await world.delete("namespaces", "team")
        await world.settle(600)
        assert await world.names(SECRETS, "team") == []
        assert (await now(world))["NamespaceDeletionContentFailure"] == (
            "True",
            "ContentDeletionFailed",
            "Failed to delete all resource types, 1 remaining: keep it",
        )
        refusing = False
        await world.settle(61)
        assert await world.get("namespaces", "team") is None


@virtual
@pytest.mark.parametrize(("moment", "deleted"), [("ConfigMap", False), ("ConfigMap", True), ("Namespace", False)])
async def test_another_of_its_name_is_left_alone(moment: str, deleted: bool) -> None:
    """Another client deletes it while its content is deleted or its conditions are written, and it is created again."""

    class Meanwhile:
        done = False

        async def mutate(self, attributes: Any) -> list[str]:
            return []

        async def validate(self, attributes: Any) -> list[str]:
            by = attributes.scope.call.user.name
            if not self.done and attributes.scope.kind.kind == moment and "namespace-controller" in by:
                self.done = True
                old = await world.get("namespaces", "team")
                assert old is not None
                old["spec"]["finalizers"] = []
                await world.ask("PUT", "/api/v1/namespaces/team/finalize", old)
                await make(world)
                await world.create(SECRETS, "new", namespace="team")
                if deleted:
                    await world.delete("namespaces", "team")
            return []

    async with World(namespace_grace_seconds=5) as world:
        await make(world)
        await world.create(CONFIG_MAPS, "one", namespace="team")
        world.core.admission = meanwhile = Meanwhile()
        await world.delete("namespaces", "team")
        await world.settle(9)
        assert meanwhile.done
        namespace = await world.get("namespaces", "team")
        assert namespace is not None
        assert namespace["spec"]["finalizers"] == ["kubernetes"]
        assert namespace["status"] == {"phase": "Terminating" if deleted else "Active"}
        assert await world.names(SECRETS, "team") == ["new"]
        await world.settle(100)
        assert await world.names(SECRETS, "team") == ([] if deleted else ["new"])


@virtual
async def test_somebody_elses_finalizer_in_its_spec_keeps_it() -> None:
    async with World(namespace_grace_seconds=0) as world:
        body = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": "team"},
            "spec": {"finalizers": ["example.com/other", "kubernetes"]},
        }
        await world.ask("POST", "/api/v1/namespaces", body)
        await world.delete("namespaces", "team")
        await world.settle(100)
        namespace = await world.get("namespaces", "team")
        assert namespace is not None
        assert namespace["spec"]["finalizers"] == ["example.com/other"]


@virtual
async def test_one_that_was_being_deleted_before_a_start_goes_after_it() -> None:
    async with World() as world:
        await make(world)
        await world.create(CONFIG_MAPS, "one", namespace="team")
        await world.housekeeping.stop()
        await world.delete("namespaces", "team")
        await world.settle(60)
        assert await world.get("namespaces", "team") is not None
        await world.housekeeping.start()
        await world.settle(6)
        assert await world.get("namespaces", "team") is None
