"""docs/relations.md is made from the rows themselves. `UPDATE_DOCS=1` writes it anew."""

from __future__ import annotations

import os
import re
import textwrap
from pathlib import Path

from msgspec.structs import replace

from pilotage.catalogue.kind import Ecosystem, KnownKind
from pilotage.catalogue.registry import ecosystems, relation_rows
from pilotage.catalogue.relation import (
    ANY_NAMESPACE,
    OWN_GROUP,
    ByName,
    ByReference,
    NameForm,
    Relation,
    RelationRow,
    TargetKind,
)
from pilotage.catalogue.shared import pod_fields
from pilotage.teardown.relations import user_rows

FAMILIES = {each.title: rows for each in ecosystems() if (rows := relation_rows(each))}
DOCUMENT = Path(__file__).parents[3] / "docs" / "relations.md"

TABLE = ("| kind | relation | field | target |", "| --- | --- | --- | --- |")
WHOLE = ByName((TargetKind("", "all that a pod spec names"),))

HEAD = """\
# Who points at whom

Pilotage orders a teardown, and explains one that is stuck, by what objects say about each other. Owners come from
`metadata.ownerReferences`, and count where the garbage collector would count them: with the right uid, and in the same
namespace or cluster-scoped. Everything else comes from the table below: which field of which kind points where.

- In a field, `[]` goes through a list, `*` through the values of a map.
- A target is in the source's own namespace, unless the row says "any namespace" or its kind is cluster-scoped.
- What selects pods selects the workloads whose pod template has such labels as well: one at 0 replicas is found, too.
- A reference that says `optional: true` counts only where its target is there.
- *back*: it is the named object that has the relation to this one. A volume names the claim that claims it.
- *if read*: counts where the object was read in full, but is no reason to read all objects of its kind in full: they
  are made by the thousand from a template that is read anyway, or they are huge.

This page is made by `UPDATE_DOCS=1 pytest tests/teardown/relations -k document`.
"""


def document() -> str:
    return "\n".join(
        [HEAD, relations(), own_rows(), pod_specs(), *(family(name, rows) for name, rows in FAMILIES.items())]
    )


def relations() -> str:
    source = (Path(__file__).parents[3] / "src" / "pilotage" / "catalogue" / "relation.py").read_text()
    lines = ["## The relations\n"]
    for relation in Relation:
        said = re.search(rf'    {relation.name} = "[^"]*"\n    """(.*?)"""', source, re.DOTALL)
        lines.append(f"- **{relation}**" + (f": {' '.join(said[1].split())}".replace("``", "`") if said else ""))
    return "\n".join([*lines, ""])


def own_rows() -> str:
    _, _, text = (user_rows.__doc__ or "").partition("\n\n")
    before, _, rest = text.partition(".. code-block:: yaml\n\n")
    example, _, after = rest.partition("\n\n``to``")
    block = f"```yaml\n{textwrap.dedent(example)}\n```\n"
    return "\n".join(["## Rows of your own\n", before.replace("``", "`"), block, f"`to`{after}".replace("``", "`")])


def family(name: str, rows: tuple[RelationRow, ...]) -> str:
    lines = list(dict.fromkeys(line(row) for row in without_pod_specs(rows)))
    return "\n".join([f"## {name}\n", *TABLE, *lines, ""])


def without_pod_specs(rows: tuple[RelationRow, ...]) -> list[RelationRow]:
    """The rows, with one for all that a pod spec names: it is the same wherever a pod is written down."""
    shorter = list(rows)
    for row in rows:
        spec, _, last = row.field.rpartition(".")
        if last == "serviceAccountName":
            inner = set(pod_rows(row, spec))
            if inner <= set(rows):
                at = min(i for i, each in enumerate(shorter) if each in inner)
                shorter[at:at] = [replace(row, field=spec, target=WHOLE)]
                shorter = [each for each in shorter if each not in inner]
    return shorter


def pod_rows(like: RelationRow, spec: str) -> list[RelationRow]:
    rows = relation_rows(
        Ecosystem("", (KnownKind(like.group, like.kind, relations=pod_fields(spec), needs_body=like.demand),))
    )
    return [replace(row, category=like.category) for row in rows]


def pod_specs() -> str:
    anywhere = RelationRow(Relation.MOUNTS, "spec", WHOLE, group="", kind="pod spec")
    lines = [line(row).replace("`spec.", "`") for row in pod_rows(anywhere, "spec")]
    return "\n".join(["## A pod spec, wherever it is written down\n", *TABLE, *lines, ""])


def line(row: RelationRow) -> str:
    marks = [f"with its {row.note}"] if row.note else []
    marks += ["*back*"] if row.back else []
    marks += ["*if read*"] if not row.demand and not row.from_metadata else []
    marks += [f"kinds of the category `{row.category}`"] if row.category else []
    if row.when:
        values = " or ".join(
            "not there" if value is None else f"`{str(value).lower()}`" if isinstance(value, bool) else f"`{value}`"
            for value in row.when.values
            if value != ""
        )
        marks.append(f"if `{row.when.field}` is {values}")
    kind = "any kind" if row.kind == "*" else row.kind
    group = {"": "", "*": " of any group"}.get(row.group, f" ({row.group})")
    return f"| {kind}{group} | {row.relation} | `{row.field}` | {', '.join([target(row), *marks])} |"


def target(row: RelationRow) -> str:
    match row.target:
        case ByName(kinds, name, namespace, form):
            words = " or ".join(map(kind_of, kinds))
            words += f" by `{name}`" if name != "name" else ""
            words += {NameForm.PLAIN: "", NameForm.NUMBERED: " named field-source-number"}.get(form, f" as `{form}`")
            return words + (", any namespace" if namespace else "")
        case ByReference(default=default) as reference:
            words = f"what `{reference.group.rpartition('.')[2] or 'kind'}` and kind say"
            words += f", else {kind_of(default)}" if default else ""
            return words + (", any namespace" if reference.namespace else "")
        case selected:
            words = f"what the labels at `{selected.selector}` select" if selected.reference else ""
            words = words or f"{' and '.join(map(kind_of, selected.kinds))} by labels"
            if selected.namespaces:
                where = (
                    "all namespaces" if selected.namespaces == ANY_NAMESPACE else f"where `{selected.namespaces}` says"
                )
                words += f", {where}"
            return words


def kind_of(kind: TargetKind) -> str:
    return f"{kind.kind} of its provider" if kind.group == OWN_GROUP else kind.kind


def test_the_document_is_current() -> None:
    if os.environ.get("UPDATE_DOCS"):
        DOCUMENT.write_text(document())
    assert DOCUMENT.read_text() == document()
