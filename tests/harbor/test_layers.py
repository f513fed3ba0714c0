"""Harbor's packages are layers, types included; of Pilotage it imports selectors, wire types and private files."""

import ast
import re
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import pilotage_harbor

SOURCE = Path(pilotage_harbor.__file__).parent
ALLOWED = {"pilotage.kube.selectors", "pilotage.kube.wire", "pilotage.private_files"}

# From the bottom up; those of one row do not import each other.
LAYERS = [
    {"apimachinery", "storage"},
    {"schema"},
    {"patching", "protobuf", "kinds"},
    {"access"},
    {"expressions"},
    {"builtin"},
    {"core"},
    {"admission"},
    {"verbs"},
    {"discovery"},
    {"housekeeping", "openapi"},
    {"api"},
    {"server"},
]
LEVEL = {package: level for level, packages in enumerate(LAYERS) for package in packages}


def modules(source: Path) -> dict[str, Path]:
    """The modules of a package by their dotted names below it; a package is its `__init__`."""
    paths = {path: path.relative_to(source).with_suffix("").parts for path in source.rglob("*.py")}
    return {".".join(parts[:-1] if parts[-1] == "__init__" else parts): path for path, parts in paths.items()}


def imports(source: Path) -> dict[str, set[str]]:
    """The modules that each module imports, anywhere in it: those for type checkers and those within functions, too."""
    known, package = modules(source), f"{source.name}."
    graph: dict[str, set[str]] = {}
    for name, path in known.items():
        found = graph[name] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                wanted = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                wanted = [f"{node.module}.{alias.name}" for alias in node.names]
            else:
                continue
            inside = [each.removeprefix(package) for each in wanted if each.startswith(package)]
            found |= {each if each in known else each.rpartition(".")[0] for each in inside} - {name}
    return graph


def upward_imports(source: Path) -> list[str]:
    return [
        f"{name} imports {imported}"
        for name, found in imports(source).items()
        for imported in sorted(found)
        if (here := name.partition(".")[0]) != (there := imported.partition(".")[0]) and LEVEL[there] >= LEVEL[here]
    ]


def imports_of_pilotage(source: Path) -> set[str]:
    statement = re.compile(r"^\s*(?:from|import) (pilotage(?:\.\S*)?)(?=\s)", re.MULTILINE)
    return {name for module in source.rglob("*.py") for name in statement.findall(module.read_text())}


def test_every_package_has_a_layer():
    assert {name.partition(".")[0] for name in modules(SOURCE)} - {""} == set(LEVEL)


def test_imports_go_down():
    assert upward_imports(SOURCE) == []


def test_no_modules_import_each_other():
    TopologicalSorter(imports(SOURCE)).prepare()


def test_a_public_class_name_occurs_once():
    found = Counter(
        node.name
        for path in modules(SOURCE).values()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in found.items() if count > 1] == []


def test_harbor_knows_only_what_objects_and_files_look_like():
    assert imports_of_pilotage(SOURCE) == ALLOWED


def test_an_upward_import_for_a_type_is_found(tmp_path):
    write(tmp_path, "kinds/kind", "if TYPE_CHECKING:\n    from pilotage_harbor.core import Core\n")
    write(tmp_path, "core/__init__", "")
    assert upward_imports(tmp_path / "pilotage_harbor") == ["kinds.kind imports core"]


def test_a_circle_within_a_package_is_found(tmp_path):
    write(tmp_path, "verbs/writes", "def patch():\n    from pilotage_harbor.verbs.patches import patch\n")
    write(tmp_path, "verbs/patches", "from pilotage_harbor.verbs import writes\n")
    with pytest.raises(CycleError):
        TopologicalSorter(imports(tmp_path / "pilotage_harbor")).prepare()


def test_another_import_of_pilotage_is_found(tmp_path):
    write(tmp_path, "bad", "def f():\n    from pilotage.kube import Client\n")
    assert imports_of_pilotage(tmp_path) == {"pilotage.kube"}


def write(folder: Path, module: str, text: str) -> None:
    path = folder / "pilotage_harbor" / f"{module}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
