"""``pilotage status``, ``list`` and ``models``: what a person reads, and what a script does."""

import datetime as dt
import json
import subprocess
import sys
import typing
from pathlib import Path

import pytest

from pilotage.api.endpoint_status import StoredEndpoint
from pilotage.api.model import StoredModel
from pilotage.api.names import ENDPOINTS, MODELS
from pilotage.cli.commands.list import lines as list_lines
from pilotage.cli.commands.models import fetched
from pilotage.cli.commands.status import page
from pilotage.kube import EVENTS, Json, Object, Propagation
from tests.cli.running import run, run_on_terminal
from tests.cli.serving import SINCE, SOURCE, Chat, condition, serving

NOW = dt.datetime(2026, 1, 1, 0, 10, tzinfo=dt.UTC)


def seen(status: Json, **more: typing.Any) -> StoredEndpoint:
    meta = {"name": "a", "namespace": "chat", "uid": "u", "generation": 2, "creationTimestamp": SINCE}
    meta |= more.pop("metadata", {})
    body = {"metadata": meta, "spec": {"model": {"source": SOURCE}} | more, "status": status}
    return StoredEndpoint.of(Object.from_dict(body))


def test_a_page_says_what_serves_where_and_what_is_proven():
    status = serving("a", 3, observedGeneration=2)
    status["conditions"].append(condition("RouteProgrammed", True, "AcceptedUnverified"))
    shown = "\n".join(page(seen(status, route={"kind": "HTTPProxy", "host": "a.example.com"}), [], NOW))
    assert shown.startswith("servingendpoint/a -n chat  Serving\n")
    assert "URL        http://a.example.com/v1\n" in shown
    assert "Revision   a-3\n" in shown
    assert "Route      HTTPProxy a.example.com  (accepted, not proven)\n" in shown
    assert "Available         True     ReplicasReady        10m" in shown


def test_a_page_of_one_that_goes_says_how_far_and_for_what_it_waits():
    wait = {
        "object": "pod/a-1-x -n chat",
        "cause": "finalizer",
        "text": "finalizer acme.example.com/x",
        "since": "2026-01-01T00:05:00Z",
        "until": "2026-01-01T00:20:00Z",
    }
    status = {"phase": "Deleting", "teardown": {"name": "a-1234", "phase": "stop", "left": 4, "waits": [wait]}}
    going = {"deletionTimestamp": "2026-01-01T00:04:00Z", "finalizers": ["pilotage.dev/endpoint"]}
    shown = page(seen(status | {"observedGeneration": 2}, metadata=going), [], NOW)
    assert "Deletion requested 6m ago; held by pilotage.dev/endpoint." in shown
    assert "Teardown a-1234: stop, 4 left" in shown
    assert "  pod/a-1-x -n chat  finalizer acme.example.com/x  (finalizer, for 5m, 10m left)" in shown


def test_one_that_is_being_deleted_says_so_though_no_operator_has_seen_it():
    going = {"deletionTimestamp": "2026-01-01T00:04:00Z", "finalizers": ["pilotage.dev/endpoint"]}
    found = seen(serving("a", observedGeneration=2), metadata=going)
    assert page(found, [], NOW)[0].endswith("  Deleting")
    assert " Deleting " in list_lines([found], NOW, wide=False, namespaces=False)[1]


def test_a_page_that_is_older_than_the_spec_says_so():
    assert any("older than the spec" in line for line in page(seen(serving("a", observedGeneration=1)), [], NOW))
    assert "No operator has reconciled it yet." in page(seen({}), [], NOW)
    assert not any("older than the spec" in line for line in page(seen(serving("a", observedGeneration=2)), [], NOW))


def test_events_are_shown_the_newest_last(chat: Chat):
    made = chat.make("a", serving("a"))
    for minute, reason in ((2, "Serving"), (1, "Deploying")):
        chat.create(
            EVENTS,
            {
                "metadata": {"name": f"a.{minute}"},
                "eventTime": f"2026-01-01T00:0{minute}:00.000000Z",
                "type": "Normal",
                "reason": reason,
                "note": "it is so",
                "action": "Reconcile",
                "regarding": made.ref._asdict() | {"apiVersion": made.api_version},
                "reportingController": "pilotage.dev/operator",
                "reportingInstance": "x",
            },
        )
    other = chat.make("b")
    shown = chat.run("status", "a").out
    assert shown.index("Deploying") < shown.index("Normal   Serving")
    assert "No events." in chat.run("status", other.meta.name).out
    told = json.loads(chat.run("status", "a", "-o", "json").out)
    assert (told["status"]["phase"], [each["reason"] for each in told["events"]]) == (
        "Serving",
        ["Deploying", "Serving"],
    )
    assert "managedFields" not in told["metadata"]


