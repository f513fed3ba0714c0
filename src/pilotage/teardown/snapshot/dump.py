"""A world, read from files: whatever shape kubectl prints objects in, as YAML or JSON.

One object, a List or a DeploymentList, several documents, several files, ``-`` for stdin, a folder such as ``kubectl
cluster-info dump --output-directory`` writes. A kind of which something is there counts as read, in the namespaces
that were seen; all else is unknown.

A dump does not say when it was taken, and durations depend on it. It was at or after the newest time that the cluster
wrote into it, and before the file was last changed. Leases and Nodes carry times that are renewed all the time: where
there is one, a file that is much younger is a copy, and the newest time is taken. Else it is the file's own time.
"""

import datetime as dt
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from pilotage.catalogue.names import DEFINITION
from pilotage.kube import DEFINITIONS, GroupKind, Json, Object, Resource
from pilotage.kube.wire import encode, parse_time
from pilotage.teardown.snapshot.dump_text import DumpError, documents_untrusted
from pilotage.teardown.snapshot.world import Item, KindReading, World

__all__ = ["DumpError", "DumpedDefinition", "Source", "definitions", "load_dump", "manifests"]

Source = Path | Literal["-"]
"""A file, a folder, or stdin."""

SUFFIXES = (".json", ".yaml", ".yml")
HEARTBEAT = dt.timedelta(minutes=5)
"""Time within which a cluster that lives renews a Lease or the status of a Node."""

_TIMES = re.compile(
    rb'"(renewTime|lastHeartbeatTime|creationTimestamp|time|lastTransitionTime|lastUpdateTime|lastTimestamp|eventTime'
    rb'|startTime|startedAt|finishedAt|completionTime)"\s*:\s*"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z)"'
)
_RENEWED = (b"renewTime", b"lastHeartbeatTime")
_NULL = msgspec.Raw(b"null")


class _Shape(msgspec.Struct, rename="camel", gc=False):
    """Fields of a document that tell what it is."""

    api_version: str | None = None
    kind: str | None = None
    metadata: msgspec.Raw = _NULL
    items: list[msgspec.Raw] | None = None
    message: msgspec.Raw = _NULL


class _ShapeMeta(msgspec.Struct, rename="camel", gc=False):
    name: str | None = None
    generate_name: str | None = None
    resource_version: str | None = None


_shape = msgspec.json.Decoder(_Shape)
_shape_meta = msgspec.json.Decoder(_ShapeMeta | None)
_array = msgspec.json.Decoder(list[msgspec.Raw])


class _Entry(NamedTuple):
    """One object of a dump, or a kind of which there is a list without objects."""

    where: str
    api_version: str
    kind: str
    raw: bytes | None
    list_version: str = ""

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind(self.api_version.rpartition("/")[0], self.kind)


class DumpedDefinition(NamedTuple):
    """Names of a kind, from its CustomResourceDefinition."""

    plural: str
    singular: str
    short_names: tuple[str, ...]
    namespaced: bool


# What there is to call


def load_dump(paths: Iterable[Source], now: dt.datetime | None = None) -> World:
    """The world that these files show. Raises DumpError, one sentence that names the file."""
    entries: list[_Entry] = []
    times = _Times()
    sources = [*_files(paths)]
    for source in sources:
        read_at, data = _read(source)
        for where, raw in documents_untrusted(_shown(source), data):
            times.look_at(raw)
            entries += _entries(where, raw)
        times.latest_file = max(times.latest_file or read_at, read_at)
    if not entries:
        named = ", ".join(map(_shown, sources))
        raise DumpError(
            f"{named}: there is no object in it." if named else "No file was given: name one, or - for stdin."
        )
    world = World(now or times.taken(), live=False)
    _fill(world, entries)
    return world


def manifests(paths: Iterable[Source]) -> list[Json]:
    """The objects that these files describe, Lists taken apart. Each has a kind, an apiVersion, and some name.

    Raises DumpError, also for a field that occurs twice.
    """
    return [
        _object(entry).to_dict()
        for source in _files(paths)
        for where, raw in documents_untrusted(_shown(source), _read(source)[1], unique=True)
        for entry in _entries(where, raw)
        if entry.raw is not None
    ]


