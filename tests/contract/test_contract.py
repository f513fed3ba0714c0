"""The contract: harbor answers as kube-apiserver did, and kube-apiserver still answers so."""

from __future__ import annotations

import os

import pytest

from tests.contract.cases import CASES
from tests.contract.compare import SHOWN, differences
from tests.contract.deviations import DEVIATIONS
from tests.contract.document import DOCUMENT, document
from tests.contract.facts import FACTS
from tests.contract.kit import Step
from tests.contract.record import problem

Transcripts = dict[str, list[Step]]

every_case = pytest.mark.parametrize("case_id", CASES)
by_http = pytest.mark.parametrize("case_id", [case.id for case in CASES.values() if case.theme != "kubectl"])
by_kubectl = pytest.mark.parametrize("case_id", [case.id for case in CASES.values() if case.theme == "kubectl"])


def check_harbor(case_id: str, recorded: list[Step], answered: list[Step]) -> None:
    found = differences(recorded, answered)
    if case_id in DEVIATIONS:
        assert found, f"{case_id} does not differ any more: take it off the list of deviations"
    else:
        assert not found, "\n".join([f"{len(found)} differences from the real server:", *found[:SHOWN]])


@by_http
def test_harbor(case_id: str, recorded: Transcripts, harbor_transcripts: Transcripts) -> None:
    check_harbor(case_id, recorded[case_id], harbor_transcripts[case_id])


@pytest.mark.cluster  # not that it needs one, but kubectl is built along with it
@by_kubectl
def test_harbor_with_kubectl(case_id: str, recorded: Transcripts, harbor_kubectl_transcripts: Transcripts) -> None:
    check_harbor(case_id, recorded[case_id], harbor_kubectl_transcripts[case_id])


@pytest.mark.cluster  # of its own
@every_case
def test_kubernetes(case_id: str, recorded: Transcripts, kubernetes_transcripts: Transcripts) -> None:
    found = differences(recorded[case_id], kubernetes_transcripts[case_id])
    assert not found, "\n".join(["the recording is not what the real server says:", *found[:SHOWN]])


def test_every_case_is_recorded(recorded: Transcripts) -> None:
    assert set(recorded) == set(CASES)
    assert not [case_id for case_id, steps in recorded.items() if problem(steps)]


def test_a_difference_fails_unless_it_is_listed_and_a_listed_case_must_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    want, other = [{"request": "GET /x", "status": 200}], [{"request": "GET /x", "status": 404}]
    check_harbor("some/case", want, want)
    with pytest.raises(AssertionError, match="recorded 200, came 404"):
        check_harbor("some/case", want, other)
    monkeypatch.setitem(DEVIATIONS, "some/case", "because")
    check_harbor("some/case", want, other)
    with pytest.raises(AssertionError, match="take it off the list"):
        check_harbor("some/case", want, want)


def test_every_deviation_is_a_case_with_a_reason() -> None:
    assert set(DEVIATIONS) <= set(CASES)
    assert all(len(reason) > 20 for reason in DEVIATIONS.values())


def test_every_fact_has_a_case() -> None:
    assert {fact for case in CASES.values() for fact in case.facts} == set(FACTS)


def test_the_document_is_current() -> None:
    if os.environ.get("UPDATE_DOCS"):
        DOCUMENT.write_text(document())
    assert DOCUMENT.read_text() == document()
