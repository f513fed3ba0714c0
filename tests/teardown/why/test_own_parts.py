"""Parts, files and machines of ours that fail, on the real API server beside the real operator and real agents.

kwok runs no container, so a test writes the status of a pod that fails, as its kubelet would.
"""

import http.server
import json
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pilotage.kube import Json
from pilotage.teardown.diagnosis.why.model import Confidence
from pilotage.teardown.diagnosis.why.render import confidence, exit_code, remedies_of, render
from tests.agent.agent_host import python_server, write_model
from tests.cli.running import run
from tests.controllers.operating import Operator
from tests.teardown.why.own_stage import AGENT_USER, DEPLOYMENTS, HOLD, Case, Stuck, check

APISERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
RANCHER = "controller.cattle.io/namespace-auth"
ANSWERS = """
import http.server, os
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Answer).serve_forever()
"""


@pytest.fixture(scope="module")
def web(running: tuple[Operator, Stuck]) -> Iterator[str]:
    """Address of a server of weights, below the folder of the test."""
    folder = running[1].folder / "web"
    folder.mkdir()
    write_model(folder / "tiny.gguf")

    class Files(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(folder))  # type: ignore[arg-type]

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


# Pods


def failing_pod(stuck: Stuck, name: str, **container: object) -> str:
    """An endpoint whose pod has a container in this state; returns the pod."""
    stuck.deploy(name, nodeSelector={"there-is": "none"})  # where kwok does not play its kubelet
    path = f"/api/v1/namespaces/{stuck.namespace}/pods"

    def pods() -> list[Json]:
        found = stuck.cluster.request("GET", path)["items"]
        return [each for each in found if each["metadata"]["name"].startswith(f"{name}-1-")]

    stuck.until(pods)
    pod = str(pods()[0]["metadata"]["name"])
    status = {"name": "server", "image": "x", "imageID": "x", "ready": False, "restartCount": 1, **container}
    scheduled = {"type": "PodScheduled", "status": "True"}
    patch = {"status": {"conditions": [scheduled], "containerStatuses": [status]}}
    words = ("patch", "pod", pod, "-n", stuck.namespace, "--subresource=status", "-p", json.dumps(patch))
    stuck.cluster.kubectl(*words)
    return pod


def crash(stuck: Stuck) -> Case:
    ended = {"exitCode": 1, "reason": "Error", "message": "error: unknown model architecture"}
    pod = failing_pod(
        stuck, "crashes", state={"waiting": {"reason": "CrashLoopBackOff"}}, lastState={"terminated": ended}
    )
    stuck.until_says("ServingEndpoint", "crashes", "CrashLoopBackOff")
    root = "CRASHES: container server exited with code 1: error: unknown model architecture"
    command = f"kubectl logs pod/{pod} -n {stuck.namespace} -c server --previous --tail=50"
    return Case("ServingEndpoint", "crashes", root, command, ("is Deploying: 0 of 1 replicas are ready.",))


def no_image(stuck: Stuck, name: str, reason: str) -> Case:
    """The kubelet alternates between the two reasons: the endpoint fails by either."""
    pod = failing_pod(stuck, name, state={"waiting": {"reason": reason, "message": "no such tag"}})
    stuck.until_says("ServingEndpoint", name, '"ImagePullBackOff"')
    command = f"kubectl describe pod/{pod} -n {stuck.namespace}"
    steps = ("is Failed: 0 of 1 replicas are ready.",)
    return Case("ServingEndpoint", name, "NO IMAGE: container server: no such tag", command, steps)


def image_that_is_not_pulled(stuck: Stuck) -> Case:
    return no_image(stuck, "unpulled", "ImagePullBackOff")


def image_whose_pull_has_just_failed(stuck: Stuck) -> Case:
    return no_image(stuck, "pulling", "ErrImagePull")


def secret_that_is_missing(stuck: Stuck) -> Case:
    waiting = {"reason": "CreateContainerConfigError", "message": 'secret "token" not found'}
    pod = failing_pod(stuck, "secretless", state={"waiting": waiting})
    stuck.until_says("ServingEndpoint", "secretless", "CreateContainerConfigError")
    root = 'NOT STARTED: container server: secret "token" not found'
    return Case("ServingEndpoint", "secretless", root, f"kubectl describe pod/{pod} -n {stuck.namespace}")