def definitions(world: World) -> dict[GroupKind, DumpedDefinition]:
    """The kinds that the CustomResourceDefinitions in a world define, as far as these are there in full."""
    defined: dict[GroupKind, DumpedDefinition] = {}
    for item in world.of(*DEFINITION):
        spec = item.read().get("spec")
        names = spec.get("names") if isinstance(spec, dict) else None
        if not isinstance(spec, dict) or not isinstance(names, dict):
            continue
        kind, plural = names.get("kind"), names.get("plural")
        if isinstance(kind, str) and isinstance(plural, str):
            defined[GroupKind(str(spec.get("group", "")), kind)] = DumpedDefinition(
                plural,
                str(names.get("singular") or kind.lower()),
                _texts(names.get("shortNames")),
                spec.get("scope") == "Namespaced",
            )
    return defined


# From files to documents


def _files(paths: Iterable[Source]) -> Iterator[Source]:
    for path in paths:
        if path == "-" or not Path(path).is_dir():
            yield path
            continue
        found = sorted(each for each in Path(path).rglob("*") if each.suffix.lower() in SUFFIXES and each.is_file())
        if not found:
            raise DumpError(f"{path}: the folder has no files that end in {', '.join(SUFFIXES)}.")
        yield from found


def _read(source: Source) -> tuple[dt.datetime, bytes]:
    """Modification time and content of the file."""
    if source == "-":
        return dt.datetime.now(dt.UTC), sys.stdin.buffer.read()
    try:
        return dt.datetime.fromtimestamp(Path(source).stat().st_mtime, dt.UTC), Path(source).read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise DumpError(f"{source}: it cannot be read ({reason}). Correct the path, or its permissions.") from error


def _shown(source: Source) -> str:
    return "stdin" if source == "-" else str(source)


# From documents to objects


def _entries(where: str, raw: bytes) -> Iterator[_Entry]:
    """The objects of one document."""
    if raw.lstrip()[:1] == b"[":
        for number, each in enumerate(_array.decode(raw), 1):
            yield from _entries(f"{where}, item {number}", bytes(each))
        return
    shape, meta = _shape_of(where, raw)
    kind, version = shape.kind or "", shape.api_version or ""
    if kind.endswith("List") and not meta.name:
        yield from _listed(where, shape, meta.resource_version or "")
        return
    _check(where, shape, meta)
    yield _Entry(where, version, kind, raw)


def _listed(where: str, shape: _Shape, list_version: str) -> Iterator[_Entry]:
    """The items of a list. Those of a DeploymentList do not say what they are: the list does."""
    kind, version = (shape.kind or "").removesuffix("List"), shape.api_version or ""
    if kind == "PartialObjectMetadata":
        raise DumpError(f"{where}: this is the metadata of objects of an unknown kind; get them with -o yaml.")
    if kind and version and not shape.items:
        yield _Entry(where, version, kind, None, list_version)
    for number, item in enumerate(shape.items or (), 1):
        raw, place = bytes(item), f"{where}, item {number}"
        own, meta = _shape_of(place, raw)
        if (own.kind or "").endswith("List") and not meta.name:
            yield from _listed(place, own, meta.resource_version or "")
            continue
        own.kind = own.kind or kind
        own.api_version = own.api_version or (version if kind else None)
        _check(place, own, meta)
        yield _Entry(place, own.api_version or "", own.kind, raw, list_version if kind else "")


def _shape_of(where: str, raw: bytes) -> tuple[_Shape, _ShapeMeta]:
    try:
        shape = _shape.decode(raw)
        meta = _shape_meta.decode(shape.metadata)
    except msgspec.ValidationError as error:
        if raw.lstrip()[:1] != b"{":
            raise DumpError(f"{where}: this is not an object, but {_excerpt(raw)}.") from error
        raise DumpError(f"{where}: this is not an object of Kubernetes ({error}).") from error
    return shape, meta or _ShapeMeta()


def _check(where: str, shape: _Shape, meta: _ShapeMeta) -> None:
    """Check that it is an object: with a kind, an apiVersion and a name."""
    kind, version = shape.kind, shape.api_version
    if not kind:
        raise DumpError(f"{where}: there is no kind; objects are wanted as `kubectl get -o yaml` prints them.")
    if kind == "Status" and version == "v1":
        raise DumpError(f"{where}: this is an error of the API server, and no object: {_excerpt(shape.message)}.")
    if kind == "Table":
        raise DumpError(f"{where}: this is a table; get the objects with -o yaml.")
    if not version:
        raise DumpError(f"{where}: the {kind} has no apiVersion.")
    if not meta.name and not meta.generate_name:
        raise DumpError(f"{where}: the {kind} has no metadata.name.")


