"""kube-apiserver's defaults for a pod's spec: of Pods, and of templates in all workloads."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pilotage_harbor.kinds import Json

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def fill_template(template: Json) -> None:
    """The pod template of a workload."""
    fill_pod_spec(template["spec"])


def fill_pod_spec(spec: Json) -> None:
    """A spec that has its shape. What holds for Pods only is in `fill_pod`."""
    for name, value in _SPEC:
        if name not in spec:
            spec[name] = value
    if "securityContext" not in spec:
        spec["securityContext"] = {}
    # The older name of the field is kept in step with the newer one.
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for volume in spec.get("volumes", ()):
        _fill_volume(volume)
    for name in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(name) or ():
            _fill_container(container)
    for constraint in spec.get("topologySpreadConstraints", ()):
        constraint.setdefault("whenUnsatisfiable", "")


_SPEC = (
    ("dnsPolicy", "ClusterFirst"),
    ("restartPolicy", "Always"),
    ("terminationGracePeriodSeconds", 30),
    ("schedulerName", "default-scheduler"),
)


def fill_pod(spec: Json) -> None:
    """Fill in defaults that only a Pod gets: requests from limits, service links, 1 s for a negative grace period."""
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    for name in ("containers", "initContainers"):
        for container in spec.get(name) or ():
            _fill_requests(container["resources"])
            if spec.get("hostNetwork"):
                for port in container.get("ports", ()):
                    port.setdefault("hostPort", port["containerPort"])
    if (resources := spec.get("resources")) and resources.get("limits"):
        _fill_requests(resources)
    if "enableServiceLinks" not in spec:
        spec["enableServiceLinks"] = True


def _fill_requests(resources: Json) -> None:
    if limits := resources.get("limits"):
        requests = resources.setdefault("requests", {})
        for key, value in limits.items():
            requests.setdefault(key, value)


def pull_policy(image: str) -> str:
    """Always for what is, or means, the tag `latest`."""
    tail = image.rpartition("/")[2]
    if "@" in tail:
        return "IfNotPresent"
    _, colon, tag = tail.partition(":")
    return "Always" if not colon or tag == "latest" else "IfNotPresent"


def _fill_container(container: Json) -> None:
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = pull_policy(container.get("image", ""))
    if "terminationMessagePath" not in container:
        container["terminationMessagePath"] = "/dev/termination-log"
    if "terminationMessagePolicy" not in container:
        container["terminationMessagePolicy"] = "File"
    for port in container.get("ports", ()):
        port.setdefault("protocol", "TCP")
    for variable in container.get("env", ()):
        _fill_field(variable.get("valueFrom"))
    for name in _PROBES:
        if (probe := container.get(name)) is not None:
            _fill_probe(probe)
    for handler in (container.get("lifecycle") or {}).values():
        if type(handler) is dict:
            _fill_http(handler)


def _fill_probe(probe: Json) -> None:
    probe.setdefault("timeoutSeconds", 1)
    probe.setdefault("periodSeconds", 10)
    probe.setdefault("successThreshold", 1)
    probe.setdefault("failureThreshold", 3)
    _fill_http(probe)
    grpc = probe.get("grpc")
    if grpc and grpc["service"] is None:
        grpc["service"] = ""


def _fill_http(handler: Json) -> None:
    if http := handler.get("httpGet"):
        http.setdefault("path", "/")
        http.setdefault("scheme", "HTTP")


def _fill_volume(volume: Json) -> None:
    if len(volume) == 1:
        volume["emptyDir"] = {}
    for name in ("secret", "configMap", "downwardAPI", "projected"):
        if source := volume.get(name):
            source.setdefault("defaultMode", 0o644)
        elif source is not None:
            source["defaultMode"] = 0o644
    for source in (volume.get("projected") or {}).get("sources") or ():
        if (token := source.get("serviceAccountToken")) is not None:
            token.setdefault("expirationSeconds", 3600)
        _fill_downward(source.get("downwardAPI"))
    _fill_downward(volume.get("downwardAPI"))
    if (host := volume.get("hostPath")) is not None:
        host.setdefault("type", "")
    if (image := volume.get("image")) is not None:
        image.setdefault("pullPolicy", pull_policy(image.get("reference", "")))
    if (ephemeral := volume.get("ephemeral")) and (claim := ephemeral.get("volumeClaimTemplate")):
        claim["spec"].setdefault("volumeMode", "Filesystem")


def _fill_downward(source: Json | None) -> None:
    for item in (source or {}).get("items") or ():
        _fill_field(item)


def _fill_field(source: Json | None) -> None:
    if source and (field := source.get("fieldRef")):
        field.setdefault("apiVersion", "v1")
