"""Built-in kinds: what is filled in, what is refused, what may not change. Here: Pods."""

from __future__ import annotations

from typing import Any

from tests.contract.case import Theme
from tests.contract.kit import Kit
from tests.contract.objects import (
    container,
    pod,
    with_service_account,
)

theme = Theme("kind")
creates = theme.creates


def pods(name: str, **spec: Any) -> None:
    """A case of one Pod."""

    async def run(kit: Kit) -> None:
        await with_service_account(kit)
        await kit.create("pods", pod("a", **spec))

    theme.add(f"pod {name}", run)


pods("minimal")
pods("without containers", containers=[])
pods("container without name", containers=[{"image": "i"}])
pods("container without image", containers=[{"name": "a"}])
pods("container name invalid", containers=[container(name="Not_Valid")])
pods("container twice", containers=[container(), container()])
pods("image without tag", containers=[container(image="example.com/app")])
pods("image latest", containers=[container(image="example.com/app:latest")])
pods("restart policy unknown", restartPolicy="Sometimes")
pods(
    "ports",
    containers=[
        container(ports=[{"containerPort": 80}, {"containerPort": 0}, {"containerPort": 80, "protocol": "XYZ"}])
    ],
)
pods(
    "environment",
    containers=[
        container(
            env=[
                {"name": "A", "value": "1"},
                {"name": "", "value": "2"},
                {"name": "F", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            ]
        )
    ],
)
pods("requests above limits", containers=[container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})])
pods("requests from limits", containers=[container(resources={"limits": {"cpu": "1000m", "memory": "1Gi"}})])
pods(
    "volumes",
    volumes=[{"name": "v", "emptyDir": {}}, {"name": "c", "configMap": {"name": "x"}}],
    containers=[container(volumeMounts=[{"name": "v", "mountPath": "/v"}])],
)
pods("mount without volume", containers=[container(volumeMounts=[{"name": "v", "mountPath": "/v"}])])
pods("volume of no kind", volumes=[{"name": "v"}])
pods(
    "probes",
    containers=[
        container(
            livenessProbe={"httpGet": {"port": 80}}, readinessProbe={"exec": {"command": ["x"]}, "periodSeconds": 3}
        )
    ],
)
pods("probe without handler", containers=[container(livenessProbe={})])
pods("lifecycle", containers=[container(lifecycle={"preStop": {"sleep": {"seconds": 5}}})])
pods("init containers", initContainers=[container(name="init"), container(name="side", restartPolicy="Always")])
pods(
    "node selector and tolerations",
    nodeSelector={"a": "b"},
    tolerations=[{"key": "k", "operator": "Exists"}, {"key": "x", "operator": "Wrong"}],
)
pods(
    "security",
    securityContext={"runAsUser": 5, "runAsNonRoot": True},
    containers=[container(securityContext={"privileged": True})],
)
pods("host network", hostNetwork=True, containers=[container(ports=[{"containerPort": 80}])])
pods("grace negative", terminationGracePeriodSeconds=-5)
pods("deadline zero", activeDeadlineSeconds=0)
pods("priority class unknown", priorityClassName="never-made")
pods("priority class of the system", priorityClassName="system-cluster-critical")
pods("service account absent", serviceAccountName="never-made")
pods(
    "affinity", affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": ""}]}}
)


@theme.case()
async def pod_with_a_token(kit: Kit) -> None:
    await with_service_account(kit)
    body = pod("a")
    del body["spec"]["automountServiceAccountToken"]
    await kit.picking(lambda b: [b["spec"]["volumes"], b["spec"]["containers"][0]["volumeMounts"]]).create("pods", body)


@theme.case()
async def pod_spec_is_immutable(kit: Kit) -> None:
    await with_service_account(kit)
    await kit.quiet.create("pods", pod("a"))
    await kit.picking(lambda b: b["spec"]["containers"][0]["image"]).strategic(
        "pods", "a", {"spec": {"containers": [container(image="example.com/app:2")]}}
    )
    await kit.picking(
        lambda b: (
            b
            if b["kind"] != "Status"
            else [b["code"], b["reason"], b["details"]["causes"][0]["field"], b["message"].splitlines()[0]]
        )
    ).patch("pods", "a", {"spec": {"restartPolicy": "Never"}})
    await kit.picking(lambda b: b["metadata"]).patch("pods", "a", {"metadata": {"labels": {"x": "y"}}})
