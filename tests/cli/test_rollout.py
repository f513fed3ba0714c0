"""``pilotage rollout``, ``promote``, ``abort``, ``hold`` and ``retry``."""

import datetime as dt
import json
from typing import Any

import pytest

from pilotage.api.endpoint import EndpointSpec
from pilotage.api.endpoint_status import StoredEndpoint
from pilotage.api.names import ENDPOINTS
from pilotage.cli.commands.rollout import page
from pilotage.kube import Client, Json, Object, merge_patch
from pilotage.rollout.steps import shift
from tests.cli.serving import CANARY, OTHER, SINCE, Chat, condition, revision, rolling, serving, verdict_of
from tests.support.waiting import until

NOW = dt.datetime(2026, 1, 1, 0, 20, tzinfo=dt.UTC)


def make(chat: Chat, status: Json) -> Object:
    return chat.make("a", status, model={"source": OTHER}, strategy=CANARY)


def shown(status: Json) -> list[str]:
    meta = {"name": "a", "namespace": "chat", "uid": "u", "generation": 2, "creationTimestamp": SINCE}
    spec = EndpointSpec.read({"model": {"source": OTHER}}).written() | {"strategy": CANARY}
    body = {"metadata": meta, "spec": spec, "status": status}
    return page(StoredEndpoint.of(Object.from_dict(body)), NOW, str)


def annotations(chat: Chat) -> dict[str, str]:
    found = chat.find("a")
    assert found is not None
    return dict(found.meta.annotations)


# rollout


def test_a_rollout_shows_its_steps_both_sides_and_the_next_commands():
    until = "2026-01-01T00:42:00Z"
    more: Json = {"until": until, "message": "ttft is not decided", "verdict": verdict_of("Undecided")}
    assert shown(rolling("a", "Analysing", 3, **more)) == [
        f"servingendpoint/a -n chat  to a-2 ({OTHER})",
        "Analysing, step 3 of 6, for 20m, 22m left",
        "ttft is not decided",
        "",
        "  ✓ setWeight 5            00:02:00",
        "  ✓ pause 10m              00:12:00",
        "  ▸ analysis, at most 30m",
        "  · setWeight 25  · setScale 2  · pause until promoted",
        "",
        "REVISION   ROLE        READY    WANTED   PROGRAMMED   EFFECTIVE   MEASURED",
        "a-1        serving     3 of 3   95 %     95 %         95 %        ttft 365ms",
        "a-2        candidate   1 of 1   5 %      5 %          5 %         ttft 388ms",
        "",
        "Verdict: Undecided: ttft is not decided (pilotage verdict a -n chat)",
        "",
        "Next: pilotage promote a -n chat | pilotage abort a -n chat",
    ]


def test_a_weight_that_no_proxy_has_shown_is_not_said_to_be_there():
    status = rolling("a", "Shifting", 1, weight={"wanted": 5})
    assert shift(StoredEndpoint.of(Object.from_dict({"status": status}))) == "5 % (not proven) to a-2, step 1 of 6"
    (row,) = [line for line in shown(status) if line.startswith("a-2")]
    assert row.split() == ["a-2", "candidate", "1", "of", "1", "5", "%", "not", "proven", "-", "-"]


def test_one_without_a_rollout_says_how_the_last_one_ended():
    aborted = serving("a") | {"rollout": rolling("a", "Aborted", 3, message="The candidate is worse.")["rollout"]}
    aborted["history"].append(revision(2, "Aborted", OTHER))
    lines = shown(aborted)
    assert lines == [
        "a has no rollout under way: a-1 serves.",
        "The last one, to a-2: Aborted 20m ago: The candidate is worse.",
        "Next: pilotage retry a -n chat | pilotage rollback a -n chat",
    ]


def test_one_that_rests_is_named_with_the_way_back():
    rests = revision(1, "Resting") | {"until": "2026-01-01T00:25:00Z"}
    promoted = serving("a", 2, rests) | {"rollout": rolling("a", "Promoted", 6)["rollout"]}
    lines = shown(promoted)
    assert "a-1 rests for another 5m. With a rollback until then, all requests go back in about a second." in lines
    assert lines[-1] == "Next: pilotage rollback a -n chat"


