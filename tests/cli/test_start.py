"""Start of a command: its imports before the first request, and garbage collection once it runs."""

import subprocess
import sys

import pytest

LATER = {"asyncio", "difflib", "json", "msgspec", "ssl"}
"""Modules that parsing a command line must not import."""


def run(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("command", ["delete", "plan"])
def test_a_command_line_is_understood_before_anything_is_imported_for_the_cluster(command: str) -> None:
    program = (
        "import sys\n"
        "from pilotage.cli import pilotage\n"
        f"pilotage([{command!r}, '--help'], standalone_mode=False)\n"
        f"print(sorted({LATER!r} & set(sys.modules)))\n"
    )
    assert run(program).splitlines()[-1] == "[]"


def test_a_command_that_runs_for_long_collects_its_garbage() -> None:
    program = (
        "import gc, sys\n"
        "import click\n"
        "from pilotage import cli\n"
        "tell = click.command()(lambda: click.echo(f'collects: {gc.isenabled()}'))\n"
        "cli.Commands.get_command = lambda *_: tell\n"
        "sys.argv = ['pilotage', 'operator']\n"
        "cli.main()\n"
    )
    assert run(program) == "collects: True"
