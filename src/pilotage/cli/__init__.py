"""The command line: thin entry points that parse, call a layer below, and print.

A command is a module of `pilotage.cli.commands`, imported when it is called. Those that read a whole cluster import the
rest while it answers, and the programs when they start.
"""

import contextlib
import errno
import gc
import importlib
import os
import signal
import sys
from typing import TYPE_CHECKING

import click

from pilotage import __version__
from pilotage.terminal import OutputLost, guard

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS = {
    "abort": "Take a rollout in steps back: all requests return to the revision that serves.",
    "agent": "Run the servers that are placed on this machine until SIGTERM.",
    "completion": "Print a script that lets a shell complete commands, options and names.",
    "delete": "Delete objects in order, wait until they are proven gone, and write a receipt.",
    "deploy": "Deploy a model as an endpoint, and wait until it serves.",
    "down": "Stop what `pilotage up` started, and prove that nothing is left.",
    "experiments": "List the Experiments, or show one: its variants, what each gets, and the verdict.",
    "fetch": "Bring a model to a path: checked, whole or not at all, and continued where an earlier attempt broke off.",
    "gateway": "Serve requests for models with a real Envoy, until SIGTERM.",
    "harbor": "Serve the Kubernetes API on this machine until SIGTERM.",
    "history": "Show the revisions of an endpoint: the model and runtime of each, and its state.",
    "hold": "Hold a rollout in steps where it is, or let it go on.",
    "install": "Print the manifests that a cluster needs for the operator.",
    "leaks": "Find leaked objects: those that nothing cleans up, and references to objects that do not exist.",
    "list": "List the endpoints.",
    "logs": "Print the logs of the pods of an endpoint.",
    "models": "List the Models, or show one: its source, the progress of its fetch, its format, and who serves it.",
    "operator": "Run the controllers of models and endpoints until SIGTERM.",
    "plan": "Show what `pilotage delete` would do, and what would block it.",
    "promote": "Take a rollout in steps on: end its current step, or leave out all steps.",
    "receipt": "Show and check the receipts that `pilotage delete` and the operator write.",
    "redeploy": "Change an endpoint: a new revision starts, takes over the route, and the old one is removed.",
    "retry": "Try a spec again whose rollout was aborted.",
    "rollback": "Return an endpoint to an earlier revision.",
    "rollout": "Show the rollout of an endpoint: its steps, what both sides get, and the next commands.",
    "scale": "Set the number of replicas of an endpoint.",
    "status": "Show one endpoint: its model, its state, what it waits for, and its recent events.",
    "terminate": "End an Experiment now: its variants leave the route, and are removed.",
    "tree": "Show the parts of an object and its references, with the state of each.",
    "up": "Run the whole system on this machine: API server, controllers, agent and gateway.",
    "verdict": "Print the verdict of a rollout or an Experiment, and what would decide it.",
    "version": "Print the version of Pilotage and of the API server.",
    "wait": "Wait until objects are proven gone.",
    "why": "Explain why an object is not deleted: the root cause, its evidence, and what to do.",
}
"""Each command, which has a module and a function of its name, and its line in ``pilotage --help``."""
HIDDEN = {"fetch"}
"""Those that programs call, not people: ``--help`` does not list them."""


class Commands(click.Group):
    """The group of all commands; it knows them without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Their names."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """One of them, imported."""
        if cmd_name not in COMMANDS:
            return None
        module = vars(importlib.import_module(f"pilotage.cli.commands.{cmd_name}"))
        command = module.get(f"{cmd_name}_") or module[cmd_name]  # `list_`, because `list` is a built-in
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """The commands that begin like this, without importing them."""
        from click.shell_completion import CompletionItem

        names = [name for name in self.list_commands(ctx) if name not in HIDDEN and name.startswith(incomplete)]
        found = [CompletionItem(name, help=COMMANDS[name]) for name in names]
        return found or click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The list in ``--help``."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in sorted(COMMANDS.keys() - HIDDEN)])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="pilotage")
def pilotage() -> None:
    """Model serving on Kubernetes whose departures are as safe as its arrivals."""
    gc.enable()  # see `main`


def main() -> None:
    """The console script. All is done when a command ends: taking the interpreter apart would only take time."""
    code: object = 1
    gc.disable()  # until a command begins: what is imported up to then stays, and need not be looked through
    # Until a command says what Ctrl-C means for it, it just ends: there is nothing to put in order.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    guard()
    try:
        pilotage(standalone_mode=True)
    except SystemExit as end:
        code = end.code
    except OutputLost as lost:
        if lost.error.errno != errno.EPIPE:  # else the reader has had enough, which is no error
            click.echo(f"Error: The output could not be written: {lost}.", err=True)
    if code is not None and not isinstance(code, int):
        sys.exit(str(code))
    with contextlib.suppress(OSError, OutputLost):  # nobody reads any more
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code or 0)
