"""Figures: plain tables with words on the left and numbers on the right, and the CPU that something took."""

import os
from collections.abc import Sequence

WORDS = 2
"""So many columns hold words."""


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows as aligned lines; the first is the head."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(_cell(index, cell, widths[index]) for index, cell in enumerate(row)).rstrip() for row in rows]


def number(value: float) -> str:
    """Number with its significant digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def ratio(value: float, base: float | None) -> str:
    """Ratio to the base; empty where there is none."""
    return "" if not base else number(value / base)


def cpu_seconds() -> float:
    """CPU seconds of this process and of all that it has started and waited for."""
    return sum(os.times()[:4])


def _cell(index: int, cell: str, width: int) -> str:
    return cell.ljust(width) if 0 < index < WORDS else cell.rjust(width)
