"""``pilotage completion``, what a TAB offers, and endpoints that are named by one word."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pilotage.api.names import EXPERIMENTS, HOSTS, MODELS
from tests.cli.running import NO_SERVER, run
from tests.cli.serving import SOURCE, Chat, serving
from tests.cli.test_start import LATER

PROGRAM = "import sys; sys.argv[0] = 'pilotage'; from pilotage.cli import main; main()"


def tab(*words: str, program: str = PROGRAM) -> list[str]:
    """Offers for the last word: a kind and a value, as click's scripts read them."""
    line = " ".join(["pilotage", *words])
    env = {"_PILOTAGE_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words))}
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env={**os.environ, **env}
    )
    assert ran.stderr == ""
    return ran.stdout.split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(shell: str):
    ran = run("completion", shell)
    assert (ran.code, ran.err) == (0, "")
    assert f"_PILOTAGE_COMPLETE={shell}_complete" in ran.out


def test_commands_are_offered_before_anything_is_imported_for_the_cluster():
    assert tab("re") == ["plain,receipt", "plain,redeploy", "plain,retry"]
    program = (
        "import atexit, os, sys\n"
        "sys.argv[0] = 'pilotage'\n"
        "from pilotage.cli import pilotage\n"
        "try:\n    pilotage()\nexcept SystemExit:\n    pass\n"
        f"print(sorted({LATER!r} & set(sys.modules)))\n"
    )
    assert tab("re", program=program) == ["plain,receipt", "plain,redeploy", "plain,retry", "[]"]


def test_names_are_offered(chat: Chat):
    chat.make("assistant")
    chat.make("scribe")
    chat.create(MODELS, {"metadata": {"name": "qwen-small"}, "spec": {"source": SOURCE}})
    chat.ask(lambda client: client.apply(HOSTS, {"metadata": {"name": "gpu-7"}}, force=True))
    where = ("--kubeconfig", str(chat.kubeconfig), "-n", chat.namespace)
    for command in (
        "status",
        "redeploy",
        "scale",
        "logs",
        "history",
        "rollback",
        "delete",
        "plan",
        "why",
        "rollout",
        "abort",
    ):
        assert tab(command, *where, "ass") == ["plain,assistant"], command
    variant = {"name": "q8", "weight": 10, "same": True}
    body = {"metadata": {"name": "trial"}, "spec": {"endpoint": {"name": "a"}, "variants": [variant]}}
    chat.create(EXPERIMENTS, body)
    assert tab("terminate", *where, "t") == ["plain,trial"]
    assert tab("models", *where, "q") == ["plain,qwen-small"]
    assert tab("deploy", *where, "--model", "qw") == ["plain,qwen-small"]
    assert tab("deploy", *where, "--model", "./x") == ["file,./x"]
    assert tab("deploy", *where, "--on", "gpu-7") == ["plain,gpu-7"]
    assert tab("status", *where[:2], "-n", chat.namespace[:-1]) == [f"plain,{chat.namespace}"]


def test_a_cluster_that_does_not_answer_offers_nothing_and_says_nothing(tmp_path: Path):
    (tmp_path / "config").write_text(NO_SERVER)
    assert tab("status", "--kubeconfig", str(tmp_path / "config"), "ass") == []


def test_one_word_may_name_an_endpoint(chat: Chat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    chat.make("assistant", serving("assistant"))
    ran = chat.run("plan", "assistant")
    assert (ran.code, "servingendpoint/assistant" in ran.out) == (0, True)
    ran = chat.run("why", "assistant")
    assert (ran.code, ran.out.startswith(f"servingendpoint/assistant -n {chat.namespace}")) == (0, True)
    ran = chat.run("delete", "assistant", "--yes", "--timeout", "20")
    assert ran.code == 0, ran.err
    assert chat.find("assistant") is None


@pytest.mark.parametrize("command", ["plan", "why", "delete"])
def test_one_word_that_is_a_kind_stays_a_kind(chat: Chat, command: str):
    chat.make("pods")
    ran = chat.run(command, "pods", *(("--dry-run",) if command == "delete" else ()))
    assert (ran.code, "Which pods?" in ran.err) == (2, True)


@pytest.mark.parametrize("command", ["plan", "why", "delete"])
def test_one_word_that_is_nothing_is_answered_with_what_to_write(chat: Chat, command: str):
    ran = chat.run(command, "nothing", *(("--dry-run",) if command == "delete" else ()))
    assert (ran.code, "write KIND/NAME, such as deployment/nothing" in ran.err) == (2, True)
