"""A page is compared by what stays the same in every run, and by nothing less."""

from __future__ import annotations

import pytest

from tests.quickstarts.page import Page
from tests.quickstarts.person import Person

TEXT = """\
A table.

```console
$ list
NAME   READY   AGE
web    1/1     3s
$ cat <<END
> a
> END
a
(exit code 1)
```
"""


def played(*said: str) -> str:
    answers = iter(said)
    return Page(TEXT).played(lambda _: next(answers)).text


def test_a_page_stays_where_its_commands_print_the_same_at_another_time():
    commands: list[str] = []
    Page(TEXT).played(lambda command: commands.append(command) or "")
    assert commands == ["list\n", "cat <<END\na\nEND\n"]
    assert played("NAME         READY   AGE\nweb   1/1   2m10s\n", "a\n(exit code 1)\n") == TEXT


@pytest.mark.parametrize(
    "said",
    [
        "NAME   READY   AGE\nweb    0/1     3s\n",
        "NAME   READY   AGE\nweb    1/1     3s\n         web\n",
        "NAME   READY   AGE\nweb    1/1     3s\nup       1 of 1 ready   1.0 s\n",
        "NAME   AGE\nweb    3s\n",
        "",
    ],
)
def test_an_output_that_differs_replaces_that_of_the_page(said: str):
    assert played(said, "a\n(exit code 1)\n") == TEXT.replace("NAME   READY   AGE\nweb    1/1     3s\n", said)


def test_an_exit_code_that_differs_is_a_difference():
    assert played("NAME READY AGE\nweb 1/1 3s\n", "a\n") == TEXT.replace("(exit code 1)\n", "")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("pod/web-6d949b894c-25v8f -n shop", "pod/web-7c58d9c7b5-x2zvd -n shop"),
        ("pod/web-8b65c4c7-rn6mr -n shop", "pod/web-7c58d9c7b5-x2zvd -n shop"),
        ("teardown/web-a114d910", "teardown/web-5f65d0dc"),
        ("(uid 4641c1b7-729e-441e-b89e-ee7fef0b978c)", "(uid 9a2c561b-88c6-42ff-978d-006078217e61)"),
        ("read at 2026-11-18T01:26:16Z", "read at 2027-01-02T11:12:13Z"),
        ("Receipt: typo-20261118-012613.json", "Receipt: typo-20270102-111213.json"),
        ("terminating for 5 s", "terminating for 12m30s"),
        ("http://127.0.0.1:40001/v1", "http://127.0.0.1:40002/v1"),
        ("up       starting   0.1 s\nup       1 of 1 ready   1.0 s", "up       1 of 1 ready    0.8 s"),
        (
            "up       1 of 1 ready   1.0 s\nroute    moved   1.2 s",
            "route    moved   0.9 s\nup       1 of 1 ready   1.1 s",
        ),
        ("operator has not seen it yet   0.0 s\nend", "end"),
    ],
)
def test_the_moment_is_no_difference(one: str, other: str):
    page = f"```console\n$ it\n{one}\n```\n"
    assert Page(page).played(lambda _: f"{other}\n").text == page


def test_an_output_with_lines_that_are_not_compared_is_written_anew():
    waited = "```console\n$ it\nup       starting   0.1 s\nup       ready   1.0 s\n```\n"
    said = "up       ready    0.8 s\n"
    assert Page(waited).played(lambda _: said).text == waited
    assert Page(waited).played(lambda _: said, anew=True).text == f"```console\n$ it\n{said}```\n"


def test_a_person_keeps_what_was_exported_and_sees_both_outputs_and_the_exit_code():
    with Person() as person:
        assert person.type("export WHERE=~/here\n") == ""
        assert person.type("echo $WHERE; echo error >&2; false\n") == "/home/captain/here\nerror\n(exit code 1)\n"
        assert person.type("sleep 600 &\n") == ""
        assert person.type("cat; printf 8080\n") == "8080\n"
    assert not person.home.exists()