def quota_that_is_used_up(stuck: Stuck) -> Case:
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"requests.example.com/fpga": "0"}}}
    stuck.cluster.request("POST", f"/api/v1/namespaces/{stuck.namespace}/resourcequotas", quota)
    stuck.deploy("greedy", resources={"limits": {"example.com/fpga": "1"}})
    stuck.until_says("ServingEndpoint", "greedy", "Pods cannot be created")
    command = f"kubectl edit servingendpoints.pilotage.dev/greedy -n {stuck.namespace}"
    return Case("ServingEndpoint", "greedy", "is Failed: Pods cannot be created: ", command)


def route_that_is_not_served(stuck: Stuck) -> Case:
    """Contour is not installed."""
    stuck.deploy("unrouted", route={"kind": "HTTPProxy", "host": "unrouted.example.com"})
    stuck.until_says("ServingEndpoint", "unrouted", "the cluster has no")
    command = f"kubectl edit servingendpoints.pilotage.dev/unrouted -n {stuck.namespace}"
    root = "is Failed: the cluster has no HTTPProxy.projectcontour.io"
    return Case("ServingEndpoint", "unrouted", root, command)


KSERVE = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/inferenceservices.serving.kserve.io"


def placement_that_is_not_served(stuck: Stuck) -> Case:
    """KServe is not installed."""
    if stuck.cluster.find(KSERVE) is not None:
        pytest.skip("another test of this session has installed KServe")
    stuck.deploy("kserved", placement={"kind": "KServe"}, route={"kind": "None"})
    stuck.until_says("ServingEndpoint", "kserved", '"Failed"')
    command = f"kubectl edit servingendpoints.pilotage.dev/kserved -n {stuck.namespace}"
    root = "is Failed: This cluster has no KServe (no kind InferenceService)"
    return Case("ServingEndpoint", "kserved", root, command)


# Models


def source_that_refuses(stuck: Stuck) -> Case:
    """A failure that is tried again by itself."""
    stuck.post("Model", "unreachable", {"source": "http://127.0.0.1:1/model.gguf"})
    stuck.until_says("Model", "unreachable", "ConnectionFailed")
    command = f"kubectl edit models.pilotage.dev/unreachable -n {stuck.namespace}"
    return Case("Model", "unreachable", "UNAVAILABLE: ", command)


def model_that_goes(stuck: Stuck) -> Case:
    """It stays for the endpoint that uses it. If that goes, the other one has no model at all."""
    stuck.post("Model", "leaving", {"source": "pvc://weights/model.gguf"})
    stuck.until_says("Model", "leaving", "Ready")
    stuck.endpoint("former", model={"name": "leaving"})
    stuck.doom("Model", "leaving")
    stuck.until_says("Model", "leaving", "InUse")
    stuck.deploy("late", model={"name": "leaving"})
    stuck.until_says("ServingEndpoint", "late", "ModelDeleting")
    root = f"UNAVAILABLE: model/leaving -n {stuck.namespace} is being deleted"
    return Case("ServingEndpoint", "late", root, f"pilotage redeploy late -n {stuck.namespace} --model OTHER")


CASES: tuple[Callable[[Stuck], Case], ...] = (
    crash,
    image_that_is_not_pulled,
    image_whose_pull_has_just_failed,
    secret_that_is_missing,
    quota_that_is_used_up,
    route_that_is_not_served,
    placement_that_is_not_served,
    source_that_refuses,
    model_that_goes,
)


@pytest.mark.parametrize("stage", CASES, ids=lambda stage: stage.__name__)
def test_the_chain_ends_at_what_fails(stuck: Stuck, stage: Callable[[Stuck], Case]) -> None:
    case = stage(stuck)
    check(stuck.why(case.kind, case.name), case)


def test_files_of_a_model_that_cannot_be_removed_are_named(stuck: Stuck, web: str) -> None:
    """The folder in which the cache has noted its users is not to be written any more."""
    stuck.post("Model", "fetched", {"source": f"{web}/tiny.gguf"})
    stuck.until_says("Model", "fetched", '"Ready"')
    uid = stuck.cluster.request("GET", stuck.path("Model", "fetched"))["metadata"]["uid"]
    cache = stuck.folder / "cache"
    (mark,) = cache.glob(f"*/.users/{uid}")
    mark.parent.chmod(0o500)
    stuck.doom("Model", "fetched")
    stuck.until_says("Model", "fetched", "CacheNotRemoved")
    command = f"kubectl describe models.pilotage.dev/fetched -n {stuck.namespace}"
    told = stuck.why("Model", "fetched")
    check(told, Case("Model", "fetched", f"FILES STAY: {cache}/.trash-", command))
    assert "cannot be removed: Permission denied" in "\n".join(render(told))


# Servers on Hosts


