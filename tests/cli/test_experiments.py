"""``pilotage experiments``, ``terminate`` and ``verdict``."""

import json

import pytest

from pilotage.api.names import EXPERIMENTS
from pilotage.kube import Client, Json, Object, merge_patch
from tests.cli.serving import CANARY, Chat, rolling, serving, verdict_of
from tests.support.waiting import until

SPEC: Json = {
    "endpoint": {"name": "a"},
    "variants": [{"name": "q8", "weight": 10, "overrides": {"model": {"name": "q8"}}}],
}
SHARE: Json = {"wanted": 10, "programmed": 10, "effective": 9.5}


def running(**more: object) -> Json:
    variant = {
        "name": "q8",
        "revision": "a-2",
        "replicas": {"ready": 1, "desired": 1},
        "weight": SHARE,
        "inFlight": 3,
        "verdict": verdict_of("Undecided"),
    }
    status = {
        "phase": "Running",
        "summary": "q8 10",
        "started": "2026-01-01T00:00:00Z",
        "until": "2999-01-01T00:00:00Z",
    }
    return status | {"variants": [variant], "verdict": verdict_of("Undecided")} | more


def make(chat: Chat, status: Json | None = None, name: str = "q8") -> Object:
    return chat.create(EXPERIMENTS, {"metadata": {"name": name}, "spec": SPEC}, status)


def test_experiments_are_listed_with_a_line_for_each(chat: Chat):
    make(chat, running())
    make(chat, {"phase": "Ended", "reason": "Completed"}, "z")
    head, first, second = chat.run("experiments").out.splitlines()
    assert head.split() == ["NAME", "ENDPOINT", "PHASE", "VARIANTS", "VERDICT", "LEFT", "AGE"]
    assert first.split()[:6] == ["q8", "a", "Running", "q8", "10", "Undecided"]
    assert first.split()[6].endswith("d")
    assert second.split()[:6] == ["z", "a", "Ended", "(Completed)", "-", "-"]
    assert "No experiments found." in chat.run("experiments", "-l", "a=b").err


def test_one_shows_what_each_variant_gets_and_the_next_commands(chat: Chat):
    make(chat, running(waitingFor="one Envoy cannot be read"))
    lines = chat.run("experiments", "q8").out.splitlines()
    assert lines[0] == f"experiment/q8 -n {chat.namespace}  Running"
    assert "Waits for  one Envoy cannot be read" in lines
    (row,) = [line.split() for line in lines if line.startswith("q8 ")]
    assert row == ["q8", "a-2", "1", "of", "1", "10", "%", "10", "%", "9.5", "%", "3", "Undecided"]
    assert f"| pilotage terminate q8 -n {chat.namespace}" in lines[-1]


def test_one_that_has_ended_shows_no_shares_of_what_is_gone(chat: Chat):
    make(chat, running(phase="Ended", reason="Completed", variants=[{"name": "q8", "weight": {"wanted": 0}}]))
    lines = chat.run("experiments", "q8").out.splitlines()
    (row,) = [line.split() for line in lines if line.startswith("q8 ")]
    assert row == ["q8", *["-"] * 7]


def asked_to_end(obj: Object | None) -> bool:
    return obj is not None and obj.get("spec", "terminate") is True


def test_terminate_sets_the_field_and_waits_for_the_end(chat: Chat):
    make(chat, running())

    async def operate(client: Client) -> None:
        await until(client, EXPERIMENTS, chat.key("q8"), asked_to_end)
        for status in ({"phase": "Leaving", "waitingFor": "3 requests in flight"}, {"phase": "Ended"}):
            patch = merge_patch({"status": status | {"reason": "Terminated"}})
            await client.patch(EXPERIMENTS, chat.key("q8"), patch, subresource="status")

    with chat.meanwhile(operate):
        ran = chat.run("terminate", "q8", "--wait", "--timeout", "20")
    assert ran.code == 0, ran.err
    assert "has ended (Terminated)" in ran.err
    assert "has ended already (Terminated)" in chat.run("terminate", "q8").out


def test_terminate_says_what_it_waits_for_when_its_time_is_over(chat: Chat):
    make(chat, running(phase="Leaving", reason="Terminated", waitingFor="3 requests in flight"))
    ran = chat.run("terminate", "q8", "--wait", "--timeout", "0.3")
    assert ran.code == 1
    assert "3 requests in flight\n" in ran.err
    assert "has not ended; the operator continues" in ran.err


# verdict


@pytest.mark.parametrize(
    ("result", "code"), [("Better", 0), ("NoWorse", 0), ("Worse", 1), ("Undecided", 4), ("Invalid", 5)]
)
def test_the_exit_code_of_a_verdict_is_for_scripts(chat: Chat, result: str, code: int):
    chat.make("a", rolling("a", "Analysing", 3, verdict=verdict_of(result)), strategy=CANARY)
    ran = chat.run("verdict", "a")
    assert ran.code == code
    assert ran.out.splitlines()[0] == "a-2 against a-1: 2,214 and 2,187 requests in 48 min"
    assert "About 13,000 more requests each would decide it." in ran.out


def test_no_numbers_are_no_pass(chat: Chat):
    chat.make("a", rolling("a", "Analysing", 3), strategy=CANARY)
    ran = chat.run("verdict", "se/a")
    assert (ran.code, ran.out.startswith("Undecided: the rollout of a-2 has no measured numbers yet")) == (4, True)


def test_the_verdict_of_an_experiment_is_that_of_its_worst_variant(chat: Chat):
    make(chat, running(verdict=verdict_of("Worse")))
    ran = chat.run("verdict", "experiment/q8", "-o", "json")
    told = json.loads(ran.out)
    assert (ran.code, told["result"], told["of"]) == (1, "Worse", "experiment/q8")
    assert [each["result"] for each in told["verdicts"]] == ["Undecided"]


def test_what_is_not_compared_has_no_verdict(chat: Chat):
    claimed = {"name": "q8", "uid": "u", "phase": "Running"}
    chat.make("a", serving("a", experiments=[claimed]))
    ran = chat.run("verdict", "a")
    assert ran.code == 2
    assert f"Its Experiments: pilotage verdict experiment/q8 -n {chat.namespace}" in ran.err
    assert chat.run("verdict", "pod/a").code == 2
