"""The generated files of this folder, as a table of paths and texts.

The chart is `pilotage install --print` with the values left open: its templates are made from the same objects, so the
two cannot differ in more than the values.
"""

import json
import re
from typing import Any

from pilotage import __version__
from pilotage.operator.crds import crds
from pilotage.operator.install import Values, as_yaml, manifests, own_settings
from pilotage.operator.settings import OperatorSettings
from pilotage.runtime.settings import camel_case

OPEN = Values(image="open-image", namespace="open-namespace", replicas="open-replicas")
IMAGE = '(.Values.image | default (printf "pilotage:%s" .Chart.AppVersion))'

VALUES = """\
# The image of Pilotage. Without it: pilotage, at the version of this chart.
image: ""
# How many operators there are; one of them works, the others wait.
replicas: 2
# Settings of the operator, as in its file: `pilotage operator --help` explains them.
settings: {}
#  envoyAdmins: [http://10.0.0.7:9001]
#  logLevel: debug
"""


def files() -> dict[str, str]:
    """All of them, by their paths below this folder."""
    made = {f"crds/{crd['spec']['names']['plural']}.yaml": as_yaml([crd]) for crd in crds()}
    made |= {f"chart/templates/{path}": text for path, text in made.items()}
    made["chart/Chart.yaml"] = _chart()
    made["chart/values.yaml"] = VALUES
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
    text = text.replace(OPEN.image, f"{{{{ {IMAGE} | quote }}}}")
    text = text.replace(OPEN.namespace, "{{ .Release.Namespace }}")
    return text.replace(str(OPEN.replicas), "{{ .Values.replicas }}")


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
    """JSON schema of the chart's values: Helm refuses a setting that is mistyped."""
    scalars = {"type": ["string", "boolean", "array"]}
    settings = {camel_case(name): scalars for name in OperatorSettings.__struct_fields__ if name != "namespace"}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "image": {"type": "string"},
            "replicas": {"type": "integer", "minimum": 0},
            "settings": {"type": "object", "additionalProperties": False, "properties": settings},
            "global": {"type": "object"},
        },
    }
