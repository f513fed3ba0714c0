"""The pod of an endpoint: one server, its probes, its weights, and how it stops."""

import math
from typing import NamedTuple

from pilotage.api.endpoint import EndpointSpec
from pilotage.api.names import LABEL_ENDPOINT_UID, LABEL_JOB
from pilotage.kube.wire import Json
from pilotage.serving.parts import Capabilities, EndpointRef, ResolvedModel
from pilotage.serving.runtimes import RUNTIMES, PodLaunch, ServerContainer, ServingRuntime
from pilotage.serving.runtimes.contract import EVERYWHERE, METRICS_PATH
from pilotage.serving.weights import literal, weights_of

PORT_NAME = "http"
_PROBE_PERIOD_SECONDS = 5
_FETCH_SECONDS = 4 * 3600
"""Time that an init container has to fetch the weights, before the start counts as failed."""
_SHARED_MEMORY = "shared-memory"


class Pod(NamedTuple):
    """The pod of a server, for a placement to wrap."""

    spec: Json
    annotations: dict[str, str]
    start_seconds: int
    """Time that the pod has to become ready, from its creation."""


def pod_of(
    endpoint: EndpointRef, model: ResolvedModel, capabilities: Capabilities, container_name: str = "server"
) -> Pod:
    """The pod that serves a model for an endpoint."""
    spec, runtime = endpoint.spec, RUNTIMES[endpoint.spec.runtime.name]
    weights = weights_of(endpoint, model, capabilities)
    launch = PodLaunch(
        spec.runtime,
        model=literal(weights.path),
        alias=literal(model.name),
        host=EVERYWHERE,
        port=spec.runtime.port or runtime.port,
        other_names=tuple(map(literal, model.other_names)),
        hub_revision=literal(weights.hub_revision),
        gpus=_gpus(spec),
        drain_seconds=spec.deletion.drain_seconds,
    )
    server = runtime.in_pod(launch)
    volumes, mounts = list(weights.volumes), list(weights.mounts)
    if server.shared_memory:
        volumes.append({"name": _SHARED_MEMORY, "emptyDir": {"medium": "Memory"}})
        mounts.append({"name": _SHARED_MEMORY, "mountPath": "/dev/shm"})  # noqa: S108 - of the container
    container = {
        "name": container_name,
        **_program(spec, server, weights.env),
        "ports": [{"name": PORT_NAME, "containerPort": launch.port}],
        **_probes(spec.runtime.health_path or runtime.health, server.start_seconds),
        "lifecycle": {"preStop": server.stop.pre_stop},
        "volumeMounts": mounts,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {"allowPrivilegeEscalation": False},
    }
    body: Json = {
        "containers": [container],
        "volumes": volumes,
        "terminationGracePeriodSeconds": server.stop.grace_seconds,
        # A server has no business with the API, and variables named after Services change what some of them do.
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
    }
    optional = {
        "initContainers": weights.init_containers,
        "nodeSelector": spec.node_selector,
        "tolerations": [each.written() for each in spec.tolerations],
        "affinity": _affinity(endpoint),
    }
    body |= {name: value for name, value in optional.items() if value}
    start = server.start_seconds + (_FETCH_SECONDS if weights.fetched else 0)
    return Pod(body, _annotations(runtime, launch.port), start)


def _gpus(spec: EndpointSpec) -> int:
    """Number of NVIDIA GPUs that a replica gets."""
    asked = str(spec.resources.limits.get("nvidia.com/gpu", "0"))
    return int(asked) if asked.isdecimal() else 0


def _program(spec: EndpointSpec, server: ServerContainer, env: list[Json]) -> Json:
    """Image, command, arguments, variables and resources. A variable of the user's replaces one of ours."""
    given = {each.name for each in spec.runtime.env}
    variables = [each for each in (*server.env, *env) if each["name"] not in given]
    variables += [{"name": each.name, "value": each.value} for each in spec.runtime.env]
    resources = {
        name: {key: str(value) for key, value in amounts.items()}
        for name, amounts in (("limits", spec.resources.limits), ("requests", spec.resources.requests))
        if amounts
    }
    optional = {"command": server.command, "args": server.args, "env": variables, "resources": resources}
    return {"image": server.image} | {key: value for key, value in optional.items() if value}


def _probes(health: str, start_seconds: int) -> Json:
    """The probes: a server may be slow to start; then it loses traffic early, and is restarted only if it is dead.

    A busy server may answer late. A restart would lose its requests.
    """
    check: Json = {"httpGet": {"path": health, "port": PORT_NAME}} if health else {"tcpSocket": {"port": PORT_NAME}}
    often = check | {"periodSeconds": _PROBE_PERIOD_SECONDS, "timeoutSeconds": 5}
    return {
        "startupProbe": often | {"failureThreshold": math.ceil(start_seconds / _PROBE_PERIOD_SECONDS)},
        "readinessProbe": often | {"failureThreshold": 3},
        "livenessProbe": check | {"periodSeconds": 20, "timeoutSeconds": 15, "failureThreshold": 6},
    }


def _annotations(runtime: ServingRuntime, port: int) -> dict[str, str]:
    if not runtime.request_metrics:
        return {}
    return {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": str(port),
        "prometheus.io/path": METRICS_PATH,
    }


def _affinity(endpoint: EndpointRef) -> Json:
    """Affinity that keeps all pods of an endpoint on the node of its ReadWriteOnce claim, whatever their revision.

    The scheduler does not do it, and a pod on another node would wait for the volume for ever.
    """
    cache = endpoint.spec.cache
    if cache is None or cache.access_mode != "ReadWriteOnce":
        return {}
    term = {
        "labelSelector": {
            "matchLabels": {LABEL_ENDPOINT_UID: endpoint.uid},
            # The pod of a Job that judges a rollout may be anywhere.
            "matchExpressions": [{"key": LABEL_JOB, "operator": "DoesNotExist"}],
        },
        "topologyKey": "kubernetes.io/hostname",
    }
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
