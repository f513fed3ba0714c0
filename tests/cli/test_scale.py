"""``pilotage scale``."""

from tests.cli.serving import Chat, serving


def test_it_sets_the_number_and_says_from_what(chat: Chat):
    chat.make("a", replicas=2)
    ran = chat.run("scale", "se/a", "--replicas", "3")
    assert (ran.code, ran.out) == (0, f"servingendpoint/a -n {chat.namespace} scaled from 2 to 3\n")
    assert chat.spec("a")["replicas"] == 3
    assert "has 3 replicas already" in chat.run("scale", "a", "--replicas", "3").out


def test_one_that_scales_by_itself_is_left_alone(chat: Chat):
    made = chat.make("a", autoscaling={"min": 1, "max": 8})
    ran = chat.run("scale", "a", "--replicas", "3")
    assert ran.code == 2
    assert "between 1 and 8 replicas" in ran.err
    found = chat.find("a")
    assert found is not None
    assert found.meta.resource_version == made.meta.resource_version


def test_it_waits_until_they_are_ready_if_asked(chat: Chat):
    chat.make("a", serving("a"))
    ready = serving("a") | {"replicas": {"ready": 3, "desired": 3}}
    with chat.answering("a", ready, generation=2):
        ran = chat.run("scale", "a", "--replicas", "3", "--wait", "--timeout", "20")
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[0] == f"servingendpoint/a -n {chat.namespace} scaled from 1 to 3"
    assert ran.out.splitlines()[-1].endswith("(revision a-1, 3 of 3 ready)")


def test_one_replica_is_not_told_of_as_several(chat: Chat):
    chat.make("a")
    assert chat.run("scale", "a", "--replicas", "1").out.endswith("has 1 replica already\n")