def test_a_name_that_is_not_there_is_told_what_is(chat: Chat):
    chat.make("assistant")
    ran = chat.run("status", "asistant")
    assert (ran.code, ran.out) == (2, "")
    assert "There is assistant." in ran.err


# list


def test_the_list_has_a_line_for_each(chat: Chat):
    chat.make("a", serving("a"), metadata={"labels": {"team": "x"}})
    chat.make("b", replicas=2)
    head, *rows = chat.run("list").out.splitlines()
    assert head.split() == ["NAME", "MODEL", "PLACEMENT", "READY", "PHASE", "URL", "AGE"]
    assert [row.split()[:6] for row in rows] == [
        ["a", SOURCE, "Deployment", "1/1", "Serving", "http://a.example.com/v1"],
        ["b", SOURCE, "Deployment", "0/2", "Pending", "-"],
    ]
    assert [row.split()[0] for row in chat.run("list", "-l", "team=x").out.splitlines()[1:]] == ["a"]
    assert [each["metadata"]["name"] for each in json.loads(chat.run("list", "-o", "json").out)["items"]] == ["a", "b"]


def test_wide_says_what_is_waited_for():
    waiting = serving("a", waitingFor="model/x is being fetched")
    head, row = list_lines([seen(waiting)], NOW, wide=True, namespaces=True)
    assert head.split()[0] == "NAMESPACE"
    assert row.split()[0] == "chat"
    assert row.endswith("a-1        None    model/x is being fetched")


def test_all_namespaces(chat: Chat, serving_server: Path):
    chat.make("only-here")
    ran = run("list", "-A", kubeconfig=serving_server)
    assert [chat.namespace, "only-here"] in [row.split()[:2] for row in ran.out.splitlines()]


def test_none_is_no_error(chat: Chat):
    ran = chat.run("list")
    assert (ran.code, ran.out, ran.err) == (0, "", "No endpoints found.\n")


@pytest.mark.parametrize("no_color", ["", "1"])
def test_colours_on_a_terminal_only_and_not_if_unwanted(chat: Chat, no_color: str):
    chat.make("a", serving("a"))
    ran = run_on_terminal("list", "-n", chat.namespace, "--kubeconfig", chat.kubeconfig, NO_COLOR=no_color)
    assert ("\x1b[32mServing\x1b[0m" in ran.out) == (not no_color)
    assert "\x1b" not in chat.run("list").out


# models


def test_models_tell_how_far_they_are_and_who_serves_them(chat: Chat):
    chat.create(
        MODELS,
        {"metadata": {"name": "qwen"}, "spec": {"source": SOURCE}},
        {
            "phase": "Fetching",
            "bytes": {"done": 212_000_000, "total": 484_200_000},
            "format": {"kind": "GGUF", "architecture": "qwen3", "quantization": "Q4_K_M", "contextLength": 32768},
            "conditions": [condition("Available", False, "Fetching", "it is on its way")],
        },
    )
    chat.make("a", model={"name": "qwen"})
    [row] = chat.run("models").out.splitlines()[1:]
    assert row.startswith(
        f"qwen   {SOURCE}   Fetching   212.0 MB of 484.2 MB (43 %)   GGUF qwen3 Q4_K_M, context 32768"
    )
    shown = chat.run("models", "qwen").out
    assert "Fetched    212.0 MB of 484.2 MB (43 %)\n" in shown
    assert "Served by  servingendpoint/a\n" in shown
    assert "it is on its way" in shown
    assert json.loads(chat.run("models", "qwen", "-o", "json").out)["status"]["phase"] == "Fetching"


