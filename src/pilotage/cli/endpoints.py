"""Endpoints that a person named: read, with a hint where there is none, and changed after a dry run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, ParamSpec, TypeVar

from pilotage.cli.errors import BadTarget

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pilotage.kube import ApiError, Client, Json, Object, ObjectKey, Resource

P = ParamSpec("P")
R = TypeVar("R")

CHANGE_TRIES_MAX = 5


class EndpointChange(NamedTuple):
    """An endpoint before a change and after it: the same one where nothing had to change."""

    before: Object
    after: Object

    @property
    def anything(self) -> bool:
        """Whether what is wanted has changed."""
        return self.before.meta.generation != self.after.meta.generation


async def get(client: Client, resource: Resource, key: ObjectKey) -> Object:
    """One object that a person named. BadTarget, with what has a similar name, where there is none."""
    from pilotage.kube import Absent
    from pilotage.teardown.planning.arguments import missing_name
    from pilotage.teardown.snapshot.world import Name

    try:
        return await client.get(resource, key)
    except Absent:
        listed = await client.list(resource, key.namespace, metadata_only=True)
        name = Name(resource.group, resource.kind, key.namespace, key.name)
        raise BadTarget(missing_name(name, [obj.meta.name for obj in listed.items])) from None


async def change(client: Client, key: ObjectKey, alter: Callable[[Object], Json]) -> EndpointChange:
    """Write what `alter` makes of an endpoint, after the server has checked it: it is asked to try, first.

    Who changes it meanwhile is not overwritten: what they wrote is read, and altered again. Raises BadTarget.
    """
    from pilotage.api.names import ENDPOINTS
    from pilotage.kube import Conflict

    for tries_left in reversed(range(CHANGE_TRIES_MAX)):
        before = await get(client, ENDPOINTS, key)
        if before.meta.terminating:
            raise BadTarget(f"{before.ref} is being deleted, which cannot be undone. Deploy it again when it is gone.")
        wanted = alter(before)
        try:
            checked = await checking(str(before.ref), client.replace(ENDPOINTS, wanted, dry_run=True))
            if checked.meta.generation == before.meta.generation:
                return EndpointChange(before, before)
            return EndpointChange(before, await client.replace(ENDPOINTS, wanted))
        except Conflict:
            if not tries_left:
                raise
    raise AssertionError("the last try returns or raises")


async def checking(what: str, request: Awaitable[Object]) -> Object:
    """The answer to a dry run. BadTarget, with each field that is wrong, where the server refuses it."""
    from pilotage.kube import Invalid

    try:
        return await request
    except Invalid as error:
        raise BadTarget(f"{what} is refused, and nothing was changed: {_causes(error)}") from error


def _causes(error: ApiError) -> str:
    found = [
        cause.message if cause.field in ("", "<nil>") else f"{cause.field}: {cause.message}" for cause in error.causes
    ]
    return "; ".join(dict.fromkeys(found)) or error.message
