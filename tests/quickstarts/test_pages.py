"""The pages of docs/quickstarts show what their commands print. `UPDATE_DOCS=1` writes them anew."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path

import pytest

from controlplane import Cluster
from tests.cli.running import NO_SERVER
from tests.quickstarts.page import FOLDER, Page
from tests.quickstarts.person import Person
from tests.quickstarts.stuck import APISERVICE, stuck

ROOT = FOLDER.parents[1]
LINK = re.compile(r"\]\(([^)#:]*)(#[^)]*)?\)")


def play(name: str, person: Person) -> None:
    """Type the commands of a page, and compare."""
    written = Page((FOLDER / name).read_text(encoding="utf-8"))
    anew = bool(os.environ.get("UPDATE_DOCS"))
    now = written.played(person.type, anew=anew)
    if anew:
        (FOLDER / name).write_text(now.text, encoding="utf-8")
    else:
        changes = [
            *difflib.unified_diff(written.text.splitlines(), now.text.splitlines(), "written", "now", lineterm="")
        ]
        assert not changes, "\n".join(changes)


def test_one_box(box: Person) -> None:
    play("one-box.md", box)


def test_scripts(box: Person) -> None:
    (box.home / "elsewhere.yaml").write_text(NO_SERVER)
    play("scripts.md", box)


def test_contributor(checkout: Person) -> None:
    play("contributor.md", checkout)


def test_cluster(platform: Person) -> None:
    play("cluster.md", platform)


def test_stuck(own_cluster: Cluster, admin: Person) -> None:
    (admin.home / "metrics-adapter.yaml").write_text(APISERVICE)
    with stuck(own_cluster):
        play("stuck.md", admin)


def test_every_page_is_played() -> None:
    played = {name.removeprefix("test_").replace("_", "-") for name in globals() if name.startswith("test_")}
    assert {path.stem for path in FOLDER.iterdir()} <= played


@pytest.mark.parametrize("page", sorted(path.name for path in FOLDER.iterdir()))
def test_links_lead_to_a_heading(page: str) -> None:
    source = FOLDER / page
    for path, anchor in LINK.findall(source.read_text(encoding="utf-8")):
        target = source.parent / path if path else source
        assert target.exists(), path
        assert not anchor or anchor[1:] in headings(target), f"{path}{anchor}"


def headings(path: Path) -> set[str]:
    """The anchors that a renderer gives to the headings of a document."""
    titles = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_places_where_a_change_goes_exist() -> None:
    table = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("## Where a change goes")[2]
    named = re.findall(r"`([\w./]+/[\w./]*)`", table)
    assert len(named) > 30
    folders = [folder for folder in ROOT.iterdir() if not folder.name.startswith(".")]
    there = {str(path) for folder in folders for path in (folder, *folder.rglob("*"))}
    lost = {each for each in named if not any(path.endswith(f"/{each.rstrip('/')}") for path in there)}
    assert lost == {"cli/commands/NAME.py"}
