"""``-o json|yaml|name``: an object, or a List with items, as kubectl prints them, from every command on endpoints."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from pilotage.api.names import MODELS
from tests.cli.serving import OTHER, SOURCE, Chat, condition, revision, serving

NAME = "servingendpoint.pilotage.dev/a"


def parsed(form: str, text: str) -> Any:
    return json.loads(text) if form == "json" else yaml.safe_load(text)


def served(chat: Chat) -> None:
    chat.make("a", serving("a", 2, revision(1, "Previous", OTHER)))
    chat.create(MODELS, {"metadata": {"name": "m"}, "spec": {"source": SOURCE}})


@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.parametrize(
    ("words", "kind", "names"),
    [
        (("list",), "List", ["a"]),
        (("models",), "List", ["m"]),
        (("history", "a"), "List", ["a-1", "a-2"]),
        (("status", "a"), "ServingEndpoint", ["a"]),
        (("models", "m"), "Model", ["m"]),
        (("scale", "a", "--replicas", "2"), "ServingEndpoint", ["a"]),
        (("redeploy", "a", "--replicas", "2", "--no-wait"), "ServingEndpoint", ["a"]),
        (("redeploy", "a", "--replicas", "1", "--no-wait"), "ServingEndpoint", ["a"]),
        (("rollback", "a", "--no-wait"), "ServingEndpoint", ["a"]),
        (("deploy", "b", "--model", SOURCE, "--no-wait"), "ServingEndpoint", ["b"]),
        (("deploy", "b", "--model", SOURCE, "--dry-run"), "ServingEndpoint", ["b"]),
        (("wait", "se/a", "--timeout", "0.1"), "List", ["a"]),
        (("wait", "se/nothing"), "List", []),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_it_is_an_object_or_a_list(chat: Chat, form: str, words: tuple[str, ...], kind: str, names: list[str]):
    served(chat)
    told = parsed(form, chat.run(*words, "-o", form).out)
    assert told["kind"] == kind
    assert told["apiVersion"]
    items = told["items"] if kind == "List" else [told]
    assert [each["metadata"]["name"] for each in items] == names
    assert not [each for each in items if "managedFields" in each["metadata"]]


@pytest.mark.parametrize(
    ("words", "out"),
    [
        (("list",), NAME),
        (("status", "a"), NAME),
        (("models",), "model.pilotage.dev/m"),
        (("scale", "a", "--replicas", "2"), NAME),
        (("redeploy", "a", "--replicas", "2", "--no-wait"), NAME),
        (("deploy", "b", "--model", SOURCE, "--no-wait"), NAME[:-1] + "b"),
        (("deploy", "b", "--model", SOURCE, "--dry-run"), NAME[:-1] + "b"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_a_name_can_be_passed_to_kubectl(chat: Chat, words: tuple[str, ...], out: str):
    served(chat)
    assert chat.run(*words, "-o", "name").out == f"{out}\n"


def test_several_endpoints_of_a_file_are_a_list(chat: Chat, tmp_path: Path):
    one = (
        "apiVersion: pilotage.dev/v1alpha1\nkind: ServingEndpoint\nmetadata: {name: %s}\nspec: {model: {source: %s}}\n"
    )
    (tmp_path / "two.yaml").write_text("---\n".join(one % (name, SOURCE) for name in "ab"))
    for more in ("--dry-run", "--no-wait"):
        told = json.loads(chat.run("deploy", "-f", tmp_path / "two.yaml", "-o", "json", more).out)
        assert [each["metadata"]["name"] for each in told["items"]] == ["a", "b"]


def test_one_that_is_waited_for_is_named_at_the_end_and_progress_goes_to_stderr(chat: Chat):
    with chat.answering("a", serving("a")):
        ran = chat.run("deploy", "a", "--model", SOURCE, "--timeout", "20", "-o", "name")
    assert (ran.code, ran.out) == (0, f"{NAME}\n")
    assert "a-1  1 of 1 ready" in ran.err


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_events_have_a_field_for_each_fact(chat: Chat, form: str):
    coming = {
        "phase": "Deploying",
        "history": [revision(1, "Starting")],
        "conditions": [condition("Progressing", True, "Unschedulable", "no GPU is free")],
    }
    with chat.answering("a", coming, serving("a")):
        ran = chat.run("deploy", "a", "--model", SOURCE, "--timeout", "20", "-o", form)
    events = list(yaml.safe_load_all(ran.out)) if form == "yaml" else [*map(json.loads, ran.out.splitlines())]
    first, last = events[0], events[-1]
    assert (first["event"], first["object"]["name"], first["object"]["namespace"]) == ("created", "a", chat.namespace)
    (done,) = [each for each in events if each["event"] == "up" and each["state"] == "done"]
    assert done["revision"] == "a-1"
    for event in events:
        if event["event"] == "up" and event["state"] == "active":
            assert (event["revision"], event["reason"], event["message"]) == ("a-1", "Unschedulable", "no GPU is free")
    assert last | {"message": ""} == {
        "event": "end",
        "result": "serving",
        "reason": "",
        "message": "",
        "url": "http://a.example.com/v1",
        "revision": "a-1",
        "replicas": {"ready": 1, "desired": 1},
    }


def test_an_unchanged_endpoint_is_an_event_too(chat: Chat):
    chat.make("a")
    ran = chat.run("redeploy", "a", "--replicas", "1", "-o", "json")
    assert (json.loads(ran.out)["event"], ran.err) == ("unchanged", "")
