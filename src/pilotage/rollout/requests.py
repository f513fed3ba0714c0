"""Endpoints that a person named: read, created, changed and scaled. The server checks each write in a dry run first."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Iterable
from shlex import quote
from typing import NamedTuple

from pilotage.api.names import ENDPOINTS, HOSTS, MODELS, UP_MARKER
from pilotage.kube import (
    Absent,
    AlreadyExists,
    ApiError,
    Client,
    Conflict,
    Forbidden,
    Invalid,
    Json,
    Object,
    ObjectKey,
    Resource,
    Terminating,
    merge_patch,
)
from pilotage.kube.names import CONFIGMAPS
from pilotage.rollout.spec import SpecArguments, with_machine_defaults
from pilotage.teardown.planning.arguments import TargetError, missing_name
from pilotage.teardown.snapshot.fields import text
from pilotage.teardown.snapshot.world import Name

CHANGE_TRIES_MAX = 20
CHANGE_PAUSE_SECONDS = 0.2
"""Longest pause before a change is tried again. It is drawn, so that clients do not meet again."""


class ChangeConflict(Exception):
    """Somebody else changed the endpoint at the same time, so nothing was written. `command` shows how it is now."""

    def __init__(self, text: str, command: str = "") -> None:
        super().__init__(f"{text} {command}".rstrip())
        self.text = text
        self.command = command


class EndpointExists(TargetError):
    """An endpoint of that name exists already."""

    def __init__(self, endpoint: Object) -> None:
        self.endpoint = endpoint
        self.has_served = _has_served(endpoint)
        super().__init__(f"{endpoint.ref} exists already{'' if self.has_served else ', and has never served'}.")


class Manifests(NamedTuple):
    """The objects of our kinds in manifests, each with its namespace."""

    models: list[Json]
    endpoints: list[Json]


def sorted_manifests(documents: Iterable[Json], namespace: str, default: str) -> Manifests:
    """Models and endpoints. `namespace`: what ``-n`` says, which a manifest may not contradict. Raises TargetError."""
    found = Manifests([], [])
    for document in documents:
        kind, meta = document["kind"], document["metadata"]
        what = f"{kind.lower()}/{meta.get('name', '?')}"
        if not meta.get("name"):
            raise TargetError(f"A {kind} in a manifest has no metadata.name. Give it one: it is changed by its name.")
        place = meta.setdefault("namespace", namespace or default)
        if namespace and place != namespace:
            raise TargetError(f"{what} is in namespace {place}, and -n says {namespace}.")
        _check_kind(document, what)
        (found.endpoints if kind == ENDPOINTS.kind else found.models).append(document)
    if not found.endpoints:
        raise TargetError("There is no ServingEndpoint in the files.")
    return found


def _check_kind(document: Json, what: str) -> None:
    """Refuse what is not one of our kinds, and a spec that is no mapping."""
    version, kind = document["apiVersion"], document["kind"]
    meant = next((each for each in (ENDPOINTS, MODELS) if each.kind.lower() == kind.lower()), None)
    if meant is None or version.partition("/")[0] != meant.group:
        raise TargetError(f"{what} is neither a ServingEndpoint nor a Model: apply it with kubectl.")
    if (version, kind) != (meant.api_version, meant.kind):
        raise TargetError(
            f"{what} has apiVersion {version} and kind {kind}: write apiVersion: {meant.api_version} and "
            f"kind: {meant.kind}."
        )
    if not isinstance(document.get("spec", {}), dict):
        raise TargetError(f"{what}: its spec is not an object with fields.")


async def with_defaults_of(client: Client, given: SpecArguments) -> SpecArguments:
    """The arguments, with the defaults of one machine where the API server is that of `pilotage up`.

    A ConfigMap in the operator's namespace says so: only administrators of a cluster can write it.
    """
    try:
        mark = await client.get(CONFIGMAPS, UP_MARKER)
    except (Absent, Forbidden):
        return given
    host = text(mark.to_dict(), "data", "host")
    return with_machine_defaults(given, host) if host else given


async def get(client: Client, resource: Resource, key: ObjectKey) -> Object:
    """One object that a person named. TargetError, with what has a similar name, where there is none."""
    try:
        return await client.get(resource, key)
    except Absent:
        listed = await client.list(resource, key.namespace, metadata_only=True)
        name = Name(resource.group, resource.kind, key.namespace, key.name)
        raise TargetError(missing_name(name, [obj.meta.name for obj in listed.items])) from None


async def create(client: Client, wanted: Manifests, *, dry_run: bool) -> list[Object]:
    """Create everything, or let the server say whether it could be created. Returns the endpoints. Raises TargetError.

    Models that exist are applied; an endpoint that exists is refused (EndpointExists). So is a field that the server
    does not know.
    """
    for body in wanted.models:
        what = f"model/{body['metadata']['name']}"
        if dry_run:
            with contextlib.suppress(AlreadyExists):  # an apply would not tell an unknown field from a failure
                await _checking(what, client.create(MODELS, body, dry_run=True, strict=True))
        await _checking(what, client.apply(MODELS, body, force=True, dry_run=dry_run))
    made = []
    for body in wanted.endpoints:
        what, place = endpoint_name(body), body["metadata"]["namespace"]
        try:
            if dry_run:
                await _check_references(client, body, wanted.models)
            made.append(await _checking(what, client.create(ENDPOINTS, body, dry_run=dry_run, strict=True)))
        except AlreadyExists:
            key = ObjectKey(place, body["metadata"]["name"])
            raise EndpointExists(await get(client, ENDPOINTS, key)) from None
        except Terminating as error:
            raise TargetError(
                f"{what} cannot be created, because it or its namespace is being deleted. Wait until that is gone:",
                f"pilotage wait {quote('servingendpoint/' + body['metadata']['name'])} -n {quote(place)}",
            ) from error
        except Absent as error:
            raise TargetError(
                f"There is no namespace {place}. Create it with:", f"kubectl create namespace {quote(place)}"
            ) from error
    return made


def _has_served(endpoint: Object) -> bool:
    """Whether a revision of it has ever been ready, by its status."""
    history = endpoint.get("status", "history", default=[])
    return bool(endpoint.get("status", "revision")) or any(each.get("state") == "Previous" for each in history)


async def _check_references(client: Client, body: Json, along: Iterable[Json] = ()) -> None:
    """Refuse a Model or a Host that does not exist, and a source that cannot be one. `along`: Models created with it.

    If they may not be read, the status of the endpoint will tell.
    """
    from pilotage.models.problems import PermanentError  # not before: who only reads parses no source
    from pilotage.models.source import parse_source

    spec, place = body.get("spec", {}), body["metadata"]["namespace"]
    if source := text(spec, "model", "source"):
        try:
            parse_source(source)
        except PermanentError as error:
            raise TargetError(f"{endpoint_name(body)}: {error}") from error
    name = text(spec, "model", "name")
    if name and (place, name) not in {(each["metadata"]["namespace"], each["metadata"]["name"]) for each in along}:
        remedy = "Create it first, or give a source, such as --model hf://OWNER/REPOSITORY/FILE."
        await _check_exists(client, MODELS, ObjectKey(place, name), remedy)
    if host := text(spec, "placement", "host"):
        await _check_exists(client, HOSTS, ObjectKey("", host), "Run `pilotage agent` on a machine to add it.")


async def _check_exists(client: Client, resource: Resource, key: ObjectKey, remedy: str) -> None:
    """TargetError, with the names that exist, where there is no such object."""
    try:
        await client.get(resource, key, metadata_only=True)
    except Absent:
        found = await client.list(resource, key.namespace, metadata_only=True)
        name = Name(resource.group, resource.kind, key.namespace, key.name)
        raise TargetError(f"{missing_name(name, [obj.meta.name for obj in found.items])} {remedy}") from None
    except Forbidden:
        return


def endpoint_name(body: Json) -> str:
    """The name of an endpoint that is not created yet, as that of others is written."""
    meta = body["metadata"]
    return f"servingendpoint/{meta['name']} -n {meta['namespace']}"


class EndpointChange(NamedTuple):
    """An endpoint before a change and after it: the same one where nothing had to change."""

    before: Object | None
    """None for one that was created."""
    after: Object

    @property
    def anything(self) -> bool:
        """Whether what is wanted has changed."""
        return self.before is None or self.before.meta.generation != self.after.meta.generation


async def change(client: Client, key: ObjectKey, alter: Callable[[Object], Json]) -> EndpointChange:
    """Write what `alter` makes of an endpoint, after the server has checked it: it is asked to try, first.

    Who changes it meanwhile is not overwritten: what they wrote is read, and altered again where that leaves it as it
    is. Raises ChangeConflict where it does not, and TargetError.
    """
    first: Object | None = None
    for _ in range(CHANGE_TRIES_MAX):
        before = await get(client, ENDPOINTS, key)
        first = first or before
        if before.meta.terminating:
            raise TargetError(
                f"{before.ref} is being deleted, which cannot be undone. Deploy it again when it is gone."
            )
        wanted = alter(before)
        if any(wanted["spec"].get(field) != before.get("spec", field) for field in ("model", "placement")):
            await _check_references(client, wanted)
        theirs = _changed(first.get("spec", default={}), before.get("spec", default={}))
        if clash := theirs & _changed(before.get("spec", default={}), wanted["spec"]):
            raise ChangeConflict(
                f"{before.ref} was changed by another client at the same time ({', '.join(sorted(clash))}), so it was "
                "left as they want it. See:",
                f"pilotage status {quote(key.name)} -n {quote(key.namespace)}",
            )
        try:
            checked = await _checking(str(before.ref), client.replace(ENDPOINTS, wanted, dry_run=True, strict=True))
            if checked.meta.generation == before.meta.generation:
                return EndpointChange(before, before)
            return EndpointChange(before, await client.replace(ENDPOINTS, wanted))
        except Conflict:
            await asyncio.sleep(random.uniform(0.0, CHANGE_PAUSE_SECONDS))  # noqa: S311 - nothing secret
    raise ChangeConflict(f"{key} is changed by others all the time, so nothing was changed here. Try again.")


def _changed(old: Json, new: Json, above: str = "") -> set[str]:
    """The paths of the fields in which two specs differ; lists are compared whole."""
    found = set()
    for name in {*old, *new}:
        one, other = old.get(name), new.get(name)
        if isinstance(one or {}, dict) and isinstance(other or {}, dict) and (one or other):
            found |= _changed(one or {}, other or {}, f"{above}{name}.")
        elif one != other:
            found.add(f"{above}{name}")
    return found


async def scale(client: Client, key: ObjectKey, replicas: int) -> EndpointChange:
    """Set the number of replicas, in place. Raises TargetError."""
    before = await get(client, ENDPOINTS, key)
    if before.meta.terminating:
        raise TargetError(f"{before.ref} is being deleted.")
    spec = before.get("spec", default={})
    if spec.get("autoscaling"):
        from pilotage.rollout.spec import scales_itself  # not before: who only reads needs no types of specs

        raise TargetError(f"{before.ref}: {scales_itself(spec)}")
    if spec.get("replicas") == replicas:
        return EndpointChange(before, before)
    patch = merge_patch({"metadata": {"uid": before.meta.uid}, "spec": {"replicas": replicas}})
    await _checking(str(before.ref), client.patch(ENDPOINTS, key, patch, subresource="scale"))
    return EndpointChange(before, await get(client, ENDPOINTS, key))


async def _checking(what: str, request: Awaitable[Object]) -> Object:
    """The answer to a write. TargetError, with each field that is wrong, where the server refuses it."""
    try:
        return await request
    except Invalid as error:
        raise TargetError(f"{what} is refused, and nothing was changed: {_causes(error)}") from error


def _causes(error: ApiError) -> str:
    _, strict, unknown = error.message.partition("strict decoding error: ")
    if strict:
        return unknown
    found = [
        cause.message if cause.field in ("", "<nil>") else f"{cause.field}: {cause.message}" for cause in error.causes
    ]
    return "; ".join(dict.fromkeys(found)) or error.message
