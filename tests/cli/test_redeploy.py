"""``pilotage redeploy``: what changes, and how the change is followed until the old revision is gone."""

import datetime as dt
import io
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from pilotage.api.names import ENDPOINTS
from pilotage.cli.commands import redeploy
from pilotage.cli.output.progress import STEADY_SECONDS, Block, Lines
from pilotage.cli.rollout import RolloutView
from pilotage.kube import Client, Json, Object, merge_patch
from pilotage.kube.wire import parse_time
from pilotage.rollout import status
from pilotage.rollout.requests import change
from pilotage.rollout.status import RolloutStatus, RolloutStep, RolloutVerdict, rollout_status
from tests.cli.running import run
from tests.cli.serving import OTHER, SINCE, SOURCE, Chat, condition, part, revision, serving
from tests.cli.test_progress import Screen
from tests.rollout.test_status import GOAL, redeploying
from tests.support.waiting import until


def test_flags_change_what_they_name_and_no_more(chat: Chat):
    chat.make("a", replicas=2, runtime={"name": "vllm", "args": ["x"]})
    ran = chat.run("redeploy", "a", "--image", "acme/vllm:2", "--no-wait")
    assert (ran.code, ran.out) == (0, f"servingendpoint/a -n {chat.namespace} changed\n")
    spec = chat.spec("a")
    assert spec["runtime"] == {"name": "vllm", "args": ["x"], "image": "acme/vllm:2"}
    assert spec["replicas"] == 2


def test_a_file_is_taken_whole(chat: Chat, tmp_path: Path):
    chat.make("a", replicas=2, autoscaling={"max": 4}, metadata={"labels": {"mine": "yes"}})
    (tmp_path / "a.yaml").write_text(
        "apiVersion: pilotage.dev/v1alpha1\nkind: ServingEndpoint\nmetadata: {name: a, labels: {team: b}}\n"
        f"spec: {{model: {{source: '{OTHER}'}}}}\n"
    )
    ran = chat.run("redeploy", "-f", tmp_path / "a.yaml", "--no-wait")
    assert ran.code == 0, ran.err
    found = chat.find("a")
    assert found is not None
    assert found.meta.labels == {"mine": "yes", "team": "b"}
    spec = chat.spec("a")
    assert (spec["model"], spec["replicas"]) == ({"source": OTHER}, 1)
    assert "autoscaling" not in spec


def test_what_is_so_already_is_left_alone(chat: Chat):
    made = chat.make("a")
    ran = chat.run("redeploy", "a", "--model", SOURCE, "--replicas", "1")
    assert ran.code == 0
    assert "is unchanged" in ran.out
    found = chat.find("a")
    assert found is not None
    assert found.meta.resource_version == made.meta.resource_version


def test_what_the_server_refuses_changes_nothing(chat: Chat):
    made = chat.make("a")
    ran = chat.run("redeploy", "a", "--runtime", "custom")
    assert ran.code == 2
    assert "a custom runtime needs an image" in ran.err
    found = chat.find("a")
    assert found is not None
    assert found.meta.resource_version == made.meta.resource_version


def test_who_changes_it_meanwhile_is_not_overwritten(chat: Chat):
    chat.make("a")
    calls = []

    def alter(old: Object) -> Json:
        calls.append(old)
        if len(calls) == 1:
            patch = merge_patch({"spec": {"replicas": 7}})
            other = threading.Thread(
                target=lambda: chat.ask(lambda client: client.patch(ENDPOINTS, chat.key("a"), patch))
            )
            other.start()
            other.join()
        body = old.to_dict()
        return body | {"spec": body["spec"] | {"model": {"source": OTHER}}}

    chat.ask(lambda client: change(client, chat.key("a"), alter))
    assert (chat.spec("a")["replicas"], chat.spec("a")["model"]) == (7, {"source": OTHER})


def other_than(chat: Chat, spec: Json, alter: Callable[[Object], Json]) -> Callable[[Object], Json]:
    """Somebody else writes a spec just before the first try."""
    patch, tries = merge_patch({"spec": spec}), []

    def after_them(old: Object) -> Json:
        tries.append(old)
        if len(tries) == 1:
            client_of_them = threading.Thread(
                target=lambda: chat.ask(lambda client: client.patch(ENDPOINTS, chat.key("a"), patch))
            )
            client_of_them.start()
            client_of_them.join()
        return alter(old)

    return after_them


