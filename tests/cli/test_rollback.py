"""``pilotage rollback`` and ``pilotage history``: which revision is meant, and what of it comes back."""

import json

import pytest

from pilotage.api.endpoint import EndpointSpec
from pilotage.api.endpoint_status import StoredEndpoint
from pilotage.cli.commands.rollback import choose, restored
from pilotage.cli.errors import BadTarget
from pilotage.kube import Json, Object
from tests.cli.serving import OTHER, SOURCE, Chat, revision, serving

THIRD = "hf://acme/third/model.gguf"


def endpoint(source: str, *history: Json) -> StoredEndpoint:
    spec = {"model": {"source": source}, "runtime": {"name": "llama.cpp"}, "placement": {"kind": "Deployment"}}
    body = {"metadata": {"name": "a"}, "spec": spec, "status": {"history": list(history)}}
    return StoredEndpoint.of(Object.from_dict(body))


@pytest.mark.parametrize(
    ("wanted", "history", "number"),
    [
        (OTHER, [revision(1, "Previous"), revision(2, "Current", OTHER)], 1),
        (OTHER, [revision(1, "Current"), revision(2, "Starting", OTHER)], 1),
        (OTHER, [revision(1, "Current")], 1),
        (SOURCE, [revision(1, "Previous", OTHER), revision(2, "Previous"), revision(3, "Current")], 1),
        (OTHER, [revision(1, "Previous"), revision(2, "Failed", THIRD), revision(3, "Current", OTHER)], 1),
    ],
    ids=["the one before", "what serves", "a change that never began", "not the same again", "never one that failed"],
)
def test_without_a_number_it_is_the_newest_that_served_and_was_another(wanted: str, history: list[Json], number: int):
    assert choose(endpoint(wanted, *history), None).number == number


@pytest.mark.parametrize(
    ("history", "number", "words"),
    [
        ([], None, "no earlier revision"),
        ([revision(1, "Current", OTHER)], None, "no earlier revision"),
        ([revision(1, "Previous"), revision(2, "Current", OTHER)], 3, "There is: 1, 2."),
    ],
)
def test_where_there_is_none_it_is_said(history: list[Json], number: int | None, words: str):
    with pytest.raises(BadTarget, match=words):
        choose(endpoint(OTHER, *history), number)


def test_what_changes_in_place_stays():
    now = {"model": {"source": OTHER}, "cache": {"size": "1Gi"}, "replicas": 8, "route": {"kind": "Ingress"}}
    old = {"model": {"source": SOURCE}, "replicas": 1, "route": {"kind": "None"}, "runtime": {"name": "vllm"}}
    assert restored(now, old) == {
        "model": {"source": SOURCE},
        "runtime": {"name": "vllm"},
        "replicas": 8,
        "route": {"kind": "Ingress"},
    }


def test_it_is_followed_like_any_redeploy(chat: Chat):
    chat.make("a", serving("a", 2, revision(1, "Previous")), model={"source": OTHER}, replicas=3)
    back = serving("a", 3, revision(1, "Previous"), revision(2, "Previous", OTHER))
    with chat.answering("a", back, generation=2):
        ran = chat.run("rollback", "a", "--to", "1", "--timeout", "20")
    assert ran.code == 0, ran.err
    assert "revision a-3" in ran.out
    assert (chat.spec("a")["model"], chat.spec("a")["replicas"]) == ({"source": SOURCE}, 3)


def test_a_spec_as_the_server_has_it_is_what_its_revision_was_made_of(chat: Chat):
    """The server leaves out what is empty, and the operator does not: that alone is no change to go back from."""
    chat.make("a", resources={"limits": {"nvidia.com/gpu": 1}})
    made = EndpointSpec.read(chat.spec("a")).written()
    chat.write("a", {"history": [revision(1, "Current") | {"spec": made}]})
    ran = chat.run("rollback", "a", "--no-wait")
    assert ran.code == 2
    assert "no earlier revision" in ran.err


def test_history_shows_each_revision(chat: Chat):
    chat.make("a", serving("a", 2, revision(1, "Failed", OTHER, "out of memory", runtime={"image": "acme/x:1"})))
    ran = chat.run("history", "a")
    first, second = ran.out.splitlines()[1:]
    assert first.split()[:2] == ["1", "Failed"]
    assert first.split()[3:] == [OTHER, "acme/x:1", "out", "of", "memory"]
    assert second.split()[:2] == ["2", "Current"]
    assert [each["number"] for each in json.loads(chat.run("history", "a", "-o", "json").out)] == [1, 2]


def test_an_endpoint_without_revisions_has_no_history(chat: Chat):
    chat.make("a")
    assert chat.run("history", "a").out == "a has no revisions yet.\n"
