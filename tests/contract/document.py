"""docs/harbor-contract.md, made from the cases themselves."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from tests.contract.cases import CASES
from tests.contract.deviations import DEVIATIONS
from tests.contract.facts import FACTS

DOCUMENT = Path(__file__).parents[2] / "docs" / "harbor-contract.md"

HEAD = """\
# The contract between harbor and kube-apiserver

harbor is held to the real API server by one suite, `tests/contract`. A case sends requests, by plain HTTP, with our own
client or with the real kubectl, in a namespace of its own. What comes back is noted: status code, the headers that mean
something (content type, warnings, retry-after), and the whole body. What cannot be the same twice is replaced by names
that keep equality: the first uid that a case sees is UID-1, the first version RV-1; times, tokens, ports and addresses
likewise.

- `tests/contract/recorded` holds what kube-apiserver 1.36.4 answered, with those controllers of kube-controller-manager
  beside it whose work harbor does itself: they collect garbage, delete namespaces, aggregate roles, release volumes and
  count quotas. `python -m tests.contract.record` asks it again.
- On harbor each case must give the recorded answers, unless it is a deviation listed below. A deviation that does not
  differ any more fails as well.
- On a real cluster the same cases check that the recording is still true.

This page is made by `UPDATE_DOCS=1 pytest tests/contract -k document`.
"""


def document() -> str:
    """The whole page."""
    return "\n".join([HEAD, _themes(), _facts(), _deviations()])


def _themes() -> str:
    counts = Counter(case.theme for case in CASES.values())
    words: dict[str, list[str]] = {}
    for name in sorted(name for name in sys.modules if name.startswith("tests.contract.cases.")):
        theme = getattr(sys.modules[name], "theme", None)
        if theme is not None:
            words.setdefault(theme.name, []).append((sys.modules[name].__doc__ or "").strip().splitlines()[0])
    rows = [f"| {theme} | {count} | {' '.join(words[theme])} |" for theme, count in counts.items()]
    return "\n".join([f"## {len(CASES)} cases\n", "| theme | cases | what it asks |", "| --- | --- | --- |", *rows, ""])


def _facts() -> str:
    lines = ["## Facts that are pinned\n"]
    for number, fact in FACTS.items():
        ids = ", ".join(f"`{case.id}`" for case in CASES.values() if number in case.facts)
        lines.append(f"- **{number}** {fact}\n  {ids}")
    return "\n".join([*lines, ""])


def _deviations() -> str:
    lines = [f"## {len(DEVIATIONS)} deviations\n"]
    lines += [f"- `{case_id}`: {reason}" for case_id, reason in DEVIATIONS.items()]
    return "\n".join([*lines, ""])
