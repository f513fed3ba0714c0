"""Watches: from which version, which events, for which objects, and how they end."""

from __future__ import annotations

from tests.contract.case import Theme
from tests.contract.kit import METADATA, TABLE, Kit
from tests.contract.objects import CM, LEASES, Kind, cm, lease, props, with_pod

theme = Theme("watch")


def brief(event: dict) -> object:  # type: ignore[type-arg]
    """Type, name and data of an event."""
    got = event["object"]
    if got.get("kind") == "Status":
        return event
    return [event["type"], got["metadata"]["name"], got.get("data")]


@theme.case()
async def life_of_an_object(kit: Kit) -> None:
    version = (await kit.quiet.list("secrets")).rv
    async with kit.watch(LEASES, resourceVersion=version) as watch:
        await kit.quiet.create(LEASES, lease("a"))
        await kit.quiet.patch(LEASES, "a", {"spec": {"holderIdentity": "x"}})
        await kit.quiet.delete(LEASES, "a")
        await watch.take(3)


@theme.case()
async def from_an_old_version(kit: Kit) -> None:
    made = await kit.quiet.create(CM, cm("a", {"n": "1"}))
    await kit.quiet.patch(CM, "a", {"data": {"n": "2"}})
    await kit.quiet.patch(CM, "a", {"data": {"n": "3"}})
    async with kit.picking(brief).watch(CM, resourceVersion=made.rv, fieldSelector="metadata.name=a") as watch:
        await watch.take(2)


