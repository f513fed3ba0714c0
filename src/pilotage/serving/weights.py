"""Weights in a pod: where they are, and how they get there.

- ``pvc://CLAIM/PATH``: on that claim, which is mounted read-only.
- ``hf://OWNER/REPOSITORY`` without a file: the server loads it by itself, if it can, into the cache.
- ``file:///PATH``: on the node, where the operator's settings allow that folder, mounted read-only.
- Everything else: an init container fetches it into the cache, with the same code as the operator.

The cache is the endpoint's claim, or without one a space of the pod's own.
"""

import hashlib
import posixpath
import re
from typing import NamedTuple
from urllib.parse import unquote

from pilotage.api.names import CACHE_SUFFIX
from pilotage.kube.wire import Json
from pilotage.serving.parts import Capabilities, EndpointRef, ResolvedModel

FOLDER = "/weights"
_CREDENTIALS = "/var/run/pilotage/credentials"
_VOLUME = "weights"
_TOKENS = {"HF_TOKEN": "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN": "token"}
"""Variables for the token of the hub, in the order in which programs look for them, and its keys in the Secret."""
_SECRET_VOLUME = "credentials"  # noqa: S105 - the name of a volume


class PodWeights(NamedTuple):
    """The path of the weights for the server, and what its pod needs for it."""

    path: str
    """A file or folder in the pod; for a hub, the repository's id."""
    hub_revision: str
    """The branch, tag or commit; empty for the default."""
    volumes: list[Json]
    mounts: list[Json]
    init_containers: list[Json]
    env: list[Json]

    @property
    def fetched(self) -> bool:
        """Whether the pod fetches them before the server starts."""
        return bool(self.init_containers)


def cache_name(endpoint: EndpointRef) -> str:
    """The name of the claim for the weights, of all revisions."""
    return endpoint.name + CACHE_SUFFIX


def scheme_of(source: str) -> str:
    """``hf``, ``pvc``, …"""
    return source.partition("://")[0]


def hub_repository(source: str) -> tuple[str, str, str]:
    """The id, the revision and the path of a file, of an hf:// source; empty where it has none."""
    owner, _, rest = source.removeprefix("hf://").partition("/")
    name, _, path = rest.partition("/")
    name, _, revision = name.partition("@")
    return f"{owner}/{name}", unquote(revision), unquote(path)


def is_repository(source: str) -> bool:
    """Whether it is a whole repository of a hub, which has to be loaded by the server."""
    return scheme_of(source) == "hf" and not hub_repository(source)[2]


def host_path(source: str) -> str:
    """The path of a file:// source, without ways up in it."""
    return posixpath.normpath("/" + unquote(source.removeprefix("file://")).lstrip("/"))


def is_below(path: str, roots: tuple[str, ...]) -> bool:
    """Whether a path lies below one of these folders."""
    return any(path.startswith(posixpath.normpath(root).rstrip("/") + "/") for root in roots)


def is_fetched(source: str) -> bool:
    """Whether an init container has to bring it."""
    return scheme_of(source) not in ("pvc", "file") and not is_repository(source)


def weights_of(endpoint: EndpointRef, model: ResolvedModel, capabilities: Capabilities) -> PodWeights:
    """The weights of an endpoint in its pod. `problems` says beforehand whether that is possible."""
    if scheme_of(model.source) == "pvc":
        return _on_claim(model.source)
    if scheme_of(model.source) == "file":
        return _on_node(model.source)
    if is_repository(model.source):
        return _from_hub(endpoint, model)
    return _fetched(endpoint, model, capabilities)


def literal(text: str) -> str:
    """Text for `command` and `args`, where Kubernetes would expand ``$(NAME)``."""
    return text.replace("$", "$$")


def _on_claim(source: str) -> PodWeights:
    claim, _, path = source.removeprefix("pvc://").partition("/")
    volume = {"name": _VOLUME, "persistentVolumeClaim": {"claimName": claim}}
    mount = {"name": _VOLUME, "mountPath": FOLDER, "readOnly": True}
    place = posixpath.join(FOLDER, posixpath.normpath("/" + unquote(path)).lstrip("/"))
    return PodWeights(place, "", [volume], [mount], [], [])


def _on_node(source: str) -> PodWeights:
    path = host_path(source)
    place = posixpath.join(FOLDER, posixpath.basename(path))
    # A node without it must not get an empty folder in its place.
    kind = "File" if re.search(r"\.[A-Za-z][A-Za-z0-9]*$", path) else "Directory"
    volume = {"name": _VOLUME, "hostPath": {"path": path, "type": kind}}
    return PodWeights(place, "", [volume], [{"name": _VOLUME, "mountPath": place, "readOnly": True}], [], [])


def _from_hub(endpoint: EndpointRef, model: ResolvedModel) -> PodWeights:
    repository, revision, _ = hub_repository(model.source)
    env: list[Json] = [{"name": "HF_HOME", "value": f"{FOLDER}/hub"}]
    for variable, key in _TOKENS.items() if model.secret else ():
        reference = {"name": model.secret, "key": key, "optional": True}
        env.append({"name": variable, "valueFrom": {"secretKeyRef": reference}})
    mounts = [{"name": _VOLUME, "mountPath": FOLDER}]
    return PodWeights(repository, revision, [_cache(endpoint)], mounts, [], env)


def _fetched(endpoint: EndpointRef, model: ResolvedModel, capabilities: Capabilities) -> PodWeights:
    # By source: on a claim that revisions share, another one must not take this one's place.
    digest = hashlib.sha256(f"{model.source}\n{model.sha256}".encode()).hexdigest()[:16]
    last = unquote(model.source.partition("?")[0].rstrip("/")).rpartition("/")[2]
    name = re.sub(r"[^A-Za-z0-9._-]", "_", last).lstrip(".")[-120:] or "model"
    place = f"{FOLDER}/models/{digest}/{name}"
    volumes: list[Json] = [_cache(endpoint)]
    mounts: list[Json] = [{"name": _VOLUME, "mountPath": FOLDER}]
    args = ["fetch", literal(model.source), "--to", place]
    if model.sha256:
        args += ["--sha256", model.sha256]
    if model.secret:
        args += ["--credentials", _CREDENTIALS]
        volumes.append({"name": _SECRET_VOLUME, "secret": {"secretName": model.secret}})
        mounts.append({"name": _SECRET_VOLUME, "mountPath": _CREDENTIALS, "readOnly": True})
    container = {
        "name": "fetch",
        "image": capabilities.fetch_image,
        "command": ["pilotage"],
        "args": args,
        "env": [{"name": name, "value": value} for name, value in capabilities.fetch_env],
        **_resources(endpoint),
        "volumeMounts": mounts,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    return PodWeights(place, "", volumes, [{"name": _VOLUME, "mountPath": FOLDER, "readOnly": True}], [container], [])


def _resources(endpoint: EndpointRef) -> Json:
    """CPU and memory of the server, so that the pod needs no more; a quota may require them of every container."""
    asked = (("limits", endpoint.spec.resources.limits), ("requests", endpoint.spec.resources.requests))
    found = {
        kind: {name: str(value) for name, value in amounts.items() if name in ("cpu", "memory")}
        for kind, amounts in asked
    }
    resources = {kind: amounts for kind, amounts in found.items() if amounts}
    return {"resources": resources} if resources else {}


def _cache(endpoint: EndpointRef) -> Json:
    if endpoint.spec.cache is None:
        return {"name": _VOLUME, "emptyDir": {}}
    return {"name": _VOLUME, "persistentVolumeClaim": {"claimName": cache_name(endpoint)}}
