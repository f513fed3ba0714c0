"""A user's own rows, from a file.

``PILOTAGE_RELATIONS`` names the file, or several, separated as in ``PATH``; all commands then go by its rows, too.
The file is YAML with a list under ``relations``. Each entry says which field of which kind points where:

.. code-block:: yaml

    relations:
    - from: {group: example.com, kind: Pipeline}     # group "*.example.com" and kind "*" are for many kinds
      relation: mounts                               # or selects, routes to, scales, protects, claims, targets, needs
      field: spec.stages[].config                    # [] through a list, * through a map, [a.b/c] a key with dots
      to: {kind: ConfigMap}                          # the field is a name, or an object with a name below it
    - from: {group: example.com, kind: Pipeline}
      relation: targets
      field: spec.runner
      to: {group: example.com, kind: Runner, scope: Cluster, name: runnerName}
    - from: {group: example.com, kind: Pipeline}
      relation: routes to
      field: spec.outputs[]
      reference: {namespace: namespace}              # the field says apiVersion, kind and name itself
    - from: {group: example.com, kind: Pipeline}
      relation: selects
      field: spec.workers
      selector: {kind: Pod}                          # matchLabels and matchExpressions; plain: true for a map of labels

``to`` takes ``group``, ``kind``, ``scope`` (``Namespaced`` or ``Cluster``), ``name`` and ``namespace`` (where they
stand below the field) and ``form`` (``plain``, ``namespace/name``, ``host``, ``pvc://``). ``reference`` takes ``group``
(where the group stands; by default ``apiVersion``, with the version cut off), ``kind``, ``name``, ``namespace``, and
``default`` with the group, kind and scope of a reference that leaves them out. ``selector`` takes ``group``, ``kind``,
``plain`` and ``namespaces`` (``"*"``, or the path of an object with ``any`` or ``matchNames``). ``note`` names a value
below the field that is said with the edge. All else is refused, with the file and the field.
"""

from pathlib import Path
from typing import Any

from pilotage.catalogue.relation import (
    ANY_NAMESPACE,
    ByName,
    ByReference,
    BySelector,
    NameForm,
    Relation,
    RelationRow,
    Target,
    TargetKind,
)
from pilotage.teardown.relations.compiled import steps

_REFUSED = (Relation.OWNS, Relation.DEFINES)
_FORMS = (NameForm.PLAIN, NameForm.SLASHED, NameForm.HOST, NameForm.VOLUME_URI)
_SCOPES = {"Namespaced": True, "Cluster": False}


class RelationsError(ValueError):
    """A file of rows that cannot be understood; the message names the file and the field."""


