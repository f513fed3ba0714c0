"""The simulator stands above everything: nothing that is installed for users imports it."""

import re
from pathlib import Path

import pilotage
import pilotage_harbor

STATEMENT = re.compile(r"^\s*(?:from|import) pilotage_sim\b", re.MULTILINE)


def test_nothing_imports_the_simulator():
    sources = [Path(package.__file__).parent for package in (pilotage, pilotage_harbor)]
    modules = [module for source in sources for module in source.rglob("*.py")]
    assert [str(module) for module in modules if STATEMENT.search(module.read_text())] == []
