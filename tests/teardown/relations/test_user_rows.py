"""A user's own rows: understood, or refused with the file and the field."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilotage.catalogue.relation import RelationRow
from pilotage.teardown.relations import BUILT_IN, RelationsError, load_rows, user_rows
from tests.teardown.relations.worlds import edges_of


def written(folder: Path, text: str) -> Path:
    path = folder / "rows.yaml"
    path.write_text(textwrap.dedent(text))
    return path


def test_the_rows_of_a_file_point_where_they_say(tmp_path: Path) -> None:
    example = (user_rows.__doc__ or "").partition("yaml\n\n")[2].partition("\n``to``")[0]
    rows = load_rows(written(tmp_path, example))
    pipeline = """
    apiVersion: example.com/v1
    kind: Pipeline
    metadata: {name: p}
    spec:
      stages: [{config: first}, {config: {name: second}}]
      runner: {runnerName: fast}
      outputs: [{apiVersion: v1, kind: Service, name: out, namespace: other}]
      workers: {matchLabels: {app: worker}}
    ---
    {apiVersion: v1, kind: Pod, metadata: {name: w, labels: {app: worker}}}
    """
    assert edges_of(textwrap.dedent(pipeline), BUILT_IN + rows) == [
        "pipeline/p mounts configmap/first ! @ spec.stages[0].config",
        "pipeline/p mounts configmap/second ! @ spec.stages[1].config",
        "pipeline/p targets runner/fast ! @ spec.runner",
        "pipeline/p routes to service/out -n other ! @ spec.outputs[0]",
        "pipeline/p selects pod/w @ spec.workers",
    ]


ROW = "- {from: {group: example.com, kind: Widget}, relation: mounts, field: spec.a, to: {kind: Secret}}"
REFUSED = {
    "[]": "the file must be a mapping with relations.",
    "rows: []": "rows is not known here; there are relations.",
    "relations: {}": "relations must be a list of rows.",
    "relations: [7]": "relations[0] must be a mapping with field, from, note, reference, relation, selector, to.",
    "relations:\n" + ROW.replace("from: {group: example.com, kind: Widget}", "from: Widget"): (
        "relations[0].from must be a mapping with group, kind."
    ),
    "relations:\n" + ROW.replace(", kind: Widget", ""): "relations[0].from.kind is missing.",
    "relations:\n" + ROW.replace("example.com", "'ex*.com'"): (
        'relations[0].from.group may be a name, "*", or "*." and a domain.'
    ),
    f"relations:\n{ROW}\n" + ROW.replace("mounts", "eats"): (
        "relations[1].relation is 'eats', which is none of: selects, routes to, scales, mounts, protects, claims,"
        " targets, needs."
    ),
    "relations:\n" + ROW.replace("mounts", "owns"): "relations[0].relation is 'owns', which is none of: ",
    "relations:\n"
    + ROW.replace("spec.a", "spec..a"): "relations[0].field is no path: 'spec..a' is not a path such as ",
    "relations:\n" + ROW.replace("spec.a", "7"): "relations[0].field must be text.",
    "relations:\n" + ROW.replace(", to: {kind: Secret}", ""): (
        "relations[0] must have exactly one of to, reference and selector."
    ),
    "relations:\n" + ROW.replace("to:", "reference: {}, to:"): (
        "relations[0] must have exactly one of to, reference and selector."
    ),
    "relations:\n" + ROW.replace("kind: Secret", "kind: Secret, scope: World"): (
        "relations[0].to.scope is 'World', which is none of: Namespaced, Cluster."
    ),
    "relations:\n" + ROW.replace("kind: Secret", "kind: Secret, name: 'a[]'"): (
        "relations[0].to.name must be a path of plain names, such as ref.name."
    ),
    "relations:\n" + ROW.replace("to: {kind: Secret}", "selector: {kind: Pod, plain: maybe}"): (
        "relations[0].selector.plain must be true or false."
    ),
    "relations: [": "is not YAML: ",
    "a: 2026-99-99": "is not YAML: ",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_understood_is_refused_with_file_and_field(text: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(RelationsError) as refusal:
        load_rows(path)
    assert str(refusal.value).startswith(f"{path}: {REFUSED[text]}")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(RelationsError, match=r"none.yaml: cannot be read: No such file or directory\."):
        load_rows(tmp_path / "none.yaml")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(RelationsError, match=r"binary: is not (text in UTF-8|YAML)"):
        load_rows(tmp_path / "binary")


FIELDS = [
    "from",
    "relation",
    "field",
    "to",
    "reference",
    "selector",
    "note",
    "group",
    "kind",
    "name",
    "default",
    "plain",
]
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a", "a.b", "a[]", "*", "mounts", "Cluster"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=12,
)


@given(VALUE)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_file_is_understood_or_refused(tmp_path: Path, value: object) -> None:
    path = tmp_path / "rows.yaml"
    path.write_text(yaml.safe_dump({"relations": [value]}))
    rows: tuple[RelationRow, ...] = ()
    refusal = f"{path}: relations[0]"
    try:
        rows = load_rows(path)
    except RelationsError as error:
        refusal = str(error)
    assert refusal.startswith(f"{path}: relations[0]")
    assert edges_of([], BUILT_IN + rows) == []
