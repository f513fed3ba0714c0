"""The world: what was observed of a cluster, and what could not be.

It holds objects as they were read, by uid and by name, and for each kind whether it was read at all. What was not read
is unknown, and unknown is never gone. Nothing here does I/O: `gather` fills a world from a live cluster, `dump` from
files.

Most objects are known by their metadata alone. Deciding code that needs more asks with `body` or `ask`; what is not
there yet is noted in `wanted`, and whoever drives the code answers it and calls again. A dump has no more to give: a
question to it stays open, and the code says what it could not see.
"""

import datetime as dt
import enum
from collections.abc import Container, Iterable, Iterator
from typing import NamedTuple

import msgspec

from pilotage.kube import GroupKind, Json, Object, ObjectMeta, ObjectRef, Resource
from pilotage.kube.errors import ErrorClass
from pilotage.teardown.snapshot.questions import Answer, FullObject, Question


class Name(NamedTuple):
    """Kind, namespace and name of an object, present or not; it has no uid."""

    group: str
    kind: str
    namespace: str
    name: str

    @property
    def group_kind(self) -> GroupKind:
        """Its kind."""
        return GroupKind(self.group, self.kind)

    def __str__(self) -> str:
        """Text as a person types it: ``deployment/web -n shop``."""
        place = f" -n {self.namespace}" if self.namespace else ""
        return f"{self.kind.lower()}/{self.name}{place}"


EVERY_CLUSTER_HAS = ("default", "kube-node-lease", "kube-public", "kube-system")
"""Namespaces that the API server itself creates."""


class State(enum.StrEnum):
    """State of one uid, as a read shows it."""

    PRESENT = "present"
    TERMINATING = "terminating"
    GONE = "gone"
    UNKNOWN = "unknown"
    """It could not be read. Never the same as gone."""
    FOREIGN = "foreign"
    """Another object has its name by now. The one that was meant is gone, and this one is never touched."""


class Item:
    """One object of the world. Compared by identity."""

    __slots__ = ("_body", "full", "object", "resource")

    def __init__(self, resource: Resource, obj: Object, *, full: bool) -> None:
        self.resource = resource
        self.object = obj
        self.full = full
        """Whether all of it was read, or its metadata alone."""
        self._body: Json | None = None

    @property
    def meta(self) -> ObjectMeta:
        """Its metadata."""
        return self.object.meta

    @property
    def uid(self) -> str:
        """Uid of the object. Those of a dump that lack theirs get a made-up one, which begins with ``?``."""
        return self.object.meta.uid

    @property
    def name(self) -> Name:
        """Kind, namespace and name."""
        meta = self.object.meta
        return Name(self.resource.group, self.resource.kind, meta.namespace, meta.name)

    @property
    def group_kind(self) -> GroupKind:
        """Its kind."""
        return GroupKind(self.resource.group, self.resource.kind)

    @property
    def ref(self) -> ObjectRef:
        """Kind, namespace, name and uid."""
        return self.object.ref._replace(api_version=self.resource.api_version, kind=self.resource.kind)

    @property
    def home(self) -> str:
        """The namespace that it is in, or is."""
        return self.meta.name if self.group_kind == ("", "Namespace") else self.meta.namespace

    @property
    def terminating(self) -> bool:
        """Whether its deletion has begun."""
        return self.object.meta.terminating

    @property
    def decoded(self) -> Json | None:
        """The result of `read`, if it was called before."""
        return self._body

    def read(self) -> Json:
        """All that was read of it, decoded: of a metadata-only item, the metadata. Not yours to change."""
        if self._body is None:
            self._body = self.object.to_dict()
        return self._body

    def __str__(self) -> str:
        return str(self.name)

    def __repr__(self) -> str:
        return f"<{self.name} uid={self.uid}>"


class KindReading(msgspec.Struct, frozen=True):
    """Result of reading one kind."""

    resource: Resource
    resource_version: str = ""
    """Version of the collection, when it was read."""
    problem: str = ""
    """Why it could not be read; empty where it was."""
    error_class: ErrorClass | None = None


