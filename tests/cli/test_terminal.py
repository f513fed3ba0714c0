"""Hostile text in objects: on a terminal it is seen, and does nothing. Our own colours still pass."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from pilotage import terminal
from pilotage.api.names import LABEL_ENDPOINT_UID, LABEL_REVISION, MODELS, PROCESSES
from pilotage.kube import EVENTS, Absent, Invalid, ObjectKey, merge_patch
from tests.api.objects import process
from tests.cli.running import Ran, ask, run, run_on_terminal
from tests.cli.serving import SINCE, Chat, serving
from tests.support import kinds

CLIPBOARD = "\x1b]52;c;cm0gLXJmIH4=\x07"
ERASE = "\x1b[1A\x1b[2K\r"
HIDE = "\x1b[8m"
EVIL = f"x{CLIPBOARD}{ERASE}{HIDE}\x9b1A\x7f\u202egnp\u2028FORGED\nFORGED\x1b[32m"
OURS = re.compile(r"\x1b\[(0|1|3[1-6])m")
"""The sequences that commands colour with. The hostile text has one of them, which must not pass for one of ours."""


def check(printed: str) -> None:
    """The output shows that the text was there, and nothing in it had an effect."""
    assert "FORGED" in printed
    left = OURS.sub("", printed.replace("FORGED\x1b[32m", "RAW COLOUR\x1b"))
    raw = {character for character in left if not character.isprintable()} - {"\n"}
    assert raw == set(), printed
    assert [line for line in left.splitlines() if line.lstrip().startswith("FORGED")] == []


def meta(name: str, uid: str, **more: object) -> dict[str, object]:
    return {"name": name, "namespace": "shop", "uid": uid, "creationTimestamp": "2026-11-01T10:00:00Z", **more}


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """A file of another user, in which every text is the hostile one."""
    managed = [{"manager": EVIL, "operation": "Update", "apiVersion": "v1", "time": "2026-11-01T11:00:30Z"}]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": EVIL, "uid": "u-none"}
    objects = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": meta(
                "stuck",
                "u1",
                deletionTimestamp="2026-11-01T11:00:00Z",
                finalizers=[EVIL],
                managedFields=managed,
                ownerReferences=[owner],
            ),
        },
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta(EVIL, "u2", ownerReferences=[owner])},
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": meta(EVIL, "u4", deletionTimestamp="2026-11-01T11:00:00Z", finalizers=[EVIL]),
            "spec": {"nodeName": EVIL, "volumes": [{"name": "v", "configMap": {"name": EVIL}}]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "False", "message": EVIL}]},
        },
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": "shop", "uid": "u5", "deletionTimestamp": "2026-11-01T11:00:00Z"},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {
                "phase": "Terminating",
                "conditions": [
                    {"type": "NamespaceDeletionContentFailure", "status": "True", "reason": EVIL, "message": EVIL}
                ],
            },
        },
        {"apiVersion": "v1", "kind": "Service", "metadata": meta("web", "u7") | {"namespace": "other"}},
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": meta(EVIL, "u8") | {"namespace": "other"},
            "spec": {"defaultBackend": {"service": {"name": EVIL}}},
        },
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": meta("e", "u6"),
            "involvedObject": {"kind": "ConfigMap", "name": "stuck", "namespace": "shop", "uid": "u1"},
            "type": "Warning",
            "reason": EVIL,
            "message": EVIL,
        },
    ]
    path = tmp_path / "dump.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    return path


@pytest.mark.parametrize(
    "command",
    [("why", "cm/stuck"), ("why", "namespace/shop"), ("tree", "namespace/shop"), ("tree", "cm/stuck"), ("leaks",)],
)
def test_what_a_dump_says_does_nothing_to_a_terminal(dump: Path, command: tuple[str, ...]):
    printed = run_on_terminal(*command, "--dump", dump).out
    check(printed)
    assert OURS.search(printed)
    piped = run(*command, "--dump", dump)
    check(piped.out + piped.err)


def test_an_error_that_repeats_a_text_is_one_line(dump: Path):
    ran = run_on_terminal("why", f"pod/{EVIL}x", "--dump", dump)
    assert ran.code == 2
    check(ran.out)


def test_what_the_server_has_does_nothing_to_a_terminal(chat: Chat):
    status = serving("a") | {"url": f"http://{EVIL}", "waitingFor": EVIL}
    condition = {"type": "Degraded", "status": "True", "reason": "Bad", "message": EVIL, "lastTransitionTime": SINCE}
    made = chat.make("a", status | {"conditions": [condition]})
    about = {"kind": "ServingEndpoint", "name": "a", "namespace": chat.namespace, "uid": made.meta.uid}
    event = {
        "metadata": {"name": "a.1"},
        "regarding": about | {"apiVersion": "pilotage.dev/v1alpha1"},
        "note": EVIL,
        "reason": EVIL,
        "type": "Warning",
        "action": "Test",
        "reportingController": "somebody.example.com/x",
        "reportingInstance": "x",
        "eventTime": "2026-01-01T00:00:00.000000Z",
    }
    chat.create(EVENTS, event)
    model = {"metadata": {"name": "m"}, "spec": {"source": "hf://acme/small/model.gguf"}}
    chat.create(MODELS, model, {"phase": "Failed", "conditions": [condition], "path": EVIL})
    where = ("-n", chat.namespace, "--kubeconfig", chat.kubeconfig)
    for command in (("list", "-o", "wide"), ("list",), ("status", "a"), ("models", "m")):
        check(run_on_terminal(*command, *where).out)
    _, row = chat.run("list", "-o", "wide").out.splitlines()
    assert row.startswith("a ")
    told = json.loads(run_on_terminal("status", "a", "-o", "json", *where).out)
    assert told["status"]["waitingFor"] == EVIL


@pytest.mark.parametrize("character", ["\x1b", "\n", "\x9b", "\u202e", "\u2028", " "])
def test_no_source_has_a_control_character(chat: Chat, character: str):
    model = {"metadata": {"name": "m"}, "spec": {"source": f"hf://acme/small/{character}.gguf"}}
    with pytest.raises(Invalid, match=r"spec\.source"):
        chat.create(MODELS, model)


def test_what_cannot_be_printed_is_written_as_json_writes_it():
    assert terminal.one_line("a\n\x1b[0m\t\x7f\u202e\U000e0001ü☃") == r"a\n\u001b[0m\t\u007f\u202e\udb40\udc01ü☃"
    assert terminal.printable("a\tb\nc") == "a\tb\nc"
    text = "\x9b\u202e\U000e0001\x7f"
    assert json.loads(terminal.printable(json.dumps(text, ensure_ascii=False))) == text


SHELL = "x'; rm -rf ~ #$(id)`id`|&<>\n\""


def test_a_command_that_is_shown_means_to_a_shell_what_it_says(tmp_path: Path):
    """A person who copies it runs one command on the object that has that name, whatever the name is."""
    helm = {"meta.helm.sh/release-name": SHELL, "meta.helm.sh/release-namespace": SHELL}
    stuck = meta("stuck", "u1", deletionTimestamp="2026-11-01T11:00:00Z", finalizers=[SHELL]) | {"namespace": SHELL}
    route = meta(SHELL, "u3") | {"namespace": SHELL}
    objects = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": stuck},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta("helm", "u2", annotations=helm)},
        {"apiVersion": "v1", "kind": "Service", "metadata": meta("web", "u4") | {"namespace": SHELL}},
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": route,
            "spec": {"defaultBackend": {"service": {"name": "none"}}},
        },
    ]
    dump = tmp_path / "dump.yaml"
    dump.write_text(yaml.safe_dump_all(objects))

    def commands(*words: str) -> list[list[str]]:
        told = json.loads(run(*words, "--dump", dump, "-o", "json").out)
        remedies = told.get("remedies") or [leak["remedy"] for leak in told["leaks"]]
        return [shlex.split(each["command"]) for each in remedies]

    fix = ["--fix=strip-finalizer", "--finalizer", SHELL]
    assert ["pilotage", "why", "configmap/stuck", "-n", SHELL, *fix] in commands("why", "cm/stuck", "-n", SHELL)
    assert ["helm", "uninstall", SHELL, "-n", SHELL] in commands("why", "cm/helm", "-n", "shop")
    assert ["pilotage", "delete", f"ingress/{SHELL}", "-n", SHELL] in commands("leaks")


PROGRAM = (sys.executable, "-c", "from pilotage.cli import main; main()")


def piped_to_nobody(*args: str | Path, lines: int = 0, then: Callable[[], object] = lambda: None) -> Ran:
    """Run the program with its output in a pipe, whose reader goes after some lines; `then` happens after that."""
    words = [*PROGRAM, *map(str, args)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        read = "".join(process.stdout.readline() for _ in range(lines))
        process.stdout.close()
        then()
        said = process.stderr.read()
    return Ran(process.returncode, read, said)


def to_a_full_disk(*args: str | Path) -> Ran:
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run([*PROGRAM, *map(str, args)], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    return Ran(ran.returncode, "", ran.stderr)


def test_a_reader_who_has_had_enough_is_no_error(dump: Path):
    assert piped_to_nobody("tree", "ns/shop", "--dump", dump).err == ""


def test_a_log_whose_reader_has_had_enough_is_no_error(chat: Chat, tmp_path: Path):
    """The file of a server on this machine, which can be read very well."""
    endpoint = chat.make("a", serving("a"))
    labels = {LABEL_ENDPOINT_UID: endpoint.meta.uid, LABEL_REVISION: "1"}
    made = chat.create(PROCESSES, process("a-1-0", {"host": "here"}, labels=labels))
    log = tmp_path / f"a-1-0_{made.meta.uid[:8]}.log"
    log.write_text("one line\n" * 100_000)
    patch = merge_patch({"status": {"logFile": str(log)}})
    chat.ask(lambda client: client.patch(PROCESSES, made.key, patch, subresource="status"))
    words = ("logs", "a", "-n", chat.namespace, "--tail", "-1", "--kubeconfig", chat.kubeconfig)
    ran = piped_to_nobody(*words, lines=1)
    assert ran.out == "one line\n"
    assert ran.err.splitlines() == [f"hostprocess/a-1-0 on host/here: {log}"]


def test_output_to_a_full_disk_is_a_sentence(dump: Path):
    ran = to_a_full_disk("why", "ns/shop", "--dump", dump)
    assert (ran.code, ran.err) == (1, "Error: The output could not be written: No space left on device.\n")


def test_a_delete_whose_reader_goes_continues_and_says_so(server: Path, tmp_path: Path):
    """It still waits when its reader goes: for a finalizer, which comes off then."""
    key = ObjectKey("default", "unread")
    body = kinds.config_map("unread", finalizers=["acme.example.com/cleanup"])
    ask(server, lambda client: client.create(kinds.CONFIG_MAPS, body, namespace="default"))

    def let_go() -> None:
        patch = merge_patch({"metadata": {"finalizers": None}})
        ask(server, lambda client: client.patch(kinds.CONFIG_MAPS, key, patch))

    receipt = tmp_path / "r.json"
    words = ("delete", "cm/unread", "-n", "default", "--yes", "--receipt", receipt, "--kubeconfig", server)
    ran = piped_to_nobody(*words, lines=1, then=let_go)
    assert ran.code == 0
    assert ran.err == (
        f"The output cannot be written any more (Broken pipe). The delete continues; its receipt: {receipt}\n"
    )
    assert json.loads(receipt.read_text())["result"] == "complete"
    with pytest.raises(Absent):
        ask(server, lambda client: client.get(kinds.CONFIG_MAPS, key))


def test_a_delete_that_cannot_say_what_it_will_do_does_nothing(server: Path, tmp_path: Path):
    ask(server, lambda client: client.create(kinds.CONFIG_MAPS, kinds.config_map("unsaid"), namespace="default"))
    ran = to_a_full_disk(
        "delete", "cm/unsaid", "-n", "default", "--yes", "--receipt", tmp_path / "r.json", "--kubeconfig", server
    )
    assert ran.code == 1
    assert ran.err == "Error: The output could not be written: No space left on device. Nothing was done.\n"
    assert ask(server, lambda client: client.get(kinds.CONFIG_MAPS, ObjectKey("default", "unsaid")))
