"""Class of each refusal: decided from code, reason and causes, and pinned by provoking it on the real API server."""

import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec
import pytest
from msgspec.structs import replace

from controlplane import Cluster
from pilotage.kube import (
    LEASES,
    Absent,
    AlreadyExists,
    ApiError,
    Client,
    ClusterConfig,
    Conflict,
    ErrorClass,
    Expired,
    Forbidden,
    Foreign,
    Invalid,
    KindNotServed,
    Object,
    ObjectKey,
    Propagation,
    Resource,
    StatusCause,
    Terminating,
    Throttled,
    Unauthorized,
    Unavailable,
    Uncertain,
    exactly,
    json_patch,
    load_config,
    merge_patch,
    without_finalizer,
)
from pilotage.kube.credentials import FixedCredentials, bearer
from pilotage.kube.errors import Status, classify
from pilotage.kube.tls import TlsSettings
from tests.support.kinds import CONFIG_MAPS, CRDS, DEPLOYMENTS, NAMESPACES, config_map, delete, served, widgets
from tests.support.waiting import eventually, until

WIDGETS = msgspec.structs.replace(DEPLOYMENTS, plural="widgets")
FINALIZER = "example.com/held"

# Answers that cannot be provoked in a test, and the line between refused and possibly applied requests.


class Answer(NamedTuple):
    name: str
    code: int
    status: dict[str, Any] | None
    of_a_read: type[ApiError]
    of_a_write: type[ApiError]


def status(message: str = "", reason: str = "", **details: Any) -> dict[str, Any]:
    return {"kind": "Status", "status": "Failure", "message": message, "reason": reason, "details": details or None}


ANSWERS = [
    Answer("a redirect to a login page", 302, None, Unavailable, Unavailable),
    Answer("a bad request", 400, status(reason="BadRequest"), Invalid, Invalid),
    Answer("nobody known", 401, status(reason="Unauthorized"), Unauthorized, Unauthorized),
    Answer("forbidden by a proxy", 403, None, Forbidden, Forbidden),
    Answer("no such page", 404, None, KindNotServed, KindNotServed),
    Answer("no such resource", 404, status(reason="NotFound"), KindNotServed, KindNotServed),
    Answer("no such object", 404, status(reason="NotFound", name="x"), Absent, Absent),
    Answer("no such namespace", 404, status(reason="NotFound", name="n s"), Absent, Absent),
    Answer("no such other thing", 404, status(reason="NotFound", name="node"), Unavailable, Unavailable),
    Answer("a verb that the kind does not have", 405, status(reason="MethodNotAllowed"), Invalid, Invalid),
    Answer("a request that came too slowly", 408, None, Unavailable, Uncertain),
    Answer("a conflict told by a proxy", 409, None, Conflict, Conflict),
    Answer("an old version", 410, status(reason="Expired"), Expired, Expired),
    Answer("too large", 413, status(reason="RequestEntityTooLarge"), Invalid, Invalid),
    Answer("an unknown content type", 415, status(reason="UnsupportedMediaType"), Invalid, Invalid),
    Answer("too many requests", 429, None, Throttled, Throttled),
    Answer("a panic", 500, None, Unavailable, Uncertain),
    Answer("an etcd time-out", 500, status("etcdserver: request timed out"), Unavailable, Uncertain),
    Answer("a server time-out", 500, status(reason="ServerTimeout"), Unavailable, Uncertain),
    Answer("a webhook that is down", 500, status('failed calling webhook "x"'), Unavailable, Unavailable),
    Answer("a bad gateway", 502, None, Unavailable, Uncertain),
    Answer("no backend, says a proxy", 503, None, Unavailable, Uncertain),
    Answer("not ready, says the API server", 503, status(reason="ServiceUnavailable"), Unavailable, Unavailable),
    Answer("a gateway time-out", 504, None, Unavailable, Uncertain),
    Answer("a time-out", 504, status(reason="Timeout"), Unavailable, Uncertain),
]


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.name)
def test_an_answer_has_one_class_for_a_read_and_one_for_a_write(answer: Answer) -> None:
    decoded = None if answer.status is None else msgspec.convert(answer.status, Status)
    path = "/api/v1/namespaces/n%20s/pods/x/log"
    assert type(classify(answer.code, decoded, write=False, request=f"GET {path}")) is answer.of_a_read
    assert type(classify(answer.code, decoded, write=True, request=f"PUT {path}")) is answer.of_a_write


