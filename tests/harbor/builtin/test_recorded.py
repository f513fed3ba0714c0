"""Recorded cases of kube-apiserver: the strategies give the same results."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

import pytest

from pilotage_harbor.builtin import builtin_kinds
from pilotage_harbor.kinds import Kind
from pilotage_harbor.kinds.table import table
from tests.harbor.builtin.harness import SYSTEM, Case, Runner, cases, play, recorded

CASES = list(cases())
FAMILIES = {family: recorded(family) for family in {case.family for case in CASES}}
NOW = datetime.fromisoformat(SYSTEM["creationTimestamp"]).timestamp()
SHOWN = [case for case in CASES if "cells" in FAMILIES[case.family][case.name]]


def named(case: Case) -> str:
    return case.name.replace(" ", "-")


@pytest.mark.parametrize("case", CASES, ids=named)
def test_created_and_updated_as_the_real_server_does(case: Case):
    want = {key: value for key, value in FAMILIES[case.family][case.name].items() if key != "cells"}
    assert play(case, Runner(case)) == want


@pytest.mark.parametrize("case", SHOWN, ids=named)
def test_shown_in_a_table_as_the_real_server_does(case: Case):
    shown = table(case.kind, [Runner(case).create()], NOW)
    columns = [[c["name"], c["type"], c["format"], c["priority"]] for c in shown["columnDefinitions"]]
    assert columns == recorded("columns")[case.name]
    assert timeless(shown["rows"][0]["cells"]) == timeless(FAMILIES[case.family][case.name]["cells"])


def timeless(cells: list[Any]) -> list[Any]:
    """Cells without what differs from run to run."""
    text = re.sub(r'"\d+(s|y\d+d)"', '"AGE"', json.dumps(cells))
    text = re.sub(r'"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"', '"TIME"', text)
    text = re.sub(r'"10\.0\.\d+\.\d+"', '"ADDRESS"', text)
    text = re.sub(r":3\d{4}/", ":PORT/", text)
    text = re.sub(r"\w{8}(-\w{4}){3}-\w{12}", "UID", text)
    found: list[Any] = json.loads(text)
    return found


@pytest.mark.parametrize("case", SHOWN, ids=named)
def test_what_can_be_selected_by_has_a_value(case: Case):
    found = case.kind.strategy.fields(Runner(case).create())
    # The real server takes status.podIPs, too, and finds nothing by it.
    assert set(found) == case.kind.selectable - {"status.podIPs"}


@pytest.mark.parametrize("kind", builtin_kinds(), ids=lambda kind: f"{kind.api_version}-{kind.kind}")
def test_discovered_as_the_real_server_does(kind: Kind):
    root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    resources = recorded("discovery")[root]
    want = resources[kind.plural]
    found = {
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": sorted(kind.verbs),
        "shortNames": sorted(kind.short_names),
        "categories": sorted(kind.categories),
    }
    if kind.kind == "APIService":  # ours is read only
        found["verbs"] = want["verbs"]
    assert found == {
        "shortNames": [],
        "categories": [],
        **want,
        "verbs": sorted(want["verbs"]),
        **({"shortNames": sorted(want["shortNames"])} if "shortNames" in want else {}),
    }
    below = {name.partition("/")[2] for name in resources if name.startswith(f"{kind.plural}/")}
    assert kind.subresources == below - ({"status"} if kind.kind == "APIService" else set())