def test_a_rollout_for_scripts_has_the_same(chat: Chat):
    make(chat, rolling("a", "Pausing", 6))
    told = json.loads(chat.run("rollout", "a", "-o", "json").out)
    assert (told["kind"], told["underWay"], told["rollout"]["phase"]) == ("Rollout", True, "Pausing")
    assert [each["state"] for each in told["steps"]] == ["done"] * 5 + ["active"]
    assert [each["share"]["wanted"] for each in told["sides"]] == [95, 5]
    assert told["next"][0].startswith(f"pilotage promote a -n {chat.namespace} --kubeconfig")


@pytest.mark.parametrize(("end", "code"), [("Promoted", 0), ("Aborted", 1)])
def test_a_watch_ends_with_the_rollout(chat: Chat, end: str, code: int):
    make(chat, rolling("a", "Pausing", 6))
    with chat.answering("a", rolling("a", end, 6, message="so it is")):
        ran = chat.run("rollout", "a", "--watch")
    assert ran.code == code
    assert ("it is promoted" in ran.out) == (code == 0)
    assert ("was aborted: so it is" in ran.err) == (code == 1)


def test_a_watch_prints_changes_only_as_events(chat: Chat):
    make(chat, rolling("a", "Pausing", 6))
    with chat.answering("a", rolling("a", "Promoted", 6, weight=100)):
        events = [json.loads(line) for line in chat.run("rollout", "a", "-w", "-o", "json").out.splitlines()]
    assert events[-1]["result"] == "promoted"
    phases = [each["phase"] for each in events[:-1]]
    assert phases[-1] == "Promoted"
    assert len(phases) == len(set(phases))


# promote, abort, hold, retry


def test_promote_names_the_step_that_was_seen(chat: Chat):
    make(chat, rolling("a", "Pausing", 6))
    ran = chat.run("promote", "a")
    assert ran.code == 0, ran.err
    assert "goes on with a-2 after step 6 of 6, pause until promoted" in ran.out
    assert annotations(chat) == {"pilotage.dev/promote": "a-2/6"}
    assert "(this was asked for already)" in chat.run("promote", "a").out


def test_hold_is_written_and_released(chat: Chat):
    make(chat, rolling("a", "Shifting", 1))
    assert chat.run("hold", "a").code == 0
    assert annotations(chat) == {"pilotage.dev/hold": "a-2"}
    assert chat.run("promote", "a", "--all").code == 2
    assert chat.run("hold", "a", "--release").code == 0
    assert annotations(chat) == {}


def test_nothing_is_written_where_there_is_nothing_to_promote(chat: Chat):
    make(chat, serving("a"))
    ran = chat.run("promote", "a")
    assert ran.code == 2
    assert f"servingendpoint/a -n {chat.namespace}: There is nothing to promote" in ran.err
    assert f"See: pilotage rollout a -n {chat.namespace} --kubeconfig" in ran.err
    assert annotations(chat) == {}


def test_a_request_never_acts_on_a_later_revision(chat: Chat, monkeypatch: pytest.MonkeyPatch):
    """Between the read and the write, another rollout begins."""
    make(chat, rolling("a", "Pausing", 6))
    patch = Client.patch

    async def late(client: Client, resource: Any, key: Any, body: Any, **more: Any) -> Object:
        if "subresource" not in more:
            state = rolling("a", "Pausing", 6)["rollout"] | {"revision": "a-3"}
            status = merge_patch({"status": {"rollout": state}})
            await patch(client, ENDPOINTS, chat.key("a"), status, subresource="status")
        return await patch(client, resource, key, body, **more)

    monkeypatch.setattr(Client, "patch", late)
    ran = chat.run("abort", "a")
    assert ran.code == 1
    assert "moved on at the same time, so nothing was written" in ran.err
    assert annotations(chat) == {}


def test_abort_waits_until_all_is_back(chat: Chat):
    make(chat, rolling("a", "Pausing", 6))

    async def operate(client: Client) -> None:
        await until(
            client,
            ENDPOINTS,
            chat.key("a"),
            lambda obj: obj is not None and obj.meta.annotations.get("pilotage.dev/abort") == "a-2",
        )
        status = merge_patch({"status": rolling("a", "Aborted", 6, weight=0, message="Aborted by request.")})
        await client.patch(ENDPOINTS, chat.key("a"), status, subresource="status")

    with chat.meanwhile(operate):
        ran = chat.run("abort", "a", "--wait", "--timeout", "20")
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[-1].endswith("the rollout of a-2 was aborted: Aborted by request.")