def test_every_error_belongs_to_one_class_of_the_taxonomy() -> None:
    def below(error: type[ApiError]) -> set[type[ApiError]]:
        return {error}.union(*map(below, error.__subclasses__()))

    errors = {error for error in below(ApiError) - {ApiError} if error.__module__.startswith("pilotage.kube.")}
    assert {error.error_class for error in errors} == set(ErrorClass)
    by_class = {kind: {error.__name__ for error in errors if error.error_class is kind} for kind in ErrorClass}
    assert {kind.value: names for kind, names in by_class.items() if len(names) > 1} == {
        "conflict": {"Conflict", "AlreadyExists", "Expired"},
        "forbidden": {"Forbidden", "Unauthorized"},
        "unavailable": {"Unavailable", "KindNotServed"},
    }


def test_a_page_that_answers_instead_of_the_api_server_becomes_one_line() -> None:
    page = "<html>\r\n<h1>502</h1>\r\n" + "<p>nginx</p>\n" * 100
    error = classify(502, None, text=page, write=False, request="GET /api")
    assert str(error).startswith("GET /api: <html> <h1>502</h1> <p>nginx</p> <p>nginx</p>")
    assert "\n" not in str(error)
    assert len(str(error)) < 600


def test_an_answer_without_words_is_told_by_its_code() -> None:
    assert str(classify(502, None, write=False, request="GET /api")) == "GET /api: HTTP 502"
    assert str(classify(500, Status(), write=False)) == "HTTP 500"


def test_when_to_come_back_is_taken_from_the_header_or_else_from_the_details() -> None:
    told = msgspec.convert(status(retryAfterSeconds=7), Status)
    assert classify(429, told, write=False).retry_after == 7
    assert classify(429, told, write=False, retry_after=3).retry_after == 3
    assert classify(429, None, write=False).retry_after is None


# The real API server. Each table has its exact words: where a reason does not tell enough, words decide.


class Scene(NamedTuple):
    """Objects that the provocations below find."""

    client: Client
    namespace: str
    held: Object
    """A ConfigMap with a finalizer."""
    leaving: Object
    """One that is being deleted."""

    def key(self, name: str) -> ObjectKey:
        return ObjectKey(self.namespace, name)


@asynccontextmanager
async def scene(client: Client, namespace: str) -> AsyncIterator[Scene]:
    objects = []
    for name in ("held", "leaving"):
        body = config_map(name, {"a": "1"}, finalizers=[FINALIZER])
        objects.append(await client.create(CONFIG_MAPS, body, namespace=namespace))
    await delete(client, CONFIG_MAPS, objects[1])
    try:
        yield Scene(client, namespace, *objects)
    finally:  # or the namespace would stay for ever
        for obj in (await client.list(CONFIG_MAPS, namespace)).items:
            if patch := without_finalizer(obj, FINALIZER):
                await client.patch(CONFIG_MAPS, obj.key, patch)


def changed(obj: Object, **metadata: str) -> dict[str, Any]:
    body = obj.to_dict()
    body["metadata"] |= metadata
    return body


def unknown(group: str, version: str, plural: str) -> Resource:
    return Resource(group, version, plural, "Nothing")


Provocation = Callable[[Scene], Awaitable[object]]

BACKGROUND = Propagation.BACKGROUND

