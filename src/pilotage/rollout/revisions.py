"""Revisions of an endpoint on record: the newest, the one that serves, and the one to go back to. Pure."""

from collections.abc import Iterable
from shlex import quote

from pilotage.api.endpoint import REVISION_FIELDS
from pilotage.api.endpoint_status import PastRevision, StoredEndpoint
from pilotage.kube import Json
from pilotage.teardown.planning.arguments import TargetError

_NOT_WANTED = ("Abandoned", "Aborted", "Resting", "Variant")
"""States of revisions that the spec does not ask for, however new they are."""


def newest_revision(endpoint: StoredEndpoint) -> PastRevision | None:
    """The revision that is wanted, whether it serves or not: that of a rollout under way, else the newest."""
    state = endpoint.status.rollout
    if state is not None and state.phase not in ("Aborting", "Aborted", "Promoted"):
        found = revision_named(endpoint, state.revision)
        if found is not None:
            return found
    kept = [each for each in endpoint.status.history if each.state not in _NOT_WANTED]
    return max(kept, key=lambda each: each.number, default=None)


def revision_named(endpoint: StoredEndpoint, name: str) -> PastRevision | None:
    """The revision on record with that name, if there is one."""
    named = (each for each in endpoint.status.history if f"{endpoint.metadata.name}-{each.number}" == name)
    return next(named, None)


def retriable_revision(endpoint: StoredEndpoint) -> PastRevision | None:
    """The newest revision whose rollout was aborted, if the spec still asks for what it was made of."""
    aborted = [each for each in endpoint.status.history if each.state == "Aborted" and _is_so(endpoint.spec, each.spec)]
    return max(aborted, key=lambda each: each.number, default=None)


def serving_revision(endpoint: StoredEndpoint) -> int | None:
    """The number of the revision that serves; where none does, of the newest."""
    name = endpoint.status.revision or ""
    number = name.removeprefix(f"{endpoint.metadata.name}-")
    if number != name and number.isdigit():
        return int(number)
    newest = newest_revision(endpoint)
    return newest.number if newest else None


def revision_to_restore(endpoint: StoredEndpoint, number: int | None) -> PastRevision:
    """The revision that is meant. Without a number: the newest that served and was made of something else.

    TargetError where there is none.
    """
    history = sorted(endpoint.status.history, key=lambda each: each.number, reverse=True)
    name = endpoint.metadata.name
    if number is not None:
        found = next((each for each in history if each.number == number), None)
        known = ", ".join(str(each.number) for each in reversed(history)) or "none"
        problem, command = f"{name} has no revision {number} on record. There is: {known}.", ""
    else:
        served = (each for each in history if each.state in ("Current", "Previous", "Resting"))
        found = next((each for each in served if not _is_so(endpoint.spec, each.spec)), None)
        problem = f"{name} has no earlier revision to go back to. See:"
        command = f"pilotage history {quote(name)} -n {quote(endpoint.metadata.namespace)}"
    if found is None:
        raise TargetError(problem, command)
    return found


def returns(endpoint: StoredEndpoint, number: int | None) -> str:
    """A return to a revision that still runs, in words after the endpoint's name; empty for any other."""
    target = revision_to_restore(endpoint, number)
    name = f"{endpoint.metadata.name}-{target.number}"
    if target.state == "Resting":
        return f"returns to {name}, which still runs, without steps: {rest_words(endpoint, target)}"
    return f"goes back to {name}, which serves" if name == endpoint.status.revision else ""


def rest_words(endpoint: StoredEndpoint, past: PastRevision) -> str:
    """The time that a return to a resting revision takes, in words."""
    total = endpoint.status.replicas.desired
    if past.replicas is None or past.replicas >= total:
        return "all requests go back in about a second"
    return f"it has kept {past.replicas} of {total} replicas, and the others start first"


def differing(spec: Json, old: Json, names: Iterable[str]) -> list[str]:
    """Those of the top-level fields in which two specs ask for something else."""
    return [name for name in names if _essence(spec.get(name)) != _essence(old.get(name))]


def _is_so(spec: Json, old: Json) -> bool:
    """Whether the spec asks for what a revision was made of."""
    return not differing(spec, old, REVISION_FIELDS)


def _essence(value: object) -> object:
    """Spec without what is empty or 0, as defaults are, and with quantities as text: 1 and "1" are the same limit."""
    if isinstance(value, dict):
        kept = {name: _essence(each) for name, each in value.items()}
        return {name: each for name, each in kept.items() if each} or None
    if isinstance(value, list):
        return [_essence(each) for each in value] or None
    return str(value) if value and isinstance(value, int) else value or None


def restored(spec: Json, old: Json) -> Json:
    """The spec with the fields that make a revision as they were in the old one."""
    kept = {field: value for field, value in spec.items() if field not in REVISION_FIELDS}
    return kept | {field: old[field] for field in REVISION_FIELDS if field in old}