class World:
    """A snapshot of a cluster."""

    def __init__(self, now: dt.datetime, *, live: bool, namespaces: Iterable[str] = ()) -> None:
        self.now = now
        self.live = live
        """Whether questions can be answered."""
        self.namespaces = frozenset(namespaces)
        """Those that were read; empty: all."""
        self.everywhere: set[GroupKind] = set()
        """Kinds that were read in all namespaces, whatever `namespaces` says."""
        self.kinds: dict[GroupKind, KindReading] = {}
        self.unreadable_groups: dict[str, str] = {}
        """API groups (``group/version``) that discovery could not read, with why: their kinds are not even known."""
        self.answers: dict[Question, Answer] = {}
        self.wanted: set[Question] = set()
        self._by_uid: dict[str, Item] = {}
        self._by_name: dict[Name, Item] = {}
        self._by_kind: dict[GroupKind, dict[str, Item]] = {}
        self._children: dict[str, list[Item]] | None = None

    # Filling it

    def add(self, item: Item) -> None:
        """Take an object in; a newer reading of the same uid replaces the older one."""
        old = self._by_uid.get(item.uid)
        self._by_uid[item.uid] = item
        self._by_name[item.name] = item
        self._by_kind.setdefault(item.group_kind, {})[item.uid] = item
        if old is None or old.meta.owner_references != item.meta.owner_references:
            self._children = None
        elif self._children is not None:
            for owner in item.meta.owner_references:
                siblings = self._children[owner.uid]
                siblings[siblings.index(old)] = item

    def add_all(self, resource: Resource, objects: Iterable[Object], *, full: bool) -> None:
        """Take in the objects of a list, as `add` would. One whose uid another kind has shown before is a mirror of it.

        A cluster has many of them: what is the same for all is looked up once.
        """
        group, kind = resource.group, resource.kind
        by_uid, by_name = self._by_uid, self._by_name
        of_kind = self._by_kind.setdefault(GroupKind(group, kind), {})
        for obj in objects:
            meta = obj.meta
            uid = meta.uid
            if uid in by_uid and uid not in of_kind:
                continue
            of_kind[uid] = by_uid[uid] = by_name[Name(group, kind, meta.namespace, meta.name)] = Item(
                resource, obj, full=full
            )
        self._children = None

    def read_kind(self, reading: KindReading) -> None:
        """Note how reading a kind went."""
        self.kinds[reading.resource.group_kind] = reading

    # Looking at it

    def __iter__(self) -> Iterator[Item]:
        return iter(self._by_uid.values())

    def __len__(self) -> int:
        return len(self._by_uid)

    def get(self, uid: str) -> Item | None:
        """The object with this uid, if it was seen."""
        return self._by_uid.get(uid)

    def find(self, group: str, kind: str, namespace: str, name: str) -> Item | None:
        """The object of this name, whatever its uid, if it was seen."""
        return self._by_name.get(Name(group, kind, namespace, name))

    def of(self, group: str, kind: str, namespace: str | None = None) -> list[Item]:
        """All objects of a kind that were seen, of one namespace or of all."""
        items = self._by_kind.get(GroupKind(group, kind), {}).values()
        return [item for item in items if namespace is None or item.meta.namespace == namespace]

    def by_kind(self) -> Iterator[tuple[GroupKind, list[Item]]]:
        """All objects, kind by kind."""
        current = self._by_uid
        for kind, items in self._by_kind.items():
            yield kind, [item for uid, item in items.items() if current[uid] is item]

    def children(self, uid: str) -> list[Item]:
        """Objects that name this uid as an owner."""
        if self._children is None:
            self._children = {}
            for item in self:
                for owner_uid in {owner.uid for owner in item.meta.owner_references}:
                    self._children.setdefault(owner_uid, []).append(item)
        return self._children.get(uid, [])

    def descendants(self, item: Item) -> Iterator[Item]:
        """Objects below an object, by ownership, each once."""
        seen = {item.uid}
        open_ = [item]
        while open_:
            for child in self.children(open_.pop().uid):
                if child.uid not in seen:
                    seen.add(child.uid)
                    open_.append(child)
                    yield child

    def unread(self, namespaced: Container[bool] = (True, False)) -> list[str]:
        """Kinds of these scopes and API groups that could not be read, each with why."""
        kinds = ((kind, each) for kind, each in self.kinds.items() if each.resource.namespaced in namespaced)
        found = [f"{kind}: {reading.problem}" for kind, reading in kinds if reading.problem]
        return found + [f"{group}: {why}" for group, why in self.unreadable_groups.items()]

    @property
    def has_silent_apis(self) -> bool:
        """Whether something could not be read for another reason than a missing permission."""
        classes = {reading.error_class for reading in self.kinds.values() if reading.problem}
        return bool(self.unreadable_groups) or not classes <= {ErrorClass.FORBIDDEN, None}

    def problem(self, group: str, kind: str, namespace: str = "") -> str:
        """Why the objects of a kind (in a namespace) are not known; empty where they were read."""
        reading = self.kinds.get(GroupKind(group, kind))
        if reading is None:
            for served, why in self.unreadable_groups.items():
                if served.rpartition("/")[0] == group:
                    return why
            return "it was not read" if self.live else "it is not in the dump"
        if reading.problem:
            return reading.problem
        if reading.resource.namespaced and self.namespaces and namespace and namespace not in self.namespaces:
            return "" if self._is_absent(namespace) else f"namespace {namespace} was not read"
        return ""

    def _is_absent(self, namespace: str) -> bool:
        """Whether there is no such namespace, and so nothing in it.

        All namespaces were read if those are there that every cluster has: who may not list them gets a few by name.
        """
        if self.find("", "Namespace", "", namespace) is not None:
            return False
        return all(self.find("", "Namespace", "", each) is not None for each in EVERY_CLUSTER_HAS)

    def state(self, name: Name, uid: str) -> State:
        """State of one object in this world."""
        item = self._by_uid.get(uid)
        if item is not None:
            return State.TERMINATING if item.terminating else State.PRESENT
        if self.problem(name.group, name.kind, name.namespace):
            return State.UNKNOWN
        return State.FOREIGN if name in self._by_name else State.GONE

    # Asking for more

    def body(self, item: Item) -> Json | None:
        """All of an object. None while it has not been read: then it is wanted."""
        known = item if item.full else self._by_uid.get(item.uid, item)  # it may have been read since
        if known.full:
            return known.read()
        self.ask(FullObject(item.uid))
        return None

    def ask(self, question: Question) -> Answer | None:
        """The answer, if there is one by now; else None, and the question is noted where it can be answered."""
        answer = self.answers.get(question)
        if answer is None and self.live:
            self.wanted.add(question)
        return answer
