"""The generated files of this folder, as a table of paths and texts.

The chart is `pilotage install --print` with the values left open: its templates are made from the same objects, so the
two cannot differ in more than the values.
"""

import json
import re
import textwrap
from typing import Any, Literal, get_args, get_origin, get_type_hints

from pilotage import __version__
from pilotage.kube import Json
from pilotage.operator.crds import crds
from pilotage.operator.install import Values, as_yaml, manifests, own_settings
from pilotage.operator.settings import OperatorSettings
from pilotage.runtime.settings import camel_case

OPEN = Values(image="open-image", namespace="open-namespace", replicas="open-replicas")
IMAGE = '(.Values.image | default (printf "pilotage:%s" .Chart.AppVersion))'

VALUES = """\
# The image of Pilotage, which `make image` builds. Without it: pilotage, at the version of this chart.
image: ""
# Secrets of the registry of the image, such as [{name: registry}].
imagePullSecrets: []
# How many operators there are; one of them works, the others wait.
replicas: 2
# Resources of each operator, and the nodes that it may run on, as in any pod.
resources:
%s
nodeSelector: {}
tolerations: []
# Settings of the operator, as in its file: `pilotage operator --help` explains them.
settings: {}
#  envoyAdmins: [http://10.0.0.7:9001]
#  logLevel: debug
"""

NOTES = f"""\
Pilotage {{{{ .Chart.AppVersion }}}} is installed in the namespace {{{{ .Release.Namespace }}}}, with the image
{{{{ {IMAGE} }}}}.

  Wait for the operator:  kubectl -n {{{{ .Release.Namespace }}}} rollout status deployment/pilotage-operator
  Deploy a model:         pilotage deploy assistant -n NAMESPACE --model hf://OWNER/REPOSITORY/FILE.gguf
  Show it:                kubectl get se -A

If the image cannot be pulled, build it (`make image IMAGE=…`), push it, and upgrade with --set image=…

Before you uninstall, delete all endpoints and wait until `kubectl get se -A` shows none: only the operator takes them
down in order. The CustomResourceDefinitions stay.
"""


def files() -> dict[str, str]:
    """All of them, by their paths below this folder."""
    made = {f"crds/{crd['spec']['names']['plural']}.yaml": as_yaml([crd]) for crd in crds()}
    made |= {f"chart/templates/{path}": text for path, text in made.items()}
    made["chart/Chart.yaml"] = _chart()
    made["chart/values.yaml"] = VALUES % _indented(_dumped(_container()["resources"]), 2)
    made["chart/templates/NOTES.txt"] = NOTES
    made["chart/values.schema.json"] = json.dumps(_schema(), indent=2) + "\n"
    for obj in manifests(OPEN):
        # Helm makes the namespace of a release.
        if obj["kind"] != "CustomResourceDefinition" and obj["metadata"]["name"] != OPEN.namespace:
            name = f"{obj['kind'].lower()}-{obj['metadata']['name'].removeprefix('pilotage-')}"
            made[f"chart/templates/{name}.yaml"] = _opened(as_yaml([obj]))
    assert not any("{{" in text for path, text in made.items() if "/crds/" in f"/{path}")
    return made


def _opened(text: str) -> str:
    """A manifest with the values left open."""
    if "kind: Deployment" in text:
        text = re.sub(
            r"( +)- name: PILOTAGE_CACHE_ROOT\n.*?(?=\n +ports:)",
            lambda found: _settings(found[1]),
            text,
            flags=re.DOTALL,
        )
        text = _with_pod_values(text)
    text = text.replace(OPEN.image, f"{{{{ {IMAGE} | quote }}}}")
    text = text.replace(OPEN.namespace, "{{ .Release.Namespace }}")
    return text.replace(str(OPEN.replicas), "{{ .Values.replicas }}")


