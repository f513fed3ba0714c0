"""``pilotage deploy``: what is refused before anything is made, and what is said while it comes up."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.api.names import ENDPOINTS, HOSTS, MODELS, UP_MARKER
from pilotage.cli import pilotage
from pilotage.cli.errors import NoAnswer, plain_errors
from pilotage.cli.spec_options import PLACEMENTS, ROUTES, RUNTIMES
from pilotage.kube import NAMESPACES, Client, KindNotServed, Object, Propagation
from pilotage.kube.names import CONFIGMAPS
from pilotage.operator.crds import crds
from pilotage.private_files import make_private, write_private
from pilotage.processes.identity import find as process_of
from pilotage.rollout import follow, status
from pilotage.up.layout import Layout, UpState
from pilotage.up.settings import UpOptions, remember
from tests.cli.running import Ran, run
from tests.cli.serving import OTHER, SOURCE, Chat, condition, press_ctrl_c, revision, serving, with_ctrl_c
from tests.support.waiting import until


def in_one_sentence(ran: Ran) -> bool:
    return ran.out == "" and ran.err.startswith("Error: ") and len(ran.err.splitlines()) == 1


def test_flags_become_a_spec(chat: Chat):
    ran = chat.run(
        *("deploy", "assistant", "--no-wait", "--model", SOURCE, "--runtime", "vllm", "--image", "acme/vllm:1"),
        *("--arg", "--max-model-len", "--arg", "8192", "--env", "A=b=c", "--replicas", "2"),
        *("--limit", "nvidia.com/gpu=1", "--route", "HTTPRoute", "--host", "a.example.com", "--gateway", "infra/main"),
    )
    assert (ran.code, ran.err) == (0, "")
    spec = chat.spec("assistant")
    assert spec["model"] == {"source": SOURCE}
    assert spec["runtime"] == {
        "name": "vllm",
        "image": "acme/vllm:1",
        "args": ["--max-model-len", "8192"],
        "env": [{"name": "A", "value": "b=c"}],
    }
    assert spec["replicas"] == 2
    assert spec["resources"] == {"limits": {"nvidia.com/gpu": "1"}}
    assert spec["route"] == {
        "kind": "HTTPRoute",
        "host": "a.example.com",
        "path": "/",
        "gateway": {"name": "main", "namespace": "infra"},
    }


@pytest.fixture
def one_machine(chat: Chat) -> Iterator[Chat]:
    """The same on the API server of `pilotage up`, as its mark says."""

    async def mark(client: Client) -> Object:
        await client.apply(NAMESPACES, {"metadata": {"name": UP_MARKER.namespace}}, force=True)
        await client.apply(HOSTS, {"metadata": {"name": "box"}}, force=True)
        meta = {"namespace": UP_MARKER.namespace, "name": UP_MARKER.name}
        return await client.create(CONFIGMAPS, {"metadata": meta, "data": {"host": "box"}})

    made = chat.ask(mark)
    yield chat
    chat.ask(lambda client: client.delete(CONFIGMAPS, UP_MARKER, uid=made.meta.uid, propagation=Propagation.BACKGROUND))


def test_one_machine_runs_it_itself_and_routes_to_it_unless_told_otherwise(one_machine: Chat):
    ran = one_machine.run("deploy", "a", "--no-wait", "--model", SOURCE)
    assert (ran.code, "deployed on it and behind its gateway" in ran.err) == (0, True)
    assert one_machine.spec("a")["placement"]["host"] == "box"
    assert one_machine.spec("a")["route"]["kind"] == "PilotageGateway"
    flags = ("--placement", "Deployment", "--route", "None")
    ran = one_machine.run("deploy", "b", "--no-wait", "--model", SOURCE, *flags)
    assert (ran.code, ran.err) == (0, "")
    assert one_machine.spec("b")["placement"]["kind"] == "Deployment"
    assert one_machine.spec("b")["route"]["kind"] == "None"


def test_where_it_is_deployed_is_not_told_of_what_exists_already(one_machine: Chat):
    one_machine.make("a", serving("a"))
    ran = one_machine.run("deploy", "a", "--model", SOURCE)
    assert ran.code == 2
    assert "exists already" in ran.err
    assert "One machine" not in ran.err


def test_the_choices_are_those_of_the_kind():
    (crd,) = (each for each in crds() if each["metadata"]["name"] == str(ENDPOINTS))
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    fields = (("runtime", "name", RUNTIMES), ("placement", "kind", PLACEMENTS), ("route", "kind", ROUTES))
    for part, field, option in fields:
        assert spec[part]["properties"][field]["enum"] == list(option.choices)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--runtime", "custom"], "spec.runtime: Invalid value: a custom runtime needs an image"),
        (["--route", "HTTPRoute"], "spec.route"),
        (["--limit", "cpu=much"], "spec.resources.limits"),
    ],
)
def test_what_the_server_refuses_is_said_by_field_and_not_made(chat: Chat, flags: list[str], words: str):
    ran = chat.run("deploy", "a", "--model", SOURCE, *flags)
    assert ran.code == 2
    assert in_one_sentence(ran)
    assert words in ran.err
    assert "nothing was changed" in ran.err
    assert chat.find("a") is None


def test_a_dry_run_makes_nothing(chat: Chat):
    ran = chat.run("deploy", "a", "--model", SOURCE, "--dry-run")
    assert (ran.code, ran.out) == (0, f"servingendpoint/a -n {chat.namespace} would be created\n")
    assert chat.find("a") is None


def test_what_is_there_is_not_touched_and_the_command_that_changes_it_is_printed(chat: Chat):
    made = chat.make("a", serving("a"))
    ran = chat.run("deploy", "a", "--model", OTHER, "--arg", "two words", "--replicas", "2")
    assert ran.code == 2
    again = f"--model {OTHER} --arg 'two words' --replicas 2 -n {chat.namespace} --kubeconfig {chat.kubeconfig}"
    assert f"Change it with: pilotage redeploy a {again}\n" in ran.err
    found = chat.find("a")
    assert found is not None
    assert found.meta.resource_version == made.meta.resource_version


def test_an_endpoint_that_never_served_can_be_replaced_and_one_that_did_cannot(chat: Chat):
    failed = {"phase": "Failed", "history": [revision(1, "Failed")]}
    chat.make("a", failed, replicas=3)
    ran = chat.run("deploy", "a", "--model", OTHER)
    assert (ran.code, "has never served" in ran.err, "--replace" in ran.err) == (2, True, True)
    ran = chat.run("deploy", "a", "--model", OTHER, "--replace", "--no-wait")
    assert (ran.code, ran.err) == (0, "")
    assert (chat.spec("a")["model"], chat.spec("a")["replicas"]) == ({"source": OTHER}, 1)
    chat.make("b", serving("b"))
    ran = chat.run("deploy", "b", "--model", OTHER, "--replace", "--no-wait")
    assert (ran.code, chat.spec("b")["model"]) == (2, {"source": SOURCE})
    assert "has served, so it is not replaced" in ran.err


def test_a_model_that_is_not_there_is_refused(chat: Chat):
    chat.create(MODELS, {"metadata": {"name": "qwen-small"}, "spec": {"source": SOURCE}})
    chat.make("b")
    for command in (("deploy", "a"), ("redeploy", "b")):
        ran = chat.run(*command, "--model", "qwen-smal", "--no-wait")
        assert ran.code == 2
        assert f"There is no model/qwen-smal -n {chat.namespace}. There is qwen-small." in ran.err
    assert chat.find("a") is None
    assert chat.spec("b")["model"] == {"source": SOURCE}


def test_a_host_that_is_not_there_is_refused_with_those_that_are(chat: Chat):
    chat.ask(lambda client: client.apply(HOSTS, {"metadata": {"name": "gpu-1"}}, force=True))
    chat.make("b")
    for command in (("deploy", "a", "--model", SOURCE), ("redeploy", "b")):
        ran = chat.run(*command, "--on", "nosuch", "--no-wait")
        assert ran.code == 2
        assert in_one_sentence(ran)
        assert "There is no host/nosuch. There is " in ran.err
        assert "gpu-1" in ran.err
    assert chat.find("a") is None


# Models as people write them


@pytest.mark.parametrize("command", ["deploy", "redeploy"])
def test_a_path_becomes_a_source(chat: Chat, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.gguf").touch()
    if command == "redeploy":
        chat.make("a")
    ran = chat.run(command, "a", "--no-wait", "--model", "./x.gguf")
    assert (ran.code, ran.err) == (0, "")
    assert chat.spec("a")["model"] == {"source": f"file://{tmp_path}/x.gguf"}


def test_a_path_that_is_not_here_may_be_on_the_machine_that_serves(chat: Chat):
    ran = chat.run("deploy", "a", "--no-wait", "--model", "/nowhere/x.gguf")
    assert ran.code == 0
    assert "There is no /nowhere/x.gguf on this machine." in ran.err
    assert chat.spec("a")["model"] == {"source": "file:///nowhere/x.gguf"}


@pytest.mark.parametrize("command", ["deploy", "redeploy"])
def test_a_repository_of_the_hub_is_answered_with_what_to_write(chat: Chat, command: str):
    chat.make("b")
    ran = chat.run(command, "b" if command == "redeploy" else "a", "--model", "Qwen/Qwen3-0.6B")
    assert (ran.code, "write --model hf://Qwen/Qwen3-0.6B/FILE" in ran.err) == (2, True)
    chat.create(MODELS, {"metadata": {"name": "small"}, "spec": {"source": "hf://Qwen/Qwen3-0.6B/x.gguf"}})
    ran = chat.run(command, "b" if command == "redeploy" else "a", "--model", "Qwen/Qwen3-0.6B")
    assert (ran.code, ran.err.endswith(f"model/small -n {chat.namespace} has it: --model small\n")) == (2, True)


def test_the_name_of_a_file_is_no_name_of_a_model(chat: Chat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.gguf").touch()
    ran = chat.run("deploy", "a", "--model", "x.gguf")
    assert (ran.code, "For the file here write: --model ./x.gguf" in ran.err) == (2, True)


@pytest.fixture
def machine(serving_server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    """The folder of a `pilotage up` that serves this API and may read the folder `open`."""
    layout = Layout(tmp_path / "data")
    layout.make()
    make_private(layout.harbor)
    write_private(layout.kubeconfig, serving_server.read_bytes())
    this = process_of(os.getpid())
    assert this is not None
    layout.write_state(UpState(this.id, {}, {}, "", ready=True))
    for name in ("open", "closed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.gguf").touch()
    remember(layout, UpOptions(layout.folder, file_roots=(str(tmp_path / "open"),)))
    monkeypatch.setenv("PILOTAGE_DATA", str(layout.folder))
    return layout


def test_one_machine_refuses_a_file_that_it_may_not_read_with_the_command_that_allows_it(
    one_machine: Chat, machine: Layout, tmp_path: Path
):
    ran = one_machine.run("deploy", "a", "--no-wait", "--model", tmp_path / "nothing.gguf")
    assert (ran.code, f"There is no file {tmp_path}/nothing.gguf." in ran.err) == (2, True)
    ran = one_machine.run("deploy", "a", "--no-wait", "--model", tmp_path / "closed/x.gguf")
    roots = f"--file-roots {tmp_path}/open --file-roots {tmp_path}/closed"
    assert ran.code == 2
    assert f"Allow its folder with: pilotage down && pilotage up -d {roots}\n" in ran.err
    assert one_machine.find("a") is None
    ran = one_machine.run("deploy", "a", "--no-wait", "--model", tmp_path / "open/x.gguf")
    assert ran.code == 0, ran.err
    assert one_machine.spec("a")["model"] == {"source": f"file://{tmp_path}/open/x.gguf"}


@pytest.mark.parametrize("command", ["deploy", "redeploy"])
def test_no_text_for_a_model_ends_in_a_traceback(serving_server: Path, command: str):
    pieces = st.sampled_from(["file:", "hf://", "https://", "oci://", "~", "/", "./", "..", "a", "B", ":", "%2F", " "])
    texts = st.one_of(st.text(), st.lists(pieces, max_size=6).map("".join))

    @settings(max_examples=40, deadline=None, database=None)
    @given(texts.filter(lambda text: not text.startswith("-")))
    def check(text: str) -> None:
        """`run` raises whatever is not an exit code."""
        more = ("--dry-run",) if command == "deploy" else ("--no-wait",)
        ran = run(command, "nothing", "--model", text, *more, "-n", "default", kubeconfig=serving_server)
        assert ran.code in (0, 2)
        assert "Traceback" not in ran.err

    check()


@pytest.mark.parametrize("words", [("status", "a/b/c"), ("status", ".."), ("list", "-n", "a/b"), ("scale", "..")])
def test_a_name_that_cannot_be_one_is_refused_in_a_sentence(serving_server: Path, words: tuple[str, ...]):
    more = ("--replicas", "1") if words[0] == "scale" else ()
    ran = run(*words, *more, kubeconfig=serving_server)
    assert (ran.code, ran.out) == (2, "")


def test_a_namespace_that_is_not_there_is_named(serving_server: Path):
    ran = run("deploy", "a", "--model", SOURCE, "-n", "nowhere", kubeconfig=serving_server)
    assert ran.code == 2
    assert "There is no namespace nowhere." in ran.err


FILE = f"""
apiVersion: pilotage.dev/v1alpha1
kind: Model
metadata: {{name: qwen}}
spec: {{source: "{SOURCE}"}}
---
apiVersion: pilotage.dev/v1alpha1
kind: ServingEndpoint
metadata: {{name: a, labels: {{team: search}}}}
spec: {{model: {{name: qwen}}, replicas: 3}}
"""


def test_a_file_brings_the_model_along(chat: Chat, tmp_path: Path):
    (tmp_path / "a.yaml").write_text(FILE)
    ran = chat.run("deploy", "-f", tmp_path / "a.yaml", "--no-wait")
    assert ran.code == 0, ran.err
    made, model = chat.find("a"), chat.find("qwen", MODELS)
    assert made is not None
    assert made.meta.labels == {"team": "search"}
    assert model is not None
    assert model.get("spec", "source") == SOURCE


def test_a_file_with_anything_else_is_refused_as_a_whole(chat: Chat, tmp_path: Path):
    other = "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
    (tmp_path / "a.yaml").write_text(FILE + other)
    ran = chat.run("deploy", "-f", tmp_path / "a.yaml", "--no-wait")
    assert ran.code == 2
    assert "configmap/c is neither a ServingEndpoint nor a Model" in ran.err
    assert chat.find("qwen", MODELS) is None


@pytest.mark.parametrize("command", ["deploy", "redeploy"])
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("replicas: 3", "replcas: 3", 'unknown field "spec.replcas"'),
        ("model: {name: qwen}", "model: {name: qwen, nmae: x}", 'unknown field "spec.model.nmae"'),
        ("replicas: 3", "replicas: 3, replicas: 4", "the field replicas occurs twice"),
        ("kind: ServingEndpoint", "kind: servingendpoint", "write apiVersion: pilotage.dev/v1alpha1 and kind: Serv"),
        ("v1alpha1\nkind: Serv", "v1\nkind: Serv", "has apiVersion pilotage.dev/v1 and kind ServingEndpoint: write"),
        ("spec: {model", "spec: [1]\nx: {model", "its spec is not an object with fields"),
    ],
)
def test_a_file_is_read_strictly(chat: Chat, tmp_path: Path, command: str, old: str, new: str, words: str):
    text = FILE if command == "deploy" else FILE.partition("---\n")[2]
    assert old in text
    (tmp_path / "a.yaml").write_text(text.replace(old, new))
    chat.create(MODELS, {"metadata": {"name": "qwen"}, "spec": {"source": SOURCE}})
    made = chat.make("a") if command == "redeploy" else None
    ran = chat.run(command, "-f", tmp_path / "a.yaml", "--no-wait")
    assert ran.code == 2
    assert in_one_sentence(ran)
    assert words in ran.err
    found = chat.find("a")
    assert (found and found.meta.generation) == (made and made.meta.generation)


def test_a_model_in_a_file_is_read_strictly(chat: Chat, tmp_path: Path):
    (tmp_path / "a.yaml").write_text(FILE.replace("spec: {source:", "spec: {sha: x, source:"))
    ran = chat.run("deploy", "-f", tmp_path / "a.yaml", "--dry-run")
    assert (ran.code, 'unknown field "spec.sha"' in ran.err) == (2, True)


def test_a_field_that_occurs_twice_in_json_is_refused(chat: Chat):
    body = '{"apiVersion": "pilotage.dev/v1alpha1", "kind": "ServingEndpoint", "metadata": {"name": "a", "name": "b"}}'
    ran = chat.run("deploy", "-f", "-", "--dry-run", stdin=body)
    assert (ran.code, "the field name occurs twice" in ran.err) == (2, True)


def test_nothing_of_a_file_is_made_where_one_thing_in_it_is_refused(chat: Chat, tmp_path: Path):
    (tmp_path / "a.yaml").write_text(FILE.replace("replicas: 3", "runtime: {name: custom}"))
    ran = chat.run("deploy", "-f", tmp_path / "a.yaml", "--no-wait")
    assert ran.code == 2
    assert "a custom runtime needs an image" in ran.err
    assert chat.find("qwen", MODELS) is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["deploy"], "Say either NAME and flags, or -f FILE."),
        (["deploy", "a"], "Say what is served"),
        (["deploy", "a", "-f", "x.yaml"], "Say either NAME and flags, or -f FILE."),
        (["deploy", "-f", "x.yaml", "--replicas", "2"], "Say either NAME and flags, or -f FILE."),
        (["redeploy", "a"], "Say what changes"),
        (["redeploy"], "Say either NAME and flags, or -f FILE."),
        (["logs", "a", "-f", "-p"], "there is nothing to follow"),
        (["models", "a", "-A"], "A name stands alone"),
        (["status", "pod/a"], "is not the name of an endpoint"),
    ],
)
def test_what_means_nothing_is_refused_before_anybody_is_asked(arguments: list[str], words: str):
    ran = run(*arguments)
    assert ran.code == 2
    assert words in ran.err


# Waiting


def test_it_waits_until_it_serves_and_says_where(chat: Chat):
    coming = {"phase": "Deploying", "conditions": [condition("Progressing", True, "RevisionComing", "a-1 comes.")]}
    with chat.answering("a", coming, serving("a")):
        ran = chat.run("deploy", "a", "--model", SOURCE, "--timeout", "20")
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[-1] == (
        f"servingendpoint/a -n {chat.namespace} serves: http://a.example.com/v1 (revision a-1, 1 of 1 ready)"
    )


def test_for_scripts_each_line_is_an_event(chat: Chat):
    with chat.answering("a", serving("a")):
        ran = chat.run("deploy", "a", "--model", SOURCE, "--timeout", "20", "-o", "json")
    events = [json.loads(line) for line in ran.out.splitlines()]
    assert ran.code == 0
    assert events[-1]["event"] == "end"
    assert (events[-1]["result"], events[-1]["url"]) == ("serving", "http://a.example.com/v1")
    assert {"event": "up", "state": "done", "revision": "a-1"}.items() <= events[-2].items()


def test_what_will_not_come_up_ends_it_with_the_reason(chat: Chat, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(status, "SETTLE_SECONDS", 0.0)
    missing = condition("Degraded", True, "ModelMissing", "the file /models/a.gguf does not exist.")
    with chat.answering("a", {"phase": "Degraded", "conditions": [missing]}):
        ran = chat.run("deploy", "a", "--model", SOURCE, "--timeout", "20")
    assert ran.code == 1
    assert "ModelMissing: the file /models/a.gguf does not exist. Nothing serves." in ran.err
    assert "Look with: pilotage status a" in ran.err


def test_a_moment_of_trouble_is_waited_out(chat: Chat):
    """An operator that has not seen a Model yet says so, and takes it back at once."""
    trouble = condition("Degraded", True, "ModelMissing", "not there")
    with chat.answering("a", {"phase": "Degraded", "conditions": [trouble]}, serving("a")):
        ran = chat.run("deploy", "a", "--model", SOURCE, "--timeout", "20")
    assert ran.code == 0, ran.err


def test_without_an_operator_the_time_runs_out_and_that_is_why(chat: Chat, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(follow, "OPERATOR_SECONDS", 0.0)
    ran = chat.run("deploy", "a", "--model", SOURCE, "--timeout", "0.5")
    assert ran.code == 1
    assert "none runs: there is no Lease pilotage-operator" in ran.err
    assert "After 0.5 s: the operator has not reconciled it yet" in ran.err


def test_one_that_is_deleted_meanwhile_is_not_waited_for(chat: Chat):
    async def delete(client: Client) -> None:
        found = await until(client, ENDPOINTS, chat.key("a"), bool)
        assert found is not None
        await client.delete(ENDPOINTS, found.key, uid=found.meta.uid, propagation=Propagation.BACKGROUND)

    with chat.meanwhile(delete):
        ran = chat.run("deploy", "a", "--model", SOURCE, "--timeout", "20")
    assert ran.code == 1
    assert "It was deleted in the meantime." in ran.err


def test_ctrl_c_says_that_it_goes_on(chat: Chat):
    async def strike(client: Client) -> None:
        await until(client, ENDPOINTS, chat.key("a"), bool)
        await press_ctrl_c()

    with with_ctrl_c(), chat.meanwhile(strike):
        ran = chat.run("deploy", "a", "--model", SOURCE, "--timeout", "20")
    assert ran.code == 130
    assert "the operator continues" in ran.err
    assert chat.find("a") is not None


def test_where_pilotage_is_not_installed_it_is_said_how_to():
    def command() -> None:
        raise KindNotServed("404", request="GET /apis/pilotage.dev/v1alpha1/servingendpoints")

    with pytest.raises(NoAnswer, match="pilotage install --print"):
        plain_errors(command)()


@pytest.mark.parametrize(
    "name", ["deploy", "list", "status", "logs", "scale", "redeploy", "rollback", "history", "models"]
)
def test_help_says_what_the_exit_codes_mean(name: str):
    command = pilotage.get_command(click.Context(pilotage), name)
    assert command is not None
    assert "Exit codes: 0" in (command.help or "")