@pytest.mark.parametrize(
    ("progress", "words"),
    [
        (None, ""),
        ({"done": 0}, ""),
        ({"done": 999}, "999 B"),
        ({"done": 5, "total": 5}, "5 B"),
        ({"done": 1, "total": 3}, "1 B of 3 B (33 %)"),
        ({"done": 0, "total": 0}, ""),
    ],
)
def test_progress_is_said_as_far_as_it_is_known(progress: Json | None, words: str):
    status = {"bytes": progress} if progress is not None else {}
    assert fetched(StoredModel.of(Object.from_dict({"metadata": {}, "spec": {}, "status": status}))) == words


# On a terminal


def test_a_table_is_fitted_to_the_terminal_and_no_url_is_broken(chat: Chat):
    url = "http://127.0.0.1:8080/endpoints/default/assistant/v1"
    source = "hf://a-rather-long-owner/a-rather-long-repository-GGUF/qwen3-0.6b-q4_k_m.gguf"
    chat.make("assistant", serving("assistant", url=url), model={"source": source})
    for columns in ("72", "80", "120", "250"):
        ran = run_on_terminal(
            "list", "-n", chat.namespace, "--kubeconfig", chat.kubeconfig, COLUMNS=columns, TERM="dumb"
        )
        lines = ran.out.splitlines()
        assert max(map(len, lines)) <= int(columns), ran.out
        assert [line for line in lines if url in line]
        assert [line for line in lines if "q4_k_m.gguf" in line]


def test_a_long_message_is_wrapped_below_its_column(chat: Chat):
    words = "the file /models/qwen3.gguf does not exist on host gpu-1 (hostprocess/a-1-0 on host/gpu-1: Failed)"
    trouble = condition("Degraded", True, "ProcessFailed", words)
    chat.make("a", serving("a") | {"conditions": [trouble], "waitingFor": words, "observedGeneration": 1})
    where = ("-n", chat.namespace, "--kubeconfig", chat.kubeconfig)
    shown = run_on_terminal("status", "a", *where, COLUMNS="80", TERM="dumb").out
    assert max(len(line) for line in shown.splitlines()) <= max(80, len(chat.namespace) + 30)
    assert words in " ".join(shown.split())
    assert words in chat.run("status", "a").out  # elsewhere a line is a line


def test_a_terminal_without_colours_gets_none(chat: Chat):
    chat.make("a", serving("a"))
    where = ("-n", chat.namespace, "--kubeconfig", chat.kubeconfig)
    assert "\x1b" in run_on_terminal("list", *where).out
    assert "\x1b" not in run_on_terminal("list", *where, TERM="dumb").out
    assert "\x1b" not in run_on_terminal("list", *where, NO_COLOR="1").out


@pytest.mark.parametrize(
    ("locale", "plain"), [({"LC_ALL": "C"}, True), ({"LANG": "C"}, True), ({"LC_ALL": "C.UTF-8"}, False)]
)
def test_a_locale_without_box_characters_gets_ascii(chat: Chat, locale: dict[str, str], plain: bool):
    chat.make("assistant", serving("assistant"), model={"source": f"hf://a/b/{'x' * 80}.gguf"})
    where = ("-n", chat.namespace, "--kubeconfig", chat.kubeconfig)
    shown = run_on_terminal("list", *where, COLUMNS="80", **{"LC_ALL": "", "LANG": "", "LC_CTYPE": ""} | locale).out
    assert shown.isascii() == plain
    assert ("..." if plain else "…") in shown


def test_a_watch_prints_each_change_in_the_columns_of_the_first_table(chat: Chat):
    chat.make("a", serving("a"))
    program = [sys.executable, "-c", "from pilotage.cli import main; main()", "list", "-w"]
    words = [*program, "-n", chat.namespace, "--kubeconfig", str(chat.kubeconfig)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        titles, first = (watching.stdout.readline() for _ in range(2))
        chat.write("a", {"phase": "Degraded"})
        second = watching.stdout.readline()
        found = chat.find("a")
        assert found is not None
        key, uid, way = found.key, found.meta.uid, Propagation.BACKGROUND
        chat.ask(lambda client: client.delete(ENDPOINTS, key, uid=uid, propagation=way))
        gone = watching.stderr.readline()
        watching.terminate()
    at = titles.index("PHASE")
    assert (first[at:].split()[0], second[at:].split()[0]) == ("Serving", "Degraded")
    assert gone == f"servingendpoint/a -n {chat.namespace} is gone\n"
