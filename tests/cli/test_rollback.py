"""``pilotage rollback`` and ``pilotage history``."""

import json

from pilotage.api.endpoint import EndpointSpec
from tests.cli.serving import OTHER, SOURCE, Chat, revision, serving


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
    assert [each["number"] for each in json.loads(chat.run("history", "a", "-o", "json").out)["items"]] == [1, 2]


def test_an_endpoint_without_revisions_has_no_history(chat: Chat):
    chat.make("a")
    assert chat.run("history", "a").out == "a has no revisions yet.\n"


def test_a_revision_of_another_endpoint_is_refused(chat: Chat):
    chat.make("a", serving("a", 2, revision(1, "Previous", OTHER)))
    before = chat.spec("a")
    ran = chat.run("rollback", "--to", "revision.pilotage.dev/b-1", "a", "--no-wait")
    assert (ran.code, chat.spec("a")) == (2, before)
    assert "is not a revision of it" in ran.err
