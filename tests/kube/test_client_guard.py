"""Requests that the client refuses before they are sent, and notification of those that are sent."""

from collections.abc import Awaitable, Callable

import pytest

from pilotage.kube import (
    PODS,
    ApiError,
    Client,
    Json,
    Object,
    ObjectKey,
    Propagation,
    Resource,
    exactly,
    merge_patch,
)
from pilotage_sim.loop import virtual
from tests.support.kinds import CONFIG_MAPS, config_map
from tests.support.transports import ScriptedTransport, answer

KEY = ObjectKey("ns", "x")
BACKGROUND = Propagation.BACKGROUND

# Requests that are never sent

MISTAKES: dict[str, tuple[Callable[[Client], Awaitable[object]], str]] = {
    "replace of metadata": (
        lambda client: client.replace(
            CONFIG_MAPS, {"kind": "PartialObjectMetadata", "metadata": {"name": "x", "namespace": "ns"}}
        ),
        "ns/x: only its metadata was read; a replace would erase the rest of it",
    ),
    "replace without a version": (
        lambda client: client.replace(CONFIG_MAPS, config_map("x", namespace="ns")),
        "ns/x: a replace without metadata.resourceVersion would overwrite unseen changes",
    ),
    "create nowhere": (
        lambda client: client.create(CONFIG_MAPS, config_map("x")),
        "ConfigMap/x: no namespace is given, and its metadata has none",
    ),
    "get of one version": (
        lambda client: client.get(CONFIG_MAPS, KEY, version=exactly("5")),
        "ns/x: a get is not available at exactly one version (the server would ignore it); list",
    ),
    "get without a name": (
        lambda client: client.get(CONFIG_MAPS, ObjectKey("ns", "")),
        "ConfigMap 'ns/': a name is needed, and a namespace where the kind has one",
    ),
    "delete without a name": (
        lambda client: client.delete(CONFIG_MAPS, ObjectKey("ns", ""), uid="1", propagation=BACKGROUND),
        "ConfigMap 'ns/': a name is needed, and a namespace where the kind has one",
    ),
    "delete without a namespace": (
        lambda client: client.delete(CONFIG_MAPS, ObjectKey("", "x"), uid="1", propagation=BACKGROUND),
        "ConfigMap 'x': a name is needed, and a namespace where the kind has one",
    ),
    "delete without a uid": (
        lambda client: client.delete(CONFIG_MAPS, KEY, uid="", propagation=BACKGROUND),
        "ConfigMap ns/x: a delete without a uid could delete another client's object",
    ),
    "evict without a uid": (
        lambda client: client.evict(KEY, uid=""),
        "Pod ns/x: a delete without a uid could delete another client's object",
    ),
    "a name that leads elsewhere": (
        lambda client: client.patch(PODS, ObjectKey("ns", "x/eviction"), merge_patch({})),
        "'x/eviction' cannot be the name of an object or a namespace",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
@virtual
async def test_a_mistake_is_told_and_nothing_is_sent(mistake: str) -> None:
    call, words = MISTAKES[mistake]
    transport = ScriptedTransport(answer({}))
    with pytest.raises(ValueError) as told:
        await call(Client(transport))
    assert str(told.value) == words
    assert transport.requests == []


# Observers of writes


class Guard:
    """Guard that records its calls and forbids the given ones."""

    def __init__(self, forbid: bool = False) -> None:
        self._forbid = forbid
        self.told: list[str] = []

    def before(self, resource: Resource, key: ObjectKey) -> None:
        self.told.append(f"before {resource} {key}")
        if self._forbid:
            raise PermissionError("not the leader")

    def allowed(self) -> None: ...

    def after(self, resource: Resource, key: ObjectKey, written: Object | None) -> None:
        self.told.append(f"after {resource} {key}: {written.meta.resource_version if written else None}")


def leaving(*finalizers: str, **metadata: object) -> Json:
    return {"metadata": {"resourceVersion": "8", "deletionTimestamp": "now", "finalizers": finalizers, **metadata}}


STATUS = {"kind": "Status", "status": "Success"}
VERSION_8 = {"metadata": {"resourceVersion": "8"}}

GUARDED: dict[str, tuple[Callable[[Client], Awaitable[object]], Json, str | None]] = {
    "create": (lambda client: client.create(CONFIG_MAPS, config_map("x", namespace="ns")), VERSION_8, "8"),
    "replace": (
        lambda client: client.replace(CONFIG_MAPS, config_map("x", namespace="ns", resourceVersion="7")),
        VERSION_8,
        "8",
    ),
    "replace of the scale": (
        lambda client: client.replace(
            CONFIG_MAPS, config_map("x", namespace="ns", resourceVersion="7"), subresource="scale"
        ),
        VERSION_8,
        None,
    ),
    "patch": (lambda client: client.patch(CONFIG_MAPS, KEY, merge_patch({})), VERSION_8, "8"),
    "patch of the status": (
        lambda client: client.patch(CONFIG_MAPS, KEY, merge_patch({}), subresource="status"),
        VERSION_8,
        "8",
    ),
    "patch that ends it": (lambda client: client.patch(CONFIG_MAPS, KEY, merge_patch({})), leaving(), None),
    "apply": (lambda client: client.apply(CONFIG_MAPS, config_map("x", namespace="ns")), VERSION_8, "8"),
    "scale": (lambda client: client.scale(CONFIG_MAPS, KEY, 1), VERSION_8, None),
    "delete": (lambda client: client.delete(CONFIG_MAPS, KEY, uid="1", propagation=BACKGROUND), STATUS, None),
    "delete that shows what is gone": (
        lambda client: client.delete(CONFIG_MAPS, KEY, uid="1", propagation=BACKGROUND),
        VERSION_8,
        None,
    ),
    "delete that waits": (
        lambda client: client.delete(CONFIG_MAPS, KEY, uid="1", propagation=BACKGROUND),
        leaving("a"),
        "8",
    ),
    "dry run of a patch": (
        lambda client: client.patch(CONFIG_MAPS, KEY, merge_patch({}), dry_run=True),
        VERSION_8,
        None,
    ),
    "dry run of a delete": (
        lambda client: client.delete(CONFIG_MAPS, KEY, uid="1", propagation=BACKGROUND, dry_run=True),
        leaving("a"),
        None,
    ),
}


@pytest.mark.parametrize("write", GUARDED)
@virtual
async def test_a_guard_is_told_of_each_write_and_shown_what_is_there_now(write: str) -> None:
    call, body, version = GUARDED[write]
    guard = Guard()
    await call(Client(ScriptedTransport(answer(body))).guarded_by(guard))
    assert guard.told == ["before configmaps ns/x", f"after configmaps ns/x: {version}"]


@virtual
async def test_a_guard_is_told_of_a_write_that_failed() -> None:
    guard = Guard()
    client = Client(ScriptedTransport(answer({}, status=500), answer({}))).guarded_by(guard)
    with pytest.raises(ApiError):
        await client.patch(CONFIG_MAPS, KEY, merge_patch({}))
    await client.evict(KEY, uid="1")
    assert guard.told == [
        "before configmaps ns/x",
        "after configmaps ns/x: None",
        "before pods ns/x",
        "after pods ns/x: None",
    ]


@virtual
async def test_what_a_guard_forbids_is_not_sent() -> None:
    transport = ScriptedTransport(*(answer({}) for _ in range(20)))
    client = Client(transport).guarded_by(Guard(forbid=True))
    for call, _, _ in GUARDED.values():
        with pytest.raises(PermissionError):
            await call(client)
    assert transport.requests == []
    await client.get(CONFIG_MAPS, KEY)
    assert len(transport.requests) == 1
