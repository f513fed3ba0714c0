from pathlib import Path

import pytest

from conformance.document import BEGIN, END, PAGE, with_table
from conformance.results import Result, read_names, read_results, table, unexpected
from conformance.specs import FAMILIES, NEEDS_CONTAINERS

PASSES = "[sig-api-machinery] Watchers should be told [Conformance]"
FAILS = "[sig-api-machinery] Discovery should be found [Conformance]"
NOT_RUN = "[sig-api-machinery] Namespaces [Serial] should go [Conformance]"
HOPELESS = f"[sig-api-machinery] {NEEDS_CONTAINERS[0]} [Conformance]"
REPORT = f"""<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="3"><testsuite name="Kubernetes e2e suite" tests="3">
  <testcase name="[SynchronizedBeforeSuite]" classname="suite" status="passed" time="1.5"></testcase>
  <testcase name="[It] {PASSES}" classname="suite" status="passed" time="0.25"></testcase>
  <testcase name="[It] {FAILS}" classname="suite" status="failed" time="3">
    <failure message="expected 200, got 404" type="failed">at line 3</failure>
  </testcase>
  <testcase name="[It] {NOT_RUN}" classname="suite" status="skipped" time="0">
    <skipped message="skipped"></skipped>
  </testcase>
</testsuite></testsuites>
"""


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "junit.xml"
    path.write_text(REPORT)
    return path


def test_every_spec_of_a_report_is_named(report: Path):
    assert read_names(report) == [PASSES, FAILS, NOT_RUN]


def test_results_are_of_the_specs_that_were_run(report: Path):
    assert read_results(report) == {
        PASSES: Result(PASSES, passed=True, seconds=0.25),
        FAILS: Result(FAILS, passed=False, seconds=3, failure="expected 200, got 404"),
    }


def test_the_table_has_a_row_for_each_spec_and_a_column_for_each_server(report: Path):
    good = {PASSES: Result(PASSES, True, 1.04), NOT_RUN: Result(NOT_RUN, True, 12.06)}
    assert table({"kubernetes": good, "harbor": read_results(report)}).splitlines() == [
        "| spec                       | kubernetes, s |  harbor, s |",
        "| -------------------------- | ------------: | ---------: |",
        "| Watchers: should be told   |           1.0 |        0.2 |",
        "| Namespaces: should go      |          12.1 |    not run |",
        "| Discovery: should be found |       not run |      fails |",
        "| passed                     |   2 of 2 (13) | 1 of 2 (0) |",
    ]


def test_a_failure_is_unexpected_on_either_server_unless_no_server_could_pass(report: Path):
    hopeless = {HOPELESS: Result(HOPELESS, False, 1)}
    assert unexpected({"kubernetes": read_results(report), "harbor": hopeless}) == [FAILS]
    assert unexpected({"kubernetes": hopeless, "harbor": hopeless}) == []


def test_a_new_table_replaces_the_old_one_and_nothing_else():
    page = f"# Title\n{BEGIN}old\n{END}The rest.\n"
    assert with_table(page, "new") == f"# Title\n{BEGIN}new\n{END}The rest.\n"
    assert with_table(with_table(page, "new"), "new") == with_table(page, "new")


def test_the_page_has_the_marks_and_names_every_family():
    text = PAGE.read_text()
    assert text.count(BEGIN) == text.count(END) == 1
    assert [family for family in FAMILIES if family not in text] == []
