"""Requests of client-go and the conformance specs that we would put differently: empty fields, forms, repetitions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pilotage_harbor.apimachinery.calls import Call, ServerResponse
from pilotage_harbor.apimachinery.users import MASTERS, UserInfo
from pilotage_sim.loop import virtual
from tests.harbor.housekeeping.support import CONFIG_MAPS, World

USER = UserInfo("tester", groups=(MASTERS,))
MAPS = "/api/v1/namespaces/default/configmaps"
APPLY = "application/apply-patch+yaml"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
QUESTION = {"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}}
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
UNSET: dict[str, Any] = {"uid": "", "resourceVersion": "", "generation": 0, "creationTimestamp": None}


async def send(
    world: World, method: str, path: str, body: object, media: str = "application/json", **more: Any
) -> tuple[ServerResponse, Any]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    query = {name: [value] for name, value in more.pop("query", {}).items()}
    answer = await world.handle(Call(method, path, query, {"content-type": media, **more}, raw, USER))
    assert isinstance(answer, ServerResponse)
    return answer, json.loads(answer.body)


@virtual
async def test_metadata_that_is_sent_empty_is_not_said() -> None:
    async with World() as world:
        before = await world.create(CONFIG_MAPS, "a")
        after = await world.ask("PUT", f"{MAPS}/a", {"metadata": {"name": "a", **UNSET}, "data": {"x": "y"}})
        for name in ("uid", "creationTimestamp"):
            assert after["metadata"][name] == before["metadata"][name]
        made = await world.ask("POST", MAPS, {"metadata": {"name": "b", **UNSET}})
        assert made["metadata"]["uid"]
        assert "generation" not in made["metadata"]


@virtual
async def test_a_namespace_is_finalized_by_who_does_not_say_which_uid() -> None:
    async with World() as world:
        await world.create("namespaces", "n")
        body = {"metadata": {"name": "n", **UNSET}, "spec": {"finalizers": ["kubernetes", "example.com/mine"]}}
        after = await world.ask("PUT", "/api/v1/namespaces/n/finalize", body)
        assert after["spec"]["finalizers"] == ["kubernetes", "example.com/mine"]


@virtual
async def test_there_is_no_table_of_an_answer_about_rights() -> None:
    async with World() as world:
        refused, status = await send(world, "POST", REVIEWS, QUESTION, accept=TABLE)
        assert (refused.status, status["reason"]) == (406, "NotAcceptable")
        given, review = await send(world, "POST", REVIEWS, QUESTION, accept=f"{TABLE},application/json")
        assert (given.status, review["kind"], review["status"]["allowed"]) == (201, "SelfSubjectAccessReview", True)


@virtual
async def test_only_the_metadata_of_an_answer_about_rights() -> None:
    async with World() as world:
        form = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
        _, review = await send(world, "POST", REVIEWS, QUESTION, accept=form)
        assert review == {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {}}


TWICE = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  x: one\n  x: two\n"


@virtual
@pytest.mark.parametrize("validation", ["", "Warn", "Strict", "Ignore"])
async def test_a_key_that_is_applied_twice_is_refused_or_told_or_passed_over(validation: str) -> None:
    async with World() as world:
        query = {"fieldManager": "m", "fieldValidation": validation}
        answer, body = await send(world, "PATCH", f"{MAPS}/a", TWICE, APPLY, query=query)
        if validation == "Strict":
            assert answer.status == 400
            assert body["message"].endswith('yaml: unmarshal errors:\n  line 7: key "x" already set in map')
            assert not [event for event in world.events if event[2] == "a"]
        else:
            assert body["data"] == {"x": "two"}
            told = '299 - "line 7: key \\"x\\" already set in map"'
            assert answer.headers.get("Warning") == (None if validation == "Ignore" else told)


@virtual
async def test_a_conflict_is_told_before_a_key_that_is_there_twice() -> None:
    async with World() as world:
        await world.create(CONFIG_MAPS, "a", data={"x": "other"})
        query = {"fieldManager": "m", "fieldValidation": "Strict"}
        answer, body = await send(world, "PATCH", f"{MAPS}/a", TWICE, APPLY, query=query)
        assert (answer.status, body["reason"]) == (409, "Conflict")
