"""The layers of `pilotage`, and the picture of them: ``python -m docs.layers`` writes docs/layers.svg.

The rows are the contract that tests/test_layers.py enforces. The lines of the picture come from the import statements,
less those that follow from others; a test compares the file with the code.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "pilotage"
PICTURE = ROOT / "docs" / "layers.svg"

LAYERS: tuple[tuple[str, ...], ...] = (
    ("kube",),
    ("processes", "runtime"),
    ("api",),
    ("analysis", "catalogue"),
    ("teardown",),
    ("models", "serving", "traffic"),
    ("controllers", "rollout"),
    ("agent", "operator", "gateway"),
    ("up",),
    ("cli",),
)
"""Rows from the bottom up. A package imports lower rows only."""

BELOW_ALL = {"__version__", "private_files", "terminal"}
"""Modules of no layer, which every package may import."""

BESIDE = {"harbor": "pilotage_harbor", "sim": "pilotage_sim"}
"""The other distributions of this repository, by the folder below packages/."""

PURPOSES = {
    "kube": "the API client",
    "processes": "identity and end of processes",
    "runtime": "queues, informers, leases",
    "api": "our kinds",
    "analysis": "sums become a verdict",
    "catalogue": "a row per kind",
    "teardown": "plan, execute, prove, explain",
    "models": "weights",
    "serving": "parts of an endpoint",
    "traffic": "routes and drains",
    "controllers": "what the product decides",
    "rollout": "deploy, change, follow",
    "agent": "servers on a host",
    "operator": "controllers in one process",
    "gateway": "an Envoy and its control plane",
    "up": "everything on one machine",
    "cli": "commands",
    "harbor": "the API for one machine",
    "sim": "virtual time and faults",
}

WIDTH, BOX, HEIGHT, GAP = 1080, 230, 46, 34
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#16323f;text-anchor:middle}.note{font-size:11px;fill:#5a7582}"
    "rect{fill:#eef5f8;stroke:#2b6c85;rx:6}.beside rect{fill:#faf6ec;stroke:#a58a3c}"
    "path{fill:none;stroke:#2b6c85;stroke-opacity:.5}"
)


def imported_packages(module: Path) -> set[str]:
    """The packages of `pilotage` that a module imports, anywhere in it, types included."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are absolute"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    parts = [name.split(".") for name in names]
    return {part[1] for part in parts if part[0] == "pilotage" and len(part) > 1} - BELOW_ALL


def imports_of(folder: Path) -> set[str]:
    """The packages of `pilotage` that the modules in a folder import."""
    return {name for module in folder.rglob("*.py") for name in imported_packages(module)} - {folder.name}


class Place(NamedTuple):
    """The top centre of a box."""

    x: float
    y: float


def picture() -> str:
    """The SVG."""
    places = _places()
    imports = {package: imports_of(SOURCE / package) for row in LAYERS for package in row}
    imports |= {name: imports_of(ROOT / "packages" / name / "src" / package) for name, package in BESIDE.items()}
    imports["sim"].add("harbor")  # it is the simulator's API server
    height = max(place.y for place in places.values()) + HEIGHT + GAP / 2
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img">',
        "<title>The layers of Pilotage: a line is an import, and imports go down</title>",
        f"<style>{STYLE}</style>",
        *(_edge(places[package], places[other]) for package, other in sorted(_without_implied(imports))),
        "<g>",
        *(_box(package, places[package]) for package in imports if package not in BESIDE),
        '</g><g class="beside">',
        *(_box(package, places[package]) for package in BESIDE),
        "</g></svg>",
    ]
    return "\n".join(lines) + "\n"


def _places() -> dict[str, Place]:
    """Rows from the top down, centred; the other distributions have a column at the right."""
    places: dict[str, Place] = {}
    centre = (WIDTH - BOX - GAP) / 2
    for index, row in enumerate(reversed(LAYERS)):
        left = centre - (len(row) - 1) * (BOX + GAP) / 2
        for column, package in enumerate(row):
            places[package] = Place(left + column * (BOX + GAP), GAP / 2 + index * (HEIGHT + GAP))
    right = WIDTH - BOX / 2 - GAP / 2
    return places | {"sim": Place(right, places["up"].y), "harbor": Place(right, places["api"].y)}


def _without_implied(imports: dict[str, set[str]]) -> set[tuple[str, str]]:
    """The transitive reduction: an import that another package implies is left out."""

    def reached(package: str) -> set[str]:
        return {package}.union(*(reached(each) for each in imports[package]))

    return {
        (package, other)
        for package, others in imports.items()
        for other in others
        if not any(other in reached(each) for each in others - {other})
    }


def _edge(start: Place, end: Place) -> str:
    bend = (end.y - start.y - HEIGHT) / 2
    return (
        f'<path d="M{start.x:.0f} {start.y + HEIGHT:.0f}C{start.x:.0f} {start.y + HEIGHT + bend:.0f} '
        f'{end.x:.0f} {end.y - bend:.0f} {end.x:.0f} {end.y:.0f}"/>'
    )


def _box(package: str, place: Place) -> str:
    return (
        f'<rect x="{place.x - BOX / 2:.0f}" y="{place.y:.0f}" width="{BOX}" height="{HEIGHT}"/>'
        f'<text x="{place.x:.0f}" y="{place.y + 20:.0f}">{package}</text>'
        f'<text class="note" x="{place.x:.0f}" y="{place.y + 37:.0f}">{PURPOSES[package]}</text>'
    )


if __name__ == "__main__":
    PICTURE.write_text(picture())
    sys.stdout.write(f"{PICTURE.relative_to(ROOT)} is written\n")
