"""Output of `pilotage install --print`: the API server accepts it, the chart says the same, and nothing is stale."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml

import field
from deploy.generate import files
from pilotage.api import rbac_rules
from pilotage.operator.install import Values, manifests
from pilotage_sim.loop import virtual
from pilotage_sim.world import SimulatedWorld
from tests.cli.running import run
from tests.operator.installing import apply_all

DEPLOY = Path(__file__).parents[2] / "deploy"


def printed(*args):
    answer = run("install", "--print", *args)
    assert answer.code == 0
    return list(yaml.safe_load_all(answer.out))


def by_name(objects):
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in objects}


def container(objects):
    (deployment,) = (each for each in objects if each["kind"] == "Deployment")
    return deployment["spec"]["template"]["spec"]["containers"][0]


def variables(objects):
    return {each["name"]: each.get("value") for each in container(objects)["env"]}


def test_what_is_printed_is_what_was_asked_for():
    objects = printed("--image", "registry/p:1", "-n", "ops", "--replicas", "3", "--setting", "fileRoots=/a /b")
    assert container(objects)["image"] == "registry/p:1"
    assert {each["metadata"].get("namespace", "ops") for each in objects} == {"ops", "pilotage-hosts"}
    assert by_name(objects)["Deployment/pilotage-operator"]["spec"]["replicas"] == 3
    assert variables(objects)["PILOTAGE_FILE_ROOTS"] == "/a /b"
    assert variables(objects)["PILOTAGE_FETCH_IMAGE"] == "registry/p:1"


def test_agents_and_the_gateway_get_what_they_need_and_their_leases_a_place():
    objects = by_name(printed("-n", "ops"))
    assert objects["Namespace/pilotage-hosts"]
    group = {"kind": "Group", "name": "system:serviceaccounts:pilotage-hosts", "apiGroup": "rbac.authorization.k8s.io"}
    for binding in ("ClusterRoleBinding/pilotage-agent", "RoleBinding/pilotage-agent"):
        assert objects[binding]["subjects"] == [group], "each Host has an account of its own, called like it"
    assert objects["ClusterRole/pilotage-agent"]["rules"] == [rule.written() for rule in rbac_rules.AGENT]
    assert objects["Role/pilotage-agent"]["rules"] == [rule.written() for rule in rbac_rules.AGENT_LEASES]
    assert objects["RoleBinding/pilotage-operator-hosts"]["subjects"][0]["namespace"] == "ops"
    verbs = {
        resource: set(rule["verbs"])
        for rule in objects["ClusterRole/pilotage-gateway"]["rules"]
        for resource in rule["resources"]
    }
    follow = {"list", "watch"}
    assert verbs == {"gatewayroutes": follow, "gatewayroutes/status": {"patch"}, "endpointslices": follow}
    (bound,) = objects["ClusterRoleBinding/pilotage-gateway"]["subjects"]
    assert bound == {"kind": "ServiceAccount", "name": "pilotage-gateway", "namespace": "ops"}


def test_placing_on_hosts_is_part_of_no_other_role():
    objects = by_name(printed())
    placing = objects["ClusterRole/pilotage-place-on-hosts"]
    assert placing["rules"] == [{"apiGroups": ["pilotage.dev"], "resources": ["hosts"], "verbs": ["use"]}]
    assert not [label for label in placing["metadata"]["labels"] if "aggregate" in label]
    for role in ("edit", "view"):
        assert "use" not in {
            verb for rule in objects[f"ClusterRole/pilotage-{role}"]["rules"] for verb in rule["verbs"]
        }


def test_without_print_the_command_that_applies_it_is_said():
    answer = run("install", "--image", "registry/p:1", "--setting", "fileRoots=/a /b")
    assert (answer.code, answer.out) == (2, "")
    assert "Nothing was done" in answer.err
    said = " ".join(answer.err.split())
    assert "pilotage install --print --image registry/p:1 -n pilotage-system --replicas 2" in said
    assert "--setting 'fileRoots=/a /b' | kubectl apply --server-side -f -" in said


def test_a_wrong_setting_is_refused_before_anything_is_installed():
    answer = run("install", "--print", "--setting", "fetch=nobody")
    assert (answer.code, answer.out) == (2, "")
    assert "'nobody' cannot be used" in answer.err
    assert "is not SETTING=VALUE" in run("install", "--print", "--setting", "namespace=x").err


def test_what_is_committed_is_current():
    made = files()
    there = {
        str(file.relative_to(DEPLOY)): file.read_text()
        for folder in ("crds", "chart")
        for file in (DEPLOY / folder).rglob("*")
        if file.is_file()
    }
    assert there == made, "run `make manifests`"


@pytest.fixture(scope="module")
def helm():
    return field.built("helm")


@pytest.mark.parametrize(
    ("values", "same"),
    [
        ({}, Values(namespace="ops")),
        (
            {
                "image": "registry/p:1",
                "replicas": 1,
                "settings": {"fileRoots": ["/a", "/b"], "plainHttp": True, "metricsAddress": "", "fetch": "operator"},
            },
            Values(
                "registry/p:1",
                "ops",
                1,
                {"file_roots": "/a /b", "plain_http": "true", "metrics_address": "", "fetch": "operator"},
            ),
        ),
    ],
    ids=["default", "chosen"],
)
def test_the_chart_says_the_same(helm, tmp_path, values, same):
    (tmp_path / "values.json").write_text(json.dumps(values))
    command = [helm, "template", "any", DEPLOY / "chart", "-n", "ops", "-f", tmp_path / "values.json"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    rendered = by_name(each for each in yaml.safe_load_all(answer.stdout) if each)
    # Helm makes the namespace of a release itself.
    assert rendered == by_name(each for each in manifests(same) if each["metadata"]["name"] != "ops")


def test_the_chart_leaves_the_needs_of_pods_open(helm, tmp_path):
    values = {
        "imagePullSecrets": [{"name": "registry"}],
        "nodeSelector": {"kubernetes.io/arch": "arm64"},
        "tolerations": [{"key": "system", "operator": "Exists"}],
    }
    resources = {"requests": {"cpu": "1", "memory": "128Mi"}, "limits": {"memory": "2Gi"}}
    given = {**values, "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "2Gi"}}}
    (tmp_path / "values.json").write_text(json.dumps(given))
    command = [helm, "template", "any", DEPLOY / "chart", "-n", "ops", "-f", tmp_path / "values.json"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    wanted = by_name(manifests(Values(namespace="ops")))["Deployment/pilotage-operator"]["spec"]["template"]["spec"]
    wanted |= values
    wanted["containers"][0]["resources"] = resources
    rendered = by_name(each for each in yaml.safe_load_all(answer.stdout) if each)
    assert rendered["Deployment/pilotage-operator"]["spec"]["template"]["spec"] == wanted


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("settings.fecth=pods", "'fecth' not allowed"),
        ("settings.fetch=nobody", "/settings/fetch"),
        ("settings.logLevel=loud", "/settings/logLevel"),
        ("settings.plainHttp=maybe", "/settings/plainHttp"),
        ("settings.modelBytesMax=much", "/settings/modelBytesMax"),
        ("replicas=-1", "/replicas"),
        ("image=a b", "/image"),
        ("imagePullSecrets={registry}", "/imagePullSecrets/0"),
        ("resources.limit.cpu=1", "'limit' not allowed"),
        ("nodeselector.a=b", "'nodeselector' not allowed"),
    ],
)
def test_the_chart_refuses_values_that_mean_nothing(helm, value, words):
    command = [helm, "template", "any", DEPLOY / "chart", "--set", value]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode != 0
    assert words in answer.stderr


def test_the_chart_says_what_comes_next(helm):
    chosen = ["--set", "image=registry/p:1", "--dry-run=client"]
    command = [helm, "install", "any", DEPLOY / "chart", "-n", "ops", *chosen]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    notes = answer.stdout.partition("NOTES:")[2]
    assert "registry/p:1" in notes
    assert "kubectl -n ops rollout status deployment/pilotage-operator" in notes


@virtual
async def test_harbor_takes_all_of_it():
    async with SimulatedWorld(latency=(0, 0)) as world:
        await apply_all(world.client("admin"), manifests(Values()))


def test_a_real_server_takes_all_of_it_and_its_pod_is_a_restricted_one(cluster, namespace):
    """A dry run: what is for the whole cluster stays as it was."""
    objects = [each for each in manifests(Values(namespace=namespace)) if each["kind"] != "Namespace"]
    hosts = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "pilotage-hosts"}}
    cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump(hosts))
    answer = cluster.kubectl(
        "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-", input=yaml.safe_dump_all(objects)
    )
    assert len(answer.splitlines()) == len(objects)
    cluster.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    template = by_name(objects)["Deployment/pilotage-operator"]["spec"]["template"]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": namespace},
        "spec": template["spec"],
    }
    pod["spec"]["serviceAccountName"] = "default"
    cluster.wait_for_service_account(namespace)
    assert "pod/p created" in cluster.kubectl("create", "--dry-run=server", "-f", "-", input=yaml.safe_dump(pod))
