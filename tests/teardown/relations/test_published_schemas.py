"""The built-in rows name fields that exist: for Kubernetes' own kinds, those of its published schemas."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pilotage.catalogue.relation import RelationRow
from pilotage.kube import Json
from pilotage.teardown.relations import BUILT_IN
from tests.teardown.relations.schemas import SchemaError, check

pytest.importorskip("kubernetes_validate")

# Kinds of Kubernetes projects that are installed as CRDs.
ADDED = {"autoscaling.k8s.io", "gateway.networking.k8s.io", "snapshot.storage.k8s.io"}


@pytest.fixture(scope="module")
def published() -> Json:
    from pilotage_harbor.schema.make import definitions

    return definitions()


def kinds_of(published: Json) -> dict[tuple[str, str], list[Json]]:
    kinds: dict[tuple[str, str], list[Json]] = {}
    for schema in published.values():
        for kind in schema.get("x-kubernetes-group-version-kind", ()):
            kinds.setdefault((kind["group"], kind["kind"]), []).append(schema)
    return kinds


def test_every_field_of_a_built_in_kind_exists(published: Json) -> None:
    kinds = kinds_of(published)
    missing = []
    rows = [
        row
        for row in BUILT_IN
        if not row.pattern and row.group not in ADDED and ("." not in row.group or row.group.endswith(".k8s.io"))
    ]
    assert len(rows) > 100
    for row in rows:
        versions = kinds.get((row.group, row.kind), [])
        for schema in versions:
            try:
                check(row, schema, published)
            except SchemaError as error:
                missing.append(f"{row.kind} {error}")
        if not versions:
            missing.append(f"{row.group} {row.kind} does not exist")
    assert missing == []


def test_a_field_that_does_not_exist_is_noticed(published: Json) -> None:
    row: RelationRow = next(row for row in BUILT_IN if row.kind == "Ingress")
    (schema,) = kinds_of(published)["networking.k8s.io", "Ingress"]
    with pytest.raises(SchemaError, match="there is no defaultBackends"):
        check(replace(row, field="spec.defaultBackends.service"), schema, published)
