"""Output of kubectl against harbor, in docs/harbor-kubectl.md. `UPDATE_DOCS=1` rewrites it."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
from pathlib import Path

import pytest

from controlplane import NoControlPlane
from tests.contract.kubectl import Kubectl, aligned
from tests.contract.normal import Normaliser
from tests.contract.objects import cm, deployment
from tests.contract.server import Place, harbor, kubectl_binary

DOCUMENT = Path(__file__).parents[2] / "docs" / "harbor-kubectl.md"

HEAD = """\
# kubectl against harbor

What a user of kubectl sees, as the test suite saw it last. `pilotage harbor --data DIR` was running, and KUBECONFIG
named its `DIR/kubeconfig`. No cluster was near. Times, ages and uids are replaced.

"""

WIDGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["size"],
                                "properties": {
                                    "size": {
                                        "type": "integer",
                                        "description": "How large it is.",
                                        "x-kubernetes-validations": [
                                            {"rule": "self >= oldSelf", "message": "a widget does not shrink"}
                                        ],
                                    }
                                },
                            },
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


def widget(size: int) -> dict[str, object]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "one"}, "spec": {"size": size}}


STEPS: list[tuple[str, str, object]] = [
    ("A namespace, and objects in it", "create namespace shop", None),
    ("", "config set-context --current --namespace=shop", None),
    ("", "apply -f web.json", deployment("web", replicas=2)),
    ("", "get deployments -o wide", None),
    ("", "scale deployment/web --replicas=3", None),
    ("", "label deployment web team=blue", None),
    ("", "annotate deployment web note='by hand'", None),
    ("", "describe deployment web", None),
    (
        "Server-side apply, and a conflict",
        "apply --server-side --field-manager=alice -f settings.json",
        cm("settings", {"mode": "fast"}),
    ),
    ("", "apply --server-side --field-manager=bob -f settings.json", cm("settings", {"mode": "slow"})),
    (
        "",
        "apply --server-side --field-manager=bob --force-conflicts -f settings.json",
        cm("settings", {"mode": "slow"}),
    ),
    ("", "get configmap settings -o yaml --show-managed-fields", None),
    ("Patches", """patch configmap settings -p '{"data":{"mode":"steady"}}'""", None),
    ("", """patch configmap settings --type=json -p '[{"op":"test","path":"/data/mode","value":"fast"}]'""", None),
    ("A kind of one's own", "apply -f widgets.json", WIDGETS),
    ("", "wait --for=condition=Established crd/widgets.example.com --timeout=10s", None),
    ("", "apply -f one.json", widget(3)),
    ("", "get widgets", None),
    ("", "apply -f one.json", widget(2)),
    ("", "explain widget.spec.size", None),
    ("", "api-resources --api-group=example.com", None),
    ("Who may do what", "create role reader --verb=get,list --resource=widgets.example.com", None),
    ("", "create rolebinding reader --role=reader --user=carol", None),
    ("", "auth can-i list widgets.example.com --as=carol", None),
    ("", "auth can-i delete widgets.example.com --as=carol", None),
    ("", "delete widget one --as=carol", None),
    ("Deleting", 'patch configmap settings --type=merge -p \'{"metadata":{"finalizers":["example.com/hold"]}}\'', None),
    ("", "delete configmap settings --wait=false", None),
    ("", "get configmap settings -o jsonpath='{.metadata.finalizers}'", None),
    ("", 'patch configmap settings --type=merge -p \'{"metadata":{"finalizers":null}}\'', None),
    ("", "get configmap settings", None),
    ("", "delete deployment web --cascade=foreground", None),
    ("", "delete crd widgets.example.com", None),
    ("", "delete namespace shop", None),
    ("", "get namespaces", None),
]


async def transcript(place: Place, folder: Path) -> str:
    kubectl, normal, parts = Kubectl(place), Normaliser(), [HEAD]
    for title, command, sent in STEPS:
        if title:
            parts.append(f"## {title}\n\n")
        words = shlex.split(command)
        if sent:
            (folder / words[-1]).write_text(json.dumps(sent))
        ran = await kubectl.run(*words, cwd=folder)
        said = aligned(normal.text(ran.out + ran.err)).strip()
        code = f"(exit code {ran.code})\n" if ran.code else ""
        parts.append(f"```console\n$ kubectl {command}\n{said}\n{code}```\n\n")
    return "".join(parts).rstrip() + "\n"


@pytest.mark.cluster  # not that it needs one, but kubectl is built along with it
def test_the_transcript_is_current(tmp_path: Path) -> None:
    try:
        kubectl_binary()
    except NoControlPlane as error:
        pytest.skip(str(error))
    with harbor() as place:
        made = asyncio.run(transcript(place, tmp_path))
    if os.environ.get("UPDATE_DOCS"):
        DOCUMENT.parent.mkdir(exist_ok=True)
        DOCUMENT.write_text(made)
    assert DOCUMENT.read_text() == made
