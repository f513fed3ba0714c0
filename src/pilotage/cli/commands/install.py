"""``pilotage install``: what has to be on a cluster for the operator, to be applied by somebody who may."""

import shlex

import click

from pilotage import __version__
from pilotage.cli.errors import plain_errors


@click.command()
@click.option("--print", "printed", is_flag=True, help="Print the manifests. Nothing else is done.")
@click.option("--image", metavar="IMAGE", default=f"pilotage:{__version__}", show_default=True, help="The operator's.")
@click.option("-n", "--namespace", metavar="NAME", default="pilotage-system", show_default=True, help="The operator's.")
@click.option(
    "--replicas", type=click.IntRange(0), default=2, show_default=True, help="How many operators; one of them leads."
)
@click.option(
    "--setting",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    help="A setting of the operator, such as envoyAdmins=http://10.0.0.7:9001; repeatable.",
)
@plain_errors
def install(printed: bool, image: str, namespace: str, replicas: int, settings: tuple[str, ...]) -> None:
    """Print the manifests that a cluster needs for the operator.

    `pilotage install --print | kubectl apply --server-side -f -`

    The namespace, the CRDs, the RBAC rules of the operator, and the operator itself. `pilotage operator --help`
    explains the settings.
    """
    from pilotage.operator.install import Values, as_yaml, chosen_settings, manifests

    if not printed:
        raise click.UsageError(
            "Nothing was done: this command only prints what has to be applied. Review it, then apply it with: "
            f"{_apply(image, namespace, replicas, settings)}"
        )
    click.echo(as_yaml(manifests(Values(image, namespace, replicas, chosen_settings(settings)))), nl=False)


def _apply(image: str, namespace: str, replicas: int, settings: tuple[str, ...]) -> str:
    """The command that applies the manifests, with all options."""
    chosen = ["--image", image, "-n", namespace, "--replicas", str(replicas)]
    chosen += [word for each in settings for word in ("--setting", each)]
    return f"{shlex.join(['pilotage', 'install', '--print', *chosen])} | kubectl apply --server-side -f -"
