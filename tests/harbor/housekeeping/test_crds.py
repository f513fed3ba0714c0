"""Life of a CustomResourceDefinition, from its creation to its end."""

from __future__ import annotations

from typing import Any

import pytest

from pilotage_harbor.apimachinery.errors import StatusError
from pilotage_harbor.builtin.crd_conditions import approval
from pilotage_sim.loop import virtual
from tests.harbor.housekeeping.support import DEFINITIONS, World, conditions, definition

WIDGETS = f"{DEFINITIONS}/widgets.example.com"
HOLD = "example.com/hold"
ACCEPTED = ("True", "NoConflicts", "no conflicts found")
ESTABLISHED = ("True", "InitialNamesAccepted", "the initial names have been accepted")


@virtual
async def test_names_are_accepted_then_it_is_established_and_served() -> None:
    async with World() as world:
        await world.ask("POST", DEFINITIONS, definition())
        await world.settle()
        stored = await world.ask("GET", WIDGETS)
        assert conditions(stored) == {"NamesAccepted": ACCEPTED, "Established": ESTABLISHED}
        assert stored["status"]["acceptedNames"] == stored["spec"]["names"]
        assert stored["status"]["storedVersions"] == ["v1"]
        created = await world.create("widgets", "one", spec={"size": 1, "unknown": 2})
        assert created["spec"] == {"size": 1}


@virtual
async def test_before_it_is_established_its_conditions_say_so() -> None:
    async with World() as world:
        seen: list[dict[str, Any]] = []
        world.core.store.listen(
            "customresourcedefinitions.apiextensions.k8s.io",
            lambda event: seen.append(
                conditions(world.core.get(event.storage, "", event.entry.name) or {"status": {}})
            ),
        )
        await world.ask("POST", DEFINITIONS, definition())
        await world.settle()
        installing = ("False", "Installing", "the initial names have been accepted")
        assert seen == [
            {},
            {"NamesAccepted": ACCEPTED, "Established": installing},
            {"NamesAccepted": ACCEPTED, "Established": ESTABLISHED},
        ]


@virtual
async def test_a_name_that_another_one_has_is_refused_until_it_is_free() -> None:
    async with World() as world:
        await world.ask("POST", DEFINITIONS, definition())
        await world.settle()
        names = {"plural": "gadgets", "singular": "gadget", "kind": "Widget", "listKind": "GadgetList"}
        await world.ask("POST", DEFINITIONS, definition(names=names))
        await world.settle()
        gadgets = await world.ask("GET", f"{DEFINITIONS}/gadgets.example.com")
        assert conditions(gadgets) == {
            "NamesAccepted": ("False", "KindConflict", '"Widget" is already in use'),
            "Established": ("False", "NotAccepted", "not all names are accepted"),
        }
        with pytest.raises(StatusError) as caught:
            await world.ask("GET", "/apis/example.com/v1/gadgets")
        assert caught.value.code == 404

        await world.ask("DELETE", WIDGETS)
        await world.settle()
        gadgets = await world.ask("GET", f"{DEFINITIONS}/gadgets.example.com")
        assert conditions(gadgets) == {"NamesAccepted": ACCEPTED, "Established": ESTABLISHED}
        assert (await world.ask("GET", "/apis/example.com/v1/gadgets"))["items"] == []


@virtual
async def test_a_short_name_that_is_given_up_goes_to_who_waits_for_it() -> None:
    async with World() as world:
        widgets = {**definition()["spec"]["names"], "shortNames": ["w"]}
        gadgets = {
            "plural": "gadgets",
            "singular": "gadget",
            "kind": "Gadget",
            "listKind": "Gadgets",
            "shortNames": ["w"],
        }
        for names in (widgets, gadgets):
            await world.ask("POST", DEFINITIONS, definition(names=names))
            await world.settle()
        stored = await world.ask("GET", f"{DEFINITIONS}/gadgets.example.com")
        assert conditions(stored)["NamesAccepted"] == ("False", "ShortNamesConflict", '"w" is already in use')

        patch = {"spec": {"names": {"shortNames": None}}}
        await world.ask("PATCH", WIDGETS, patch, "application/merge-patch+json")
        await world.settle()
        stored = await world.ask("GET", f"{DEFINITIONS}/gadgets.example.com")
        assert conditions(stored) == {"NamesAccepted": ACCEPTED, "Established": ESTABLISHED}


