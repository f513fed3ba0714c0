"""What holds for all commands."""

import click
import pytest
from click.testing import CliRunner

from pilotage.cli import COMMANDS, pilotage


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
    ],
)
def test_what_means_nothing_or_too_much_is_refused_before_anybody_is_asked(arguments, words):
    answer = CliRunner().invoke(pilotage, arguments)
    assert answer.exit_code == 2
    assert words in answer.output