@pytest.fixture(scope="module")
def host(running: tuple[Operator, Stuck]) -> str:
    """A Host with a real agent, which may do all but delete addresses."""
    stuck = running[1]
    return stuck.agent("--run-as", "root", kubeconfig=stuck.cluster.user(AGENT_USER.name))


def test_a_server_that_fails_is_named_once_with_its_log(stuck: Stuck, host: str) -> None:
    broken = python_server("import sys; sys.exit('error: unknown model architecture')")
    stuck.on_host("broken", host, broken)
    stuck.until_says("HostProcess", "broken-1-0", '"Failed"')
    stuck.until(lambda: "unknown model" in stuck.status("broken").get("waitingFor", ""))
    for kind, name in (("ServingEndpoint", "broken"), ("HostProcess", "broken-1-0")):
        told = stuck.why(kind, name)
        assert "\n".join(render(told)).count("unknown model architecture") == 1, render(told)
        assert [each.command for each in remedies_of(told)] == [
            f"pilotage logs broken -n {stuck.namespace} --tail 50",
            f"pilotage redeploy broken -n {stuck.namespace} --arg ARG",
        ]


def test_an_agent_that_may_not_remove_an_address_names_the_permission(stuck: Stuck, host: str) -> None:
    stuck.on_host("listed", host, python_server(ANSWERS))
    stuck.until(lambda: stuck.serves("listed"))
    stuck.delete("listed")
    stuck.until_says("HostProcess", "listed-1-0", "cannot delete resource")
    stuck.until(stuck.waiting_for("hostprocess/listed-1-0"))
    stuck.doom("Host", host)
    slices = "endpointslices.discovery.k8s.io"
    root = f"FORBIDDEN: {AGENT_USER.name} may not delete {slices} in namespace {stuck.namespace}"
    command = f"kubectl create role let-delete-endpointslices --verb=delete --resource={slices}"
    for kind, name in (("ServingEndpoint", "listed"), ("HostProcess", "listed-1-0"), ("Host", host)):
        told = stuck.why(kind, name)
        check(told, Case(kind, name, root, command, (f"kept by the agent of host/{host}",)))
        assert confidence(told) is Confidence.HIGH


def test_an_agent_that_was_stopped_is_started_again(stuck: Stuck) -> None:
    name = stuck.agent()
    stuck.until(lambda: stuck.host(name).get("status", {}).get("phase") == "Ready")
    stuck.agents[name].send_signal(signal.SIGTERM)
    stuck.until_says("Host", name, '"Stopped"')
    check(stuck.why("Host", name), Case("Host", name, "STOPPED: ", f"pilotage agent --name {name}"))


# Owners that are guessed