@virtual
async def test_a_change_of_its_schema_is_served_at_once() -> None:
    async with World() as world:
        await world.ask("POST", DEFINITIONS, definition())
        await world.settle()
        stored = await world.ask("GET", WIDGETS)
        schema = stored["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        schema["properties"]["spec"]["properties"]["color"] = {"type": "string", "default": "red"}
        await world.ask("PUT", WIDGETS, stored)
        created = await world.create("widgets", "one", spec={"size": 1})
        assert created["spec"] == {"size": 1, "color": "red"}


@virtual
async def test_its_instances_go_with_it_and_it_is_served_no_more() -> None:
    async with World() as world:
        await world.ask("POST", DEFINITIONS, definition())
        await world.settle()
        await world.create("widgets", "one")
        await world.create("widgets", "two", namespace="kube-system")
        await world.ask("DELETE", WIDGETS)
        await world.settle()
        with pytest.raises(StatusError) as caught:
            await world.ask("GET", WIDGETS)
        assert caught.value.code == 404
        with pytest.raises(StatusError) as caught:
            await world.ask("GET", "/apis/example.com/v1/widgets")
        assert caught.value.code == 404
        assert world.core.store.count("widgets.example.com") == 0


@virtual
async def test_the_finalizers_of_an_instance_hold_it() -> None:
    async with World() as world:
        await world.ask("POST", DEFINITIONS, definition())
        await world.settle()
        await world.create("widgets", "one", finalizers=[HOLD])
        await world.create("widgets", "two")
        await world.ask("DELETE", WIDGETS)
        await world.settle()
        stored = await world.ask("GET", WIDGETS)
        assert conditions(stored)["Terminating"] == (
            "True",
            "InstanceDeletionInProgress",
            "CustomResource deletion is in progress",
        )
        assert await world.names("widgets") == ["one"]
        with pytest.raises(StatusError) as caught:
            await world.create("widgets", "three")
        assert (caught.value.code, caught.value.message) == (
            403,
            (
                'widgets.example.com "three" is forbidden: '
                "create not allowed while custom resource definition is terminating"
            ),
        )

        await world.settle(61)
        stored = await world.ask("GET", WIDGETS)
        assert conditions(stored)["Terminating"][1] == "InstanceDeletionCheck"
        world.events.clear()
        await world.settle(3600)
        assert world.events == []

        await world.set_finalizers("widgets", "one", [])
        await world.settle()
        assert world.core.get("customresourcedefinitions.apiextensions.k8s.io", "", "widgets.example.com") is None


@virtual
async def test_instances_go_without_admission() -> None:
    class Refusing:
        async def mutate(self, attributes: object) -> list[str]:
            return []

        async def validate(self, attributes: object) -> list[str]:
            if attributes.scope.kind.kind == "Widget":  # type: ignore[attr-defined]
                raise StatusError(403, "Forbidden", "no")
            return []

    async with World() as world:
        await world.ask("POST", DEFINITIONS, definition())
        await world.settle()
        await world.create("widgets", "one")
        world.core.admission = Refusing()
        await world.ask("DELETE", WIDGETS)
        await world.settle()
        assert world.core.store.count("widgets.example.com") == 0


@virtual
async def test_what_was_established_is_served_when_the_start_is_over() -> None:
    async with World() as world:
        await world.ask("POST", DEFINITIONS, definition())
        await world.settle()
        await world.create("widgets", "one")
        await world.housekeeping.stop()
        world.core.registry.serve_custom("widgets.example.com", [])
        await world.housekeeping.start()
        assert await world.names("widgets") == ["one"]


@pytest.mark.parametrize(
    ("group", "annotation", "want"),
    [
        ("example.com", "", None),
        ("x.k8s.io", "", ("False", "MissingAnnotation")),
        ("x.k8s.io", "unapproved, legacy", ("False", "UnapprovedAnnotation")),
        ("x.k8s.io", "https://github.com/kubernetes/pull/1", ("True", "ApprovedAnnotation")),
        ("kubernetes.io", "yes", ("False", "InvalidAnnotation")),
    ],
)
def test_approval_of_kubernetes_own_groups(group: str, annotation: str, want: tuple[str, str] | None) -> None:
    obj = definition(group=group)
    if annotation:
        obj["metadata"]["annotations"] = {"api-approved.kubernetes.io": annotation}
    found = approval(obj)
    assert (found and found[1:3]) == want