def with_spec(**fields: Json) -> Callable[[Object], Json]:
    return lambda old: (body := old.to_dict()) | {"spec": body["spec"] | fields}


@pytest.mark.parametrize(
    ("theirs", "mine", "clash"),
    [
        ({"model": {"source": "hf://a/b/c.gguf"}}, with_spec(model={"source": OTHER}), "model.source"),
        ({"replicas": 7}, lambda old: old.to_dict() | {"spec": {"model": {"source": OTHER}}}, "replicas"),
    ],
    ids=["the same field", "a file that has all fields"],
)
def test_a_change_that_would_undo_another_one_is_refused_in_one_sentence(chat: Chat, monkeypatch, theirs, mine, clash):
    chat.make("a")
    alter = other_than(chat, theirs, mine)
    monkeypatch.setattr(redeploy, "changed", lambda old, _arguments: alter(old))
    ran = chat.run("redeploy", "a", "--model", OTHER, "--no-wait")
    assert (ran.code, ran.out) == (1, "")
    assert f"was changed by another client at the same time ({clash})" in ran.err
    assert len(ran.err.splitlines()) == 1
    name, value = next(iter(theirs.items()))
    assert chat.spec("a")[name] == value


def test_statuses_that_are_written_meanwhile_are_no_conflict(chat: Chat):
    """An operator writes many of them: no client has to be told."""
    chat.make("a")
    tries = []

    def alter(old: Object) -> Json:
        tries.append(old)
        if len(tries) < 8:
            thread = threading.Thread(target=lambda: chat.write("a", {"waitingFor": f"news {len(tries)}"}))
            thread.start()
            thread.join()
        return with_spec(model={"source": OTHER})(old)

    chat.ask(lambda client: change(client, chat.key("a"), alter))
    assert (len(tries), chat.spec("a")["model"]) == (8, {"source": OTHER})


def test_another_clients_revision_is_no_success(chat: Chat):
    chat.make("a", serving("a") | {"observedGeneration": 1})

    async def supersede(client: Client) -> None:
        await until(client, ENDPOINTS, chat.key("a"), lambda obj: obj is not None and obj.meta.generation == 2)
        await client.patch(ENDPOINTS, chat.key("a"), merge_patch({"spec": {"model": {"source": "hf://a/b/c.gguf"}}}))
        status = serving("a", 2, revision(1, "Previous")) | {"observedGeneration": 3}
        await client.patch(ENDPOINTS, chat.key("a"), merge_patch({"status": status}), subresource="status")

    with chat.meanwhile(supersede):
        ran = chat.run("redeploy", "a", "--model", OTHER, "--timeout", "20")
    assert ran.code == 1
    assert ran.err.startswith("Superseded by a later change of model (generation 3).")


def test_one_that_goes_is_not_changed(chat: Chat):
    chat.make("a", metadata={"finalizers": ["acme.example.com/x"]})

    async def delete(client: Client) -> None:
        from pilotage.kube import Propagation

        found = await client.get(ENDPOINTS, chat.key("a"))
        await client.delete(ENDPOINTS, found.key, uid=found.meta.uid, propagation=Propagation.BACKGROUND)

    chat.ask(delete)
    ran = chat.run("redeploy", "a", "--model", OTHER)
    assert ran.code == 2
    assert "is being deleted" in ran.err


def test_it_is_followed_until_the_old_revision_is_gone(chat: Chat):
    old, new = part("Deployment", "a-1", 1, "u1"), part("Deployment", "a-2", 2, "u2")
    chat.make("a", serving("a", ledger=[old]) | {"observedGeneration": 1})
    moved = serving("a", 2, revision(1, "Previous"), ledger=[old, new])
    moved["conditions"] = [condition("Available", True), condition("Progressing", True, "Replacing")]
    with chat.answering("a", moved, serving("a", 2, revision(1, "Previous"), ledger=[new]), generation=2):
        ran = chat.run("redeploy", "a", "--model", OTHER, "--timeout", "20")
    assert ran.code == 0, ran.err
    lines = [line.split() for line in ran.out.splitlines()]
    assert ["gone", "a-1"] in [line[:2] for line in lines]
    assert "serves: http://a.example.com/v1 (revision a-2, 1 of 1 ready)" in ran.out