def load_rows(path: Path) -> tuple[RelationRow, ...]:
    """The rows of a file; the module describes the format. Raises RelationsError."""
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RelationsError(f"{path}: cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise RelationsError(f"{path}: is not text in UTF-8.") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date that is none
        raise RelationsError(f"{path}: is not YAML: {' '.join(str(error).split())}") from error
    top = _Map(str(path), "", content, {"relations"})
    entries = top.get("relations")
    if not isinstance(entries, list):
        raise top.error("relations", "must be a list of rows")
    return tuple(_row(_Map(str(path), f"relations[{i}]", entry, _ROW_FIELDS)) for i, entry in enumerate(entries))


_ROW_FIELDS = {"from", "relation", "field", "to", "reference", "selector", "note"}


class _Map:
    """A mapping of the file that knows where it stands, and refuses what it does not know."""

    def __init__(self, path: str, place: str, value: object, fields: set[str]) -> None:
        self._path, self._place = path, place
        if not isinstance(value, dict):
            raise self.error("", f"must be a mapping with {', '.join(sorted(fields))}")
        self._value = value
        for name in value:
            if name not in fields:
                raise self.error(str(name), f"is not known here; there are {', '.join(sorted(fields))}")

    def error(self, field: str, problem: str) -> RelationsError:
        where = ".".join(filter(None, (self._place, field)))
        return RelationsError(f"{self._path}: {where or 'the file'} {problem}.")

    def __contains__(self, name: str) -> bool:
        return name in self._value

    def get(self, name: str) -> Any:  # noqa: ANN401 - whatever YAML has
        return self._value.get(name)

    def text(self, name: str, default: str | None = None) -> str:
        value = self._value.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or not (value or default == ""):
            raise self.error(name, "must be text" if value is not None else "is missing")
        return value

    def path(self, name: str, default: str | None = None, *, plain: bool = False) -> str:
        """A path of fields; a plain one goes through no lists."""
        value = self.text(name, default)
        if value:
            try:
                parts = steps(value)
            except ValueError as error:
                raise self.error(name, f"is no path: {error}") from error
            if plain and ".".join(parts) != value:
                raise self.error(name, "must be a path of plain names, such as ref.name")
        return value

    def flag(self, name: str) -> bool:
        value = self._value.get(name, False)
        if not isinstance(value, bool):
            raise self.error(name, "must be true or false")
        return value

    def choice(self, name: str, choices: list[str], default: str | None = None) -> str:
        value = self.text(name, default)
        if value not in choices:
            raise self.error(name, f"is {value!r}, which is none of: {', '.join(choices)}")
        return value

    def map(self, name: str, fields: set[str]) -> "_Map":
        return _Map(self._path, ".".join(filter(None, (self._place, name))), self._value.get(name), fields)


def _row(entry: _Map) -> RelationRow:
    source = entry.map("from", {"group", "kind"})
    group = source.text("group", "")
    if "*" in group and group != "*" and not (group.startswith("*.") and "*" not in group[1:]):
        raise source.error("group", 'may be a name, "*", or "*." and a domain')
    relation = entry.choice("relation", [each.value for each in Relation if each not in _REFUSED])
    return RelationRow(
        Relation(relation),
        entry.path("field"),
        _target(entry),
        note=entry.path("note", "", plain=True),
        group=group,
        kind=source.text("kind"),
    )


def _target(entry: _Map) -> Target:
    said = [name for name in ("to", "reference", "selector") if name in entry]
    if len(said) != 1:
        raise entry.error("", "must have exactly one of to, reference and selector")
    match said[0]:
        case "to":
            return _named(entry.map("to", {"group", "kind", "scope", "name", "namespace", "form"}))
        case "reference":
            return _reference(entry.map("reference", {"group", "kind", "name", "namespace", "default"}))
        case _:
            return _selected(entry.map("selector", {"group", "kind", "plain", "namespaces"}))


def _kind(entry: _Map) -> TargetKind:
    scope = entry.choice("scope", list(_SCOPES), "Namespaced")
    return TargetKind(entry.text("group", ""), entry.text("kind"), _SCOPES[scope])


def _named(entry: _Map) -> ByName:
    form = entry.choice("form", [each.value for each in _FORMS], NameForm.PLAIN.value)
    name, namespace = entry.path("name", "name", plain=True), entry.path("namespace", "", plain=True)
    return ByName((_kind(entry),), name=name, namespace=namespace, form=NameForm(form))


def _reference(entry: _Map) -> ByReference:
    return ByReference(
        group=entry.path("group", "apiVersion", plain=True),
        kind=entry.path("kind", "kind", plain=True),
        name=entry.path("name", "name", plain=True),
        namespace=entry.path("namespace", "", plain=True),
        default=_kind(entry.map("default", {"group", "kind", "scope"})) if "default" in entry else None,
    )


def _selected(entry: _Map) -> BySelector:
    namespaces = entry.text("namespaces", "")
    if namespaces != ANY_NAMESPACE:
        entry.path("namespaces", "", plain=True)
    kind = TargetKind(entry.text("group", ""), entry.text("kind"))
    return BySelector((kind,), plain=entry.flag("plain"), namespaces=namespaces)