def test_retry_waits_for_the_next_rollout_and_not_for_the_one_that_was_aborted(chat: Chat):
    aborted = rolling("a", "Aborted", 3)
    aborted["history"][-1] = revision(2, "Aborted", OTHER)
    make(chat, aborted)

    async def operate(client: Client) -> None:
        await until(
            client,
            ENDPOINTS,
            chat.key("a"),
            lambda obj: obj is not None and obj.meta.annotations.get("pilotage.dev/retry") == "a-2",
        )
        status = merge_patch({"status": {"rollout": aborted["rollout"] | {"revision": "a-3", "phase": "Promoted"}}})
        await client.patch(ENDPOINTS, chat.key("a"), status, subresource="status")

    with chat.meanwhile(operate):
        ran = chat.run("retry", "a", "--wait", "--timeout", "20")
    assert ran.code == 0, ran.err
    assert "serves a-3: it is promoted" in ran.out


# other commands


def test_a_redeploy_that_waits_for_a_person_says_so_and_how_to_go_on(chat: Chat):
    chat.make("a", serving("a"), strategy=CANARY)
    paused = rolling("a", "Pausing", 6, message="Until step 6 is promoted.")
    with chat.answering("a", paused, generation=2):
        ran = chat.run("redeploy", "a", "--model", OTHER, "--timeout", "3")
    assert ran.code == 1
    (line,) = {line for line in ran.out.splitlines() if line.startswith("shift")}
    assert "5 % to a-2, step 6 of 6: Until step 6 is promoted. Next: pilotage promote a" in line


def test_an_analysis_without_a_result_waits_for_a_person(chat: Chat):
    """It pauses though it has an end: that is past."""
    make(chat, rolling("a", "Pausing", 3, until="2026-01-01T00:00:30Z", message="Its time is over."))
    ran = chat.run("promote", "a", "--wait", "--timeout", "1.5")
    assert ran.code == 1
    assert "3/6      Pausing, analysis, at most 30m: Its time is over. Next: pilotage promote a" in ran.out
    assert "a rollout that has not ended after 1.5 s: Pausing, analysis, at most 30m: Its time is over." in ran.err


def test_list_and_status_show_the_shift(chat: Chat):
    make(chat, rolling("a", "Shifting", 4, weight={"wanted": 25, "programmed": 5}))
    assert "Redeploying 5 → 25 % to a-2, step 4 of 6" in chat.run("list").out
    assert "Rollout    5 → 25 % to a-2, step 4 of 6" in chat.run("status", "a").out


def test_a_rollback_to_one_that_rests_says_that_nothing_is_started(chat: Chat):
    chat.make("a", serving("a", 2, revision(1, "Resting")), model={"source": OTHER})
    chat.write("a", {"history": [revision(1, "Resting"), revision(2, "Current", OTHER)]})
    ran = chat.run("rollback", "a", "--no-wait")
    assert ran.code == 0, ran.err
    assert "returns to a-1, which still runs, without steps: all requests go back in about a second" in ran.out


def test_a_rollback_to_one_that_has_kept_fewer_replicas_says_that_the_others_start_first(chat: Chat):
    rests = revision(1, "Resting") | {"replicas": 1}
    status = serving("a", 2) | {"history": [rests, revision(2, "Current", OTHER)]}
    chat.make("a", status | {"replicas": {"ready": 2, "desired": 2}}, model={"source": OTHER}, replicas=2)
    ran = chat.run("rollback", "a", "--no-wait")
    assert "it has kept 1 of 2 replicas, and the others start first" in ran.out


def test_a_redeploy_that_waits_for_an_experiment_says_so_at_once(chat: Chat):
    chat.make("a", serving("a"))
    waits = serving("a", waitingFor="experiment/q8 runs.")
    waits["conditions"][1] = condition("Progressing", True, "ExperimentRuns", "experiment/q8 runs.")
    with chat.answering("a", waits, generation=2):
        ran = chat.run("redeploy", "a", "--model", OTHER, "--timeout", "2")
    assert ran.code == 1
    assert ran.out.splitlines()[1].startswith("up       experiment/q8 runs.")


def test_an_aborted_revision_is_not_what_a_redeploy_waits_for(chat: Chat):
    """It is the newest, and the spec was rolled back to the one that serves."""
    chat.make("a", serving("a"))
    back = serving("a") | {"history": [revision(1, "Current"), revision(2, "Aborted", OTHER)]}
    back["conditions"] = [condition("Available", True, "ReplicasReady")]
    with chat.answering("a", back, generation=2):
        ran = chat.run("scale", "a", "--replicas", "2", "--wait", "--timeout", "20")
    assert ran.code == 0, ran.err
