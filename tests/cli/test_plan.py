"""``pilotage plan``: members and hazards of a teardown, while nothing changes."""

import asyncio
import json
from pathlib import Path

import pytest

from controlplane import Access
from pilotage.kube import Client, KindNotServed, Object, Resource
from tests.cli.running import Ran, ask, run
from tests.cli.serving import Chat
from tests.support import kinds
from tests.support.waiting import eventually

CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
PODS = Resource("", "v1", "pods", "Pod")
SCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")


def fill(kubeconfig: Path, namespace: str) -> list[Object]:
    """A namespace with a ConfigMap and a Service in it."""

    async def create(client: Client) -> list[Object]:
        await client.create(kinds.NAMESPACES, {"metadata": {"name": namespace}})
        service = {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}
        return [
            await client.create(kinds.CONFIG_MAPS, kinds.config_map("a", labels={"g": "a"}), namespace=namespace),
            await client.create(kinds.SERVICES, service, namespace=namespace),
        ]

    return ask(kubeconfig, create)


def test_a_namespace_alone_is_planned_as_with_all(server: Path):
    fill(server, "whole")
    alone = run("plan", "-n", "whole", kubeconfig=server)
    assert (alone.code, alone.err) == (0, "")
    assert "configmap/a -n whole" in alone.out
    assert "service/web -n whole" in alone.out
    assert "kube-root-ca.crt" not in alone.out
    assert alone == run("plan", "-n", "whole", "--all", kubeconfig=server)


def test_nothing_is_changed(server: Path):
    made = fill(server, "same")
    assert run("plan", "-n", "same", "--all", kubeconfig=server).code == 0

    async def read(client: Client) -> list[Object]:
        resources = (kinds.CONFIG_MAPS, kinds.SERVICES)
        return [await client.get(resource, obj.key) for resource, obj in zip(resources, made, strict=True)]

    assert [obj.meta.resource_version for obj in ask(server, read)] == [obj.meta.resource_version for obj in made]


def test_what_a_file_describes_is_planned_and_nothing_else(server: Path, tmp_path: Path):
    fill(server, "described")
    web = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "described"}}
    lost = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "lost", "namespace": "described"}}
    path = tmp_path / "m.yaml"
    path.write_text(f"{json.dumps(web)}\n---\n{json.dumps(lost)}\n")
    ran = run("plan", "-f", path, kubeconfig=server)
    assert (ran.code, ran.err) == (0, "")
    assert "Plan: 1 object in 1 step." in ran.out
    assert "service/web -n described  (named)" in ran.out
    assert "secret/lost -n described is not there: nothing to do" in ran.out
    assert "configmap/a" not in ran.out


def test_the_shape_for_scripts(server: Path):
    made = fill(server, "shape")
    ran = run("plan", "cm/a", "cm/typo", "-n", "shape", "-o", "json", kubeconfig=server)
    told = json.loads(ran.out)
    assert ran.code == 0
    assert set(told) >= {"targets", "absent", "objects", "cycles", "remarks", "hazards"}
    assert [name for name in told["absent"] if "typo" in name]
    [planned] = told["objects"]
    assert (planned["kind"], planned["name"], planned["uid"]) == ("ConfigMap", "a", made[0].meta.uid)
    assert (planned["phase"], planned["how"]) == ("remove", "delete")


def test_nothing_to_delete_is_no_failure(server: Path):
    ran = run("plan", "cm/never", "-n", "default", kubeconfig=server)
    assert ran.code == 0
    assert "configmap/never -n default is not there" in ran.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "KIND/NAME"),
        (("-n", "default", "--all", "cm/a"), "--all"),
        (("--all",), "-n NAMESPACE"),
    ],
)
def test_what_means_nothing_is_told_in_a_sentence(words: tuple[str, ...], said: str):
    ran = run("plan", *words)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


async def is_served(client: Client, resource: Resource) -> bool:
    try:
        await client.list(resource)
    except KindNotServed:
        return False
    return True


def test_a_kind_of_ones_own_is_planned_by_its_short_name(server: Path):
    async def create(client: Client) -> None:
        widgets = kinds.widgets()
        await client.create(kinds.CRDS, kinds.definition(widgets, "wdg"))
        await client.create(kinds.NAMESPACES, {"metadata": {"name": "short"}})
        await eventually(lambda: is_served(client, widgets))
        for name, group in (("one", "a"), ("two", "b")):
            body = {"apiVersion": widgets.api_version, "kind": "Widget"}
            await client.create(widgets, body | {"metadata": {"name": name, "labels": {"g": group}}}, namespace="short")
        await client.create(kinds.CONFIG_MAPS, kinds.config_map("other", labels={"g": "a"}), namespace="short")

    ask(server, create)
    ran = run("plan", "wdg", "-l", "g=a", "-n", "short", kubeconfig=server)
    assert (ran.code, ran.err) == (0, "")
    assert "Plan: 1 object in 1 step" in ran.out
    assert "widget/one -n short" in ran.out


