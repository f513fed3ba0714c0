"""Relations of the user's own, from the files that PILOTAGE_RELATIONS names."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from controlplane import Access
from tests.cli.running import run
from tests.teardown.staged import install

ROWS = """
relations:
- from: {group: example.com, kind: Pipeline}
  relation: mounts
  field: spec.config
  to: {kind: ConfigMap, name: name, namespace: namespace}
"""
PIPELINE = {"apiVersion": "example.com/v1", "kind": "Pipeline"}
SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap"}


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "rows.yaml"
    path.write_text(ROWS)
    monkeypatch.setenv("PILOTAGE_RELATIONS", str(path))
    return path


def pipeline(place: str, **config: str) -> dict[str, Any]:
    return {**PIPELINE, "metadata": {"namespace": place, "name": "nightly"}, "spec": {"config": config}}


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "dump.json"
    items = [
        {**SETTINGS, "metadata": {"name": "settings", "namespace": "shop", "uid": "c1"}},
        pipeline("shop", name="settings"),
    ]
    items[1]["metadata"]["uid"] = "p1"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path


@pytest.mark.usefixtures("rows")
def test_a_tree_has_them(dump: Path):
    assert "pipeline/nightly  (mounts it" in run("tree", "configmap/settings", "--dump", dump).out


def test_without_the_files_nobody_knows_them(dump: Path):
    assert "pipeline/nightly" not in run("tree", "configmap/settings", "--dump", dump).out


def test_several_files_are_taken_together(rows: Path, dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    none = tmp_path / "none.yaml"
    none.write_text("relations: []")
    monkeypatch.setenv("PILOTAGE_RELATIONS", os.pathsep.join([str(none), str(rows)]))
    assert "pipeline/nightly" in run("tree", "configmap/settings", "--dump", dump).out


@pytest.mark.parametrize("command", ["tree", "why"])
def test_a_file_that_makes_no_sense_is_named(command: str, rows: Path, dump: Path):
    rows.write_text("relations: [{from: {kind: Pipeline}, relation: loves, field: spec, to: {kind: Pod}}]")
    ran = run(command, "configmap/settings", "--dump", dump)
    assert ran.code == 2
    assert f"PILOTAGE_RELATIONS: {rows}" in ran.err


def test_a_plan_reads_their_kinds_in_full_and_in_other_namespaces_if_they_point_there(
    cluster: Access, namespace: str, rows: Path
):
    names = {"plural": "pipelines", "singular": "pipeline", "kind": "Pipeline"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    made = install(cluster, [{"metadata": {"name": "pipelines.example.com"}, "spec": spec}])
    try:
        with cluster.namespace("elsewhere", for_pods=False) as other:
            cluster.request("POST", f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "settings"}})
            away = pipeline(other, name="settings", namespace=namespace)
            cluster.request("POST", f"/apis/example.com/v1/namespaces/{other}/pipelines", away)
            ran = run("plan", "configmap/settings", "-n", namespace, kubeconfig=cluster.kubeconfig)
            assert f"pipeline/nightly -n {other}" in ran.out, ran.out
            rows.unlink()
            ran = run("plan", "configmap/settings", "-n", namespace, kubeconfig=cluster.kubeconfig)
            assert (ran.code, ran.out) == (2, "")
            assert f"PILOTAGE_RELATIONS: {rows}" in ran.err
    finally:
        for each in made:
            cluster.request("DELETE", each)
