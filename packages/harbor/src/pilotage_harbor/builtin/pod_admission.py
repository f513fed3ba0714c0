"""Admission of new Pods: resources, account, priority, tolerations, runtime. No plugin can be switched off here."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.errors import forbidden
from pilotage_harbor.builtin import limits
from pilotage_harbor.builtin.pod_runtime import apply_runtime_class, check_overhead

if TYPE_CHECKING:
    from pilotage_harbor.kinds import Json, View

_TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105 - where it is mounted
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SYSTEM_CLASSES = {"system-cluster-critical": 2000000000, "system-node-critical": 2000001000}
_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def admit_pod(pod: Json, view: View) -> None:
    """Change a new Pod as LimitRanger, ServiceAccount, Priority, DefaultTolerationSeconds and RuntimeClass do."""
    limits.give_defaults(pod, view)
    _account(pod, view)
    _priority(pod, view)
    _tolerations(pod["spec"])
    apply_runtime_class(pod, view)


def check_pod(pod: Json, view: View) -> None:
    """403 for a new Pod that one of them refuses, though nothing is wrong with it."""
    limits.check_pod(pod, view)
    check_overhead(pod, view)


def _account(pod: Json, view: View) -> None:
    """Name the account and mount its token. The default one may be missing: not everybody makes one for a namespace."""
    spec, meta = pod["spec"], pod["metadata"]
    name = spec.get("serviceAccountName") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    namespace = meta.get("namespace", "")
    account = view.get("serviceaccounts", namespace, name)
    if account is None:
        if name != "default":
            why = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
            raise forbidden("", "pods", meta.get("name", ""), why)
        return
    if account.get("imagePullSecrets") and not spec.get("imagePullSecrets"):
        spec["imagePullSecrets"] = account["imagePullSecrets"]
    automount = spec.get("automountServiceAccountToken")
    if automount is None:
        automount = account.get("automountServiceAccountToken", True)
    if not automount:
        return
    bare = [
        container
        for kind in ("containers", "initContainers")
        for container in spec.get(kind) or ()
        if all(mount.get("mountPath") != _TOKEN_PATH for mount in container.get("volumeMounts", ()))
    ]
    if bare:
        letters = (_ALPHABET[byte % len(_ALPHABET)] for byte in secrets.token_bytes(5))
        volume = f"kube-api-access-{''.join(letters)}"
        for container in bare:
            mount = {"name": volume, "readOnly": True, "mountPath": _TOKEN_PATH}
            container.setdefault("volumeMounts", []).append(mount)
        spec.setdefault("volumes", []).append({"name": volume, "projected": _token_volume()})


def _token_volume() -> Json:
    field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}},
        ],
        "defaultMode": 420,
    }


def _tolerations(spec: Json) -> None:
    """Let it stay for five minutes on a node that is in trouble, unless it says otherwise."""
    present = spec.get("tolerations", [])
    for taint in _TAINTS:
        covered = any(
            each.get("key", "") in ("", taint) and each.get("effect", "") in ("", "NoExecute") for each in present
        )
        if not covered:
            extra = {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            spec.setdefault("tolerations", []).append(extra)


def _priority(pod: Json, view: View) -> None:
    spec, name = pod["spec"], pod["spec"].get("priorityClassName")
    value, policy = 0, "PreemptLowerPriority"
    if name:
        found = view.get("priorityclasses.scheduling.k8s.io", "", name)
        if found is not None:
            value, policy = found.get("value", 0), found.get("preemptionPolicy", policy)
        elif name in _SYSTEM_CLASSES:
            value = _SYSTEM_CLASSES[name]
        else:
            why = f"no PriorityClass with name {name} was found"
            raise forbidden("", "pods", pod["metadata"].get("name", ""), why)
    else:
        defaults = [each for each in view.objects("priorityclasses.scheduling.k8s.io") if each.get("globalDefault")]
        if defaults:
            least = min(defaults, key=lambda each: int(each.get("value", 0)))
            value, policy = least.get("value", 0), least.get("preemptionPolicy", policy)
            spec["priorityClassName"] = least["metadata"]["name"]
    if spec.get("priority", value) != value:
        why = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; priority admission"
            f" controller computed {value} from the given PriorityClass name"
        )
        raise forbidden("", "pods", pod["metadata"].get("name", ""), why)
    spec["priority"] = value
    if spec.get("preemptionPolicy", policy) != policy:
        why = (
            f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec;"
            f" priority admission controller computed {policy} from the given PriorityClass name"
        )
        raise forbidden("", "pods", pod["metadata"].get("name", ""), why)
    spec["preemptionPolicy"] = policy
