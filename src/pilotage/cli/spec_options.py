"""The options that say what an endpoint should be, together as `arguments`."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from pilotage.cli.options import later, together

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


spec_options = together(
    "arguments",
    later("pilotage.rollout.spec", "SpecArguments"),
    click.option(
        "--model",
        metavar="PATH|SOURCE|NAME",
        help="A file (./x.gguf), a source (hf://OWNER/REPOSITORY/FILE, https://…, s3://…, oci://…), or a Model's name.",
    ),
    click.option("--runtime", type=RUNTIMES, help="The program that serves.  [default: llama.cpp]"),
    click.option("--image", metavar="IMAGE", help="Its image instead of the runtime's own."),
    click.option("--arg", metavar="ARG", multiple=True, help="An argument for it. Several: in this order."),
    click.option("--env", metavar="NAME=VALUE", multiple=True, help="A variable for it."),
    click.option("--port", type=click.IntRange(1, 65535), help="Where it listens."),
    click.option("--replicas", metavar="N", type=click.IntRange(min=0), help="How many of them.  [default: 1]"),
    click.option("--limit", metavar="NAME=VALUE", multiple=True, help="A resource limit, such as nvidia.com/gpu=1."),
    click.option("--placement", type=PLACEMENTS, help="Where it runs.  [default: Deployment]"),
    click.option("--on", metavar="HOST", help="The Host to run on; means --placement Host."),
    click.option("--route", type=ROUTES, help="How requests get there.  [default: None]"),
    click.option("--host", metavar="NAME", help="The host name of the route."),
    click.option("--gateway", metavar="[NAMESPACE/]NAME", help="The Gateway of an HTTPRoute."),
)
"""The flags, as `arguments`: SpecArguments."""


def as_flags(given: "SpecArguments") -> list[str]:
    """The words of a command line that give the same arguments."""
    words = []
    for field, value in given._asdict().items():
        values = value if isinstance(value, tuple) else () if value is None else (value,)
        words += [word for each in values for word in (f"--{field}", str(each))]
    return words
