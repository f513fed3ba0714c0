"""Read Kubernetes's Go types and write down how each field is decoded and encoded: `shapes.json`.

    python -m pilotage_harbor.builtin.make_shapes MODULE_CACHE

where MODULE_CACHE is the folder `k8s.io` of a Go module cache. The result says, for each type that a served kind
reaches, what becomes of each field when an object goes through Go: dropped when empty, written always, kept as it is
(a pointer), or brought into canonical form (quantities, times). See `pilotage_harbor.builtin.shape` for the notation.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

PACKAGES = {
    "core": "api@v{0}/core/v1",
    "apps": "api@v{0}/apps/v1",
    "batch": "api@v{0}/batch/v1",
    "autoscaling": "api@v{0}/autoscaling/v2",
    "autoscaling1": "api@v{0}/autoscaling/v1",
    "policy": "api@v{0}/policy/v1",
    "networking": "api@v{0}/networking/v1",
    "discovery": "api@v{0}/discovery/v1",
    "coordination": "api@v{0}/coordination/v1",
    "events": "api@v{0}/events/v1",
    "rbac": "api@v{0}/rbac/v1",
    "scheduling": "api@v{0}/scheduling/v1",
    "storage": "api@v{0}/storage/v1",
    "resource": "api@v{0}/resource/v1",
    "node": "api@v{0}/node/v1",
    "certificates": "api@v{0}/certificates/v1",
    "admission": "api@v{0}/admissionregistration/v1",
    "apiextensions": "apiextensions-apiserver@v{0}/pkg/apis/apiextensions/v1",
    "apiregistration": "kube-aggregator@v{0}/pkg/apis/apiregistration/v1",
    "meta": "apimachinery@v{0}/pkg/apis/meta/v1",
}
ROOTS = [
    "core.Namespace",
    "core.ConfigMap",
    "core.Secret",
    "core.Service",
    "core.Endpoints",
    "core.Event",
    "core.ServiceAccount",
    "core.Node",
    "core.Pod",
    "core.PersistentVolumeClaim",
    "core.PersistentVolume",
    "core.ReplicationController",
    "core.ResourceQuota",
    "core.LimitRange",
    "core.PodTemplate",
    "apps.ControllerRevision",
    "apps.Deployment",
    "apps.ReplicaSet",
    "apps.StatefulSet",
    "apps.DaemonSet",
    "batch.Job",
    "batch.CronJob",
    "autoscaling.HorizontalPodAutoscaler",
    "autoscaling1.HorizontalPodAutoscaler",
    "policy.PodDisruptionBudget",
    "networking.Ingress",
    "networking.IngressClass",
    "networking.NetworkPolicy",
    "networking.IPAddress",
    "networking.ServiceCIDR",
    "discovery.EndpointSlice",
    "coordination.Lease",
    "events.Event",
    "rbac.Role",
    "rbac.RoleBinding",
    "rbac.ClusterRole",
    "rbac.ClusterRoleBinding",
    "scheduling.PriorityClass",
    "storage.StorageClass",
    "storage.CSINode",
    "storage.CSIDriver",
    "storage.CSIStorageCapacity",
    "storage.VolumeAttachment",
    "storage.VolumeAttributesClass",
    "resource.DeviceClass",
    "resource.ResourceClaim",
    "resource.ResourceClaimTemplate",
    "resource.ResourceSlice",
    "node.RuntimeClass",
    "certificates.CertificateSigningRequest",
    "admission.ValidatingWebhookConfiguration",
    "admission.MutatingWebhookConfiguration",
    "admission.ValidatingAdmissionPolicy",
    "admission.ValidatingAdmissionPolicyBinding",
    "apiextensions.CustomResourceDefinition",
    "apiregistration.APIService",
]
SCALARS = {
    "string": "s", "bool": "b", "float64": "f", "float32": "f", "byte": "y",
    "int": "i", "int32": "i", "int64": "i", "uint": "i", "uint32": "i", "uint64": "i",
}  # fmt: skip
FOREIGN = {
    "resource.Quantity": "q",
    "intstr.IntOrString": "o",
    "runtime.RawExtension": "r",
    "types.UID": "s",
    "types.NodeName": "s",
}
OPAQUE = {"meta.FieldsV1", "apiextensions.JSON", "apiextensions.JSONSchemaPropsOrBool", "meta.Duration"}
OPAQUE |= {"apiextensions.JSONSchemaPropsOrArray", "apiextensions.JSONSchemaPropsOrStringArray"}
TIMES = {"meta.Time": "t", "meta.MicroTime": "u"}
_FIELD = re.compile(r'^\t(?:(\w+)\s+)?([^\s`]+)\s+`[^`]*json:"([^"]*)"')
_ALIAS = {"metav1": "meta", "v1": "core", "corev1": "core", "apiv1": "core", "autoscalingv1": "autoscaling1"}


class GoTypes:
    """The type declarations of a few Go packages, as text."""

    def __init__(self, cache: Path) -> None:
        # Of the modules that are needed this is the one that hardly anybody else brings into the cache.
        versions = [each.name.partition("@v")[2] for each in cache.glob("kube-aggregator@v*")]
        self.version = max(versions, key=lambda version: [int(part) for part in version.split(".")])
        self.structs: dict[str, list[tuple[str, str, str]]] = {}
        self.named: dict[str, str] = {}
        for package, folder in PACKAGES.items():
            for file in sorted((cache / folder.format(self.version)).glob("*types*.go")):
                self._read(package, file.read_text())

    def _read(self, package: str, text: str) -> None:
        for match in re.finditer(r"^type (\w+) struct \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL):
            lines = [line for line in match[2].splitlines() if not line.lstrip().startswith("//")]
            fields = [found.groups() for line in lines if (found := _FIELD.match(line))]
            self.structs[f"{package}.{match[1]}"] = [(name or "", go, tag) for name, go, tag in fields]
        for match in re.finditer(r"^type (\w+) struct ?\{\s*\}", text, re.MULTILINE):
            self.structs[f"{package}.{match[1]}"] = []
        for match in re.finditer(r"^type (\w+) ([\[\]\w.*]+)$", text, re.MULTILINE):
            self.named[f"{package}.{match[1]}"] = match[2]

    def code(self, package: str, go: str) -> str:
        """The notation of a Go type that is written `go` in a package."""
        if go.startswith("[]byte"):
            return "y"
        if go.startswith("[]"):
            return f"[{self.code(package, go[2:])}"
        if match := re.match(r"map\[[^\]]+\](.*)", go):
            return f"{{{self.code(package, match[1])}"
        if go.startswith("*"):
            return self.code(package, go[1:])
        if go in SCALARS:
            return SCALARS[go]
        if go in FOREIGN:
            return FOREIGN[go]
        alias, _, name = go.rpartition(".")
        full = f"{_ALIAS.get(alias, alias) if alias else package}.{name}"
        if full in TIMES:
            return TIMES[full]
        if full in OPAQUE:
            return "r"
        if full in self.named:
            return self.code(full.split(".")[0], self.named[full])
        if full in self.structs:
            return f"<{full}"
        raise ValueError(f"{package}: {go} is not known")

    def fields(self, name: str) -> dict[str, str]:
        """All fields of a struct, embedded ones too, each with its notation."""
        found: dict[str, str] = {}
        package = name.split(".")[0]
        for _, go, tag in self.structs[name]:
            key, *options = tag.split(",")
            if key == "-":
                continue
            code = self.code(package, go)
            if "inline" in options or not key:
                found |= self.fields(code[1:])
                continue
            pointer = "*" if go.startswith("*") else ""
            always = "" if "omitempty" in options else "!"
            zero = "0" if "omitzero" in options else ""
            found[key] = pointer + always + zero + code
        return found


def table(cache: Path) -> dict[str, dict[str, str]]:
    """The whole table: of every type that the served kinds reach."""
    types = GoTypes(cache)
    result: dict[str, dict[str, str]] = {}
    waiting = list(ROOTS)
    while waiting:
        name = waiting.pop()
        if name not in result:
            result[name] = {key: code for key, code in types.fields(name).items() if key not in ("kind", "apiVersion")}
            if name not in ROOTS:
                result[name] = types.fields(name)
            waiting += [code.split("<")[1] for code in result[name].values() if "<" in code]
    return dict(sorted(result.items()))


def main() -> None:
    """Write the table next to this file."""
    text = json.dumps(table(Path(sys.argv[1])), separators=(",", ":")).replace("},", "},\n")
    Path(__file__).with_name("shapes.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
