"""Bad input: each gets the answer that it deserves, and nothing is stored."""

from __future__ import annotations

import json
from typing import Any

from tests.contract.case import Theme
from tests.contract.kit import Kit
from tests.contract.objects import CM, cm, deployment

theme = Theme("bad")

ROOT = "/api/v1/namespaces/{ns}/configmaps"


def posts(name: str, body: object, **how: Any) -> None:
    theme.asks(name, "POST", ROOT, body, **how)


posts("json malformed", b'{"metadata":')
posts("json with text after it", b'{"metadata":{"name":"a"}} more')
posts("json of nothing", b"")
posts("json null", b"null")
posts("json a list", b"[]")
posts("json a text", b'"text"')
posts("json a number", b"5")
posts("json with bad utf-8", b'{"metadata":{"name":"a"},"data":{"k":"\xff\xfe"}}')
posts("json with a byte order mark", b'\xef\xbb\xbf{"metadata":{"name":"a"}}')
posts("json with lone surrogate", rb'{"metadata":{"name":"a"},"data":{"k":"\ud800"}}')
posts("json with nul", rb'{"metadata":{"name":"a"},"data":{"k":"a\u0000b"}}')
posts("json with comments", b'{"metadata":{"name":"a"}} // words')
posts("json with nan", b'{"metadata":{"name":"a","generation":NaN}}')
posts("json with trailing comma", b'{"metadata":{"name":"a"},}')
posts("json deep", b'{"metadata":{"name":"a"},"x":' + b"[" * 9_000 + b"]" * 9_000 + b"}")
posts("json deeper", b'{"metadata":{"name":"a"},"x":' + b'{"y":' * 10_500 + b"1" + b"}" * 10_500 + b"}")
posts("kind of a wrong type", {"kind": 5, "apiVersion": "v1", "metadata": {"name": "a"}})
posts("api version of a wrong type", {"kind": "ConfigMap", "apiVersion": {}, "metadata": {"name": "a"}})
posts("api version with slashes", {"kind": "ConfigMap", "apiVersion": "a/b/c", "metadata": {"name": "a"}})
posts("name of a wrong type", {"metadata": {"name": 5}})
posts("name empty", {"metadata": {"name": ""}})
posts("data too large", cm("a", {"k": "x" * (1024 * 1024 + 1)}))
posts("body too large", cm("a", {"k": "x" * (3 * 1024 * 1024 + 100)}))
posts("media type unknown", cm("a"), type="text/plain")
posts("media type malformed", cm("a"), type="/")
posts("media type missing", cm("a"), type="")
posts("media type of a form", b"a=b", type="application/x-www-form-urlencoded")
posts("protobuf that is none", b"k8s\x00nonsense", type="application/vnd.kubernetes.protobuf")
posts("cbor that is none", b"\xff\xff", type="application/cbor")
posts("encoding unknown", cm("a"), headers={"Content-Encoding": "br"})
posts("list for an object", {"kind": "ConfigMapList", "apiVersion": "v1", "items": []})
posts("status for an object", {"kind": "Status", "apiVersion": "v1"})