@theme.case()
async def without_a_version_begins_with_what_is_there(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a", {"n": "1"}))
    await kit.quiet.patch(CM, "a", {"data": {"n": "2"}})
    async with kit.picking(brief).watch(CM, fieldSelector="metadata.name=a") as watch:
        await watch.take(1)
        await kit.quiet.delete(CM, "a")
        await watch.take(1)


@theme.case()
async def version_zero_begins_with_what_is_there(kit: Kit) -> None:
    made = await kit.quiet.create(CM, cm("a", {"n": "1"}))
    await kit.quiet.list(CM, resourceVersion=made.rv)  # by now the watch cache has it
    async with kit.picking(brief).watch(CM, resourceVersion=0, fieldSelector="metadata.name=a") as watch:
        await watch.take(1)


@theme.case()
async def labels_make_objects_come_and_go(kit: Kit) -> None:
    version = (await kit.quiet.create(CM, cm("a", {"n": "1"}))).rv
    async with kit.picking(brief).watch(CM, resourceVersion=version, labelSelector="on=yes") as watch:
        for label, n in (("yes", "2"), ("yes", "3"), ("no", "4"), ("yes", "5")):
            await kit.quiet.patch(CM, "a", {"metadata": {"labels": {"on": label}}, "data": {"n": n}})
        await kit.quiet.delete(CM, "a")
        await watch.take(5)


@theme.case()
async def one_by_name(kit: Kit) -> None:
    version = (await kit.quiet.create(CM, cm("a"))).rv
    async with kit.picking(brief).watch(CM, resourceVersion=version, fieldSelector="metadata.name=b") as watch:
        await kit.quiet.create(CM, cm("b", {"n": "1"}))
        await kit.quiet.delete(CM, "a")
        await kit.quiet.delete(CM, "b")
        await watch.take(2)


@theme.case()
async def fields_of_pods_come_and_go(kit: Kit) -> None:
    made = await with_pod(kit, "p")
    version = made["metadata"]["resourceVersion"]

    def phase(event: dict) -> object:  # type: ignore[type-arg]
        return [event["type"], event["object"]["status"]["phase"]]

    async with kit.picking(phase).watch("pods", resourceVersion=version, fieldSelector="status.phase=Running") as watch:
        await kit.quiet.patch("pods", "p", {"status": {"phase": "Running"}}, "status")
        await kit.quiet.patch("pods", "p", {"status": {"phase": "Failed"}}, "status")
        await watch.take(2)


@theme.case()
async def of_all_namespaces(kit: Kit) -> None:
    version = (await kit.quiet.list(CM)).rv
    label = kit.ns[:60]
    everywhere = f"/{CM}"
    async with kit.picking(brief).watch(everywhere, resourceVersion=version, labelSelector=f"c={label}") as watch:
        await kit.quiet.create(CM, cm("a", labels={"c": label}))
        await watch.take(1)


@theme.case()
async def ends_when_its_time_is_up(kit: Kit) -> None:
    version = (await kit.quiet.list(CM)).rv
    async with kit.picking(brief).watch(CM, resourceVersion=version, labelSelector="x=y", timeoutSeconds=1) as watch:
        kit.note("events", await watch.rest())


@theme.case()
async def version_in_the_future(kit: Kit) -> None:
    """The watch waits for it, and says nothing meanwhile."""
    async with kit.picking(brief).watch(CM, resourceVersion=99999999, labelSelector="x=y", timeoutSeconds=1) as watch:
        await watch.rest()


theme.asks("version that is no number", "GET", "/api/v1/namespaces/{ns}/configmaps?watch=1&resourceVersion=abc")
theme.asks("version negative", "GET", "/api/v1/namespaces/{ns}/configmaps?watch=1&resourceVersion=-1")
theme.asks("selector malformed", "GET", "/api/v1/namespaces/{ns}/configmaps?watch=1&labelSelector=a%20b")
theme.asks("field unknown", "GET", "/api/v1/namespaces/{ns}/configmaps?watch=1&fieldSelector=x.y%3D1")
theme.asks("flag that is no boolean", "GET", "/api/v1/namespaces/{ns}/configmaps?watch=maybe&timeoutSeconds=1")
theme.asks("initial events without a match", "GET", "/api/v1/namespaces/{ns}/configmaps?watch=1&sendInitialEvents=true")
theme.asks(
    "match without initial events",
    "GET",
    "/api/v1/namespaces/{ns}/configmaps?watch=1&resourceVersion=1&resourceVersionMatch=NotOlderThan",
)
theme.asks("of an unknown resource", "GET", "/api/v1/namespaces/{ns}/nonsenses?watch=1")


@theme.case()
async def initial_events_end_with_a_bookmark(kit: Kit) -> None:
    for name in "ab":
        await kit.quiet.create(CM, cm(name, labels={"own": "yes"}))

    def shown(event: dict) -> object:  # type: ignore[type-arg]
        got = event["object"]
        meta = got["metadata"]
        return [event["type"], got["kind"], meta.get("name"), meta.get("annotations"), sorted(got)]

    async with kit.picking(shown).watch(
        CM,
        labelSelector="own",
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
        allowWatchBookmarks="true",
    ) as watch:
        await watch.take(3, bookmarks=True)


@theme.case()
async def no_initial_events(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a", {"n": "1"}, labels={"own": "yes"}))
    async with kit.picking(brief).watch(
        CM,
        labelSelector="own",
        sendInitialEvents="false",
        resourceVersionMatch="NotOlderThan",
        allowWatchBookmarks="true",
    ) as watch:
        await kit.quiet.patch(CM, "a", {"data": {"n": "2"}})
        await watch.take(1)


@theme.case()
async def as_metadata(kit: Kit) -> None:
    version = (await kit.quiet.create(CM, cm("a", labels={"x": "y"}))).rv
    async with kit.accepting(METADATA).watch(CM, resourceVersion=version, labelSelector="x=y") as watch:
        await kit.quiet.patch(CM, "a", {"data": {"n": "2"}})
        await watch.take(1)


@theme.case()
async def as_table(kit: Kit) -> None:
    version = (await kit.quiet.create(LEASES, lease("a", holderIdentity="me"))).rv

    def shown(event: dict) -> object:  # type: ignore[type-arg]
        table = event["object"]
        cells = [row["cells"][:2] for row in table["rows"]]
        return [event["type"], table["kind"], [c["name"] for c in table["columnDefinitions"] or []], cells]

    async with kit.picking(shown).accepting(TABLE).watch(LEASES, resourceVersion=version) as watch:
        await kit.quiet.patch(LEASES, "a", {"spec": {"holderIdentity": "you"}})
        await kit.quiet.patch(LEASES, "a", {"spec": {"holderIdentity": "them"}})
        await watch.take(2)


@theme.case(facts=(1,))
async def finalizers_make_a_delete_two_events(kit: Kit) -> None:
    version = (await kit.quiet.create(CM, cm("a", finalizers=["example.com/f"]))).rv

    def shown(event: dict) -> object:  # type: ignore[type-arg]
        meta = event["object"]["metadata"]
        return [event["type"], "deletionTimestamp" in meta, meta.get("finalizers")]

    async with kit.picking(shown).watch(CM, resourceVersion=version, fieldSelector="metadata.name=a") as watch:
        await kit.quiet.delete(CM, "a")
        await kit.quiet.patch(CM, "a", {"metadata": {"finalizers": None}})
        await watch.take(2)


@theme.case()
async def the_deleted_event_carries_the_version_of_the_delete(kit: Kit) -> None:
    made = await kit.quiet.create(CM, cm("a"))
    async with kit.watch(CM, resourceVersion=made.rv, fieldSelector="metadata.name=a") as watch:
        await kit.quiet.delete(CM, "a")
        (event,) = await watch.take(1)
    kit.note("newer than the object was", int(event["object"]["metadata"]["resourceVersion"]) > int(made.rv))


@theme.case()
async def an_update_of_nothing_is_no_event(kit: Kit) -> None:
    made = await kit.quiet.create(CM, cm("a", {"n": "1"}))
    async with kit.picking(brief).watch(CM, resourceVersion=made.rv, fieldSelector="metadata.name=a") as watch:
        await kit.quiet.patch(CM, "a", {"data": {"n": "1"}})
        await kit.quiet.put(CM, "a", made.body)
        await kit.quiet.patch(CM, "a", {"data": {"n": "2"}})
        await watch.take(1)


@theme.case()
async def of_custom_resources(kit: Kit) -> None:
    kind = await Kind(kit, props(n={"type": "integer"})).served()
    made = await kit.quiet.create(kind.resource, kind.object("a", {"n": 1}))
    async with kit.watch(kind.resource, resourceVersion=made.rv) as watch:
        await kit.quiet.patch(kind.resource, "a", {"spec": {"n": 2}})
        await kit.quiet.delete(kind.resource, "a")
        await watch.take(2)


@theme.case()
async def the_old_path(kit: Kit) -> None:
    """/api/v1/watch/… is deprecated, and still there."""
    await kit.quiet.create(CM, cm("a", labels={"own": "yes"}))
    target = f"/api/v1/watch/namespaces/{kit.ns}/configmaps?labelSelector=own&timeoutSeconds=1"
    answer = await kit.quiet.send("GET", target)
    kit.note("type", answer.body.get("type") if isinstance(answer.body, dict) else answer.body)