def test_a_failed_one_says_that_the_old_one_keeps_serving(chat: Chat, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(status, "SETTLE_SECONDS", 0.0)
    chat.make("a", serving("a") | {"observedGeneration": 1})
    failed = serving("a", phase="Redeploying", history=[revision(1, "Current"), revision(2, "Starting", OTHER)])
    failed["conditions"] = [
        condition("Available", True),
        condition("Degraded", True, "ImagePullBackOff", "acme/x:1 cannot be pulled."),
    ]
    with chat.answering("a", failed, generation=2):
        ran = chat.run("redeploy", "a", "--image", "acme/x:1", "--timeout", "20")
    assert ran.code == 1
    assert "ImagePullBackOff: acme/x:1 cannot be pulled. a-1 keeps serving at http://a.example.com/v1." in ran.err


# How it is shown


def test_lines_tell_each_news_once():
    out = io.StringIO()
    lines = Lines(out)
    now = parse_time(SINCE)
    for endpoint in redeploying():
        for _ in range(3):
            lines.show(RolloutView(rollout_status(endpoint, GOAL)), now)
            now += dt.timedelta(seconds=STEADY_SECONDS)
    assert [line.split("  ")[0].split()[0] for line in out.getvalue().splitlines()] == [
        *("operator", "up", "up", "route", "up", "route", "gone", "gone")
    ]


def test_lines_leave_out_what_is_over_at_once_so_that_each_change_is_told_once():
    out = io.StringIO()
    lines = Lines(out)
    now = parse_time(SINCE)
    for endpoint in redeploying():
        lines.show(RolloutView(rollout_status(endpoint, GOAL)), now)
        now += dt.timedelta(seconds=STEADY_SECONDS / 2)
    assert [line.split()[0] for line in out.getvalue().splitlines()] == ["up", "route", "gone"]


def waiting_for(text: str) -> RolloutView:
    step = RolloutStep("up", "active", text)
    return RolloutView(RolloutStatus((step,), RolloutVerdict.GOING, text))


LONG = "no Host has enough memory: host/gpu-1 has 3 GB free, and 8 GB are needed (hostprocess/a-1-0; 0 of 1 is ready)"


def test_elsewhere_a_long_reason_is_one_line():
    out = io.StringIO()
    lines, now = Lines(out), parse_time(SINCE)
    for _ in range(2):
        lines.show(waiting_for(LONG), now)
        now += dt.timedelta(seconds=STEADY_SECONDS)
    (line,) = out.getvalue().splitlines()
    assert line.startswith(f"up       {LONG}")


def test_a_terminal_shows_all_of_a_long_reason_and_draws_over_it():
    screen = Screen()
    block = Block(screen, width=60, hint="Ctrl-C leaves it to the operator")
    for second, text in enumerate((LONG, "short")):
        block.show(waiting_for(text), parse_time(SINCE) + dt.timedelta(seconds=second))
        if text == LONG:
            *rows, _ = screen.shown
            assert " ".join(row[11:].strip() for row in rows) == LONG
            assert max(map(len, rows)) < 60
    assert len(screen.shown) == 2


def test_a_terminal_shows_a_line_for_each_step_and_redraws_it():
    out = io.StringIO()
    block = Block(out, width=80, hint="Ctrl-C leaves it to the operator")
    now = parse_time(SINCE)
    for endpoint in redeploying()[3:]:
        block.show(RolloutView(rollout_status(endpoint, GOAL)), now)
    first, second = out.getvalue().split("\x1b[J")[:2]
    assert first.count("\n") == 4
    assert second.startswith("\x1b[4F")
    assert "✓ gone     a-1\n" in second.replace("\x1b[2K", "")
    assert max(len(line) for line in first.replace("\x1b[2K", "").splitlines()) <= 80


def test_help_shows_no_defaults_because_what_is_left_out_stays():
    assert "[default: llama.cpp]" in run("deploy", "--help").out
    shown = run("redeploy", "--help").out
    assert re.findall(r"\[default:\s+(.*?)\]", shown, re.DOTALL) == ["600.0; x>=0", "text"]
