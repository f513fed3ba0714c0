"""The page of the documentation that holds the table of the last recorded run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from conformance.results import table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.results import Result

NAME = "docs/conformance.md"
PAGE = Path(__file__).parent.parent / NAME
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->\n"


def record(runs: Mapping[str, Mapping[str, Result]]) -> None:
    """Put the results into the page."""
    PAGE.write_text(with_table(PAGE.read_text(), table(runs)))


def with_table(page: str, new: str) -> str:
    """The page with another table between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{new}\n{END}{after}"
