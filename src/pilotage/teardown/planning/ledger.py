"""The ledger: what a teardown takes, and in which order, written down before anything is done.

It is a value that can be saved and read back: a teardown that was cut off goes on from it.
"""

import datetime as dt
import enum
from collections.abc import Collection, Container, Iterable, Mapping

import msgspec

from pilotage.api.names import CACHE_SUFFIX, MODELS, TEARDOWN_FINALIZER
from pilotage.catalogue.kind import Keep
from pilotage.catalogue.names import VOLUME_CLAIM
from pilotage.catalogue.phase import Phase
from pilotage.catalogue.registry import known
from pilotage.kube import GroupKind, ObjectKey, ObjectRef, Resource
from pilotage.kube.wire import parse_time
from pilotage.teardown.planning.order import break_cycles, needed_by
from pilotage.teardown.snapshot.world import Name

_MODEL = MODELS.group_kind


class Policy(msgspec.Struct, frozen=True, rename="camel"):
    """All durations are in seconds."""

    keep: frozenset[Keep] = frozenset()
    keep_uids: frozenset[str] = frozenset()
    """Objects that stay, whatever else is said."""
    drain_seconds: float = 0.0
    """Time for requests in flight, after the routes are gone and before the workloads stop."""
    detach_seconds: float = 5.0
    """Time for a router that cannot prove what its proxies do to remove a route."""
    timeout_seconds: float = 600.0
    """Duration after which a teardown ends, says what it waits for, and can be resumed."""
    stalled_seconds: float = 10.0
    """Duration without a reason after which a foreground deletion, or the collector, is prompted again."""

    def keeps(self, kind: GroupKind, name: str, uid: str) -> bool:
        """Whether this object stays."""
        is_cache = kind == _MODEL or (kind == VOLUME_CLAIM and name.endswith(CACHE_SUFFIX))
        return uid in self.keep_uids or known(kind).keep in self.keep or (is_cache and Keep.CACHES in self.keep)


def kept_by_spec(words: Iterable[str]) -> frozenset[Keep]:
    """The families that ``spec.deletion.keep`` of an endpoint names."""
    families = {"Volumes": Keep.VOLUMES, "ModelCache": Keep.CACHES, "Secrets": Keep.SECRETS}
    return frozenset(families[word] for word in words if word in families)


HOLD = TEARDOWN_FINALIZER
"""Our finalizer on an owner whose parts go in order. Its parts go first, then this, then the owner."""
UNDER_WAY_SECONDS = 900
"""A teardown may be under way for so long, which is more than the time it is given by default."""


class Disposition(enum.StrEnum):
    """The actor that deletes an object."""

    DELETE = "delete"
    """We delete it."""
    COLLECT = "collect"
    """The garbage collector takes it with its owner; we see to it that it does."""
    KEEP = "keep"
    """It stays."""


