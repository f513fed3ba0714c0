"""Every reason has its runbook, and every runbook its six sections."""

import re
from pathlib import Path

import pytest

from pilotage.models import Reason

FOLDER = Path(__file__).parents[2] / "docs" / "runbooks"
SECTIONS = ["Trigger", "Diagnose", "Mitigate", "Resolve", "Verify", "Related"]
PAGES = sorted(path.name for path in FOLDER.glob("model-*.md"))


@pytest.mark.parametrize("reason", [*Reason, "InUse", "CacheNotRemoved"])
def test_a_reason_leads_to_a_runbook_that_speaks_of_it(reason):
    rows = [line for line in (FOLDER / "README.md").read_text().splitlines() if f"`{reason}`" in line]
    assert len(rows) == 1
    page = re.search(r"\]\(([a-z-]+\.md)\)", rows[0])
    assert page
    assert f"`{reason}`" in (FOLDER / page[1]).read_text()


@pytest.mark.parametrize("page", PAGES)
def test_a_runbook_has_its_sections_and_leads_nowhere_that_is_not(page):
    text = (FOLDER / page).read_text()
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == SECTIONS
    assert page in (FOLDER / "README.md").read_text()
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert (FOLDER / link).exists(), link
