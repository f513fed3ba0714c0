"""A watch ends with the rights of its user."""

import asyncio
import json

import pytest

from pilotage_harbor.apimachinery.calls import Call
from pilotage_harbor.apimachinery.users import UserInfo
from pilotage_harbor.verbs import watchers
from tests.harbor.test_by_passes import MAY, allow, ask, harbor, make

__all__ = ["harbor"]

RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/x"
ACCOUNTS = "/api/v1/namespaces/x/serviceaccounts"


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(watchers, "CHECK_SECONDS", 0)


async def watch(harbor, user=MAY):
    path = "/api/v1/namespaces/x/secrets"
    stream = await harbor.handle(Call("GET", path, {"watch": ["1"], "resourceVersion": ["0"]}, {}, b"", user))
    assert stream.status == 200
    return stream


async def names(stream):
    """Names in the events of a watch until its end."""
    seen = []
    async with asyncio.timeout(20):
        while lines := await stream.chunks():
            seen += [json.loads(line)["object"]["metadata"]["name"] for line in lines]
    return seen


@pytest.mark.parametrize("gone", ["rolebindings", "roles"])
async def test_a_watch_ends_when_its_user_may_not_watch_any_more(harbor, gone):
    await allow(harbor, "x", ["watch"], ["secrets"])
    await make(harbor, "shown", plural="secrets")
    stream = await watch(harbor)
    seen = [json.loads(line)["object"]["metadata"]["name"] for line in await stream.chunks()]
    assert seen == ["shown"]
    await ask(harbor, "DELETE", f"{RBAC}/{gone}/may")
    assert await names(stream) == []
    await make(harbor, "hidden", plural="secrets")
    assert await stream.chunks() == []


async def test_a_watch_goes_on_when_other_rules_change(harbor):
    await allow(harbor, "x", ["watch"], ["secrets"])
    stream = await watch(harbor)
    await ask(harbor, "POST", f"{RBAC}/roles", {"metadata": {"name": "other"}, "rules": []})
    for _ in range(10):
        await asyncio.sleep(0)
    await make(harbor, "shown", plural="secrets")
    assert b"shown" in (await stream.chunks())[0]
    stream.close()


async def test_a_watch_ends_with_the_account_that_it_belongs_to(harbor):
    made = json.loads((await ask(harbor, "POST", ACCOUNTS, {"metadata": {"name": "may"}})).body)
    user = UserInfo("system:serviceaccount:x:may", made["metadata"]["uid"], ("may",))
    role = {"metadata": {"name": "may"}, "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["watch"]}]}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "may"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "may"}
    await ask(harbor, "POST", f"{RBAC}/roles", role)
    binding = {"metadata": {"name": "may"}, "roleRef": reference, "subjects": [subject]}
    await ask(harbor, "POST", f"{RBAC}/rolebindings", binding)
    stream = await watch(harbor, user)
    other = await watch(harbor, user._replace(uid="another of the same name"))
    assert (await ask(harbor, "DELETE", f"{ACCOUNTS}/may")).status == 200
    await make(harbor, "hidden", plural="secrets")
    assert await names(stream) == []
    assert b"hidden" in (await other.chunks())[0]
    other.close()


async def test_rules_that_change_during_a_check_count_for_watches_that_were_checked(harbor, monkeypatch):
    monkeypatch.setattr(watchers, "_CHECKED_AT_ONCE", 1)
    await allow(harbor, "x", ["watch"], ["secrets"])
    streams = [await watch(harbor) for _ in range(20)]
    await ask(harbor, "POST", f"{RBAC}/roles", {"metadata": {"name": "other"}, "rules": []})
    for _ in range(6):  # the check has begun, and has seen some of them
        await asyncio.sleep(0)
    await ask(harbor, "DELETE", f"{RBAC}/rolebindings/may")
    assert [await names(stream) for stream in streams] == [[]] * 20
