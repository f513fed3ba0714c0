import re
from pathlib import Path

import pytest

from conformance.specs import E2E, FAMILIES, binary, chosen, family, focus, short
from controlplane.assets import BINARIES, cache_folder
from controlplane.build import NoGo
from tests.controlplane.fake_go import FakeGo

WATCH = "[sig-api-machinery] Watchers should observe add events [Conformance]"
SERIAL = "[sig-api-machinery] Namespaces [Serial] should patch a Namespace [Conformance]"
PRIVILEGED = (
    "[sig-api-machinery] CustomResourceDefinition resources [Privileged:ClusterAdmin] Simple CustomResourceDefinition "
    "listing custom resource definition objects works [Conformance]"
)
OTHERS = (
    "[sig-api-machinery] Watchers should do what is not asked of everybody",
    "[sig-api-machinery] CustomResourceDefinition Watch [Privileged:ClusterAdmin] watches [Conformance]",
    "[sig-apps] Watchers should be of another group [Conformance]",
    "[sig-api-machinery] AdmissionWebhook should need a container [Conformance]",
)
ALL = (WATCH, SERIAL, PRIVILEGED, *OTHERS)


def test_conformance_specs_of_our_families_are_chosen_and_no_others():
    assert chosen(ALL, "") == [WATCH, SERIAL, PRIVILEGED]


@pytest.mark.parametrize(
    ("only", "found"), [("watchers", [WATCH]), ("patch|listing", [SERIAL, PRIVILEGED]), ("x{9}", [])]
)
def test_a_regular_expression_chooses_among_them_whatever_the_case(only: str, found: list[str]):
    assert chosen(ALL, only) == found


def test_the_focus_selects_exactly_the_specs_given():
    pattern = re.compile(focus([WATCH, SERIAL]))
    names = [*ALL, f"{WATCH} twice", f"x{SERIAL}"]
    assert [name for name in names if pattern.search(f"Kubernetes e2e suite {name}")] == [WATCH, SERIAL]


def test_a_family_that_begins_like_another_is_told_apart():
    assert family("[sig-api-machinery] AggregatedDiscovery should work [Conformance]") == "AggregatedDiscovery"
    assert family("[sig-api-machinery] Discovery should work [Conformance]") == "Discovery"
    assert family(PRIVILEGED) == "CustomResourceDefinition resources"
    assert family(OTHERS[1]) == ""


def test_tags_are_no_part_of_the_short_name():
    assert short(SERIAL) == "Namespaces should patch a Namespace"
    assert short(WATCH) == "Watchers should observe add events"


def test_every_family_is_named_once():
    assert len(set(FAMILIES)) == len(FAMILIES)


def env(folder: Path, go: FakeGo) -> dict[str, str]:
    return {"PATH": str(go.path), "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}


def test_the_binary_is_built_once_into_a_folder_of_its_own(tmp_path: Path):
    go = FakeGo(tmp_path)
    lines: list[str] = []
    path = binary(env(tmp_path, go), lines.append)
    assert path.is_file()
    assert path.parent != cache_folder(env(tmp_path, go))
    assert binary(env(tmp_path, go), lines.append) == path
    assert go.calls == ["e2e.test"]


def test_without_go_it_says_what_is_missing(tmp_path: Path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(NoGo, match="e2e"):
        binary({"PATH": str(tmp_path / "empty"), "HOME": str(tmp_path)}, lambda _: None)


def test_the_specs_are_those_of_the_version_that_the_control_plane_is_built_from():
    assert {each.ldflags for each in BINARIES if "k8s.io/kubernetes" in each.package} == {E2E.ldflags}
