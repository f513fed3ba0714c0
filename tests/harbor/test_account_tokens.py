"""Tokens of ServiceAccounts: whom they stand for, how long, and what ends them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from pilotage.harbor.access.tokens import Tokens, digest_of
from pilotage.harbor.access.users import User
from pilotage.harbor.errors import StatusError
from pilotage.sim.loop import virtual
from tests.harbor.housekeeping.support import PODS, World

if TYPE_CHECKING:
    from pilotage.harbor.kinds import Json

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


async def account(world: World, name: str = "robot") -> Json:
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
    return await world.ask("POST", ACCOUNTS, body)


async def token(world: World, **spec: Any) -> str:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    answer = await world.ask("POST", f"{ACCOUNTS}/robot/token", body)
    text: str = answer["status"]["token"]
    return text


def bearer(world: World, text: str) -> User | None:
    return world.core.tokens.user(text)


@virtual
async def test_it_stands_for_the_account() -> None:
    async with World() as world:
        made = await account(world)
        user = bearer(world, await token(world))
        assert user is not None
        assert (user.name, user.uid) == ("system:serviceaccount:default:robot", made["metadata"]["uid"])
        assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated")


@virtual
async def test_a_uid_that_is_empty_is_none_and_a_wrong_one_is_refused() -> None:
    async with World() as world:
        await account(world)
        body: Json = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": {"uid": ""}}
        answer = await world.ask("POST", f"{ACCOUNTS}/robot/token", body)
        assert bearer(world, answer["status"]["token"]) is not None
        body["metadata"]["uid"] = "another"
        with pytest.raises(StatusError) as caught:
            await world.ask("POST", f"{ACCOUNTS}/robot/token", body)
        assert caught.value.code == 409


def test_tokens_of_what_is_gone_are_not_kept() -> None:
    tokens = Tokens()
    robot = User("robot")
    for at in range(5000):
        tokens.add(digest_of(str(at)), robot, expires=time.time() + 3600, alive=lambda: False)
    assert len(tokens._known) <= 1024


@virtual
async def test_it_ends_when_it_expires() -> None:
    async with World() as world:
        await account(world)
        short, long = await token(world, expirationSeconds=600), await token(world)
        await world.settle(599)
        assert bearer(world, short) is not None
        await world.settle(2)
        assert (bearer(world, short) is None, bearer(world, long) is None) == (True, False)
        await world.settle(3600)
        assert bearer(world, long) is None, "an hour is what it gets if it asks for nothing"


@virtual
async def test_it_ends_with_its_account_and_does_not_come_back_with_another_of_that_name() -> None:
    async with World() as world:
        await account(world)
        text = await token(world)
        await world.ask("DELETE", f"{ACCOUNTS}/robot")
        await account(world)
        assert bearer(world, text) is None
        assert bearer(world, await token(world)) is not None


@virtual
async def test_one_that_is_bound_to_a_pod_ends_with_it() -> None:
    async with World() as world:
        await account(world)
        containers = [{"name": "main", "image": "image"}]
        await world.create(PODS, "p", spec={"serviceAccountName": "robot", "containers": containers})
        text = await token(world, boundObjectRef={"apiVersion": "v1", "kind": "Pod", "name": "p"})
        user = bearer(world, text)
        assert user is not None
        assert user.extra["authentication.kubernetes.io/pod-name"] == ("p",)
        await world.delete(PODS, "p")
        assert bearer(world, text) is None


@virtual
async def test_one_for_others_does_not_open_this_door() -> None:
    async with World() as world:
        await account(world)
        text = await token(world, audiences=["vault"])
        assert bearer(world, text) is None
        for audiences, known in ((["vault"], True), ([], False)):
            spec = {"token": text, "audiences": audiences}
            review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
            answer = await world.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
            assert answer["status"].get("authenticated", False) is known


@virtual
@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"expirationSeconds": 599}, "may not specify a duration less than 10 minutes"),
        ({"expirationSeconds": 2**32 + 1}, "may not specify a duration larger than 2^32 seconds"),
        ({"expirationSeconds": "soon"}, "cannot unmarshal string into Go struct field TokenRequestSpec"),
        ({"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "x"}}, 'pods "x" not found'),
        ({"boundObjectRef": {"kind": "ConfigMap", "name": "x"}}, "cannot bind token to object of type"),
    ],
)
async def test_what_makes_no_sense_is_refused(spec: Json, words: str) -> None:
    async with World() as world:
        await account(world)
        with pytest.raises(StatusError, match=words.replace("^", r"\^")):
            await token(world, **spec)


@virtual
async def test_who_is_not_there_gets_none() -> None:
    async with World() as world:
        with pytest.raises(StatusError, match='serviceaccounts "robot" not found'):
            await token(world)