for _name, _method, _target in (
    ("root of nothing", "GET", "/nonsense"),
    ("group unknown", "GET", "/apis/nonsense.example.com/v1/things"),
    ("group without a version", "GET", "/apis/nonsense.example.com"),
    ("version unknown", "GET", "/apis/apps/v9/deployments"),
    ("resource unknown", "GET", "/api/v1/nonsenses"),
    ("resource unknown in a namespace", "GET", "/api/v1/namespaces/{ns}/nonsenses"),
    ("resource unknown deleted", "DELETE", "/api/v1/namespaces/{ns}/nonsenses/a"),
    ("resource of another group", "GET", "/apis/apps/v1/namespaces/{ns}/pods"),
    ("cluster resource in a namespace", "GET", "/api/v1/namespaces/{ns}/nodes"),
    ("slash at the end", "GET", "/api/v1/namespaces/{ns}/configmaps/"),
    ("dots", "GET", "/api/v1/namespaces/{ns}/../../namespaces/{ns}/configmaps/none"),
    ("path too long", "GET", "/api/v1/namespaces/{ns}/configmaps/a/status/more"),
    ("name escaped", "GET", "/api/v1/namespaces/{ns}/configmaps/a%2Fb"),
    ("name with a percent", "GET", "/api/v1/namespaces/{ns}/configmaps/a%25b"),
    ("name with a space", "GET", "/api/v1/namespaces/{ns}/configmaps/a%20b"),
    ("put of a collection", "PUT", "/api/v1/namespaces/{ns}/configmaps"),
    ("patch of a collection", "PATCH", "/api/v1/namespaces/{ns}/configmaps"),
    ("post to an object", "POST", "/api/v1/namespaces/{ns}/configmaps/a"),
    ("method unknown", "BREW", "/api/v1/namespaces/{ns}/configmaps"),
    ("options", "OPTIONS", "/api/v1/namespaces/{ns}/configmaps"),
    ("trace", "TRACE", "/api/v1/namespaces/{ns}/configmaps"),
    ("post to version", "POST", "/version"),
    ("delete of discovery", "DELETE", "/api/v1"),
    ("boolean that is none", "GET", "/api/v1/namespaces/{ns}/configmaps?watch=perhaps&timeoutSeconds=1"),
    ("query malformed", "GET", "/api/v1/namespaces/{ns}/configmaps?limit=%zz"),
    ("review by get", "GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
):
    theme.asks(_name, _method, _target)


@theme.case()
async def nothing_is_stored(kit: Kit) -> None:
    """No object exists after all kinds of bad creates."""
    for body in (
        b"{",
        b"[]",
        b"",
        b'{"metadata":{"name":"a","labels":{"x y":"z"}}}',
        b'{"kind":"Pod","metadata":{"name":"a"}}',
    ):
        await kit.probing.send("POST", kit.path("secrets"), body)
    await kit.list("secrets")


@theme.case()
async def a_bad_update_changes_nothing(kit: Kit) -> None:
    await kit.create(CM, cm("a", {"n": "1"}))
    for body in (b"{", b"[]", json.dumps(cm("a", {"n": "2"}, labels={"x y": "z"})).encode()):
        await kit.probing.send("PUT", kit.path(CM, "a"), body)
    await kit.get(CM, "a")


theme.creates("integer that is too large", "apps/v1/deployments", deployment("a", replicas=2**40))
theme.creates("integer that is a float", "apps/v1/deployments", deployment("a", replicas=1.5))
theme.creates("integer that is a whole float", "apps/v1/deployments", deployment("a", replicas=2.0))
theme.creates("integer that is text", "apps/v1/deployments", deployment("a", replicas="2"))
theme.creates("boolean that is text", "apps/v1/deployments", deployment("a", paused="true"))
theme.creates("list that is a map", "apps/v1/deployments", deployment("a", template={"spec": {"containers": {}}}))
theme.creates(
    "quantity that is none",
    "pods",
    {
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "m", "image": "i", "resources": {"limits": {"cpu": "lots"}}}]},
    },
)
theme.creates(
    "time that is none",
    "coordination.k8s.io/v1/leases",
    {"metadata": {"name": "a"}, "spec": {"renewTime": "yesterday"}},
)
theme.creates("bytes that are none", "secrets", {"metadata": {"name": "a"}, "data": {"k": "!!"}})


@theme.case()
async def two_slashes(kit: Kit) -> None:
    await kit.picking(lambda b: b["kind"]).send("GET", "/api/v1/namespaces//configmaps")


@theme.case()
async def post_to_discovery(kit: Kit) -> None:
    await kit.picking(lambda b: b["kind"]).send("POST", "/apis")