PROVOCATIONS: dict[str, tuple[type[ApiError], Provocation]] = {
    "get what is not there": (Absent, lambda it: it.client.get(CONFIG_MAPS, it.key("none"))),
    "delete what is not there": (
        Absent,
        lambda it: it.client.delete(CONFIG_MAPS, it.key("none"), uid="other", propagation=BACKGROUND),
    ),
    "patch what is not there": (Absent, lambda it: it.client.patch(CONFIG_MAPS, it.key("none"), merge_patch({}))),
    "replace what is not there": (
        Absent,
        lambda it: it.client.replace(CONFIG_MAPS, changed(it.held, name="none")),
    ),
    "replace what is not there, of a kind that a PUT could create": (
        Absent,
        lambda it: it.client.replace(LEASES, {"metadata": changed(it.held)["metadata"] | {"managedFields": []}}),
    ),
    "apply, with a uid, what is not there": (
        Absent,
        lambda it: it.client.apply(CONFIG_MAPS, config_map("none", uid="other", namespace=it.namespace)),
    ),
    "create in a namespace that is not there": (
        Absent,
        lambda it: it.client.create(CONFIG_MAPS, config_map("x"), namespace="none"),
    ),
    "get of an unknown group": (
        KindNotServed,
        lambda it: it.client.get(Resource("none.example.com", "v1", "widgets", "Widget"), it.key("x")),
    ),
    "get of an unknown version": (
        KindNotServed,
        lambda it: it.client.get(msgspec.structs.replace(DEPLOYMENTS, version="v9"), it.key("x")),
    ),
    "get of an unknown version of the core group": (
        KindNotServed,
        lambda it: it.client.get(msgspec.structs.replace(CONFIG_MAPS, version="v9"), it.key("x")),
    ),
    "get of an unknown resource": (
        KindNotServed,
        lambda it: it.client.get(WIDGETS, it.key("x")),
    ),
    "get of an unknown resource of the core group": (
        KindNotServed,
        lambda it: it.client.get(msgspec.structs.replace(CONFIG_MAPS, plural="widgets"), it.key("x")),
    ),
    "get of an unknown subresource": (
        KindNotServed,
        lambda it: it.client.get(CONFIG_MAPS, it.held.key, subresource="status"),
    ),
    "list of an unknown resource": (
        KindNotServed,
        lambda it: it.client.list(WIDGETS, it.namespace),
    ),
    "create of an unknown resource": (
        KindNotServed,
        lambda it: it.client.create(WIDGETS, config_map("x"), namespace=it.namespace),
    ),
    "delete of an unknown resource": (
        KindNotServed,
        lambda it: it.client.delete(WIDGETS, it.key("x"), uid="other", propagation=BACKGROUND),
    ),
    "create of a name that is taken": (
        AlreadyExists,
        lambda it: it.client.create(CONFIG_MAPS, config_map("held"), namespace=it.namespace),
    ),
    "create of a name whose owner is being deleted": (
        Terminating,
        lambda it: it.client.create(CONFIG_MAPS, config_map("leaving"), namespace=it.namespace),
    ),
    "delete with another uid": (
        Foreign,
        lambda it: it.client.delete(CONFIG_MAPS, it.held.key, uid="other", propagation=BACKGROUND),
    ),
    "replace with another uid": (Foreign, lambda it: it.client.replace(CONFIG_MAPS, changed(it.held, uid="other"))),
    "replace with another uid and an old version": (
        Foreign,
        lambda it: it.client.replace(CONFIG_MAPS, changed(it.held, uid="other", resourceVersion="1")),
    ),
    "merge patch with another uid": (
        Foreign,
        lambda it: it.client.patch(CONFIG_MAPS, it.held.key, merge_patch({"metadata": {"uid": "other"}})),
    ),
    "apply with another uid": (
        Foreign,
        lambda it: it.client.apply(CONFIG_MAPS, config_map("held", uid="other", namespace=it.namespace)),
    ),
    "delete at an old version": (
        Conflict,
        lambda it: it.client.delete(
            CONFIG_MAPS, it.held.key, uid=it.held.meta.uid, resource_version="1", propagation=BACKGROUND
        ),
    ),
    "replace at an old version": (
        Conflict,
        lambda it: it.client.replace(CONFIG_MAPS, changed(it.held, resourceVersion="1")),
    ),
    "merge patch at an old version": (
        Conflict,
        lambda it: it.client.patch(CONFIG_MAPS, it.held.key, merge_patch({}, resource_version="1")),
    ),
    "create of a name that cannot be": (
        Invalid,
        lambda it: it.client.create(CONFIG_MAPS, config_map("Not A Name"), namespace=it.namespace),
    ),
    "create of a wrong type": (
        Invalid,
        lambda it: it.client.create(CONFIG_MAPS, config_map("x") | {"data": 1}, namespace=it.namespace),
    ),
    "create of more than a request can be": (
        Invalid,
        lambda it: it.client.create(CONFIG_MAPS, config_map("x", {"a": 4_000_000 * "x"}), namespace=it.namespace),
    ),
    "create where the kind has no such verb": (
        Invalid,
        lambda it: it.client.create(msgspec.structs.replace(CONFIG_MAPS, namespaced=False), config_map("x")),
    ),
    "JSON patch whose test fails": (
        Invalid,
        lambda it: it.client.patch(
            CONFIG_MAPS, it.held.key, json_patch([{"op": "test", "path": "/data/a", "value": "2"}])
        ),
    ),
    "list with a selector that is none": (
        Invalid,
        lambda it: it.client.list(CONFIG_MAPS, it.namespace, labels="a=b=c"),
    ),
    "logs of a pod that is not there": (Absent, lambda it: it.client.logs(it.key("none"))),
    "eviction of a pod that is not there": (Absent, lambda it: it.client.evict(it.key("none"), uid="other")),
}


