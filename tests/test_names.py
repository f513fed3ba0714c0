"""A name means one thing, and a docstring says it: rules of the vocabulary that a test can hold."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DISTRIBUTIONS = {
    "pilotage": ROOT / "src" / "pilotage",
    "harbor": ROOT / "packages" / "harbor" / "src" / "pilotage_harbor",
    "sim": ROOT / "packages" / "sim" / "src" / "pilotage_sim",
}


def homes_of_classes(source: Path) -> dict[str, list[str]]:
    """For each public class, the modules that define one of that name."""
    homes = defaultdict(list)
    for module in sorted(source.rglob("*.py")):
        for node in ast.parse(module.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(module.relative_to(source)))
    return homes


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_a_public_class_name_occurs_once(distribution):
    homes = homes_of_classes(DISTRIBUTIONS[distribution])
    assert {name: modules for name, modules in homes.items() if len(modules) > 1} == {}


def test_a_second_class_of_a_name_is_found(tmp_path):
    (tmp_path / "a.py").write_text("class Seen: ...\nclass _Own: ...\n")
    (tmp_path / "b.py").write_text("class Seen: ...\nclass _Own: ...\n")
    assert homes_of_classes(tmp_path) == {"Seen": ["a.py", "b.py"]}


CALQUES = ("What ", "Who ", "See ")


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_a_docstring_begins_with_a_noun_or_a_verb(distribution):
    """Not with "See", "What" or "Who": CONTRIBUTING.md."""
    found = [
        f"{module.name}: {text[:60]}"
        for module in DISTRIBUTIONS[distribution].rglob("*.py")
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(text := node.value.value, str) and text.startswith(CALQUES)
    ]
    assert found == []