def test_what_probably_stands_in_the_way_ends_with_1(server: Path):
    """A claim is removed when the pod that mounts it is gone, and that one was not named."""
    pod = kinds.pod("user")
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    meta = {"name": "data", "finalizers": ["kubernetes.io/pvc-protection"]}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}

    async def create(client: Client) -> None:
        await client.create(kinds.NAMESPACES, {"metadata": {"name": "used"}})
        await client.create(CLAIMS, {"metadata": meta, "spec": spec}, namespace="used")
        await client.create(PODS, pod, namespace="used")

    ask(server, create)
    ran = run("plan", "pvc/data", "-n", "used", kubeconfig=server)
    assert ran.code == 1
    assert "Predicted blockers: 1." in ran.out
    assert "BLOCKS" in ran.out
    assert "pod/user -n used" in ran.out
    ran = run("plan", "pvc/data", "-n", "used", "-o", "json", kubeconfig=server)
    assert ran.code == 1
    [hazard] = [each for each in json.loads(ran.out)["hazards"] if each["blocks"]]
    assert "pod/user -n used" in hazard["text"]
    assert (hazard["kind"], hazard["name"], hazard["code"]) == ("PersistentVolumeClaim", "data", "claim-in-use")
    assert run("plan", "pvc/data", "pod/user", "-n", "used", kubeconfig=server).code == 0


def test_what_a_prediction_rests_on_is_shown(server: Path):
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}

    async def create(client: Client) -> None:
        await client.create(kinds.NAMESPACES, {"metadata": {"name": "scaled"}})
        await client.create(kinds.DEPLOYMENTS, kinds.deployment("web"), namespace="scaled")
        scaler = {"metadata": {"name": "web"}, "spec": {"maxReplicas": 2, "scaleTargetRef": target}}
        await client.create(SCALERS, scaler, namespace="scaled")

    ask(server, create)
    where = "it stands in spec.scaleTargetRef"
    lines = run("plan", "deploy/web", "-n", "scaled", kubeconfig=server).out.splitlines()
    place = next(number for number, line in enumerate(lines) if "horizontalpodautoscaler/web -n scaled stays" in line)
    advice = "Take horizontalpodautoscaler/web -n scaled down as well."
    assert [line.strip() for line in lines[place + 1 : place + 3]] == [where, advice]
    told = json.loads(run("plan", "deploy/web", "-n", "scaled", "-o", "json", kubeconfig=server).out)
    [hazard] = [each for each in told["hazards"] if each["code"] == "scaler-loses-target"]
    assert (hazard["evidence"], hazard["advice"]) == ([where], advice)


def test_adopting_leaves_what_a_pod_mounts_that_stays(server: Path):
    """Nothing made that pod, so that no template says what it mounts."""
    volumes = [{"name": "config", "configMap": {"name": "shared"}}]
    web, pod = kinds.deployment("web", replicas=0), kinds.pod("bare")
    web["spec"]["template"]["spec"] = pod["spec"] | {"volumes": volumes}
    pod["spec"] = pod["spec"] | {"volumes": volumes}

    async def create(client: Client) -> None:
        await client.create(kinds.NAMESPACES, {"metadata": {"name": "adopt"}})
        await client.create(kinds.CONFIG_MAPS, kinds.config_map("shared"), namespace="adopt")
        await client.create(kinds.DEPLOYMENTS, web, namespace="adopt")

    ask(server, create)
    alone = run("plan", "deploy/web", "--adopt", "-n", "adopt", kubeconfig=server)
    assert "configmap/shared -n adopt  (mounted by deployment/web -n adopt, and by nothing else)" in alone.out
    ask(server, lambda client: client.create(PODS, pod, namespace="adopt"))
    ran = run("plan", "deploy/web", "--adopt", "-n", "adopt", kubeconfig=server)
    assert ran.code == 0
    assert "Plan: 1 object in 1 step; keeps configmap/shared." in ran.out


def test_a_kind_that_is_new_since_the_last_command_is_not_missed(
    cluster: Access, namespace: str, discovery_memory: Path
):
    config = cluster.kubeconfig
    ask(config, lambda client: client.create(kinds.CONFIG_MAPS, kinds.config_map("a"), namespace=namespace))
    assert "configmap/a" in run("plan", "-n", namespace, kubeconfig=config).out
    assert [each for each in discovery_memory.rglob("*") if each.is_file()]  # it begins with that now
    widgets = kinds.widgets()

    async def plan(client: Client) -> tuple[Ran, Ran]:
        async with kinds.served(client, widgets):
            made = await client.create(widgets, {"metadata": {"name": "new"}}, namespace=namespace)
            written = json.dumps(made.to_dict())
            named = await asyncio.to_thread(run, "plan", "-f", "-", kubeconfig=config, stdin=written)
            return named, await asyncio.to_thread(run, "plan", "-n", namespace, kubeconfig=config)

    for ran in ask(config, plan):
        assert (ran.code, ran.err) == (0, "")
        assert f"widget/new -n {namespace}" in ran.out


@pytest.mark.parametrize("command", [("plan",), ("delete", "--yes"), ("delete", "--dry-run")], ids=" ".join)
@pytest.mark.parametrize("kind", ["cm", "se"])
def test_a_namespace_that_is_not_there_is_said_to_be_so(chat: Chat, command: tuple[str, ...], kind: str):
    ran = run(*command, f"{kind}/a", "-n", "typo", kubeconfig=chat.kubeconfig)
    assert ran.code == 1
    assert "There is no namespace typo. `kubectl get namespaces` lists those there are." in ran.out
    assert "not there" not in ran.out
