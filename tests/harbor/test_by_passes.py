"""Ways around a rule that must not be ways: each asks for what its user may not, by another path."""

import json

import pytest

from pilotage_harbor.api import Harbor
from pilotage_harbor.apimachinery.calls import Call
from pilotage_harbor.apimachinery.users import LOOPBACK, UserInfo
from pilotage_harbor.core import Core

MAY = UserInfo("may", groups=("system:authenticated",))


@pytest.fixture
async def harbor():
    harbor = Harbor(Core(seed=1))
    await harbor.start()
    for name in ("x", "y"):
        await ask(harbor, "POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    yield harbor
    await harbor.stop()


async def ask(harbor, method, path, body=None, user=LOOPBACK, content_type="application/json", **query):
    raw = b"" if body is None else json.dumps(body).encode()
    headers = {"content-type": content_type, "accept": "application/json", "user-agent": "test"}
    return await harbor.handle(Call(method, path, {name: [value] for name, value in query.items()}, headers, raw, user))


async def allow(harbor, namespace, verbs, resources, names=()):
    rule = {"apiGroups": [""], "resources": resources, "verbs": verbs}
    if names:
        rule["resourceNames"] = names
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "may"}
    await ask(harbor, "POST", f"{path}/roles", {"metadata": {"name": "may"}, "rules": [rule]})
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "may"}
    binding = {"metadata": {"name": "may"}, "roleRef": reference, "subjects": [subject]}
    assert (await ask(harbor, "POST", f"{path}/rolebindings", binding)).status == 201


async def make(harbor, name, namespace="x", plural="configmaps"):
    answer = await ask(harbor, "POST", f"/api/v1/namespaces/{namespace}/{plural}", {"metadata": {"name": name}})
    assert answer.status == 201


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_the_old_path_of_a_watch_is_for_watching_alone(harbor, method):
    await allow(harbor, "x", ["watch"], ["configmaps"])
    await make(harbor, "kept")
    body = None if method == "DELETE" else {"metadata": {"name": "a"}}
    answer = await ask(harbor, method, "/api/v1/watch/namespaces/x/configmaps", body, MAY)
    assert answer.status == 405
    listed = json.loads((await ask(harbor, "GET", "/api/v1/namespaces/x/configmaps")).body)
    assert "kept" in [item["metadata"]["name"] for item in listed["items"]]


async def test_who_may_watch_one_sees_one(harbor):
    await allow(harbor, "x", ["watch"], ["secrets"], ["p"])
    await make(harbor, "p", plural="secrets")
    await make(harbor, "q", plural="secrets")
    stream = await ask(harbor, "GET", "/api/v1/watch/namespaces/x/secrets/p", None, MAY)
    seen = [json.loads(line)["object"]["metadata"]["name"] for line in await stream.chunks()]
    stream.close()
    assert seen == ["p"]


async def test_a_right_in_one_namespace_is_none_on_the_others(harbor):
    await allow(harbor, "x", ["*"], ["*"])
    assert (await ask(harbor, "GET", "/api/v1/namespaces/x", None, MAY)).status == 200
    for method, path, body in (
        ("GET", "/api/v1/namespaces/x/namespaces", None),
        ("POST", "/api/v1/namespaces/x/namespaces", {"metadata": {"name": "evil"}}),
        ("DELETE", "/api/v1/namespaces/x/namespaces/y", None),
        ("GET", "/api/v1/namespaces/x/namespaces/y", None),
    ):
        assert (await ask(harbor, method, path, body, MAY)).status == 404
    assert (await ask(harbor, "GET", "/api/v1/namespaces/evil")).status == 404
    assert "deletionTimestamp" not in json.loads((await ask(harbor, "GET", "/api/v1/namespaces/y")).body)["metadata"]


async def test_who_may_patch_may_not_create_by_an_apply(harbor):
    await allow(harbor, "x", ["patch", "update"], ["configmaps", "services"])
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}
    path = "/api/v1/namespaces/x/configmaps/a"
    applied = await ask(harbor, "PATCH", path, config, MAY, "application/apply-patch+yaml", fieldManager="may")
    assert applied.status == 403
    assert (await ask(harbor, "GET", path)).status == 404
    await make(harbor, "a")
    applied = await ask(harbor, "PATCH", path, config, MAY, "application/apply-patch+yaml", fieldManager="may")
    assert applied.status == 200


async def test_who_may_update_may_not_create_by_a_put(harbor):
    await allow(harbor, "x", ["update"], ["services"])
    body = {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}}
    assert (await ask(harbor, "PUT", "/api/v1/namespaces/x/services/a", body, MAY)).status == 403
    assert (await ask(harbor, "PUT", "/api/v1/namespaces/x/services/a", body)).status == 201


@pytest.mark.parametrize("kind", ["merge-patch", "strategic-merge-patch", "json-patch"])
async def test_a_patch_that_is_nested_too_deeply_is_refused(harbor, kind):
    await make(harbor, "a")
    deep = '{"x":' * 900 + "1" + "}" * 900
    raw = f'[{{"op":"add","path":"/data","value":{deep}}}]' if kind == "json-patch" else deep
    headers = {"content-type": f"application/{kind}+json", "accept": "application/json"}
    answer = await harbor.handle(
        Call("PATCH", "/api/v1/namespaces/x/configmaps/a", {}, headers, raw.encode(), LOOPBACK)
    )
    assert answer.status == 400
    assert b"exceeded max depth" in answer.body