async def test_what_the_api_server_refuses_has_its_class(client: Client, namespace: str) -> None:
    outcomes = {}
    async with scene(client, namespace) as it:
        for name, (_, provoke) in PROVOCATIONS.items():
            outcomes[name] = type(await raised_by(provoke(it)))
        still = await client.get(CONFIG_MAPS, it.held.key)
    assert outcomes == {name: error for name, (error, _) in PROVOCATIONS.items()}
    assert still.to_dict() == it.held.to_dict()


async def test_an_error_is_one_sentence_that_names_the_request(client: Client, namespace: str) -> None:
    async with scene(client, namespace) as it:
        for name, sentence in {
            "get what is not there": 'GET /api/v1/namespaces/NS/configmaps/none: configmaps "none" not found',
            "get of an unknown group": "GET /apis/none.example.com/v1/namespaces/NS/widgets/x: "
            "this kind is not served by the API server (404 page not found)",
            "create of a name that is taken": 'POST /api/v1/namespaces/NS/configmaps: configmaps "held" already exists',
            "create of a name whose owner is being deleted": "POST /api/v1/namespaces/NS/configmaps: "
            'object is being deleted: configmaps "leaving" already exists',
            "merge patch with another uid": "PATCH /api/v1/namespaces/NS/configmaps/held: "
            'ConfigMap "held" is invalid: metadata.uid: Invalid value: "other": field is immutable',
            "delete with another uid": "DELETE /api/v1/namespaces/NS/configmaps/held: Operation cannot be fulfilled on "
            'ConfigMap "held": the UID in the precondition (other) does not match the UID in record (UID). '
            "The object might have been deleted and then recreated",
        }.items():
            error = await raised_by(PROVOCATIONS[name][1](it))
            assert str(error).replace(namespace, "NS").replace(it.held.meta.uid, "UID") == sentence


async def test_what_is_wrong_with_an_object_is_told_field_by_field(client: Client, namespace: str) -> None:
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": {"spec": {"containers": []}}}
    with pytest.raises(Invalid) as refused:
        await client.create(DEPLOYMENTS, {"metadata": {"name": "x"}, "spec": spec}, namespace=namespace)
    assert refused.value.reason == "Invalid"
    assert refused.value.code == 422
    assert refused.value.details is not None
    assert (refused.value.details.kind, refused.value.details.name) == ("Deployment", "x")
    assert refused.value.causes == (
        StatusCause(
            "FieldValueInvalid",
            "Invalid value: null: `selector` does not match template `labels`",
            "spec.template.metadata.labels",
        ),
        StatusCause("FieldValueRequired", "Required value", "spec.template.spec.containers"),
    )


