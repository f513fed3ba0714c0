"""Results: figures side by side, in aligned columns or as plain data. Every ratio is relative to Pilotage."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

PILOTAGE = "pilotage"


@dataclass(frozen=True, slots=True)
class Figure:
    """One measure of every contestant. Who is missing was not measured."""

    measure: str
    unit: str
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Goal:
    """Upper bound that we promised for a value."""

    what: str
    value: float
    bound: float
    unit: str

    @property
    def met(self) -> bool:
        """Whether the promise holds."""
        return self.value <= self.bound

    def __str__(self) -> str:
        verdict = "met" if self.met else "MISSED"
        return f"goal: {self.what} ≤ {_number(self.bound, self.unit)}: {_number(self.value, self.unit)}, {verdict}"


@dataclass(slots=True)
class Section:
    """The outcome of one benchmark."""

    name: str
    title: str
    figures: list[Figure] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, measure: str, unit: str, values: Mapping[str, float]) -> None:
        """One more line of the table."""
        self.figures.append(Figure(measure, unit, values))

    def as_data(self) -> dict[str, Any]:
        """Value for JSON."""
        goals = [asdict(goal) | {"met": goal.met} for goal in self.goals]
        return asdict(self) | {"goals": goals}

    def __str__(self) -> str:
        lines = [self.title, "=" * len(self.title), *_table(self.figures)]
        lines += [str(goal) for goal in self.goals]
        lines += self.notes
        return "\n".join(lines)


def _table(figures: Sequence[Figure]) -> list[str]:
    """Pilotage first; each of the others with its ratio to it."""
    named = dict.fromkeys(name for figure in figures for name in figure.values)
    others = [name for name in named if name != PILOTAGE]
    rows = [["", PILOTAGE, *(cell for name in others for cell in (name, "ratio"))]]
    for figure in figures:
        ours = figure.values.get(PILOTAGE)
        row = [figure.measure, _cell(ours, figure.unit)]
        for name in others:
            value = figure.values.get(name)
            row += [_cell(value, figure.unit), _ratio(value, ours)]
        rows.append(row)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if index else cell.ljust(width) for index, (cell, width) in enumerate(pairs)
        ).rstrip()
        for pairs in (list(zip(row, widths, strict=True)) for row in rows)
    ]


def _cell(value: float | None, unit: str) -> str:
    return "–" if value is None else _number(value, unit)


def _number(value: float, unit: str) -> str:
    digits = 0 if value >= 100 or value == int(value) else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {unit}".rstrip()


def _ratio(value: float | None, ours: float | None) -> str:
    if value is None or not ours:
        return ""
    ratio = value / ours
    return f"×{ratio:.0f}" if ratio >= 20 else f"×{ratio:.1f}" if ratio >= 2 else f"×{ratio:.2f}"
