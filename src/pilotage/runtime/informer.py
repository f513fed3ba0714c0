"""A cache of one kind that follows the API server: list once, then watch; list again only when the server says so.

Promises
- Handlers see every object that was there long enough to be listed or watched, and its deletion too, even when it
  happened while the connection was down: what a new list lacks is reported as deleted, with its last known state.
- An object that was deleted and created again under its name is reported as deleted, then added: never as an update.
- A handler never sees an object go back to an older version (unless the server itself does, to a backup), and is not
  called when nothing changed.
- What was just written through `observe` is visible at once (read your writes), and its own event is not news later.
  A change by others that came before it, and whose event comes after it, still is.
- Handlers are plain functions, called in order on the loop; one that raises is logged and the others still run.
- An optional kind may not be served at all: then the cache is synced, empty and `absent`, and looks again from time to
  time. That is not a proof that its objects are gone.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterable
from typing import NamedTuple

from pilotage.kube import ApiError, Client, Expired, KindNotServed, Object, ObjectKey, ObjectList, Resource, WatchEvent
from pilotage.kube.reading import CHUNK
from pilotage.kube.selectors import LabelSelector
from pilotage.kube.watch import IDLE_SECONDS_MAX
from pilotage.runtime.backoff import Backoff
from pilotage.runtime.clock import monotonic
from pilotage.runtime.lazy_logger import LazyLogger
from pilotage.runtime.store import Indexer, Store

_log = LazyLogger(__name__)

WATCH_SECONDS_MIN = 300
WATCH_SECONDS_SHORT = 5.0
RETRY_SECONDS = (0.8, 30.0)
ABSENT_SECONDS = (0.8, 15.0)
"""Same for a kind that is not served; with jitter, it is found within 30 s."""


class Change(NamedTuple):
    """Change that a handler is told: added (no old), changed (both), deleted (no new).

    `initial`: from the first list. `gap`: events may have been missed since a write of the handler's own; look again.
    """

    old: Object | None
    new: Object | None
    initial: bool = False
    gap: bool = False

    @property
    def object(self) -> Object:
        """The newest state known."""
        obj = self.new or self.old
        assert obj is not None
        return obj


Handler = Callable[[Change], None]


class Informer:
    """One kind, in one namespace or all, narrowed by selectors. Run it once, as a task; read `store` at any time."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        *,
        rng: random.Random,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        metadata_only: bool = False,
        optional: bool = False,
        idle_seconds_max: float = IDLE_SECONDS_MAX,
    ) -> None:
        self.resource = resource
        self.optional = optional
        self.absent = False
        self.store = Store()
        self.synced = asyncio.Event()
        self.problem: ApiError | None = None
        self._client = client
        self._rng = rng
        self._namespace = namespace
        self._labels = labels
        self._fields = fields
        self._selector: LabelSelector | None = None
        self.metadata_only = metadata_only
        self._idle_seconds_max = idle_seconds_max
        self._handlers: list[Handler] = []
        self._version = ""
        self._must_list = True
        # Answers that `observe` took in and whose events have not come yet: by key and version, with who wrote.
        self._ahead: dict[ObjectKey, dict[str, Handler | None]] = {}

    @property
    def resource_version(self) -> str:
        """The newest version of the collection that the cache reflects."""
        return self._version

    def add_index(self, name: str, indexer: Indexer) -> None:
        """Index the store, before it is filled."""
        self.store.add_index(name, indexer)

    def add_handler(self, handler: Handler) -> None:
        """Tell the handler of every change from now on; of what is already there, at once, as initial adds."""
        self._handlers.append(handler)
        for obj in self.store.list():
            self._call(handler, Change(None, obj, initial=True))

    def observe(self, obj: Object, *, writer: Handler | None = None) -> None:
        """Take in the answer to a write of ours before its event comes. All handlers but the writer's own are told.

        Only what is newer than everything seen so far is taken: else the cache has it, or has seen it deleted, already.
        """
        if not self._can_hold(obj) or not _newer(obj.meta.resource_version, self._version):
            return
        key = obj.key
        old = self.store.get(key)
        if old is None and (self._fields or not self._selects(obj)):
            return  # whether a field selector matches it is the server's to say
        if old is None or (
            old.meta.uid == obj.meta.uid and _newer(obj.meta.resource_version, old.meta.resource_version)
        ):
            self._ahead.setdefault(key, {})[obj.meta.resource_version] = writer
            self.store.put(obj)
            self._tell(Change(old, obj), quiet=writer)

    def _selects(self, obj: Object) -> bool:
        """Whether the label selector matches it."""
        if not self._labels:
            return True
        if self._selector is None:
            self._selector = LabelSelector.parse(self._labels)
        return self._selector.matches(obj.meta.labels)

    def seed(self, objects: Iterable[Object], version: str) -> None:
        """Begin with a list that was just read, instead of with a list of one's own: `objects` at `version`.

        To be called before `run`. What has happened since comes by the watch; a version that is too old is listed.
        """
        for obj in objects:
            self.store.put(obj)
        self._version = version
        self._must_list = False
        self.synced.set()

    async def run(self) -> None:
        """Follow the server until cancelled. Errors are logged and retried with backoff; none of them ends it."""
        backoff, until_served = Backoff(*RETRY_SECONDS, self._rng), Backoff(*ABSENT_SECONDS, self._rng)
        while True:
            before, started = self._version, monotonic()
            try:
                await self._follow()
            except Expired as error:
                _log.info("list again", resource=str(self.resource), why=error.message)
                self._must_list = True
            except ApiError as error:
                if self.optional and isinstance(error, KindNotServed):
                    if not self.absent:
                        until_served.reset()
                    self._is_absent()
                    await asyncio.sleep(until_served.next())
                    continue
                self.problem = error
                _log.warning("watch interrupted", resource=str(self.resource), error=str(error))
            # A connection that brought something, or lasted, is taken up again at once; else there is a pause.
            if self._version != before or monotonic() - started > WATCH_SECONDS_SHORT:
                backoff.reset()
            else:
                await asyncio.sleep(backoff.next())

    async def _follow(self) -> None:
        if self._must_list:
            await self._list()
            self.problem = None
            if self.absent:
                self.absent = False
                _log.info("the kind is served now", resource=str(self.resource))
        await self._watch()

    def _is_absent(self) -> None:
        """Treat the kind as if a list had come back empty."""
        if not self.absent:
            _log.info("the kind is not served", resource=str(self.resource))
        self.absent, self.problem = True, None
        self._replace("", set(), [])
        self._must_list = True

    async def _list(self) -> None:
        """Read everything and report the differences. Unchanged objects are not kept twice."""
        chunked = True
        while True:
            seen: set[ObjectKey] = set()
            fresh: list[Object] = []
            page = ObjectList("", [])
            try:
                async for page in self._pages(CHUNK if chunked else 0):
                    for obj in page.items:
                        key = obj.key
                        seen.add(key)
                        old = self.store.get(key)
                        if old is None or old.meta.resource_version != obj.meta.resource_version:
                            fresh.append(obj)
                break
            except Expired:
                if not chunked:
                    raise
                chunked = False  # compacted between two chunks: all at once cannot be
        self._replace(page.resource_version, seen, fresh)

    def _pages(self, chunk: int) -> AsyncIterator[ObjectList]:
        return self._client.pages(
            self.resource,
            self._namespace,
            labels=self._labels,
            fields=self._fields,
            metadata_only=self.metadata_only,
            chunk=chunk,
        )

    def _replace(self, version: str, seen: set[ObjectKey], fresh: list[Object]) -> None:
        initial = not self.synced.is_set()
        ahead, self._ahead = self._ahead, {}
        for key, old in self.store.items():
            # What we wrote while the list was on its way is not in it because it is newer.
            if key not in seen and not (key in ahead and _newer(old.meta.resource_version, version)):
                self._delete(key)
        for obj in fresh:
            self._put(obj, initial=initial, unless_newer=obj.key in ahead)
        self._version = version
        self._must_list = False
        self.synced.set()
        for key, writes in ahead.items():
            self._say_again(key, writes)

    def _say_again(self, key: ObjectKey, writes: dict[str, Handler | None]) -> None:
        """Requeue keys whose writes are ahead of events that will never come: others may have written, too."""
        obj = self.store.get(key)
        for writer in {*writes.values()}:
            if obj is not None and writer is not None:
                self._call(writer, Change(obj, obj, gap=True))

    async def _watch(self) -> None:
        seconds = self._rng.randint(WATCH_SECONDS_MIN, 2 * WATCH_SECONDS_MIN)
        async with self._client.watch(
            self.resource,
            self._namespace,
            resource_version=self._version,
            labels=self._labels,
            fields=self._fields,
            metadata_only=self.metadata_only,
            seconds=seconds,
            idle_seconds_max=self._idle_seconds_max,
        ) as watch:
            self.problem = None
            async for event in watch:
                self._take(event)

    def _take(self, event: WatchEvent) -> None:
        obj = event.object
        if event.type != "BOOKMARK":
            key = obj.key
            if event.type == "DELETED":
                self._ahead.pop(key, None)
                old = self.store.get(key)
                if old is not None and old.meta.uid == obj.meta.uid:
                    self.store.remove(key)
                    self._tell(Change(obj, None))  # with its final state
            elif key not in self._ahead or not self._was_ahead(key, obj):
                self._put(obj)
        self._version = obj.meta.resource_version

    def _was_ahead(self, key: ObjectKey, obj: Object) -> bool:
        """Whether the cache is past this event, by a write of ours. If it is another's, the writer does not know it."""
        writes = self._ahead[key]
        version, current = obj.meta.resource_version, self.store.get(key)
        own = version in writes
        writers = {writes.pop(version)} if own else {*writes.values()}
        if not writes:
            del self._ahead[key]
        if own:
            return True
        if current is None or current.meta.uid != obj.meta.uid or not _newer(current.meta.resource_version, version):
            self._ahead.pop(key, None)
            return False
        for writer in writers - {None}:
            assert writer is not None
            self._call(writer, Change(obj, obj))
        return True

    def _put(self, obj: Object, *, initial: bool = False, unless_newer: bool = False) -> None:
        key = obj.key
        old = self.store.get(key)
        if old is not None and old.meta.uid != obj.meta.uid:
            self._delete(key)
            old = None
        if old is not None:
            version, known = obj.meta.resource_version, old.meta.resource_version
            if version == known or (unless_newer and _newer(known, version)):
                return
        self.store.put(obj)
        self._tell(Change(old, obj, initial))

    def _delete(self, key: ObjectKey) -> None:
        old = self.store.remove(key)
        if old is not None:
            self._tell(Change(old, None))

    def _tell(self, change: Change, quiet: Handler | None = None) -> None:
        for handler in self._handlers:
            if handler != quiet:  # not `is not`: bound methods are made anew each time
                self._call(handler, change)

    def _call(self, handler: Handler, change: Change) -> None:
        try:
            handler(change)
        except Exception:  # noqa: BLE001 - a handler's bug must not stop the cache that others rely on
            _log.exception("a handler failed", resource=str(self.resource), object=str(change.object.key))

    def _can_hold(self, obj: Object) -> bool:
        in_scope = not self._namespace or obj.meta.namespace == self._namespace
        return in_scope and not self.metadata_only and self.synced.is_set()


def _newer(version: str, than: str) -> bool:
    """Whether one version comes after another. Versions of built-in and custom resources are comparable numbers."""
    return version.isdigit() and than.isdigit() and int(version) > int(than)