async def test_nothing_new_comes_into_a_namespace_that_is_being_deleted(client: Client, namespace: str) -> None:
    async with scene(client, namespace):  # an object that is held there holds the namespace, too
        await delete(client, NAMESPACES, await client.get(NAMESPACES, ObjectKey("", namespace)))
        errors = [
            await raised_by(client.create(CONFIG_MAPS, config_map("x"), namespace=namespace)),
            await raised_by(client.apply(CONFIG_MAPS, config_map("x", namespace=namespace))),
            await raised_by(client.create(NAMESPACES, {"metadata": {"name": namespace}})),
        ]
    assert [type(error) for error in errors] == [Terminating] * 3
    assert [error.code for error in errors] == [403, 403, 409]
    assert [cause.reason for cause in errors[0].causes] == ["NamespaceTerminating"]


@pytest.mark.usefixtures("own_cluster")
async def test_of_a_kind_that_is_not_served_no_object_is_absent_and_of_one_that_goes_none_is_new(
    client: Client, namespace: str
) -> None:
    kind = widgets()
    outcomes: set[str] = set()

    async def outcome() -> str:
        try:
            found = await client.get(kind, held.key)
        except ApiError as error:
            outcomes.add(type(error).__name__)
            return type(error).__name__
        assert found.meta.uid == held.meta.uid
        return "found"

    async def becomes(wanted: str) -> bool:
        return await outcome() == wanted

    async with served(client, kind) as crd:
        held = await client.create(kind, config_map("held", finalizers=[FINALIZER]), namespace=namespace)
        for is_served, wanted in ((False, "KindNotServed"), (True, "found")):
            toggle = {"op": "replace", "path": "/spec/versions/0/served", "value": is_served}
            await client.patch(CRDS, crd.key, json_patch([toggle]))
            await eventually(functools.partial(becomes, wanted))
        await delete(client, CRDS, crd)
        leaving = await until(client, kind, held.key, lambda obj: obj and obj.meta.terminating)
        error = await raised_by(client.create(kind, config_map("x"), namespace=namespace))
        assert leaving is not None
        await client.patch(kind, held.key, without_finalizer(leaving, FINALIZER) or merge_patch({}))
    assert outcomes == {"KindNotServed"}
    assert type(error) is Terminating


async def test_who_may_not_is_forbidden_and_who_is_nobody_is_unauthorized(
    own_cluster: Cluster, config: ClusterConfig
) -> None:
    jane = load_config(kubeconfig=str(own_cluster.user("jane")))
    async with Client.connect(jane) as client:
        error = await raised_by(client.get(CONFIG_MAPS, ObjectKey("default", "x")))
    assert type(error) is Forbidden
    assert str(error) == (
        'GET /api/v1/namespaces/default/configmaps/x: configmaps "x" is forbidden: User "jane" cannot get resource '
        '"configmaps" in API group "" in the namespace "default"'
    )
    nobody = replace(
        config,
        credentials=FixedCredentials(bearer("of-nobody")),
        tls=TlsSettings(ca_data=config.tls.ca_data),
    )
    async with Client.connect(nobody) as client:
        error = await raised_by(client.get(CONFIG_MAPS, ObjectKey("default", "x")))
    assert type(error) is Unauthorized
    assert str(error) == "GET /api/v1/namespaces/default/configmaps/x: Unauthorized"


async def test_a_version_that_is_forgotten_is_expired(own_cluster: Cluster, client: Client, namespace: str) -> None:
    for name in ("a", "b"):
        await client.create(CONFIG_MAPS, config_map(name), namespace=namespace)
    pages = client.pages(CONFIG_MAPS, namespace, chunk=1)
    old = (await anext(pages)).resource_version
    own_cluster.expire_resource_versions()
    errors = {
        "next page": await raised_by(anext(pages)),
        "list": await raised_by(client.list(CONFIG_MAPS, namespace, version=exactly(old))),
    }
    with pytest.raises(Expired) as watched:
        async with client.watch(CONFIG_MAPS, namespace, resource_version=old) as watch:
            await anext(watch)
    errors["watch"] = watched.value
    assert {name: type(error) for name, error in errors.items()} == dict.fromkeys(errors, Expired)
    assert str(watched.value).startswith(f"WATCH /api/v1/namespaces/{namespace}/configmaps: too old resource version: ")


async def raised_by(request: Awaitable[object]) -> ApiError:
    with pytest.raises(ApiError) as refused:
        await request
    return refused.value
