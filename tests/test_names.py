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


WIRE_TWINS = {
    "OwnerReference": "an element of metadata.ownerReferences, as the client and as the garbage collector decode it",
    "StatusCause": "an element of Status.details.causes, which the server encodes and the client decodes",
}
"""Classes for the two ends of one type on the wire, with the type: the only names that two distributions share."""


def homes_of_classes(*sources: Path) -> dict[str, list[str]]:
    """Modules that define a class, by the public name of the class."""
    homes = defaultdict(list)
    for source in sources:
        for module in sorted(source.rglob("*.py")):
            for node in ast.parse(module.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    homes[node.name].append(str(module.relative_to(source.parent)))
    return homes


def test_a_public_class_name_occurs_once_in_all_distributions_together():
    homes = homes_of_classes(*DISTRIBUTIONS.values())
    shared = {name: modules for name, modules in homes.items() if len(modules) > 1}
    assert {name: modules for name, modules in shared.items() if name not in WIRE_TWINS} == {}
    assert {name: len(modules) for name, modules in shared.items()} == dict.fromkeys(WIRE_TWINS, 2)


def test_a_second_class_of_a_name_is_found(tmp_path):
    for module in ("one/a.py", "one/b.py", "two/c.py"):
        (tmp_path / module).parent.mkdir(exist_ok=True)
        (tmp_path / module).write_text("class Seen: ...\nclass _Own: ...\n")
    assert homes_of_classes(tmp_path / "one", tmp_path / "two") == {"Seen": ["one/a.py", "one/b.py", "two/c.py"]}


CALQUES = ("What ", "Who ", "See ")
PREPOSITIONS = (
    *("After ", "As ", "At ", "Between ", "By ", "For ", "From "),
    *("In ", "Of ", "On ", "To ", "Until ", "With ", "Without "),
)
"""First words of a note that lacks its subject, such as "Of the collection" and "Until it is gone"."""
FOLDERS = ("bench", "conformance", "controlplane", "demo", "deploy", "docs", "faults", "field", "fuzz", "tests")


def docstrings_that_begin_with(words: tuple[str, ...], source: Path) -> list[str]:
    """Docstrings and attribute notes below a folder that begin with one of the words, each with its module."""
    return [
        f"{module.name}: {text[:60]}"
        for module in source.rglob("*.py")
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(text := node.value.value, str) and text.startswith(words)
    ]


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_a_docstring_begins_with_a_noun_or_a_verb(distribution):
    assert docstrings_that_begin_with(CALQUES + PREPOSITIONS, DISTRIBUTIONS[distribution]) == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_docstring_of_a_test_or_a_tool_does_not_postpone_its_subject(folder):
    assert docstrings_that_begin_with(CALQUES, ROOT / folder) == []


def test_a_docstring_without_a_subject_is_found(tmp_path):
    (tmp_path / "a.py").write_text('"""What it does."""\nSECONDS = 1\n"""Of a wait."""\nTEXT = "See there"\n')
    assert docstrings_that_begin_with(CALQUES + PREPOSITIONS, tmp_path) == ["a.py: What it does.", "a.py: Of a wait."]
