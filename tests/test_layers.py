"""Imports follow the layers downwards, and the command line starts light."""

import ast
import graphlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pilotage
from docs.layers import LAYERS, PICTURE, imported_packages, picture

HEAVY = ("pydantic", "fastapi", "sqlalchemy", "rich", "aiohttp", "prometheus_client", "yaml")

PROGRAMS = {"agent", "gateway", "operator", "processes", "up"}
"""Packages that run as processes of their own, and may end one."""
PRODUCT_LOGIC = (
    "engine.(?:actions|decide|executor|observations|observers|prove|run_state|saved)",
    "planning.(?:closure|order|plan)",
    "relations",
    "snapshot.gather",
)
"""Modules of the teardown that a front end has no business with."""

SOURCE = Path(pilotage.__file__).parent
OTHERS = re.compile(r"^\s*(?:from|import) pilotage_", re.MULTILINE)
LEVEL = {package: level for level, packages in enumerate(LAYERS) for package in packages}


def upward_imports(source: Path) -> list[str]:
    return [
        f"{module.relative_to(source)} imports pilotage.{imported}"
        for package, level in LEVEL.items()
        for module in (source / package).rglob("*.py")
        for imported in imported_packages(module)
        if imported != package and LEVEL.get(imported, len(LAYERS)) >= level
    ]


CIRCULAR = (
    ("pilotage.kube.discovery", "pilotage.kube.discovery_memory"),
    ("pilotage.runtime.lazy_logger", "pilotage.runtime.logs"),
    ("pilotage.serving.runtimes.contract", "pilotage.serving.runtimes.stop"),
)
"""Imports of types alone, or inside of a function, that close a circle of modules."""


def imports(source: Path) -> dict[str, set[str]]:
    """Modules that each module of a package imports, anywhere in it: types and imports inside of functions too."""
    files = {
        ".".join((source.name, *each.relative_to(source).with_suffix("").parts)): each for each in source.rglob("*.py")
    }
    files = {name.removesuffix(".__init__"): file for name, file in files.items()}
    found: dict[str, set[str]] = {}
    for name, file in files.items():
        statements = [each for each in ast.walk(ast.parse(file.read_text())) if isinstance(each, ast.ImportFrom)]
        meant = {f"{each.module}.{alias.name}" for each in statements for alias in each.names}
        found[name] = {each if each in files else each.rpartition(".")[0] for each in meant} & files.keys() - {name}
    return found


def circle(source: Path) -> list[str]:
    """Modules that import each other in a circle; empty if there are none but those of `CIRCULAR`."""
    graph = imports(source)
    for importer, imported in CIRCULAR:
        graph.get(importer, set()).discard(imported)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def test_every_package_has_a_layer():
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert packages == set(LEVEL)


def test_the_picture_is_current():
    assert PICTURE.read_text() == picture(), "python -m docs.layers writes it"


def test_imports_go_down():
    assert upward_imports(SOURCE) == []


def test_no_modules_import_each_other_in_a_circle():
    """Types and imports inside of functions count: a circle that does not fail at the start is still one."""
    assert circle(SOURCE) == []


def test_a_circle_is_found(tmp_path):
    source = tmp_path / "pilotage"
    source.mkdir()
    (source / "one.py").write_text("from pilotage.two import Two\n")
    (source / "two.py").write_text("def f():\n    from pilotage.one import One\n")
    assert sorted(set(circle(source))) == ["pilotage.one", "pilotage.two"]


def test_only_the_command_that_serves_it_imports_harbor_and_nothing_imports_the_simulator():
    users = {str(module.relative_to(SOURCE)) for module in SOURCE.rglob("*.py") if OTHERS.search(module.read_text())}
    assert users == {"cli/commands/harbor.py"}


def test_an_upward_import_is_found(tmp_path):
    (tmp_path / "kube").mkdir()
    (tmp_path / "kube" / "bad.py").write_text("def f():\n    from pilotage.runtime import Manager\n")
    assert upward_imports(tmp_path) == ["kube/bad.py imports pilotage.runtime"]


def test_only_the_command_line_parses_prints_and_exits():
    """A front end of another kind calls the layers below: nothing there speaks to a terminal."""
    speaks = re.compile(r"^\s*(?:import|from) click\b|^\s*print\(|\bsys\.exit\(", re.MULTILINE)
    below = {package for packages in LAYERS[:-1] for package in packages} - PROGRAMS
    found = [module for package in below for module in (SOURCE / package).rglob("*.py")]
    assert [str(module) for module in found if speaks.search(module.read_text())] == []


def test_the_command_line_neither_gathers_nor_plans_nor_drives():
    """`pilotage.teardown.session` does: what a command line needs besides is to parse, to ask, and to print."""
    modules = (SOURCE / "cli").rglob("*.py")
    logic = re.compile(r"^\s*(?:from|import) pilotage\.teardown\.(?:" + "|".join(PRODUCT_LOGIC) + r")\b", re.MULTILINE)
    assert [str(module) for module in modules if logic.search(module.read_text())] == []


@pytest.mark.parametrize("arguments", [["--help"], ["version", "--help"], ["version", "--client"]])
def test_the_command_line_imports_nothing_heavy(arguments):
    program = (
        "import sys\n"
        "from pilotage.cli import pilotage\n"
        f"pilotage({arguments!r}, standalone_mode=False)\n"
        f"print('HEAVY', sorted(set({HEAVY!r}) & set(sys.modules)))\n"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines()[-1] == "HEAVY []"
