"""Answers what deciding code has asked about a live cluster, and calls it again until it asks for nothing more.

A refusal is an answer like any other: it carries the class of the error and the server's own words. Nothing here
changes anything in the cluster; the dry runs ask the server to check a write, admission included, and not to do it.
"""

import asyncio
import datetime as dt
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from pilotage.catalogue.names import NODE
from pilotage.kube import (
    ApiError,
    Client,
    Conflict,
    ErrorClass,
    Foreign,
    Json,
    Object,
    Propagation,
    Resource,
    without_finalizer,
)
from pilotage.kube.wire import parse_time
from pilotage.teardown.snapshot.questions import (
    Answer,
    DryRunDelete,
    DryRunUpdate,
    EventsAbout,
    FullObject,
    MayI,
    MayThey,
    Question,
)
from pilotage.teardown.snapshot.world import Item, World

AT_ONCE = 8
ROUNDS_MAX = 6
LISTED_RATHER_THAN_GOT = 8
"""Number of objects in one namespace from which on one list replaces single reads, if they are a good part of it."""
_GOOD_PART = 4

_EVENTS = Resource("", "v1", "events", "Event")
_MY_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)
_REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)
_NOT_SEEN = Answer(allowed=False, error_class=ErrorClass.UNAVAILABLE, message="the object was not seen")
_LONG_AGO = dt.datetime.min.replace(tzinfo=dt.UTC)

T = TypeVar("T")


async def until_resolved(client: Client, world: World, think: Callable[[World], T], rounds_max: int = ROUNDS_MAX) -> T:
    """The result of `think` once it has all the answers it asks for, or after the last round of them."""
    thought = think(world)
    for _ in range(rounds_max):
        if not await answer(client, world):
            break
        thought = think(world)
    return thought


async def answer(client: Client, world: World) -> bool:
    """Answer all that is wanted: into `world.answers`, whole objects into the world as well. False: nothing was."""
    wanted, world.wanted = world.wanted - world.answers.keys(), set()
    if not wanted:
        return False
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(question: Question) -> None:
        async with slots:
            world.answers[question] = await _ask(client, world, question)

    async def many(items: list[Item]) -> None:
        async with slots:
            await _read_together(client, world, items)

    alone, together = _grouped(world, wanted)
    async with asyncio.TaskGroup() as group:
        for question in alone:
            group.create_task(one(question))
        for items in together:
            group.create_task(many(items))
    return True


def _grouped(world: World, wanted: Iterable[Question]) -> tuple[list[Question], list[list[Item]]]:
    """Questions that are asked one by one, and groups of objects that are listed."""
    alone: list[Question] = []
    places: dict[tuple[Resource, str], list[Item]] = {}
    for question in wanted:
        item = world.get(question.uid) if isinstance(question, FullObject) else None
        if item is None:
            alone.append(question)
        else:
            places.setdefault((item.resource, item.meta.namespace), []).append(item)
    together = []
    for (resource, namespace), items in places.items():
        there = len(world.of(resource.group, resource.kind, namespace))
        if len(items) >= LISTED_RATHER_THAN_GOT and len(items) * _GOOD_PART >= there:
            together.append(items)
        else:
            alone += (FullObject(item.uid) for item in items)
    return alone, together


async def _read_together(client: Client, world: World, items: list[Item]) -> None:
    """Whole objects of one kind and namespace, by one list."""
    resource = items[0].resource
    try:
        listed = await client.list(resource, items[0].meta.namespace)
    except ApiError as error:
        world.answers |= {FullObject(item.uid): _refused(error) for item in items}
        return
    found = {obj.meta.uid: obj for obj in listed.items}
    for item in items:
        obj = found.get(item.uid)
        gone = Answer(allowed=False, error_class=ErrorClass.ABSENT, message=f"{item} is gone")
        world.answers[FullObject(item.uid)] = gone if obj is None else _take_in(world, resource, obj)