def _excerpt(raw: bytes | msgspec.Raw) -> str:
    text = bytes(raw).decode(errors="replace").strip()
    return text if len(text) <= 60 else f"{text[:60]}…"


def _object(entry: _Entry, uid: str = "") -> Object:
    assert entry.raw is not None
    try:
        obj = Object.decode(entry.raw, entry.api_version, entry.kind)
        if uid and not obj.meta.uid:
            body: Any = obj.to_dict()
            body["metadata"]["uid"] = uid
            obj = Object.decode(encode(body), entry.api_version, entry.kind)
    except (ValueError, RecursionError) as error:
        raise DumpError(
            f"{entry.where}: the metadata of the {entry.kind} is not as Kubernetes has it ({error})."
        ) from error
    return obj


# From objects to a world


def _fill(world: World, entries: list[_Entry]) -> None:
    """CustomResourceDefinitions first: they say what the others are called."""
    objects = [(entry, _identified(entry)) for entry in entries if entry.raw is not None]
    for entry, obj in objects:
        if entry.group_kind == DEFINITION:
            _add(world, Item(DEFINITIONS, obj, full=True))
    defined = definitions(world)
    namespaced = {entry.group_kind for entry, obj in objects if obj.meta.namespace}
    for entry in entries:
        known = world.kinds.get(entry.group_kind)
        if known is None:
            # Of a list without objects nothing tells the scope: most kinds have a namespace.
            has_namespace = entry.group_kind in namespaced or entry.raw is None
            resource = _resource(entry, defined.get(entry.group_kind), namespaced=has_namespace)
            world.read_kind(KindReading(resource, entry.list_version))
    for entry, obj in objects:
        if entry.group_kind != DEFINITION:
            _add(world, Item(world.kinds[entry.group_kind].resource, obj, full=True))
    world.namespaces = frozenset(item.meta.namespace for item in world if item.meta.namespace)


def _identified(entry: _Entry) -> Object:
    """The object, with a uid of our own where it has none: the same for the same name."""
    obj = _object(entry)
    if obj.meta.uid:
        return obj
    meta = obj.meta
    kind = entry.group_kind
    return _object(entry, uid=f"?{kind}/{meta.namespace}/{meta.name or meta.generate_name}")


def _add(world: World, item: Item) -> None:
    """Add an object. Of two readings of one the newer counts; a uid under two kinds is the first one's."""
    known = world.get(item.uid)
    if known is None or (known.group_kind == item.group_kind and _version(item) >= _version(known)):
        world.add(item)


def _version(item: Item) -> int:
    text = item.meta.resource_version
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0


def _resource(entry: _Entry, defined: DumpedDefinition | None, *, namespaced: bool) -> Resource:
    group, _, version = entry.api_version.rpartition("/")
    if defined is not None:
        return Resource(group, version, defined.plural, entry.kind, defined.namespaced)
    return Resource(group, version, _plural(entry.kind), entry.kind, namespaced)


def _plural(kind: str) -> str:
    """Plural by the rules that most kinds follow."""
    word = kind.lower()
    if word == "endpoints":
        return word
    if word.endswith(("s", "x", "ch", "sh")):
        return f"{word}es"
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}s"


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(each) for each in value) if isinstance(value, list) else ()


class _Times:
    """Times in a dump, from which the time of the dump follows (see the module)."""

    def __init__(self) -> None:
        self.latest_file: dt.datetime | None = None
        self._newest = b""
        self._renewed = False

    def look_at(self, raw: bytes) -> None:
        """Note the times in one document."""
        for found in _TIMES.finditer(raw):
            name, time = found.groups()
            self._newest = max(self._newest, time)
            self._renewed = self._renewed or name in _RENEWED

    def taken(self) -> dt.datetime:
        """The best guess."""
        latest = self.latest_file or dt.datetime.now(dt.UTC)
        try:
            newest = parse_time(self._newest.decode())
        except ValueError:  # there is none, or none that could be
            return latest
        if newest > latest:
            return newest if newest < latest + HEARTBEAT else latest
        return newest if self._renewed and latest > newest + HEARTBEAT else latest
