"""The ledger of an endpoint: its parts, in its status before they are made, each with its uid once that is known."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from pilotage.kube import Json, Resource
from pilotage.serving.parts import DesiredObject


class PartName(NamedTuple):
    """A part by kind and name."""

    resource: Resource
    name: str
    revision: int | None = None
    """None for a part of all revisions."""


def names_of(parts: Iterable[DesiredObject]) -> list[PartName]:
    """The names of desired objects."""
    return [PartName(part.resource, part.name, part.revision) for part in parts]


class PartLedger:
    """The entries of `status.ledger`, by kind and name."""

    def __init__(self, written: Iterable[Json]) -> None:
        self._entries: dict[tuple[str, str], Json] = {(each["kind"], each["name"]): each for each in written}

    def entries(self) -> list[Json]:
        """All entries, as the status has them."""
        return [*self._entries.values()]

    def add(self, parts: Iterable[PartName]) -> bool:
        """Add the parts that have no entry; returns whether there were any."""
        missing = [part for part in parts if (part.resource.kind, part.name) not in self._entries]
        for part in missing:
            self._entries[part.resource.kind, part.name] = _entry(part)
        return bool(missing)

    def made(self, part: PartName, uid: str) -> None:
        """Enter the uid of a part that exists."""
        self._entries[part.resource.kind, part.name] = _entry(part, uid)

    def present(
        self, gone: Collection[str], seen: Collection[tuple[str, str]], revisions: Collection[int]
    ) -> list[Json]:
        """The entries of parts that exist or may exist: those that are not proven `gone`, by uid.

        An entry without a uid stays if the part was `seen`, by kind and name, or belongs to one of the `revisions` or
        to all.
        """
        return [
            entry
            for key, entry in self._entries.items()
            if entry["uid"] not in gone and (entry["uid"] or key in seen or entry.get("revision") in {None, *revisions})
        ]


def _entry(part: PartName, uid: str = "") -> Json:
    entry: Json = {
        "apiVersion": part.resource.api_version,
        "kind": part.resource.kind,
        "resource": part.resource.plural,
        "name": part.name,
        "uid": uid,
    }
    return entry if part.revision is None else entry | {"revision": part.revision}
