"""The options that say what an endpoint should be, together as `arguments`."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from pilotage.cli.options import Decorator, later, names_of, together

if TYPE_CHECKING:
    from pilotage.rollout.spec import SpecArguments


class RegistryChoice(click.Choice[str]):
    """One of the names in a registry, which is imported when the choices are needed and not before."""

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name
        self.case_sensitive = True

    @property
    def registry(self) -> Mapping[str, Any]:
        """The registry, by name."""
        found: Mapping[str, Any] = getattr(import_module(self._module), self._name)
        return found

    @property
    def choices(self) -> Sequence[str]:  # type: ignore[override]
        """The names, sorted."""
        return sorted(self.registry)


RUNTIMES = RegistryChoice("pilotage.serving.runtimes", "RUNTIMES")
PLACEMENTS = RegistryChoice("pilotage.serving.placements", "PLACEMENTS")
ROUTES = RegistryChoice("pilotage.traffic.routers", "ROUTERS")


def _spec_options(*, defaults: bool) -> Decorator:
    """The flags, as `arguments`: SpecArguments. `defaults`: whether leaving one out means its default."""

    def text(sentence: str, default: str) -> str:
        return f"{sentence}  [default: {default}]" if defaults else sentence

    pair = "NAME=VALUE"
    return together(
        "arguments",
        later("pilotage.rollout.spec", "SpecArguments"),
        click.option(
            "--model",
            metavar="PATH|SOURCE|NAME",
            shell_complete=names_of("model"),
            help="A file (./x.gguf), a source (hf://OWNER/REPOSITORY/FILE, https://…, s3://…, oci://…), or a Model.",
        ),
        click.option("--runtime", type=RUNTIMES, help=text("The program that serves.", "llama.cpp")),
        click.option("--image", metavar="IMAGE", help="Its image instead of the runtime's own."),
        click.option("--arg", metavar="ARG", multiple=True, help="An argument for it. Several: in this order."),
        click.option("--env", metavar=pair, multiple=True, help="A variable for it."),
        click.option("--port", type=click.IntRange(1, 65535), help="Where it listens."),
        click.option("--replicas", metavar="N", type=click.IntRange(min=0), help=text("How many of them.", "1")),
        click.option("--limit", metavar=pair, multiple=True, help="A resource limit, such as nvidia.com/gpu=1."),
        click.option("--placement", type=PLACEMENTS, help=text("Where it runs.", "Deployment")),
        click.option(
            "--on",
            metavar="HOST",
            shell_complete=names_of("host"),
            help="The Host to run on; means --placement Host.",
        ),
        click.option("--route", type=ROUTES, help=text("How requests get there.", "None")),
        click.option("--host", metavar="NAME", help="The host name of the route."),
        click.option("--gateway", metavar="[NAMESPACE/]NAME", help="The Gateway of an HTTPRoute."),
        click.option(
            "--canary",
            metavar="PERCENT,...",
            help="Move requests in these steps, such as 5,25,50, each until `pilotage promote`. It stays so.",
        ),
    )


new_spec_options = _spec_options(defaults=True)
"""The flags of a new endpoint."""
changed_spec_options = _spec_options(defaults=False)
"""The flags of an endpoint that is changed: one that is left out leaves its field as it is."""


def as_flags(given: "SpecArguments") -> list[str]:
    """The words of a command line that give the same arguments."""
    words = []
    for field, value in given._asdict().items():
        values = value if isinstance(value, tuple) else () if value is None else (value,)
        words += [word for each in values for word in (f"--{field}", str(each))]
    return words