def test_two_controllers_that_may_own_a_finalizer_are_both_named_and_neither_is_certain(stuck: Stuck) -> None:
    pods = {"metadata": {"labels": {"app": "z"}}, "spec": {"containers": [{"name": "x", "image": "x"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "z"}}, "template": pods}
    for name in ("acme-controller", "acme-operator"):
        body = {"metadata": {"name": name}, "spec": spec}
        stuck.cluster.request("POST", DEPLOYMENTS.format(stuck.namespace), body)
    stuck.endpoint("guessed")
    stuck.hold(f"/api/v1/namespaces/{stuck.namespace}/services/guessed-1", "acme.example.com/cleanup")
    stuck.delete("guessed")
    stuck.until(stuck.waiting_for("acme.example.com/cleanup"))
    told = stuck.why("ServingEndpoint", "guessed")
    scale = f"kubectl scale deployment/acme-{{}} -n {stuck.namespace} --replicas=1"
    steps = ("probably kept by acme-controller or acme-operator", f"waits for service/guessed-1 -n {stuck.namespace}")
    check(told, Case("ServingEndpoint", "guessed", "NOT RUNNING: scaled to 0", scale.format("controller"), steps))
    assert [each.command for each in remedies_of(told)][:2] == [scale.format("controller"), scale.format("operator")]
    assert confidence(told) is Confidence.LOW


# The command


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands do not keep discovery in the home of the user."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def ask(stuck: Stuck, *words: str) -> tuple[int, str]:
    ran = run("why", *words, "-n", stuck.namespace, kubeconfig=stuck.cluster.kubeconfig)
    assert ran.err == ""
    return ran.code, ran.out


def test_the_command_names_the_root_the_way_to_it_and_what_to_do(stuck: Stuck, cache: None) -> None:
    stuck.endpoint("asked")
    stuck.hold(f"{DEPLOYMENTS.format(stuck.namespace)}/asked-1", HOLD)
    stuck.delete("asked")
    stuck.until(stuck.waiting_for(f"deployment/asked-1 -n {stuck.namespace}"))
    code, out = ask(stuck, "servingendpoint/asked")
    first, *chain = out.partition("\n\n")[0].splitlines()
    assert (code, first.partition("  ")[0]) == (1, f"servingendpoint/asked -n {stuck.namespace}")
    assert first.partition("  ")[2].startswith("terminating for ")
    assert [line.strip(" └─├│").partition("  ")[0].partition(" (")[0] for line in chain] == [
        "waits for finalizer pilotage.dev/endpoint",
        "kept by Pilotage operator",
        f"waits for teardown/{stuck.records_of('asked')[0]} -n {stuck.namespace}",
        f"waits for deployment/asked-1 -n {stuck.namespace}",
        f"waits for finalizer {HOLD}",
        "NO OWNER FOUND: no known controller, workload, API group or Lease matches it",
    ]
    advice = out.partition("What to do, least destructive first\n")[2]
    kubeconfig = f"--kubeconfig {stuck.cluster.kubeconfig}"
    assert (
        f"1. Find out who put it there:  kubectl describe deployment/asked-1 -n {stuck.namespace} {kubeconfig}"
        in advice
    )
    assert "--finalizer pilotage.dev/" not in advice


def test_the_command_ends_with_1_for_an_endpoint_that_fails_and_with_0_for_one_that_serves(
    stuck: Stuck, cache: None
) -> None:
    stuck.deploy("modelless", model={"name": "none-such"})
    stuck.until_says("ServingEndpoint", "modelless", "ModelMissing")
    code, out = ask(stuck, "se/modelless")
    assert code == 1
    assert f"MISSING: model/none-such -n {stuck.namespace} does not exist" in out
    stuck.deploy("fine")
    stuck.until(lambda: stuck.serves("fine"))
    assert ask(stuck, "fine") == (0, f"servingendpoint/fine -n {stuck.namespace}  is not being deleted\n")


def test_the_command_says_the_same_as_json(stuck: Stuck, cache: None) -> None:
    stuck.post("Model", "nowhere", {"source": "file:///nowhere/third.gguf"})
    stuck.until_says("Model", "nowhere", "Failed")
    code, out = ask(stuck, "model/nowhere", "-o", "json")
    told = json.loads(out)
    assert (code, told["exitCode"], told["verdict"], told["confidence"]) == (1, 1, "stuck", "high")
    assert [(each["code"], each["subject"]["name"]) for each in told["rootCauses"]] == [
        ("model-unavailable", "nowhere")
    ]


# A namespace with two causes. The last: while an API does not answer, no namespace goes.


@pytest.fixture
def dead_api(stuck: Stuck) -> Iterator[str]:
    """An APIService whose Service does not exist, as the aggregator has found out."""
    group = f"dead-{stuck.namespace}.example.com"
    name = f"v1.{group}"
    spec = {
        "group": group,
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 10,
        "service": {"namespace": stuck.namespace, "name": "metrics"},
        "insecureSkipTLSVerify": True,
    }
    stuck.cluster.request("POST", APISERVICES, {"metadata": {"name": name}, "spec": spec})
    stuck.until(lambda: "ServiceNotFound" in json.dumps(stuck.cluster.request("GET", f"{APISERVICES}/{name}")))
    yield name
    stuck.cluster.request("DELETE", f"{APISERVICES}/{name}")


def test_a_namespace_with_a_dead_api_and_a_finalizer_of_another_has_two_causes(stuck: Stuck, dead_api: str) -> None:
    """The complaint of the namespace controller is about the API, and not about that finalizer."""
    name = f"{stuck.namespace}-3"
    path = f"/api/v1/namespaces/{name}"
    stuck.cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": name, "finalizers": [RANCHER]}})
    stuck.cluster.request("DELETE", path)
    stuck.until(lambda: "NamespaceDeletionDiscoveryFailure" in json.dumps(stuck.cluster.find(path)))
    try:
        told = stuck.why("Namespace", name)
    finally:
        stuck.change_at(path, lambda found: found["metadata"].update(finalizers=[]))
    text = "\n".join(render(told))
    assert {str(root.code) for root in told.roots} == {"service-missing", "finalizer-controller-missing"}, text
    assert "FAILS" not in text
    assert exit_code(told) == 1
    assert [each.command for each in remedies_of(told)] == [
        f"kubectl -n {stuck.namespace} get service,endpointslices,deployments,pods",
        "kubectl get deployments,statefulsets,leases -A",
        f"kubectl delete apiservice {dead_api}",
        f"pilotage why namespace/{name} --fix=strip-finalizer --finalizer {RANCHER}",
    ], text