def _with_pod_values(text: str) -> str:
    """The Deployment with the resources, nodes and pull secrets of its pods left open."""
    closed = _indented(_dumped({"resources": _container()["resources"]}), 10)
    assert closed in text
    text = text.replace(closed, f"{' ' * 10}resources: {{{{- toYaml .Values.resources | nindent 12 }}}}")
    first = f"{' ' * 6}serviceAccountName:"
    optional = "".join(
        f"{' ' * 6}{line}\n"
        for name in ("imagePullSecrets", "nodeSelector", "tolerations")
        for line in (f"{{{{- with .Values.{name} }}}}", f"{name}: {{{{- toYaml . | nindent 8 }}}}", "{{- end }}")
    )
    return text.replace(first, optional + first)


def _container() -> Json:
    """The operator's container."""
    (deployment,) = (each for each in manifests(OPEN) if each["kind"] == "Deployment")
    found: Json = deployment["spec"]["template"]["spec"]["containers"][0]
    return found


def _dumped(value: Json) -> str:
    return as_yaml([value]).removeprefix("---\n").rstrip()


def _indented(text: str, spaces: int) -> str:
    return textwrap.indent(text, " " * spaces)


def _settings(indent: str) -> str:
    """One variable for each setting: those given, and those that come from how it is installed."""
    own = " ".join(
        f'"{camel_case(name)}" {IMAGE if value == OPEN.image else json.dumps(value)}'
        for name, value in own_settings(OPEN.image).items()
    )
    return "\n".join(
        f"{indent}{line}"
        for line in (
            f"{{{{- $settings := dict {own} }}}}",
            # Not `merge`: it takes an empty value for none.
            "{{- range $name, $value := .Values.settings }}{{- $_ := set $settings $name $value }}{{- end }}",
            "{{- range $name, $value := $settings }}",
            "- name: PILOTAGE_{{ $name | snakecase | upper }}",
            '  value: {{ kindIs "slice" $value | ternary (join " " $value) (toString $value) | quote }}',
            "{{- end }}",
        )
    )


def _chart() -> str:
    about = {
        "apiVersion": "v2",
        "name": "pilotage",
        "description": "Model serving on Kubernetes whose departures are as safe as its arrivals",
        "type": "application",
        "version": _semantic(__version__),
        "appVersion": __version__,
        "kubeVersion": ">=1.30.0-0",
    }
    return as_yaml([about]).removeprefix("---\n")


def _semantic(version: str) -> str:
    """A version of Python as Helm wants it: 0.1.0.dev0 is 0.1.0-dev0."""
    return re.sub(r"^(\d+\.\d+\.\d+)\.?(?=[a-z])", r"\1-", version)


def _schema() -> dict[str, Any]:
    """Schema of the values: a mistyped name, or a value that cannot be, is refused by Helm."""
    hints = get_type_hints(OperatorSettings)
    settings = {camel_case(name): _value(kind) for name, kind in hints.items() if name != "namespace"}
    quantities = {"type": "object", "additionalProperties": {"type": ["string", "number"]}}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "image": {"type": "string", "pattern": r"^\S*$"},
            "imagePullSecrets": {
                "type": "array",
                "items": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["name"],
                    "properties": {"name": {"type": "string"}},
                },
            },
            "replicas": {"type": "integer", "minimum": 0},
            "resources": {
                "type": "object",
                "additionalProperties": False,
                "properties": {"requests": quantities, "limits": quantities},
            },
            "nodeSelector": {"type": "object", "additionalProperties": {"type": "string"}},
            "tolerations": {"type": "array", "items": {"type": "object"}},
            "settings": {"type": "object", "additionalProperties": False, "properties": settings},
            "global": {"type": "object"},
        },
    }


def _value(kind: Any) -> dict[str, Any]:  # noqa: ANN401 - a type
    """Schema of a setting, as the operator parses it from its type."""
    if get_origin(kind) is Literal:
        return {"enum": [*get_args(kind)]}
    if get_origin(kind) is tuple:
        return {"type": ["array", "string"], "items": {"type": "string"}}
    if kind is bool:
        return {"enum": [True, False, "true", "false"]}
    return {"type": "string", "pattern": "^[0-9]+$"} if kind is int else {"type": "string"}
