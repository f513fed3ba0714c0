"""Command line as a person sees it."""

import json

import pytest
from click.testing import CliRunner

from pilotage import __version__
from pilotage.cli import pilotage


def run(*arguments: str):
    return CliRunner().invoke(pilotage, arguments)


def test_help_names_the_commands():
    answer = run("--help")
    assert answer.exit_code == 0
    assert "departures are as safe as its arrivals" in answer.output
    assert "version" in answer.output


def test_version_of_the_client_alone():
    assert run("version", "--client").output == f"pilotage: {__version__}\n"


UNREACHABLE = """
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]
users: [{name: u, user: {token: not-shown}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
"""


@pytest.mark.parametrize(
    ("kubeconfig", "code", "words"),
    [
        ("apiVersion: v1\nkind: Config\nclusters: nonsense\n", 2, "clusters"),
        (None, 2, "no such file"),
        (UNREACHABLE, 3, "was not reached"),
    ],
    ids=["malformed", "missing", "nobody listens"],
)
def test_errors_are_one_sentence_without_a_traceback(tmp_path, kubeconfig, code, words):
    path = tmp_path / "config"
    if kubeconfig is not None:
        path.write_text(kubeconfig)
    answer = run("version", "--kubeconfig", str(path))
    assert answer.exit_code == code
    assert answer.output.startswith("Error: ")
    assert words in answer.output
    assert "Traceback" not in answer.output
    assert "not-shown" not in answer.output


def test_version_asks_the_server(cluster):
    answer = run("version", "--kubeconfig", str(cluster.kubeconfig), "-o", "json")
    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.output)["kubernetes"].startswith("v1.")
