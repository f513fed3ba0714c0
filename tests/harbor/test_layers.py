"""What harbor imports of Pilotage."""

import re
from pathlib import Path

import pilotage_harbor

SOURCE = Path(pilotage_harbor.__file__).parent
ALLOWED = {
    "pilotage.kube.selectors",
    "pilotage.kube.wire",
    "pilotage.private_files",
}


def imports_of_pilotage(source):
    statement = re.compile(r"^\s*(?:from|import) (pilotage(?:\.\S*)?)(?=\s)", re.MULTILINE)
    return {name for module in source.rglob("*.py") for name in statement.findall(module.read_text())}


def test_harbor_knows_only_what_objects_and_names_look_like():
    assert imports_of_pilotage(SOURCE) == ALLOWED


def test_another_import_is_found(tmp_path):
    (tmp_path / "bad.py").write_text("def f():\n    from pilotage.kube import Client\n")
    assert imports_of_pilotage(tmp_path) == {"pilotage.kube"}
