"""The pod of an endpoint: one server, its probes, its weights, and how it stops."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from pilotage.api.names import LABEL_ENDPOINT_UID
from pilotage.serving.runtimes import RUNTIMES, Job, Server
from pilotage.serving.weights import weights_of

if TYPE_CHECKING:
    from pilotage.kube.wire import Json
    from pilotage.serving.parts import Capabilities, EndpointRef, ResolvedModel

PORT_NAME = "http"
_PROBE_PERIOD_SECONDS = 5
_FETCH_SECONDS = 4 * 3600
"""How long an init container may take for the weights, before the start counts as failed."""
_SHARED_MEMORY = "shared-memory"


class Pod(NamedTuple):
    """What a placement puts around."""

    spec: Json
    annotations: dict[str, str]
    start_seconds: int
    """How long it may take until it is ready, from its creation."""
    grace_seconds: int


def pod_of(
    endpoint: EndpointRef, model: ResolvedModel, capabilities: Capabilities, container_name: str = "server"
) -> Pod:
    """The pod that serves a model for an endpoint."""
    spec = endpoint.spec
    weights = weights_of(endpoint, model, capabilities)
    port = port_of(endpoint)
    server = RUNTIMES[spec.runtime.name].server(Job(spec, model.name, weights, port))
    volumes = list(weights.volumes)
    mounts = list(weights.mounts)
    if server.shared_memory:
        volumes.append({"name": _SHARED_MEMORY, "emptyDir": {"medium": "Memory"}})
        mounts.append({"name": _SHARED_MEMORY, "mountPath": "/dev/shm"})  # noqa: S108 - of the container
    body: Json = {
        "containers": [_container(container_name, endpoint, server, port, mounts, weights.env)],
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
    return Pod(body, _annotations(server, port), start, server.stop.grace_seconds)


def port_of(endpoint: EndpointRef) -> int:
    """The port of the server in its pod."""
    return endpoint.spec.runtime.port or RUNTIMES[endpoint.spec.runtime.name].port


def _container(
    name: str, endpoint: EndpointRef, server: Server, port: int, mounts: list[Json], env: list[Json]
) -> Json:
    own = endpoint.spec.runtime.env
    given = {each.name for each in own}
    variables = [each for each in (*server.env, *env) if each["name"] not in given]
    variables += [{"name": each.name, "value": each.value} for each in own]
    resources = {
        name: {key: str(value) for key, value in amounts.items()}
        for name, amounts in (
            ("limits", endpoint.spec.resources.limits),
            ("requests", endpoint.spec.resources.requests),
        )
        if amounts
    }
    optional = {"command": server.command, "args": server.args, "env": variables, "resources": resources}
    return {
        "name": name,
        "image": server.image,
        **{key: value for key, value in optional.items() if value},
        "ports": [{"name": PORT_NAME, "containerPort": port}],
        **_probes(server),
        "lifecycle": {"preStop": server.stop.pre_stop},
        "volumeMounts": mounts,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {"allowPrivilegeEscalation": False},
    }


def _probes(server: Server) -> Json:
    """Until it has started once, it may be slow; then it is out of traffic soon, and is killed only if it is dead.

    A server that is busy may answer late. Killing it would lose what it is busy with.
    """
    check: Json = (
        {"httpGet": {"path": server.health, "port": PORT_NAME}} if server.health else {"tcpSocket": {"port": PORT_NAME}}
    )
    often = check | {"periodSeconds": _PROBE_PERIOD_SECONDS, "timeoutSeconds": 5}
    return {
        "startupProbe": often | {"failureThreshold": math.ceil(server.start_seconds / _PROBE_PERIOD_SECONDS)},
        "readinessProbe": often | {"failureThreshold": 3},
        "livenessProbe": check | {"periodSeconds": 20, "timeoutSeconds": 15, "failureThreshold": 6},
    }


def _annotations(server: Server, port: int) -> dict[str, str]:
    if not server.metrics:
        return {}
    return {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": str(port),
        "prometheus.io/path": server.metrics,
    }


def _affinity(endpoint: EndpointRef) -> Json:
    """A claim that one node can have: all pods of the endpoint go to that node, also those of the next revision.

    The scheduler would not see to it, and a pod on another node would wait for the volume for ever.
    """
    cache = endpoint.spec.cache
    if cache is None or cache.access_mode != "ReadWriteOnce":
        return {}
    term = {
        "labelSelector": {"matchLabels": {LABEL_ENDPOINT_UID: endpoint.uid}},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