class Entry(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One object of a ledger."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    phase: Phase
    disposition: Disposition
    reason: str
    """Reason why it is here: ``named``, ``owned by deployment/web``, ``kept: policy``."""
    owner: str = ""
    """The uid of the entry that takes it along (`COLLECT`), or whose parts it belongs to."""
    after: tuple[str, ...] = ()
    """The uids that have to be gone, with all they own, before this one is deleted."""
    last: bool = False
    """It goes when nothing of the ledger runs in its namespace any more: nobody knows who uses it."""
    disown: tuple[str, ...] = ()
    """Uids of those owners of a kept object that are deleted."""
    hold: bool = False
    """Its parts go one by one: our finalizer keeps it until they have gone."""
    finalizer_owner: str = ""
    """The controller that removes its finalizers, as far as is known."""
    settle_seconds: float = 0.0
    """Seconds after its removal in which it may still have effects: routes that proxies still have."""
    unverified: str = ""
    """Why its removal cannot be proven in full, for the receipt."""
    abandoned: tuple[str, ...] = ()
    """Finalizers whose owners were not seen to run, where we were asked to do their work: they are not waited for."""

    @property
    def key(self) -> ObjectKey:
        """Kind, namespace and name."""
        return ObjectKey(self.namespace, self.name)

    @property
    def full_name(self) -> Name:
        """Its kind, namespace and name."""
        return Name(self.resource.group, self.resource.kind, self.namespace, self.name)

    @property
    def group_kind(self) -> GroupKind:
        """Its kind."""
        return self.resource.group_kind

    @property
    def ref(self) -> ObjectRef:
        """Reference to the object, with its uid."""
        return ObjectRef(self.resource.api_version, self.resource.kind, self.namespace, self.name, self.uid)

    @property
    def reference(self) -> dict[str, str]:
        """Reference to the object, as scripts read it."""
        return {
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
        }

    def __str__(self) -> str:
        return str(self.full_name)


class Pointer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A reference from an object that stays to one that is deleted."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    text: str
    """Text of the relation for a person: who points at what."""


class Ledger(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """All objects of one teardown."""

    targets: tuple[str, ...]
    """The targets, as a person reads them."""
    adopt: bool = False
    """Whether what refers to it and to nothing else goes along."""
    started: str
    """RFC 3339."""
    policy: Policy
    entries: tuple[Entry, ...]
    cycles: tuple[tuple[str, ...], ...] = ()
    """Uids that wait for each other in a circle: these go together."""
    remarks: tuple[str, ...] = ()
    """Remarks for the reader of the plan."""
    pointers: tuple[Pointer, ...] = ()
    """Objects that stay and will point at nothing."""
    unread: tuple[str, ...] = ()
    """The kinds that were to be searched and could not be read: what of them was meant is unknown, and not gone."""

    def by_uid(self) -> dict[str, Entry]:
        """The entries, by uid."""
        return {entry.uid: entry for entry in self.entries}

    @property
    def going(self) -> tuple[Entry, ...]:
        """All that goes."""
        return tuple(entry for entry in self.entries if entry.disposition != Disposition.KEEP)

    @property
    def kept(self) -> tuple[Entry, ...]:
        """All that stays."""
        return tuple(entry for entry in self.entries if entry.disposition == Disposition.KEEP)


class LedgerIndex:
    """Index of a ledger for decisions: the parts of each entry, and until when things may take."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.entries = ledger.by_uid()
        self.labels = {entry.uid: str(entry) for entry in ledger.entries}
        """Each entry as a person reads it."""
        self.started = parse_time(ledger.started)
        self.until = self.started + dt.timedelta(seconds=ledger.policy.timeout_seconds)
        self.stalled = dt.timedelta(seconds=ledger.policy.stalled_seconds)
        self.parts: dict[str, list[Entry]] = {}
        self.keepsakes: dict[str, list[Entry]] = {}
        """Kept entries, by the uids of the entries that would take them along."""
        for entry in ledger.entries:
            if entry.owner:
                self.parts.setdefault(entry.owner, []).append(entry)
            for uid in entry.disown:
                self._remember(entry, uid)

    def _remember(self, kept: Entry, owner: str) -> None:
        """An owner that is carried along takes it, too, when its carrier goes."""
        while owner in self.entries and kept not in self.keepsakes.setdefault(owner, []):
            self.keepsakes[owner].append(kept)
            above = self.entries[owner]
            owner = above.owner if above.disposition is Disposition.COLLECT else ""


def extend(ledger: Ledger, found: Iterable[Entry], later: Collection[str] = ()) -> Ledger:
    """The ledger with more entries. `later`: the uids that have to wait for them, too."""
    more = tuple(found)
    uids = tuple(entry.uid for entry in more)
    entries = (
        msgspec.structs.replace(entry, after=(*entry.after, *uids)) if entry.uid in later else entry
        for entry in ledger.entries
    )
    return msgspec.structs.replace(ledger, entries=(*entries, *more))


def merge(saved: Ledger, planned: Ledger) -> Ledger:
    """The saved ledger of a teardown that was cut off, with what a new plan of the same has found since.

    Nothing that stands in the saved one is lost, whether the new plan has seen it or not. What is new comes in with its
    order, and what is known waits for the new as planned. The time that the policy gives begins anew.
    """
    known = saved.by_uid()
    again = planned.by_uid()
    owners = {entry.uid: entry.owner for entry in saved.entries if entry.owner}
    entries = []
    for entry in saved.entries:
        new = again.get(entry.uid)
        if new is not None and entry.disposition is not Disposition.KEEP and new.disposition is not Disposition.KEEP:
            entry = _with_news(entry, new, known, owners)
        entries.append(entry)
    one_by_one = {entry.owner for entry in saved.entries if entry.disposition is Disposition.DELETE}
    for entry in planned.entries:
        if entry.uid not in known:
            ours = entry.disposition is Disposition.COLLECT and entry.owner in one_by_one
            disposition = Disposition.DELETE if ours else entry.disposition
            entries.append(msgspec.structs.replace(entry, disposition=disposition))
    entries, cycles = _in_order(entries)
    going = {entry.uid for entry in entries if entry.disposition is not Disposition.KEEP}
    pointers = {pointer.uid: pointer for pointer in (*planned.pointers, *saved.pointers) if pointer.uid not in going}
    return msgspec.structs.replace(
        saved,
        started=planned.started,
        entries=tuple(entries),
        cycles=tuple({frozenset(each): each for each in (*cycles, *planned.cycles, *saved.cycles)}.values()),
        remarks=tuple(dict.fromkeys((*saved.remarks, *planned.remarks))),
        pointers=tuple(pointers.values()),
    )


def _with_news(entry: Entry, new: Entry, known: Container[str], owners: dict[str, str]) -> Entry:
    """An entry, with what a new plan says about the same object. `owners`: who is whose part, so far."""
    if not entry.owner and new.owner and entry.uid not in _upwards(new.owner, owners):
        owners[entry.uid] = new.owner
    return msgspec.structs.replace(
        entry,
        after=(*entry.after, *(uid for uid in new.after if uid not in known)),
        disposition=Disposition.DELETE if new.disposition is Disposition.DELETE else entry.disposition,
        owner=owners.get(entry.uid, ""),
        hold=entry.hold or new.hold,
        abandoned=new.abandoned,
    )


def _upwards(uid: str, owners: Mapping[str, str]) -> set[str]:
    """An object and all above it."""
    found: set[str] = set()
    while uid and uid not in found:
        found.add(uid)
        uid = owners.get(uid, "")
    return found


def _in_order(entries: list[Entry]) -> tuple[list[Entry], list[tuple[str, ...]]]:
    """Two plans may each have broken a circle elsewhere, or have seen other parts: together nothing may wait for
    itself. Returns the circles, too.
    """
    after = {entry.uid: set(entry.after) for entry in entries}
    for waited in after.values():
        waited &= after.keys()
    owners = {entry.uid: entry.owner for entry in entries if entry.owner}
    cycles = break_cycles(after, owners)
    going = (entry for entry in entries if entry.disposition is not Disposition.KEEP)
    needed = needed_by(after, owners, (entry.uid for entry in going if entry.phase <= Phase.STOP))
    ordered = [
        msgspec.structs.replace(
            entry,
            after=tuple(uid for uid in entry.after if uid in after[entry.uid]),
            last=entry.last and entry.uid not in needed,
        )
        for entry in entries
    ]
    return ordered, cycles