def _take_in(world: World, resource: Resource, obj: Object) -> Answer:
    item = Item(resource, obj, full=True)
    world.add(item)
    return Answer(body=item.read())


async def _ask(client: Client, world: World, question: Question) -> Answer:
    try:
        match question:
            case MayI() | MayThey():
                return await _review(client, question)
            case _:
                item = world.get(question.uid)
                return _NOT_SEEN if item is None else await _about(client, world, item, question)
    except ApiError as error:
        return _refused(error)


async def _about(
    client: Client, world: World, item: Item, question: FullObject | EventsAbout | DryRunUpdate | DryRunDelete
) -> Answer:
    match question:
        case FullObject():
            obj = await client.get(item.resource, item.object.key)
            if obj.meta.uid != item.uid:
                raise Foreign(f"{item} is another object by now")
            return _take_in(world, item.resource, obj)
        case EventsAbout():
            return await _events(client, item)
        case DryRunUpdate():
            return await _let_go(client, item, question.finalizer)
        case DryRunDelete():
            left = await client.delete(
                item.resource, item.object.key, uid=item.uid, propagation=Propagation.BACKGROUND, dry_run=True
            )
            return Answer(body=None if left is None else left.to_dict())


async def _events(client: Client, item: Item) -> Answer:
    """Those about objects without a namespace are in ``default``; a kubelet names its Node by name, not by uid."""
    selector = f"involvedObject.uid={item.uid}"
    if item.group_kind == NODE:
        selector = f"involvedObject.kind=Node,involvedObject.name={item.meta.name}"
    listed = await client.list(_EVENTS, item.meta.namespace or "default", fields=selector)
    return Answer(items=tuple(sorted((obj.to_dict() for obj in listed.items), key=_last_seen)))


def _last_seen(event: Json) -> dt.datetime:
    series: Any = event.get("series") or {}
    times = (
        series.get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        event["metadata"].get("creationTimestamp"),
    )
    return max((parse_time(text) for text in times if text), default=_LONG_AGO)


async def _let_go(client: Client, item: Item, finalizer: str) -> Answer:
    """A dry run of the removal. Where the object has changed since it was read, it is read again once."""
    obj = item.object
    for last in (False, True):
        patch = without_finalizer(obj, finalizer)
        if patch is None:
            return Answer(message=f"{item} does not have the finalizer {finalizer}")
        try:
            patched = await client.patch(item.resource, obj.key, patch, dry_run=True)
        except Conflict:
            if last:
                raise
            obj = await client.get(item.resource, obj.key, metadata_only=True)
            if obj.meta.uid != item.uid:
                raise Foreign(f"{item} is another object by now") from None
        else:
            return Answer(body=patched.to_dict())
    raise AssertionError("the last try returns or raises")


async def _review(client: Client, question: MayI | MayThey) -> Answer:
    attributes = {
        "verb": question.verb,
        "group": question.group,
        "resource": question.plural,
        "namespace": question.namespace,
    }
    spec: Json = {"resourceAttributes": attributes}
    resource = _MY_REVIEWS
    if isinstance(question, MayThey):
        resource = _REVIEWS
        attributes["subresource"] = question.subresource
        spec |= {"user": question.user, "groups": _groups(question.user)}
    reviewed = (await client.create(resource, {"spec": spec})).to_dict()
    status = reviewed.get("status") or {}
    return Answer(
        allowed=bool(status.get("allowed")),
        body=reviewed,
        message=status.get("reason") or status.get("evaluationError") or "",
    )


def _groups(user: str) -> list[str]:
    """Those that the server itself would give to the user: a review does not look them up."""
    match user.split(":"):
        case ["system", "serviceaccount", namespace, _]:
            return ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    return ["system:authenticated"]


def _refused(error: ApiError) -> Answer:
    return Answer(allowed=False, error_class=error.error_class, message=error.message)
