"""The spec of an endpoint after a change: from the arguments of a person, a manifest, or an earlier revision. Pure.

Arguments cover what is asked for every day; a manifest says everything.
"""

import copy
from typing import NamedTuple

from pilotage.api.endpoint_status import StoredEndpoint
from pilotage.kube import Json, Object
from pilotage.rollout.revisions import restored, revision_to_restore
from pilotage.teardown.session.request import RequestError

CANARY_WEIGHT_MAX = 99
"""Largest weight of a step: after the last one the candidate gets everything anyway."""
MACHINE_ROUTE = "PilotageGateway"
"""The kind of route that `pilotage up` serves."""


class SpecArguments(NamedTuple):
    """Arguments as they were given; None and empty for those that were not."""

    model: str | None = None
    """A source, or the name of a Model."""
    runtime: str | None = None
    image: str | None = None
    arg: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    """``NAME=VALUE``."""
    port: int | None = None
    replicas: int | None = None
    limit: tuple[str, ...] = ()
    """``NAME=VALUE``."""
    placement: str | None = None
    on: str | None = None
    """The Host to run on."""
    route: str | None = None
    host: str | None = None
    gateway: str | None = None
    """``[NAMESPACE/]NAME``."""
    canary: str | None = None
    """Weights of the steps of a canary: ``5,25,50``."""

    def __bool__(self) -> bool:
        return self != SpecArguments()


def changed(old: Object, given: SpecArguments) -> Json:
    """The endpoint with what the arguments say. Raises RequestError."""
    body = old.to_dict()
    return body | {"spec": with_arguments(body["spec"], given)}


def as_written(old: Object, wanted: Json) -> Json:
    """The endpoint with the spec of a manifest; labels and annotations of the manifest come in, and no others go."""
    body = old.to_dict()
    meta = body["metadata"]
    for field in ("labels", "annotations"):
        if field in wanted["metadata"]:
            meta[field] = {**meta.get(field, {}), **wanted["metadata"][field]}
    return body | {"spec": wanted.get("spec", {})}


def rolled_back(old: Object, number: int | None) -> Json:
    """The endpoint with the fields of an earlier revision: of that number, or the one before. Raises TargetError."""
    body = old.to_dict()
    target = revision_to_restore(StoredEndpoint.of(old), number)
    return body | {"spec": restored(body["spec"], target.spec)}


def with_arguments(spec: Json, given: SpecArguments) -> Json:
    """The spec with what the arguments say; all else stays. RequestError where they contradict it or each other.

    Another runtime begins anew: image, command and arguments belong to the old one.
    """
    spec = copy.deepcopy(spec)
    if given.model:
        spec["model"] = {"source": given.model} if "://" in given.model else {"name": given.model}
    _set_runtime(spec, given)
    if given.replicas is not None:
        if spec.get("autoscaling"):
            raise RequestError(scales_itself(spec))
        spec["replicas"] = given.replicas
    if given.limit:
        spec.setdefault("resources", {}).setdefault("limits", {}).update(_pairs("--limit", given.limit))
    _set_placement(spec, given)
    _set_route(spec, given)
    if given.canary is not None:
        canary = spec.get("strategy", {}).get("canary", {}) | {"steps": _canary_steps(given.canary)}
        spec["strategy"] = {"type": "Canary", "canary": canary}
    return spec


def with_machine_defaults(given: SpecArguments, host: str) -> SpecArguments:
    """Arguments where `pilotage up` runs everything: on its Host and behind its gateway, unless they say otherwise."""
    placed = given if given.on or given.placement else given._replace(on=host)
    return placed if placed.route else placed._replace(route=MACHINE_ROUTE)


def _set_placement(spec: Json, given: SpecArguments) -> None:
    if given.on and given.placement not in (None, "Host"):
        raise RequestError(f"--on names a Host; with --placement {given.placement} there is none.")
    if given.on:
        spec["placement"] = {"kind": "Host", "host": given.on}
    elif given.placement:
        spec["placement"] = {"kind": given.placement}


def scales_itself(spec: Json) -> str:
    """Why a number of replicas is refused."""
    limits = spec["autoscaling"]
    return (
        f"It scales by itself, between {limits.get('min', 1)} and {limits.get('max')} replicas: "
        "change spec.autoscaling instead (pilotage redeploy -f FILE)."
    )


def _set_runtime(spec: Json, given: SpecArguments) -> None:
    runtime = spec.get("runtime", {})
    if given.runtime and given.runtime != runtime.get("name"):
        runtime = {"name": given.runtime}
    if given.image:
        runtime["image"] = given.image
    if given.arg:
        runtime["args"] = list(given.arg)
    if given.port is not None:
        runtime["port"] = given.port
    if given.env:
        known = {each["name"]: each for each in runtime.get("env", ())}
        said = {name: {"name": name, "value": value} for name, value in _pairs("--env", given.env).items()}
        runtime["env"] = list((known | said).values())
    if runtime:
        spec["runtime"] = runtime


def _set_route(spec: Json, given: SpecArguments) -> None:
    route = spec.get("route", {})
    if given.route and given.route != route.get("kind"):
        host = route.get("host")
        route = {"kind": given.route} | ({"host": host} if host and given.route != "None" else {})
    kind = route.get("kind", "None")
    if given.host:
        if kind == "None":
            raise RequestError("--host needs a route: say which kind with --route, such as --route HTTPProxy.")
        route["host"] = given.host
    if given.gateway:
        from pilotage.traffic.routers import ROUTERS  # not before: it takes as long as the rest, and few name a Gateway

        takers = [name for name, router in ROUTERS.items() if "gateway" in router.fields]
        if kind not in takers:
            raise RequestError(f"--gateway is an option of --route {' or '.join(takers)}.")
        namespace, slash, name = given.gateway.rpartition("/")
        route["gateway"] = {"name": name} | ({"namespace": namespace} if slash else {})
    if route:
        spec["route"] = route


def _canary_steps(words: str) -> list[Json]:
    """The steps of a canary with these weights, each with a pause until it is promoted."""
    weights = [int(word) if word.isascii() and word.isdecimal() else 0 for word in words.split(",")]
    if weights != sorted({*weights}) or not 0 < weights[0] <= weights[-1] <= CANARY_WEIGHT_MAX:
        raise RequestError(
            f"--canary {words}: write rising percentages between 1 and {CANARY_WEIGHT_MAX}, such as 5,25,50."
        )
    pairs: list[list[Json]] = [[{"setWeight": weight}, {"pause": {}}] for weight in weights]
    return [step for pair in pairs for step in pair]


def _pairs(option: str, words: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise RequestError(f"{option} {word}: write NAME=VALUE.")
        pairs[name] = value
    return pairs
