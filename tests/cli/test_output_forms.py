"""``-o``: the same forms in every command, the same content as JSON and as YAML, and names that commands accept."""

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
import yaml

from pilotage.api.names import EXPERIMENTS, MODELS
from pilotage.cli import pilotage
from pilotage.kube import Absent, Propagation
from pilotage.processes import identity
from pilotage.up.layout import Layout, UpState
from tests.cli.running import Ran, run
from tests.cli.serving import CANARY, OTHER, SOURCE, Chat, revision, rolling, serving
from tests.support import kinds

ENDPOINT = "servingendpoint.pilotage.dev/a"
EXPERIMENT = "experiment.pilotage.dev/x"
MAP = "configmap/x"
VOLATILE = {"uid", "at", "resourceVersion", "creationTimestamp", "receipt", "since", "until", "stopped", "pid"}
DUMP = """
apiVersion: v1
kind: ConfigMap
metadata:
  {name: x, namespace: shop, uid: u1, creationTimestamp: "2026-11-01T10:00:00Z", finalizers: [acme.io/cleanup],
   deletionTimestamp: "2026-11-01T11:00:00Z"}
---
apiVersion: v1
kind: Service
metadata: {name: other, namespace: shop, uid: u2, creationTimestamp: "2026-11-01T10:00:00Z"}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop, uid: u3, creationTimestamp: "2026-11-01T10:00:00Z"}
spec: {defaultBackend: {service: {name: lost, port: {number: 80}}}}
"""


class Case(NamedTuple):
    """One use of a command."""

    words: tuple[str, ...]
    names: tuple[str, ...]
    """Lines of -o name."""
    accepts: tuple[str, ...] = ("plan",)
    """Words that take such a line."""


def of_dump(*words: str) -> tuple[str, ...]:
    return (*words, "-n", "shop", "--dump", "dump.yaml")


CASES = {
    "abort": Case(("abort", "c"), (ENDPOINT[:-1] + "c",)),
    "delete": Case(("delete", "cm/x", "--yes"), (MAP,)),
    "delete --dry-run": Case(("delete", "cm/x", "--dry-run"), (MAP,)),
    "deploy --dry-run": Case(("deploy", "b", "--model", SOURCE, "--dry-run"), (ENDPOINT[:-1] + "b",)),
    "down": Case(("down", "--data", "up"), ("host.pilotage.dev/local",)),
    "down again": Case(("down", "--data", "nothing"), ()),
    "experiments": Case(("experiments",), (EXPERIMENT,)),
    "history": Case(("history", "a"), tuple(f"revision.pilotage.dev/a-{n}" for n in (1, 2)), ("rollback", "a", "--to")),
    "hold": Case(("hold", "c"), (ENDPOINT[:-1] + "c",)),
    "leaks": Case(of_dump("leaks"), ("ingress.networking.k8s.io/web",)),
    "list": Case(("list",), (ENDPOINT, ENDPOINT[:-1] + "c", ENDPOINT[:-1] + "d")),
    "models": Case(("models",), ("model.pilotage.dev/m",)),
    "plan": Case(("plan", "se/a"), (ENDPOINT,)),
    "promote": Case(("promote", "c"), (ENDPOINT[:-1] + "c",)),
    "receipt show": Case(("receipt", "show", "receipt.json"), (MAP,)),
    "receipt verify": Case(("receipt", "verify", "receipt.json"), ()),
    "redeploy": Case(("redeploy", "a", "--replicas", "1"), (ENDPOINT,)),
    "retry": Case(("retry", "d"), (ENDPOINT[:-1] + "d",)),
    "rollback": Case(("rollback", "a", "--to", "2", "--no-wait"), (ENDPOINT,)),
    "rollout": Case(("rollout", "c"), (ENDPOINT[:-1] + "c",)),
    "scale": Case(("scale", "a", "--replicas", "1"), (ENDPOINT,)),
    "status": Case(("status", "a"), (ENDPOINT,)),
    "terminate": Case(("terminate", "x"), (EXPERIMENT,)),
    "tree": Case(of_dump("tree", "cm/x"), (MAP,)),
    "up": Case(("up", "--status", "--data", "up"), ("host.pilotage.dev/local",)),
    "up --status of nothing": Case(("up", "--status", "--data", "nothing"), ()),
    "verdict": Case(("verdict", "experiment/x"), (EXPERIMENT,)),
    "version": Case(("version", "--client"), ()),
    "wait": Case(("wait", "cm/x", "--timeout", "0.1"), (MAP,)),
    "why": Case(of_dump("why", "cm/x"), (MAP,)),
}
NO_CLUSTER = ("up", "down")


