"""Context of a family of causes: the world, its graph, the causes of other objects, and the owners of finalizers.

One context serves one explanation. It remembers what was already explained, notices when a chain comes back to itself,
and bounds how deep and how wide a chain gets, so that an explanation ends on any world.
"""

import datetime as dt
from collections.abc import Callable, Iterable, Iterator

from pilotage.kube import Json
from pilotage.teardown.diagnosis.finalizer_owners import FinalizerOwner, FinalizerOwners
from pilotage.teardown.diagnosis.remedies import delete_together
from pilotage.teardown.diagnosis.why.codes import CauseCode
from pilotage.teardown.diagnosis.why.model import Confidence, StuckCause, roots_of
from pilotage.teardown.snapshot.fields import moment, seconds_since
from pilotage.teardown.snapshot.graph import Edges
from pilotage.teardown.snapshot.questions import FullObject
from pilotage.teardown.snapshot.world import Item, World

PATIENCE_SECONDS = 300
"""Time that a running controller may take before it is called silent."""
COLLECTOR_SECONDS = 30
"""Time that the garbage collector and the namespace controller may take: they resync within it."""
GRACE_SECONDS_MAX = 10**7
"""A bound for arithmetic with what a dump may claim."""
DEPTH_MAX = 24
SAMPLES_MAX = 20
ROOTS_AGAIN_MAX = 8


class CauseGroup:
    """Objects that are alike: of one kind, in one state, with the same finalizers. One is explained for all."""

    __slots__ = ("count", "example")

    def __init__(self, example: Item) -> None:
        self.example = example
        self.count = 1

    @property
    def others(self) -> str:
        """``(and 12 more like it)``, or nothing."""
        return f" (and {self.count - 1} more like it)" if self.count > 1 else ""


class WhyContext:
    """Context of one explanation."""

    def __init__(
        self, world: World, graph: Edges, families: Iterable[Callable[["WhyContext", Item], Iterator[StuckCause]]]
    ) -> None:
        self.world = world
        self.graph = graph
        self._families = tuple(families)
        self._finalizer_owners = FinalizerOwners(world)
        self._known: dict[str, tuple[StuckCause, ...]] = {}
        self._open: list[Item] = []
        self._claimed: set[tuple[str, str]] = set()
        self._unread: dict[str, None] = {}

    @property
    def now(self) -> dt.datetime:
        """Time at which the world was observed."""
        return self.world.now

    def asked_about(self, item: Item) -> bool:
        """Whether this is the object that a person asked about, and not one further down the chain."""
        return bool(self._open) and self._open[0].uid == item.uid

    # Looking further

    def causes_of(self, item: Item) -> tuple[StuckCause, ...]:
        """Why another object does not go (or would not): what all families say. A circle is a cause of its own.

        Asked again about the same object it gives the roots alone: what leads there is told once, and an explanation
        of objects that share what they wait for does not grow without bounds.
        """
        if item.uid in self._known:
            return roots_of(self._known[item.uid])[:ROOTS_AGAIN_MAX]
        if any(each.uid == item.uid for each in self._open):
            return (self._cycle(item),)
        if len(self._open) >= DEPTH_MAX:
            text = f"the chain continues: see `pilotage why {item}`"
            return (StuckCause(CauseCode.TOO_DEEP, item, text, confidence=Confidence.LOW),)
        self._open.append(item)
        try:
            found = tuple(cause for family in self._families for cause in family(self, item))
        finally:
            self._open.pop()
        self._known[item.uid] = found
        return found

    def finalizer_owner(self, item: Item, finalizer: str) -> FinalizerOwner:
        """The owner of this finalizer of this object."""
        return self._finalizer_owners.of(item, finalizer)

    def groups(self, items: Iterable[Item]) -> list[CauseGroup]:
        """The objects, alike ones together: at most so many groups that a person can read them."""
        found: dict[tuple[object, ...], CauseGroup] = {}
        for item in items:
            alike = (item.group_kind, item.terminating, item.meta.finalizers)
            group = found.get(alike)
            if group is not None:
                group.count += 1
            elif len(found) < SAMPLES_MAX:
                found[alike] = CauseGroup(item)
        return list(found.values())

    # What a family says besides its causes

    def claim(self, item: Item, finalizer: str) -> None:
        """This finalizer of this object is explained: nobody else need speak for it."""
        self._claimed.add((item.uid, finalizer))

    def claimed(self, item: Item, finalizer: str) -> bool:
        """Whether a family has spoken for it."""
        return (item.uid, finalizer) in self._claimed

    def unread(self, what: str) -> None:
        """Note what could not be read and might matter: ``jobs.batch: forbidden``."""
        self._unread[what] = None

    @property
    def all_unread(self) -> tuple[str, ...]:
        """Kinds and objects that could not be read, each once."""
        return tuple(self._unread)

    # Reading

    def body(self, item: Item) -> Json | None:
        """All of an object; None where it is not there (yet). What can never be had is noted as unread."""
        body = self.world.body(item)
        if body is None:
            answer = self.world.answers.get(FullObject(item.uid))
            if answer is not None and answer.message:
                self.unread(f"{item}: {answer.message}")
            elif not self.world.live:
                self.unread(f"{item}: only its metadata is in the dump")
        return body

    def deleted_seconds_ago(self, item: Item) -> float:
        """Seconds since its delete was requested. A pod's deletionTimestamp is when its grace ends."""
        return max(0.0, seconds_since(self.now, self.deleted_at(item)) or 0.0)

    def deleted_at(self, item: Item) -> dt.datetime | None:
        """Time of its deletion request; None if there was none, or the time cannot be read."""
        ends = moment(item.meta.deletion_timestamp)
        if ends is None:
            return None
        grace = min(max(item.meta.deletion_grace_period_seconds, 0), GRACE_SECONDS_MAX)
        return ends - dt.timedelta(seconds=grace)

    def _cycle(self, item: Item) -> StuckCause:
        start = next(place for place, each in enumerate(self._open) if each.uid == item.uid)
        circle = self._open[start:]
        text = "waits for itself: " + " → ".join(str(each) for each in (*circle, item))
        return StuckCause(CauseCode.CYCLE, item, text, remedies=(delete_together(circle),))
