"""The catalogue: each kind once, and the generated table of what is read says what its rows say."""

import subprocess
import sys
from collections import Counter

from pilotage.catalogue import generate
from pilotage.catalogue.registry import ecosystems, kinds


def test_the_generated_table_is_current() -> None:
    assert generate.FILE.read_text() == generate.reading_table(), "run `make manifests`"


def test_a_kind_has_one_row() -> None:
    rows = Counter((row.group, row.kind, row.category) for each in ecosystems() for row in each.kinds)
    assert [kind for kind, times in rows.items() if times > 1] == []


def test_what_guards_or_monitors_has_relations() -> None:
    assert all(row.relations for row in kinds().values() if row.guard is not None or row.monitors)


def test_reading_can_begin_before_the_ecosystems_are_imported() -> None:
    program = (
        "import sys\n"
        "import pilotage.teardown.snapshot.gather, pilotage.catalogue.reading, pilotage.api.names\n"
        "print([name for name in sys.modules if name.startswith('pilotage.catalogue.ecosystems.')])\n"
        "print([name for name in ('pydantic', 'yaml') if name in sys.modules])\n"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines() == ["[]", "[]"]
