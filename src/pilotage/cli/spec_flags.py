"""The flags that say what an endpoint should be, and what they make of its spec. Pure but for the options themselves.

They cover what is asked for every day; a file (``-f``) says everything.
"""

from __future__ import annotations

import copy
import functools
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pilotage.kube import Json

P = ParamSpec("P")
R = TypeVar("R")


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


class Flags(NamedTuple):
    """Options as they were given; None and empty for those that were not."""

    model: str | None = None
    runtime: str | None = None
    image: str | None = None
    arg: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    port: int | None = None
    replicas: int | None = None
    limit: tuple[str, ...] = ()
    placement: str | None = None
    on: str | None = None
    route: str | None = None
    host: str | None = None
    gateway: str | None = None

    def __bool__(self) -> bool:
        return self != Flags()


_OPTIONS = (
    click.option("--model", metavar="SOURCE|NAME", help="A source (hf://…, https://…, s3://…, file://…), or a Model."),
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


def spec_options(command: Callable[..., R]) -> Callable[..., R]:
    """The flags, together as `flags`."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> R:  # noqa: ANN401 - click's
        said = {name: kwargs.pop(name) for name in Flags._fields}
        return command(*args, flags=Flags(**said), **kwargs)

    wrapped: Callable[..., R] = run
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


def with_flags(spec: Json, flags: Flags) -> Json:
    """The spec with what the flags say; all else stays. UsageError where they contradict it or each other.

    Another runtime begins anew: image, command and arguments belong to the old one.
    """
    spec = copy.deepcopy(spec)
    if flags.model:
        spec["model"] = {"source": flags.model} if "://" in flags.model else {"name": flags.model}
    _set_runtime(spec, flags)
    if flags.replicas is not None:
        if spec.get("autoscaling"):
            raise click.UsageError(scales_itself(spec))
        spec["replicas"] = flags.replicas
    if flags.limit:
        spec.setdefault("resources", {}).setdefault("limits", {}).update(_pairs("--limit", flags.limit))
    _set_placement(spec, flags)
    _set_route(spec, flags)
    return spec


def _set_placement(spec: Json, flags: Flags) -> None:
    if flags.on and flags.placement not in (None, "Host"):
        raise click.UsageError(f"--on names a Host; with --placement {flags.placement} there is none.")
    if flags.on:
        spec["placement"] = {"kind": "Host", "host": flags.on}
    elif flags.placement:
        spec["placement"] = {"kind": flags.placement}


def scales_itself(spec: Json) -> str:
    """Why a number of replicas is refused."""
    limits = spec["autoscaling"]
    return (
        f"It scales by itself, between {limits.get('min', 1)} and {limits.get('max')} replicas: "
        "change spec.autoscaling instead (pilotage redeploy -f FILE)."
    )


def _set_runtime(spec: Json, flags: Flags) -> None:
    runtime = spec.get("runtime", {})
    if flags.runtime and flags.runtime != runtime.get("name"):
        runtime = {"name": flags.runtime}
    if flags.image:
        runtime["image"] = flags.image
    if flags.arg:
        runtime["args"] = list(flags.arg)
    if flags.port is not None:
        runtime["port"] = flags.port
    if flags.env:
        known = {each["name"]: each for each in runtime.get("env", ())}
        said = {name: {"name": name, "value": value} for name, value in _pairs("--env", flags.env).items()}
        runtime["env"] = list((known | said).values())
    if runtime:
        spec["runtime"] = runtime


def _set_route(spec: Json, flags: Flags) -> None:
    route = spec.get("route", {})
    if flags.route and flags.route != route.get("kind"):
        host = route.get("host")
        route = {"kind": flags.route} | ({"host": host} if host and flags.route != "None" else {})
    kind = route.get("kind", "None")
    if flags.host:
        if kind == "None":
            raise click.UsageError("--host needs a route: say which kind with --route, such as --route HTTPProxy.")
        route["host"] = flags.host
    if flags.gateway:
        takers = [name for name, router in ROUTES.registry.items() if "gateway" in router.fields]
        if kind not in takers:
            raise click.UsageError(f"--gateway goes with --route {' or '.join(takers)}.")
        namespace, slash, name = flags.gateway.rpartition("/")
        route["gateway"] = {"name": name} | ({"namespace": namespace} if slash else {})
    if route:
        spec["route"] = route


def _pairs(option: str, words: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise click.UsageError(f"{option} {word}: write NAME=VALUE.")
        pairs[name] = value
    return pairs
