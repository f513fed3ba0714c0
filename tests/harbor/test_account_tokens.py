"""Tokens of ServiceAccounts: their user, their lifetime, and their end."""

from __future__ import annotations

import base64
import functools
import json
from typing import TYPE_CHECKING, Any

import pytest

from pilotage_harbor.access import signed, tokens
from pilotage_harbor.apimachinery.errors import StatusError
from pilotage_harbor.apimachinery.users import UserInfo
from pilotage_harbor.storage.journal import SqliteJournal
from pilotage_sim.loop import virtual
from tests.harbor.housekeeping.support import PODS, World

if TYPE_CHECKING:
    from pathlib import Path

    from pilotage_harbor.kinds import Json

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


async def account(world: World, name: str = "robot") -> Json:
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
    return await world.ask("POST", ACCOUNTS, body)


async def token(world: World, **spec: Any) -> str:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    answer = await world.ask("POST", f"{ACCOUNTS}/robot/token", body)
    text: str = answer["status"]["token"]
    return text


def bearer(world: World, text: str) -> UserInfo | None:
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


@virtual
async def test_it_outlives_the_server_that_issued_it_but_not_its_account(tmp_path: Path) -> None:
    """As after a crash: only the journal and the key are left."""
    first = SqliteJournal(tmp_path / "harbor.sqlite")
    async with World(journal=first) as world:
        made, key = await account(world), world.core.tokens.key
        text, elsewhere = await token(world), await token(world, audiences=["vault"])
    first.close()
    again = SqliteJournal(tmp_path / "harbor.sqlite")
    async with World(journal=again) as world:
        assert bearer(world, text) is None, "another key has not signed it"
        world.core.tokens.key = key
        user = bearer(world, text)
        assert user is not None
        assert (user.name, user.uid) == ("system:serviceaccount:default:robot", made["metadata"]["uid"])
        assert bearer(world, elsewhere) is None
        await world.ask("DELETE", f"{ACCOUNTS}/robot")
        await account(world)
        assert bearer(world, text) is None
    again.close()


@virtual
async def test_one_that_ended_while_the_clock_was_wrong_is_good_again() -> None:
    async with World() as world:
        await account(world)
        text = await token(world)
        right = world.core.now()
        for days, stands in ((2, False), (-2, True), (0, True)):
            moved = right + 86400 * days
            world.core.tokens._now = functools.partial(float, moved)
            assert (bearer(world, text) is not None) is stands


@virtual
async def test_what_is_signed_with_another_key_or_says_so_itself_is_nobodys() -> None:
    async with World() as world:
        await account(world)
        text = await token(world)
        header, claims, signature = text.split(".")
        no_algorithm = base64.urlsafe_b64encode(b'{"alg":"none","typ":"JWT"}').decode().rstrip("=")
        said = json.loads(base64.urlsafe_b64decode(claims + "=="))
        said["kubernetes.io"]["serviceaccount"]["name"] = "default"
        other = base64.urlsafe_b64encode(json.dumps(said).encode()).decode().rstrip("=")
        forged = signed.sign(base64.urlsafe_b64decode(claims + "=="), b"x" * 32)
        for wrong in (
            f"{no_algorithm}.{claims}.",
            f"{no_algorithm}.{claims}.{signature}",
            f"{header}.{other}.{signature}",
            f"{header}.{claims}.",
            f"{header}.{claims}",
            f"{header}.{claims}.{signature}=",
            forged,
            text + "\u00e4",
            signed.sign(b"{}", world.core.tokens.key),
        ):
            assert bearer(world, wrong) is None, wrong
        assert bearer(world, text) is not None


@virtual
async def test_tokens_that_were_used_take_no_more_memory_than_some_thousands_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tokens, "VERIFIED_MAX", 10)
    async with World() as world:
        await account(world)
        issued = [await token(world) for _ in range(25)]
        assert all(bearer(world, each) is not None for each in issued)
        assert len(world.core.tokens._verified) <= 10
        assert all(bearer(world, each) is not None for each in issued)


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
