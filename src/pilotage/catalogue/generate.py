"""``python -m pilotage.catalogue.generate`` writes `reading_table` from the ecosystems. `make manifests` calls it."""

import textwrap
from collections.abc import Iterable
from pathlib import Path

from pilotage.catalogue.groups import is_custom
from pilotage.catalogue.kind import KnownKind, ReadFor
from pilotage.catalogue.reading import CORE, REACHES
from pilotage.catalogue.registry import ecosystems, kinds
from pilotage.kube import GroupKind

FILE = Path(__file__).with_name("reading_table.py")
_WIDTH = 80
_HEAD = '''\
"""Generated from the ecosystems by `make manifests`: do not edit. `reading` has the meaning of each table.

A line has a group and kinds of it.
"""
'''


def reading_table() -> str:
    """The text of the module."""
    rows = kinds().values()
    patterns = [row for ecosystem in ecosystems() for row in ecosystem.kinds if row.group == "*"]
    made = {product for row in rows for product in row.makes}
    made |= {row.group_kind for row in rows if row.cluster_made and not row.only_if_asked and not is_custom(row.group)}
    tables = {
        "IN_FULL": _lines(_marked_kind(row) for row in rows if _in_full(row)),
        "FOR_FINALIZERS": _lines(row.group_kind for row in rows if ReadFor.FINALIZERS in row.read_for),
        "FOR_HAZARDS": _lines(row.group_kind for row in rows if ReadFor.HAZARDS in row.read_for),
        "FOR_LEAKS": _lines(row.group_kind for row in rows if ReadFor.LEAKS in row.read_for),
        "ONLY_IF_ASKED": _lines(row.group_kind for row in rows if row.only_if_asked),
        "COMPUTED": _lines(row.group_kind for row in rows if row.computed),
        "MADE": _lines(made),
        "CATEGORIES": sorted(row.category + _mark(row) for row in patterns if row.category),
        "OF_ANY_GROUP": sorted(row.kind + _mark(row) for row in patterns if not row.category),
    }
    return _HEAD + "".join('\n{} = """\n{}\n"""\n'.format(name, "\n".join(lines)) for name, lines in tables.items())


def _in_full(row: KnownKind) -> bool:
    return row.needs_body and any(not field.from_metadata for field in row.relations)


def _mark(row: KnownKind) -> str:
    return REACHES if any(field.reaches and not field.from_metadata for field in row.relations) else ""


def _marked_kind(row: KnownKind) -> GroupKind:
    return GroupKind(row.group, row.kind + _mark(row))


def _lines(chosen: Iterable[GroupKind]) -> list[str]:
    groups: dict[str, list[str]] = {}
    for group, kind in sorted(chosen):
        groups.setdefault(group or CORE, []).append(kind)
    return [f"{group} {part}" for group, kinds in groups.items() for part in textwrap.wrap(" ".join(kinds), _WIDTH)]


if __name__ == "__main__":
    FILE.write_text(reading_table())
