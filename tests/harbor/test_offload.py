"""Long computations run aside: others are answered meanwhile, and their writes are not lost."""

import asyncio
import json

import pytest

from pilotage_harbor.apimachinery.calls import Call
from pilotage_harbor.apimachinery.users import LOOPBACK
from pilotage_harbor.core.offload import LARGE_BYTES, Threads
from tests.harbor.test_by_passes import ask, harbor, make

__all__ = ["harbor"]

CONFIG_MAPS = "/api/v1/namespaces/x/configmaps"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
MERGE = "application/merge-patch+json"
DATA = {f"key-{at:05}": "x" for at in range(LARGE_BYTES // 10)}
APPLIED = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}, "data": DATA}
LIST = b"spec: {resourceAttributes: {verb: get}}\na: [" + b"x," * LARGE_BYTES + b"]"


@pytest.fixture
async def threaded(harbor):
    """Harbor with a large object, and a thread for such."""
    await ask(harbor, "POST", CONFIG_MAPS, {"metadata": {"name": "large"}, "data": DATA})
    harbor.core.offload = Threads()
    yield harbor
    harbor.core.offload.stop()


def call(method, path, body=b"", media="application/json", **query):
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    options = {name: [value] for name, value in query.items()}
    return Call(method, path, options, {"content-type": media, "accept": "application/json"}, raw, LOOPBACK)


YAML_WANTED = call("GET", f"{CONFIG_MAPS}/large")._replace(headers={"accept": "application/yaml"})
ASKED = {
    "a review in YAML": call("POST", REVIEWS, LIST, "application/yaml"),
    "a short review in YAML": call("POST", REVIEWS, LIST[:2000] + b"]", "application/yaml"),
    "an object in JSON": call("POST", CONFIG_MAPS, {"metadata": {"name": "new"}, "data": DATA}),
    "an update": call("PUT", f"{CONFIG_MAPS}/large", {"metadata": {"name": "large"}, "data": {**DATA, "a": "b"}}),
    "an apply": call("PATCH", f"{CONFIG_MAPS}/new", APPLIED, "application/apply-patch+yaml", fieldManager="m"),
    "a small patch": call("PATCH", f"{CONFIG_MAPS}/large", {"metadata": {"labels": {"a": "b"}}}, MERGE),
    "options of a delete": call("DELETE", f"{CONFIG_MAPS}/large", LIST.replace(b"spec", b"x"), "application/yaml"),
    "an object as YAML": YAML_WANTED,
    "a list as YAML": YAML_WANTED._replace(path=CONFIG_MAPS),
}


@pytest.mark.parametrize("asked", ASKED)
async def test_others_are_answered_meanwhile(threaded, asked):
    large = asyncio.create_task(threaded.handle(ASKED[asked]))
    other = asyncio.create_task(ask(threaded, "GET", "/api/v1/namespaces/x"))
    ended = []
    for task in (large, other):
        task.add_done_callback(ended.append)
    assert {answer.status for answer in await asyncio.gather(large, other)} <= {200, 201}
    assert ended == [other, large]


async def test_what_others_write_meanwhile_is_kept(harbor):
    await make(harbor, "a")
    others = [{"metadata": {"labels": {"by": "another"}}}]

    async def slowly(_user, _size, work):
        done = work()
        if others:
            await ask(harbor, "PATCH", f"{CONFIG_MAPS}/a", others.pop(), content_type=MERGE)
        return done

    harbor.core.offload = slowly
    patched = await ask(harbor, "PATCH", f"{CONFIG_MAPS}/a", {"data": {"a": "b"}}, content_type=MERGE)
    kept = json.loads(patched.body)
    assert (kept["data"], kept["metadata"]["labels"]) == ({"a": "b"}, {"by": "another"})


def asks(harbor, user, at=0):
    """A large create of one user's, as a task."""
    made = {"metadata": {"name": f"{user.name.replace(':', '-')}-{at}"}, "data": DATA}
    asked = call("POST", CONFIG_MAPS, made)._replace(user=user)
    return asyncio.create_task(harbor.handle(asked), name=made["metadata"]["name"])


async def test_whoever_asks_much_does_not_keep_others_waiting(threaded):
    """All accounts of a namespace count as one, and of theirs each first piece comes before any second one."""
    robots = [LOOPBACK._replace(name=f"system:serviceaccount:x:robot-{at}") for at in range(8)]
    ended = []
    tasks = [asks(threaded, robot, at) for robot in robots for at in range(4)]
    await asyncio.sleep(0)
    tasks.append(asks(threaded, LOOPBACK._replace(name="alice")))
    for task in tasks:
        task.add_done_callback(ended.append)
    assert {answer.status for answer in await asyncio.gather(*tasks)} == {201}
    assert ended[0].get_name() == "alice-0"


async def test_a_turn_that_is_cancelled_goes_to_the_next(threaded):
    tasks = [asks(threaded, LOOPBACK, at) for at in range(4)]
    await asyncio.sleep(0)
    for task in tasks[:2]:
        task.cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(each, asyncio.CancelledError) for each in answers] == [True, True, False, False]
    assert (await asks(threaded, LOOPBACK, "last")).status == 201
