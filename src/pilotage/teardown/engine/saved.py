"""A ledger that comes from a file: what it says about each object is checked before anything rests on it.

A receipt lies on somebody's disk, is sent around and edited. It is no signature: whoever can write it can let it name
other objects. What must not be is that it names one object and means another, so that a person agrees to something else
than what is done. So an entry has to be what the server says that its uid is; what only the server can know (under
which path a kind is served) is taken from there.
"""

import re
from collections.abc import Iterable

import msgspec

from pilotage.kube import Resource
from pilotage.kube.wire import parse_time
from pilotage.teardown.planning.ledger import Entry, Ledger
from pilotage.teardown.snapshot.world import World

SECONDS_MAX = 1e9
"""No pause of a teardown is longer, and none that is longer can be added to a time."""
_GROUP = re.compile(r"([a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*)?")
_VERSION = re.compile(r"[a-z0-9]{1,63}")
_PLURAL = re.compile(r"[a-z0-9]([a-z0-9-]{0,251}[a-z0-9])?")
_UID = re.compile(r"[A-Za-z0-9._-]{1,128}")


class LedgerRefused(Exception):
    """A ledger that cannot be believed; the message says what is wrong with it."""


def check_saved(ledger: Ledger) -> None:
    """LedgerRefused where a ledger contradicts itself, or has names in it that are none."""
    seen: set[str] = set()
    for entry in ledger.entries:
        if not _UID.fullmatch(entry.uid):
            raise LedgerRefused(f"{entry} has no uid")
        if entry.uid in seen:
            raise LedgerRefused(f"the uid {entry.uid} is in it twice, the second time as {entry}")
        seen.add(entry.uid)
        _check_name(entry)
    for entry in ledger.entries:
        for uid in (*entry.after, *([entry.owner] if entry.owner else [])):
            if uid not in seen:
                raise LedgerRefused(f"{entry} waits for, or belongs to, the uid {uid!r}, which is not in it")
    going = {entry.uid for entry in ledger.going}
    for entry in ledger.kept:
        if not going.issuperset(entry.disown):
            raise LedgerRefused(f"{entry} is to lose an owner that does not go")
    _check_times(ledger)
    resources = [each.resource for each in ledger.entries] + [each.resource for each in ledger.pointers]
    for resource in resources:
        if not (
            _GROUP.fullmatch(resource.group)
            and _VERSION.fullmatch(resource.version)
            and _PLURAL.fullmatch(resource.plural)
        ):
            raise LedgerRefused(f"{str(resource)!r} is no kind")


def as_served(ledger: Ledger, served: Iterable[Resource]) -> Ledger:
    """The ledger, with each kind as it is served here. LedgerRefused where it says something else of one."""
    by_kind: dict[tuple[str, str], Resource] = {}
    by_plural: dict[tuple[str, str], Resource] = {}
    for resource in served:  # the preferred version comes first
        by_kind.setdefault((resource.group, resource.kind), resource)
        by_plural.setdefault((resource.group, resource.plural), resource)
    entries = tuple(
        msgspec.structs.replace(each, resource=_as_served(each.resource, by_kind, by_plural)) for each in ledger.entries
    )
    pointers = tuple(
        msgspec.structs.replace(each, resource=_as_served(each.resource, by_kind, by_plural))
        for each in ledger.pointers
    )
    return msgspec.structs.replace(ledger, entries=entries, pointers=pointers)


def check_seen(ledger: Ledger, world: World) -> None:
    """LedgerRefused where an object that is there is another one than its entry says."""
    for entry in ledger.entries:
        item = world.get(entry.uid)
        if item is not None and item.name != entry.full_name:
            raise LedgerRefused(f"it says {entry} for the uid {entry.uid}, which is that of {item}")


def _check_name(entry: Entry) -> None:
    for part in (entry.name, *([entry.namespace] if entry.namespace else [])):
        if not part or part in (".", "..") or re.search(r"[/%\x00-\x20\x7f]", part):
            raise LedgerRefused(f"{part!r} is no name of an object")
    if entry.resource.namespaced != bool(entry.namespace):
        raise LedgerRefused(f"{entry} {'has no' if entry.resource.namespaced else 'has a'} namespace")


def _check_times(ledger: Ledger) -> None:
    policy = ledger.policy
    times = [policy.drain_seconds, policy.detach_seconds, policy.timeout_seconds, policy.stalled_seconds]
    times += (entry.settle_seconds for entry in ledger.entries)
    if not all(0 <= each <= SECONDS_MAX for each in times):
        raise LedgerRefused(f"it has a pause that is not between 0 and {SECONDS_MAX:.0f} s")
    try:
        parse_time(ledger.started)
    except ValueError:
        raise LedgerRefused(f"{ledger.started!r} is no time") from None


def _as_served(
    resource: Resource, by_kind: dict[tuple[str, str], Resource], by_plural: dict[tuple[str, str], Resource]
) -> Resource:
    found = by_kind.get((resource.group, resource.kind)) or by_plural.get((resource.group, resource.plural))
    if found is None:
        return resource  # not served any more, or not now
    if msgspec.structs.replace(resource, version=found.version) != found:
        raise LedgerRefused(
            f"it says that a {resource.kind} is one of {resource}, which here is {found.kind} of {found}"
        )
    return found
