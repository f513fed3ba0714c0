"""Validation of the containers of a pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pilotage_harbor.apimachinery.field_errors import (
    duplicate,
    each_invalid,
    forbidden,
    invalid,
    nonnegative,
    not_supported,
    required,
)
from pilotage_harbor.apimachinery.names import (
    config_key,
    dns_label,
    dns_subdomain,
    env_name,
    port_name,
    port_number,
    qualified_name,
)
from pilotage_harbor.builtin.quantity import parse
from pilotage_harbor.builtin.volume_rules import mount_problems

if TYPE_CHECKING:
    from collections.abc import Collection

    from pilotage_harbor.apimachinery.errors import StatusCause

Json = dict[str, Any]

PROTOCOLS = ("SCTP", "TCP", "UDP")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PULL = ("Always", "IfNotPresent", "Never")
_INIT_ONLY = "may not be set for init containers without restartPolicy=Always"
_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_SECURITY = (
    "capabilities", "privileged", "SELinuxOptions", "windowsOptions", "runAsUser", "runAsGroup", "runAsNonRoot",
    "readOnlyRootFilesystem", "allowPrivilegeEscalation", "procMount", "seccompProfile", "appArmorProfile",
)  # fmt: skip
"""Fields in the order in which Go prints them."""
_ENV_FIELDS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip


def container_problems(spec: Json, volumes: Collection[str], field: str) -> list[StatusCause]:
    """Problems of the containers and init containers of a spec."""
    containers = spec.get("containers") or []
    if not containers:
        problems = [required(f"{field}.containers")]
    else:
        problems = []
        names: set[str] = set()
        for index, container in enumerate(containers):
            here = f"{field}.containers[{index}]"
            problems += common_problems(container, volumes, here)
            if container["name"] in names:
                problems.append(duplicate(f"{here}.name", container["name"]))
            names.add(container["name"])
            problems += _lifecycle(container, spec, here)
        problems += _host_port_conflicts(containers, f"{field}.containers")
    if init := spec.get("initContainers"):
        problems += _init_problems(init, spec, volumes, f"{field}.initContainers")
    return problems


def _init_problems(containers: list[Json], spec: Json, volumes: Collection[str], field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    names = {each["name"] for each in spec.get("containers") or ()}
    for index, container in enumerate(containers):
        here = f"{field}[{index}]"
        problems += common_problems(container, volumes, here)
        policy = container.get("restartPolicy")
        if policy not in (None, "Always", "Never", "OnFailure"):
            problems.append(not_supported(f"{here}.restartPolicy", policy, ("Always", "Never", "OnFailure")))
        if container["name"] in names:
            problems.append(duplicate(f"{here}.name", container["name"]))
        names.add(container["name"])
        problems += _host_port_conflicts([container], field)
        if policy == "Always":
            problems += _lifecycle(container, spec, here)
        else:
            for name in ("lifecycle", *_PROBES):
                if container.get(name) is not None:
                    problems.append(forbidden(f"{here}.{name}", _INIT_ONLY))
    return problems


def common_problems(container: Json, volumes: Collection[str], field: str) -> list[StatusCause]:
    """Problems of a container of whatever sort."""
    name = container["name"]
    problems = each_invalid(f"{field}.name", name, dns_label(name)) if name else [required(f"{field}.name")]
    if not container.get("image"):
        problems.append(required(f"{field}.image"))
    policy = container["terminationMessagePolicy"]
    if policy not in ("File", "FallbackToLogsOnError"):
        supported = ("File", "FallbackToLogsOnError")
        problems.append(not_supported(f"{field}.terminationMessagePolicy", policy, supported))
    if ports := container.get("ports"):
        problems += _ports(ports, f"{field}.ports")
    if variables := container.get("env"):
        problems += _env(variables, f"{field}.env")
    if sources := container.get("envFrom"):
        problems += _env_from(sources, f"{field}.envFrom")
    if container.get("volumeMounts"):
        problems += mount_problems(container, volumes, f"{field}.volumeMounts")
    if container["imagePullPolicy"] not in _PULL:
        problems.append(not_supported(f"{field}.imagePullPolicy", container["imagePullPolicy"], _PULL))
    if resources := container["resources"]:
        problems += resource_problems(resources, f"{field}.resources")
    if security := container.get("securityContext"):
        problems += _security(security, f"{field}.securityContext")
    return problems


def _ports(ports: list[Json], field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    names: set[str] = set()
    for index, port in enumerate(ports):
        here = f"{field}[{index}]"
        if name := port.get("name"):
            if why := port_name(name):
                problems += each_invalid(f"{here}.name", name, why)
            elif name in names:
                problems.append(duplicate(f"{here}.name", name))
            names.add(name)
        number = port["containerPort"]
        if number:
            problems += each_invalid(f"{here}.containerPort", number, port_number(number))
        else:
            problems.append(required(f"{here}.containerPort"))
        if host := port.get("hostPort"):
            problems += each_invalid(f"{here}.hostPort", host, port_number(host))
        if port["protocol"] not in PROTOCOLS:
            problems.append(not_supported(f"{here}.protocol", port["protocol"], PROTOCOLS))
    return problems


def _host_port_conflicts(containers: list[Json], field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    seen: set[str] = set()
    for index, container in enumerate(containers):
        for place, port in enumerate(container.get("ports", ())):
            if not port.get("hostPort"):
                continue
            text = f"{port['protocol']}/{port.get('hostIP', '')}/{port['hostPort']}"
            if text in seen:
                problems.append(duplicate(f"{field}[{index}].ports[{place}].hostPort", text))
            seen.add(text)
    return problems


def _env(variables: list[Json], field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    for index, variable in enumerate(variables):
        here, name = f"{field}[{index}]", variable["name"]
        problems += each_invalid(f"{here}.name", name, env_name(name)) if name else [required(f"{here}.name")]
        if (source := variable.get("valueFrom")) is not None:
            problems += _value_from(source, variable, f"{here}.valueFrom")
    return problems


def _value_from(source: Json, variable: Json, field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    if (ref := source.get("fieldRef")) is not None:
        path = ref.get("fieldPath")
        if not path:
            problems.append(required(f"{field}.fieldRef.fieldPath"))
        elif not path.startswith(("metadata.annotations[", "metadata.labels[")) and path not in _ENV_FIELDS:
            here = f"{field}.fieldRef.fieldPath"
            if path in ("metadata.annotations", "metadata.labels"):
                problems.append(not_supported(here, path, _ENV_FIELDS))
            else:
                why = f"error converting fieldPath: field label not supported: {path}"
                problems.append(invalid(here, path, why))
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if (ref := source.get(kind)) is not None:
            name, key = ref.get("name", ""), ref["key"]
            problems += each_invalid(f"{field}.{kind}.name", name, dns_subdomain(name))
            problems += (
                each_invalid(f"{field}.{kind}.key", key, config_key(key)) if key else [required(f"{field}.{kind}.key")]
            )
    count = len([name for name, value in source.items() if value is not None])
    if not count:
        sources = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        problems.append(invalid(field, "", f"must specify one of: {sources}"))
    elif variable.get("value"):
        problems.append(invalid(field, "", "may not be specified when `value` is not empty"))
    elif count > 1:
        problems.append(invalid(field, "", "may not have more than one field specified at a time"))
    return problems


def _env_from(sources: list[Json], field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    for index, source in enumerate(sources):
        here = f"{field}[{index}]"
        if prefix := source.get("prefix"):
            problems += each_invalid(f"{here}.prefix", prefix, env_name(prefix))
        found = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
        for kind in found:
            name = source[kind].get("name")
            if name:
                problems += each_invalid(f"{here}.{kind}.name", name, dns_subdomain(name, prefix=True))
            else:
                problems.append(required(f"{here}.{kind}.name"))
        if not found:
            problems.append(invalid(field, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(found) > 1:
            problems.append(invalid(field, "", "may not have more than one field specified at a time"))
    return problems


def _lifecycle(container: Json, spec: Json, field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    grace = spec.get("terminationGracePeriodSeconds")
    if lifecycle := container.get("lifecycle"):
        for name in ("postStart", "preStop"):
            if (handler := lifecycle.get(name)) is not None:
                problems += _handler(handler, grace, f"{field}.lifecycle.{name}")
    for name in _PROBES:
        if (probe := container.get(name)) is not None:
            problems += _probe(name, probe, grace, f"{field}.{name}")
    return problems


def _probe(name: str, probe: Json, grace: int | None, field: str) -> list[StatusCause]:
    problems = _handler(probe, grace, field)
    for each in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
        problems += nonnegative(f"{field}.{each}", probe.get(each))
    own = probe.get("terminationGracePeriodSeconds")
    if own is not None and own <= 0:
        problems.append(invalid(f"{field}.terminationGracePeriodSeconds", own, "must be greater than 0"))
    if name == "readinessProbe":
        if own is not None:
            why = "must not be set for readinessProbes"
            problems.append(invalid(f"{field}.terminationGracePeriodSeconds", own, why))
    elif probe.get("successThreshold") != 1:
        problems.append(invalid(f"{field}.successThreshold", probe.get("successThreshold"), "must be 1"))
    return problems


def _handler(handler: Json, grace: int | None, field: str) -> list[StatusCause]:
    found = [name for name in _HANDLERS if handler.get(name) is not None]
    if not found:
        return [required(field, "must specify a handler type")]
    problems: list[StatusCause] = []
    first, *more = found
    action, here = handler[first], f"{field}.{first}"
    match first:
        case "exec":
            if not action.get("command"):
                problems.append(required(f"{here}.command"))
        case "httpGet":
            problems += port_or_name(action["port"], f"{here}.port")
            if action["scheme"] not in ("HTTP", "HTTPS"):
                problems.append(not_supported(f"{here}.scheme", action["scheme"], ("HTTP", "HTTPS")))
        case "tcpSocket" | "grpc":
            problems += port_or_name(action["port"], f"{here}.port")
        case "sleep":
            if grace is not None and not 0 <= action["seconds"] <= grace:
                why = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
                problems.append(invalid(here, action["seconds"], why))
    problems += [forbidden(f"{field}.{name}", "may not specify more than 1 handler type") for name in more]
    return problems


def port_or_name(port: int | str, field: str) -> list[StatusCause]:
    """A port by number, or by the name that a container gives it."""
    return each_invalid(field, port, port_name(port) if isinstance(port, str) else port_number(port))


def resource_problems(resources: Json, field: str) -> list[StatusCause]:
    """Problems of requests and limits."""
    problems: list[StatusCause] = []
    limits = resources.get("limits", {})
    for kind in ("limits", "requests"):
        for name, value in resources.get(kind, {}).items():
            here = f"{field}.{kind}[{name}]"
            problems += _resource_name(name, here)
            amount = parse(value)
            if amount is not None and amount < 0:
                problems.append(invalid(here, value, "must be greater than or equal to 0"))
            if kind == "requests" and amount is not None:
                problems += _against_limit(name, value, limits, field)
    return problems


def _against_limit(name: str, value: str, limits: Json, field: str) -> list[StatusCause]:
    overcommit = "/" not in name and not name.startswith("hugepages-")
    if name not in limits:
        if overcommit:
            return []
        return [required(f"{field}.limits", "Limit must be set for non overcommitable resources")]
    amount, limit = parse(value), parse(limits[name])
    if amount is None or limit is None:
        return []
    if amount != limit and not overcommit:
        return [invalid(f"{field}.requests", value, f"must be equal to {name} limit of {limits[name]}")]
    if amount > limit:
        return [invalid(f"{field}.requests", value, f"must be less than or equal to {name} limit of {limits[name]}")]
    return []


def _resource_name(name: str, field: str) -> list[StatusCause]:
    if name in _RESOURCES:
        return []
    if why := qualified_name(name):
        return each_invalid(field, name, why)
    if "/" not in name and not name.startswith("hugepages-"):
        return [
            invalid(field, name, "must be a standard resource type or fully qualified"),
            invalid(field, name, "must be a standard resource for containers"),
        ]
    return []


def _security(security: Json, field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    for name in ("runAsUser", "runAsGroup"):
        value = security.get(name)
        if value is not None and not 0 <= value <= 2**31 - 1:
            problems.append(invalid(f"{field}.{name}", value, "must be between 0 and 2147483647, inclusive"))
    if security.get("allowPrivilegeEscalation") is False and security.get("privileged"):
        why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        shown = {name[0].upper() + name[1:]: security.get(name) for name in _SECURITY}
        problems.append(invalid(field, shown, why))
    return problems
