"""Problems of a spec that the rules of its CRD cannot express, found before anything is created."""

from collections.abc import Iterator

from pilotage.serving.parts import Capabilities, EndpointRef, ResolvedModel
from pilotage.serving.placements import PLACEMENTS
from pilotage.serving.placements.autoscaling import scaler_of
from pilotage.serving.quantity import amount
from pilotage.serving.resources import AUTOSCALERS
from pilotage.serving.runtimes import RUNTIMES
from pilotage.serving.weights import host_path, is_below, is_fetched, is_repository, scheme_of

_OURS = ("--host", "--hostname", "--port")


def problems(endpoint: EndpointRef, model: ResolvedModel, capabilities: Capabilities) -> list[str]:
    """Why this cannot be served, in sentences for people; empty if it can."""
    kind, name = endpoint.spec.placement.kind, endpoint.spec.runtime.name
    if kind not in PLACEMENTS:
        return [f"This operator has no placement.kind {kind}: upgrade it, or choose another kind."]
    if name not in RUNTIMES:
        return [f"This operator has no runtime {name}: upgrade it, or choose another runtime."]
    placement = PLACEMENTS[kind]
    found = [*_of_runtime(endpoint, model), *placement.problems(endpoint, model, capabilities)]
    if placement.kind != "Host":
        found += [*_of_pods(endpoint), *_of_weights(model, capabilities), *_of_scaling(endpoint, capabilities)]
    return [*found, *_of_resources(endpoint)]


def _of_runtime(endpoint: EndpointRef, model: ResolvedModel) -> Iterator[str]:
    given = endpoint.spec.runtime
    runtime = RUNTIMES[given.name]
    if not runtime.custom and (taken := sorted({each.partition("=")[0] for each in given.args} & set(_OURS))):
        yield f"runtime.args has {', '.join(taken)}, which Pilotage sets itself. Use runtime.port for another port."
    if is_repository(model.source):
        if not runtime.loads_repositories:
            yield f"{given.name} serves one file, and {model.source} is a whole repository. Add the file to the source."
        if model.sha256:
            yield f"sha256 is that of a file, and {model.source} is a whole repository. Take sha256 out."


def _of_pods(endpoint: EndpointRef) -> Iterator[str]:
    if RUNTIMES[endpoint.spec.runtime.name].custom and not endpoint.spec.runtime.image:
        yield "A custom runtime in pods needs an image: set runtime.image. A command alone is for placement Host."


def _of_weights(model: ResolvedModel, capabilities: Capabilities) -> Iterator[str]:
    scheme = scheme_of(model.source)
    if scheme == "file":
        path = host_path(model.source)
        if not is_below(path, capabilities.host_paths):
            allowed = f"only below {', '.join(capabilities.host_paths)}" if capabilities.host_paths else "nowhere"
            yield (
                f"{model.source} is a path on a node, and pods may read nodes' files {allowed}. Use pvc:// or a source "
                "that can be fetched, place it on a host, or have the operator's settings allow the folder."
            )
    if scheme in ("file", "pvc") and model.sha256:
        yield f"sha256 is checked when weights are fetched, and {scheme}:// ones are not. Take sha256 out."
    if is_fetched(model.source) and not capabilities.fetch_image:
        yield f"A pod has to fetch {model.source} first, and the operator's settings name no fetch image to do it with."


def _of_scaling(endpoint: EndpointRef, capabilities: Capabilities) -> Iterator[str]:
    autoscaling = endpoint.spec.autoscaling
    if autoscaling is None:
        return
    if autoscaling.min < 1:
        yield "autoscaling.min is 0: no request could bring the first replica back. Use 1 or more."
    by_cpu = endpoint.spec.placement.kind == "KServe" or scaler_of(endpoint.spec, capabilities) is AUTOSCALERS
    resources = endpoint.spec.resources
    if by_cpu and not ({"cpu"} & {*resources.requests, *resources.limits}):
        yield "It scales by CPU, as a share of what it asks for: set resources.requests.cpu."


def _of_resources(endpoint: EndpointRef) -> Iterator[str]:
    resources = endpoint.spec.resources
    for name, value in resources.requests.items():
        limit = resources.limits.get(name)
        asked, most = amount(value), None if limit is None else amount(limit)
        if asked is not None and most is not None and asked > most:
            yield f"resources.requests has more {name} ({value}) than resources.limits ({limit})."
