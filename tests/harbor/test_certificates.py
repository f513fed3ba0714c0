"""Requests, approvals and signatures of certificates, by permission. The rest is in the recorded cases."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pilotage_harbor.apimachinery.calls import Call, ServerResponse
from pilotage_harbor.apimachinery.users import AUTHENTICATED, UserInfo
from pilotage_sim.loop import virtual
from tests.harbor.builtin.harness import cases
from tests.harbor.housekeeping.support import World

CASE = next(case for case in cases() if case.name == "csr")
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
JO = UserInfo("jo", "uid-1", ("crew", AUTHENTICATED), {"deck": ("upper",)})
APPROVED = {"conditions": [{"type": "Approved", "status": "True", "reason": "Seen"}]}
DENIED = {"conditions": [{"type": "Denied", "status": "True"}]}


async def send(world: World, method: str, path: str, body: Any, user: UserInfo = JO) -> tuple[int, Any]:
    headers = {"content-type": "application/merge-patch+json" if method == "PATCH" else "application/json"}
    answer = await world.handle(Call(method, path, {}, headers, json.dumps(body).encode(), user))
    assert isinstance(answer, ServerResponse)
    return answer.status, json.loads(answer.body)


async def ask(world: World, *signers: tuple[str, str]) -> Any:
    """Let Jo ask for a certificate; `signers` is what Jo may do as which signer."""
    own = {"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests", "*/approval", "*/status"]}
    rules = [{**own, "verbs": ["*"]}]
    for verb, name in signers:
        rules.append(
            {"apiGroups": own["apiGroups"], "resources": ["signers"], "resourceNames": [name], "verbs": [verb]}
        )
    await world.ask("POST", ROLES, {"metadata": {"name": "jo"}, "rules": rules})
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "jo"}
    role = {"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io", "name": "jo"}
    await world.ask("POST", BINDINGS, {"metadata": {"name": "jo"}, "subjects": [subject], "roleRef": role})
    manifest = {**CASE.manifest, "metadata": {"name": "a"}}
    status, made = await send(world, "POST", REQUESTS, manifest)
    assert status == 201, made
    return made


@virtual
async def test_the_server_says_who_asks_and_nobody_else() -> None:
    async with World() as world:
        made = await ask(world)
        who = {"username": "jo", "uid": "uid-1", "groups": ["crew", AUTHENTICATED], "extra": {"deck": ["upper"]}}
        assert {name: made["spec"][name] for name in who} == who
        _, after = await send(world, "PATCH", f"{REQUESTS}/a", {"spec": {"username": "admin", "groups": ["masters"]}})
        assert after["spec"] == made["spec"]


@virtual
@pytest.mark.parametrize("signer", ["example.com/signer", "example.com/*"])
async def test_who_may_approve_for_the_signer_approves(signer: str) -> None:
    async with World() as world:
        made = await ask(world, ("approve", signer))
        sent = {**made, "status": {**APPROVED, "certificate": CASE.manifest["status"]["certificate"]}}
        status, after = await send(world, "PUT", f"{REQUESTS}/a/approval", sent)
        assert status == 200
        (condition,) = after["status"]["conditions"]
        assert (condition["type"], condition["reason"]) == ("Approved", "Seen")
        assert condition["lastUpdateTime"]
        assert condition["lastTransitionTime"]
        assert "certificate" not in after["status"]


@virtual
async def test_who_may_not_approve_for_the_signer_is_refused() -> None:
    async with World() as world:
        await ask(world, ("approve", "example.com/other"), ("sign", "example.com/signer"))
        status, refusal = await send(world, "PATCH", f"{REQUESTS}/a/approval", {"status": APPROVED})
        assert status == 403
        assert 'user not permitted to approve requests with signerName "example.com/signer"' in refusal["message"]
        status, refusal = await send(world, "PATCH", f"{REQUESTS}/a/status", {"status": APPROVED})
        assert (status, refusal["details"]["causes"][0]["reason"]) == (422, "FieldValueForbidden")


@virtual
async def test_what_was_decided_is_neither_taken_back_nor_contradicted() -> None:
    async with World() as world:
        await ask(world, ("approve", "example.com/signer"))
        path = f"{REQUESTS}/a/approval"
        await send(world, "PATCH", path, {"status": APPROVED})
        for other in ({"conditions": None}, DENIED, {"conditions": APPROVED["conditions"] + DENIED["conditions"]}):
            status, _ = await send(world, "PATCH", path, {"status": other})
            assert status == 422
        assert (await world.ask("GET", f"{REQUESTS}/a"))["status"]["conditions"][0]["type"] == "Approved"


@virtual
async def test_only_the_signer_signs() -> None:
    async with World() as world:
        await ask(world, ("approve", "example.com/signer"))
        signed = {"status": {"certificate": CASE.manifest["status"]["certificate"]}}
        status, refusal = await send(world, "PATCH", f"{REQUESTS}/a/status", signed)
        assert status == 403
        assert 'user not permitted to sign requests with signerName "example.com/signer"' in refusal["message"]
        note = {"status": {"conditions": [{"type": "Noted", "status": "True"}]}}
        assert (await send(world, "PATCH", f"{REQUESTS}/a/status", note))[0] == 403
        masters = UserInfo("admin", groups=("system:masters",))
        assert (await send(world, "PATCH", f"{REQUESTS}/a/status", signed, masters))[0] == 200
