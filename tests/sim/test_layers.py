"""The simulator is the top layer: nothing that is installed for users imports it, and it has no cycles."""

import re
from graphlib import TopologicalSorter
from pathlib import Path

import pilotage
import pilotage_harbor
import pilotage_sim
from tests.harbor.test_layers import imports

STATEMENT = re.compile(r"^\s*(?:from|import) pilotage_sim\b", re.MULTILINE)


def test_nothing_imports_the_simulator():
    sources = [Path(package.__file__).parent for package in (pilotage, pilotage_harbor)]
    modules = [module for source in sources for module in source.rglob("*.py")]
    assert [str(module) for module in modules if STATEMENT.search(module.read_text())] == []


def test_no_modules_import_each_other():
    TopologicalSorter(imports(Path(pilotage_sim.__file__).parent)).prepare()
