"""Reading: get and list, which versions they accept, in which representations they answer."""

from __future__ import annotations

from tests.contract.case import Theme
from tests.contract.kit import METADATA, METADATA_LIST, TABLE, Kit
from tests.contract.objects import CM, cm

theme = Theme("read")


async def three(kit: Kit) -> None:
    for name in ("c", "a", "b"):
        await kit.quiet.create(CM, cm(name, labels={"case": kit.ns[:60], "name": name}))


theme.asks("get absent", "GET", "/api/v1/namespaces/{ns}/configmaps/none", facts=(8,))
theme.asks("get in an absent namespace", "GET", "/api/v1/namespaces/never-made/configmaps/none", facts=(8,))
theme.asks("list in an absent namespace", "GET", "/api/v1/namespaces/never-made/configmaps")
theme.asks("list of nothing", "GET", "/api/v1/namespaces/{ns}/secrets")
theme.asks("list at a version that is no number", "GET", "/api/v1/namespaces/{ns}/secrets?resourceVersion=abc")
theme.asks("list with a match but no version", "GET", "/api/v1/namespaces/{ns}/secrets?resourceVersionMatch=Exact")
theme.asks(
    "list with an unknown match", "GET", "/api/v1/namespaces/{ns}/secrets?resourceVersion=1&resourceVersionMatch=About"
)
theme.asks(
    "list exactly at zero", "GET", "/api/v1/namespaces/{ns}/secrets?resourceVersion=0&resourceVersionMatch=Exact"
)
theme.asks("list with initial events but no watch", "GET", "/api/v1/namespaces/{ns}/secrets?sendInitialEvents=true")
theme.asks("limit that is no number", "GET", "/api/v1/namespaces/{ns}/secrets?limit=many")
theme.asks("time-out that is no number", "GET", "/api/v1/namespaces/{ns}/secrets?timeoutSeconds=soon")
theme.asks("get at a version that is no number", "GET", "/api/v1/namespaces/{ns}/secrets/x?resourceVersion=abc")


@theme.case()
async def get(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    await kit.get(CM, "a")


@theme.case()
async def get_pretty(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    await kit.get(CM, "a", pretty="true")


@theme.case(facts=(8,))
async def get_any_version(kit: Kit) -> None:
    made = await kit.quiet.create(CM, cm("a"))
    await kit.get(CM, "a", resourceVersion=made.rv)


@theme.case()
async def get_as_metadata(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a", labels={"x": "y"}))
    await kit.accepting(METADATA).get(CM, "a")


@theme.case()
async def list_as_metadata(kit: Kit) -> None:
    await three(kit)
    await kit.accepting(METADATA_LIST).list(CM, labelSelector="name")


@theme.case()
async def metadata_of_another_version(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    await kit.accepting("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1beta1").get(CM, "a")


@theme.case()
async def transformation_that_is_unknown(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    await kit.accepting("application/json;as=Nonsense;g=meta.k8s.io;v=v1").get(CM, "a")


@theme.case()
async def transformation_or_json(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    await kit.accepting("application/json;as=Nonsense;g=meta.k8s.io;v=v1,application/json").get(CM, "a")


@theme.case()
async def get_as_yaml(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    answer = await kit.picking(lambda body: body.splitlines()[:5]).accepting("application/yaml").get(CM, "a")
    kit.note("ends with a line feed", answer.body.endswith("\n"))


@theme.case()
async def get_as_xml(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    await kit.accepting("application/xml").get(CM, "a")


@theme.case()
async def get_as_anything(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    await kit.accepting("*/*").get(CM, "a")
    await kit.accepting("application/*").get(CM, "a")
    await kit.accepting("text/html, application/json;q=0.5").get(CM, "a")


@theme.case()
async def lists_are_sorted_by_name(kit: Kit) -> None:
    await three(kit)
    await kit.list(CM, labelSelector="name")


@theme.case()
async def list_in_all_namespaces(kit: Kit) -> None:
    await three(kit)
    await kit.send("GET", f"/api/v1/configmaps?labelSelector=case%3D{kit.ns[:60]}")


@theme.case()
async def list_of_an_old_version(kit: Kit) -> None:
    await three(kit)
    version = (await kit.quiet.list(CM, labelSelector="name")).rv
    await kit.quiet.delete(CM, "b")
    await kit.list(CM, labelSelector="name", resourceVersion=version, resourceVersionMatch="Exact")
    await kit.list(CM, labelSelector="name")


@theme.case()
async def list_not_older_than(kit: Kit) -> None:
    await three(kit)
    version = (await kit.quiet.list(CM, labelSelector="name")).rv
    await kit.list(CM, labelSelector="name", resourceVersion=version, resourceVersionMatch="NotOlderThan")


@theme.case()
async def head_of_an_object(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    await kit.send("HEAD", kit.path(CM, "a"))


@theme.case()
async def null_and_empty_fields_are_left_out(kit: Kit) -> None:
    await kit.create(CM, cm("a") | {"data": {}, "binaryData": None, "immutable": None})
    await kit.get(CM, "a")


@theme.case()
async def answers_end_with_a_newline(kit: Kit) -> None:
    """So that a shell shows them well; not so what is no object: versions, paths, OpenAPI."""
    await kit.quiet.create(CM, cm("a"))
    one, plain = kit.path(CM, "a"), kit.probing
    named = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    asked = {
        "get": await plain.send("GET", one),
        "list": await plain.list(CM),
        "table": await plain.accepting(TABLE).list(CM),
        "metadata": await plain.accepting(METADATA).get(CM, "a"),
        "create": await plain.create(CM, cm("b")),
        "patch": await plain.patch(CM, "b", {"data": {"k": "w"}}),
        "not found": await plain.get(CM, "none"),
        "invalid": await plain.create(CM, cm("Capital")),
        "forbidden": await plain.as_user("nobody").get(CM, "a"),
        "unauthorized": await plain.anonymous("wrong").get(CM, "a"),
        "delete": await plain.delete(CM, "b"),
        "delete collection": await plain.delete(CM),
        "review": await plain.create(
            "/authorization.k8s.io/v1/selfsubjectaccessreviews",
            {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}},
        ),
        "versions": await plain.send("GET", "/api"),
        "groups": await plain.send("GET", "/apis"),
        "group": await plain.send("GET", "/apis/apps"),
        "resources": await plain.send("GET", "/apis/apps/v1"),
        "discovery": await plain.accepting(named).send("GET", "/apis"),
        "version": await plain.send("GET", "/version"),
        "paths": await plain.send("GET", "/"),
        "openapi": await plain.send("GET", "/openapi/v3"),
        "openapi of a group": await plain.send("GET", "/openapi/v3/apis/apps/v1"),
    }
    kit.note("newline", {name: [answer.status, answer.raw.endswith(b"}\n")] for name, answer in asked.items()})
