"""Messages in the status of a HostProcess."""

import pytest

from pilotage.agent.process_status import sentence


@pytest.mark.parametrize(
    ("phrase", "written"),
    [
        ("it needs 2 GiB", "It needs 2 GiB."),
        ("oci://registry/model cannot be read.", "oci://registry/model cannot be read."),
        ("runtime.command is not run here", "runtime.command is not run here."),
        ("llama-server ended with 1", "llama-server ended with 1."),
        ("", ""),
    ],
)
def test_a_sentence_keeps_the_case_of_urls_fields_and_programs(phrase: str, written: str) -> None:
    assert sentence(phrase) == written