def commands(group: click.Group, above: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from commands(found, f"{above}{name} ")
        else:
            yield f"{above}{name}", found


def forms(command: click.Command) -> tuple[str, ...]:
    """The forms of -o; none where there is no such option."""
    chosen = (each.type for each in command.params if each.name == "output")
    return next((tuple(each.choices) for each in chosen if isinstance(each, click.Choice)), ())


WITH_OUTPUT = {name: forms(command) for name, command in commands(pilotage) if forms(command)}


def test_every_command_has_the_same_forms():
    more = {name: set(found) ^ {"text", "json", "yaml", "name"} for name, found in WITH_OUTPUT.items()}
    assert {name: odd for name, odd in more.items() if odd} == {"list": {"wide"}, "version": {"name"}}


def test_every_command_with_the_option_is_tried():
    tried = {" ".join(case.words[: 2 if case.words[0] == "receipt" else 1]) for case in CASES.values()}
    assert set(WITH_OUTPUT) == tried


@contextlib.contextmanager
def machine() -> Iterator[None]:
    """A folder of `pilotage up` in which two processes run, that do nothing but wait for their end."""
    layout = Layout(Path("up").absolute())
    layout.make()
    os.close(layout.open_lock())
    program = [sys.executable, "-c", "import signal; signal.pause()"]
    with subprocess.Popen(program) as supervisor, subprocess.Popen(program) as agent:
        ids = [identity.find(each.pid) for each in (supervisor, agent)]
        assert ids[0] is not None
        assert ids[1] is not None
        layout.write_state(UpState(ids[0].id, {"agent": ids[1].id}, {}, "http://127.0.0.1:8080", ready=True))
        for each in (supervisor, agent):
            threading.Thread(target=each.wait).start()  # a child that has ended runs until its parent knows
        try:
            yield
        finally:
            supervisor.kill()
            agent.kill()


@pytest.fixture
def tried(chat: Chat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[tuple[str, ...], str], Ran]:
    """Run a command in a form, each time with the same objects before it."""
    monkeypatch.chdir(tmp_path)
    Path("dump.yaml").write_text(DUMP)
    chat.make("a", serving("a", 2, revision(1, "Previous", OTHER)), replicas=1)
    chat.make("c", rolling("c", "Pausing", 6), strategy=CANARY)
    chat.make("d", serving("d") | {"history": [revision(1, "Current", OTHER), revision(2, "Aborted")]})
    variant = {"name": "q8", "weight": 10, "same": True}
    chat.create(EXPERIMENTS, {"metadata": {"name": "x"}, "spec": {"endpoint": {"name": "a"}, "variants": [variant]}})
    chat.create(MODELS, {"metadata": {"name": "m"}, "spec": {"source": SOURCE}})
    make_map(chat)
    assert chat.run("delete", "cm/x", "--yes", "--receipt", "receipt.json").code == 0

    def call(words: tuple[str, ...], form: str) -> Ran:
        if words[0] != "receipt":
            make_map(chat)
        place = () if "-n" in words or words[0] in ("version", "up", "down") else ("-n", chat.namespace)
        config = None if words[0] in NO_CLUSTER else chat.kubeconfig
        with machine() if words[0] in NO_CLUSTER else contextlib.nullcontext():
            return run(*words, *place, "-o", form, kubeconfig=config)

    return call


def make_map(chat: Chat) -> None:
    async def make(client: Any) -> None:
        with contextlib.suppress(Absent):
            there = await client.get(kinds.CONFIG_MAPS, chat.key("x"))
            await client.delete(kinds.CONFIG_MAPS, there.key, uid=there.meta.uid, propagation=Propagation.BACKGROUND)
        await client.create(kinds.CONFIG_MAPS, kinds.config_map("x"), namespace=chat.namespace)

    chat.ask(make)


def documents(form: str, out: str) -> list[Any]:
    """All that was printed: one report, or events."""
    if form == "yaml":
        return list(yaml.safe_load_all(out))
    return [json.loads(line) for line in out.splitlines()] if out.startswith('{"event"') else [json.loads(out)]


def steady(value: Any) -> Any:
    """Without what differs from one run to the next."""
    if isinstance(value, dict):
        return {name: "…" if name in VOLATILE else steady(each) for name, each in value.items()}
    return [steady(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", CASES)
def test_json_and_yaml_say_the_same(name: str, tried: Callable[[tuple[str, ...], str], Ran]):
    words = CASES[name].words
    as_json, as_yaml = tried(words, "json"), tried(words, "yaml")
    assert as_json.code == as_yaml.code
    told = documents("json", as_json.out)
    assert steady(documents("yaml", as_yaml.out)) == steady(told)
    assert as_yaml.out != as_json.out
    assert told[0]


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.words[0] != "version"])
def test_names_are_those_that_commands_accept(name: str, chat: Chat, tried: Callable[[tuple[str, ...], str], Ran]):
    case = CASES[name]
    ran = tried(case.words, "name")
    assert ran.out.splitlines() == list(case.names), ran
    for line in case.names:
        more = ("--no-wait",) if case.accepts[0] == "rollback" else ()
        accepted = chat.run(*case.accepts, line, *more)
        assert accepted.code == 0, accepted
