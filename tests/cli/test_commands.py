"""Rules that hold for all commands."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from controlplane import Access
from pilotage import __version__
from pilotage.cli import COMMANDS, pilotage
from tests.cli.running import NO_SERVER, run


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_list_of_commands_says_what_their_own_help_says(name):
    command = pilotage.get_command(click.Context(pilotage), name)
    first = (command.help or "").strip().split("\n\n")[0].replace("\n", " ")
    assert first.startswith(COMMANDS[name].rstrip(".")), first


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_has_an_example_or_says_it_all(name):
    answer = CliRunner().invoke(pilotage, [name, "--help"])
    assert answer.exit_code == 0
    assert "Options:" in answer.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["delete"], "Say what is meant"),
        (["delete", "--all"], "--all needs -n"),
        (["delete", "-n", "x", "--all", "pod/a"], "stand alone"),
        (["delete", "pod/a", "--resume", "r.json"], "--resume stands alone"),
        (["plan", "-l", "a=b", "-f", "x.yaml"], "stand alone"),
        (["plan", "deploy/web", "-f", "x.yaml"], "Names and manifests exclude each other. Leave out one; why"),
        (["delete", "deploy/web", "-f", "x.yaml", "--dry-run"], "Names and manifests exclude each other."),
        (["why", "deploy/web", "-f", "x.yaml"], "No such option"),
        (["plan", "-l", "a=b", "pod/x"], "give kinds with -l, or names without it"),
    ],
)
def test_what_means_nothing_or_too_much_is_refused_before_anybody_is_asked(arguments, words):
    answer = CliRunner().invoke(pilotage, arguments)
    assert answer.exit_code == 2
    assert words in answer.output


@pytest.mark.parametrize(
    "arguments",
    [
        ("delete", "cm/a", "--yes"),
        ("delete", "-l", "a=b", "--dry-run"),
        ("leaks",),
        ("plan", "cm/a"),
        ("plan", "-n", "shop"),
        ("tree", "cm/a"),
        ("wait", "cm/a"),
        ("why", "cm/a"),
    ],
    ids=" ".join,
)
def test_a_server_that_is_not_there_is_told_in_a_line_that_says_what_to_do(arguments, tmp_path):
    path = tmp_path / "config"
    path.write_text(NO_SERVER)
    ran = run(*arguments, kubeconfig=path)
    assert (ran.code, ran.out) == (3, "")
    (line,) = ran.err.splitlines()
    assert line.startswith("Error: GET /api: the API server was not reached: ")
    assert line.endswith(". Check that it runs, or choose another cluster with --context or --kubeconfig.")


# As a plugin of kubectl

SCRIPTS = Path(sys.executable).parent


@pytest.mark.parametrize("script", ["pilotage", "kubectl-pilotage"])
def test_the_program_is_installed_under_both_names(script):
    ran = subprocess.run([SCRIPTS / script, "version", "--client"], capture_output=True, text=True, check=True)
    assert ran.stdout == f"pilotage: {__version__}\n"


def test_kubectl_finds_its_plugin(cluster: Access, monkeypatch):
    monkeypatch.setenv("PATH", f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}")
    assert "Delete objects in order" in cluster.kubectl("pilotage", "delete", "--help")
    planned = cluster.kubectl("pilotage", "plan", "cm/never", "-n", "default")  # of the cluster that kubectl talks to
    assert planned == "configmap/never -n default is not there: nothing to do\n"
