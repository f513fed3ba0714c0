"""Hostile text in objects: on a terminal it is seen, and does nothing. Our own colours still pass."""

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from pilotage import terminal
from pilotage.api.names import MODELS
from pilotage.kube import EVENTS, Invalid
from tests.cli.running import run, run_on_terminal
from tests.cli.serving import SINCE, Chat, serving

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
