"""Endpoints that a person named: read, created, changed and scaled. The server checks each write in a dry run first."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable
from shlex import quote
from typing import NamedTuple

from pilotage.api.names import ENDPOINTS, MODELS, UP_MARKER
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
        if (document["apiVersion"], kind) == (ENDPOINTS.api_version, ENDPOINTS.kind):
            found.endpoints.append(document)
        elif (document["apiVersion"], kind) == (MODELS.api_version, MODELS.kind):
            found.models.append(document)
        else:
            raise TargetError(f"{what} is neither a ServingEndpoint nor a Model: apply it with kubectl.")
    if not found.endpoints:
        raise TargetError("There is no ServingEndpoint in the files.")
    return found


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

    Models that exist are applied; an endpoint that exists is refused.
    """
    for body in wanted.models:
        applied = client.apply(MODELS, body, force=True, dry_run=dry_run)
        await _checking(f"model/{body['metadata']['name']}", applied)
    made = []
    for body in wanted.endpoints:
        what, place = endpoint_name(body), body["metadata"]["namespace"]
        try:
            if dry_run:
                await _check_model(client, body, wanted)
            made.append(await _checking(what, client.create(ENDPOINTS, body, dry_run=dry_run)))
        except AlreadyExists as error:
            raise TargetError(f"{what} exists already. Change it with:", "pilotage redeploy") from error
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


async def _check_model(client: Client, body: Json, wanted: Manifests) -> None:
    """Refuse what names a Model that is not there. Who may not read Models is told by the endpoint's status."""
    name, place = text(body, "spec", "model", "name"), body["metadata"]["namespace"]
    along = {(model["metadata"]["namespace"], model["metadata"]["name"]) for model in wanted.models}
    if not name or (place, name) in along:
        return
    try:
        await client.get(MODELS, ObjectKey(place, name), metadata_only=True)
    except Absent:
        raise TargetError(
            f"There is no model/{name} -n {place}. Create it first, or give a source, such as --model hf://…"
        ) from None
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
        theirs = _changed(first.get("spec", default={}), before.get("spec", default={}))
        if clash := theirs & _changed(before.get("spec", default={}), wanted["spec"]):
            raise ChangeConflict(
                f"{before.ref} was changed by another client at the same time ({', '.join(sorted(clash))}), so it was "
                "left as they want it. See:",
                f"pilotage status {quote(key.name)} -n {quote(key.namespace)}",
            )
        try:
            checked = await _checking(str(before.ref), client.replace(ENDPOINTS, wanted, dry_run=True))
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
        if isinstance(one, dict) or isinstance(other, dict):
            found |= _changed(one or {}, other or {}, f"{above}{name}.")
        elif one != other:
            found.add(f"{above}{name}")
    return found


async def scale(client: Client, key: ObjectKey, replicas: int) -> Object:
    """Set the number of replicas, in place. Returns the endpoint as it was before. Raises TargetError."""
    before = await get(client, ENDPOINTS, key)
    if before.meta.terminating:
        raise TargetError(f"{before.ref} is being deleted.")
    spec = before.get("spec", default={})
    if spec.get("autoscaling"):
        from pilotage.rollout.spec import scales_itself  # not before: who only reads needs no types of specs

        raise TargetError(f"{before.ref}: {scales_itself(spec)}")
    if spec.get("replicas") != replicas:
        patch = merge_patch({"metadata": {"uid": before.meta.uid}, "spec": {"replicas": replicas}})
        await _checking(str(before.ref), client.patch(ENDPOINTS, key, patch, subresource="scale"))
    return before


async def _checking(what: str, request: Awaitable[Object]) -> Object:
    """The answer to a write. TargetError, with each field that is wrong, where the server refuses it."""
    try:
        return await request
    except Invalid as error:
        raise TargetError(f"{what} is refused, and nothing was changed: {_causes(error)}") from error


def _causes(error: ApiError) -> str:
    found = [
        cause.message if cause.field in ("", "<nil>") else f"{cause.field}: {cause.message}" for cause in error.causes
    ]
    return "; ".join(dict.fromkeys(found)) or error.message
