"""Changes and deletes of endpoints by people with a `pilotage` and a kubectl, on a real API server with one GPU.

One operator process and one namespace serve the whole module; each test has endpoints of its own.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controlplane import Cluster
from controlplane.access import Access
from pilotage.kube.discovery_memory import DiscoveryMemory
from pilotage.rollout import status as rollout_status
from tests.cli.running import Ran, run
from tests.controllers.operating import Operator, Place, install, operator

GPU = {"limits": {"nvidia.com/gpu": "1"}}
FAST = {"deletion": {"drainSeconds": 0}}
INGRESS = {"kind": "Ingress", "host": "chat.example.com"}
HOLD = "example.com/hold"
Json = dict[str, Any]


class Machine(Place):
    """A namespace with an operator, and a person with both commands."""

    process: Operator

    def pilotage(self, *words: str) -> Ran:
        return run(*words, "-n", self.namespace, kubeconfig=self.cluster.kubeconfig)

    def kubectl(self, *words: str) -> str:
        return self.cluster.kubectl(*words, "-n", self.namespace)

    def condition(self, name: str, type_: str) -> Json:
        found = (each for each in self.status(name).get("conditions", ()) if each["type"] == type_)
        return next(found, {})

    def says(self, name: str) -> tuple[str, ...]:
        """The phase, and the status of the conditions Available, Progressing and Degraded."""
        types = ("Available", "Progressing", "Degraded")
        return (
            self.status(name).get("phase", ""),
            *(self.condition(name, type_).get("status", "") for type_ in types),
        )

    def history(self, name: str) -> list[tuple[int, str]]:
        return [(past["number"], past["state"]) for past in self.status(name)["history"]]

    def of(self, name: str) -> list[str]:
        """The parts of an endpoint that people know by name."""
        return [part for part in self.parts() if part.partition("/")[2].startswith(f"{name}-") and "slices" not in part]

    def pod(self, name: str) -> str:
        found = (part.partition("/")[2] for part in self.parts() if part.startswith(f"pods/{name}-"))
        return next(found)

    def hold(self, *what: str) -> None:
        self.kubectl("patch", *what, "--type=merge", "-p", json.dumps({"metadata": {"finalizers": [HOLD]}}))

    def let_go(self, *what: str) -> None:
        self.kubectl("patch", *what, "--type=merge", "-p", json.dumps({"metadata": {"finalizers": None}}))


@pytest.fixture(scope="module")
def machine(cluster: Access, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    if not isinstance(cluster, Cluster):
        pytest.skip("needs a control plane of our own: its node gets a GPU")
    install(cluster)
    _set_gpus(cluster, "1")
    with cluster.namespace("rollouts") as namespace:
        place = Machine(cluster, namespace)
        with operator(cluster, tmp_path_factory.mktemp("operator")) as place.process:
            yield place
            cluster.kubectl("delete", "se", "--all", "-n", namespace, "--wait=false")
            place.until(lambda: not place.endpoints())
    _set_gpus(cluster, None)


def _set_gpus(cluster: Cluster, number: str | None) -> None:
    node = cluster.request("GET", "/api/v1/nodes")["items"][0]["metadata"]["name"]
    sizes = {"nvidia.com/gpu": number}
    patch = json.dumps({"status": {"capacity": sizes, "allocatable": sizes}})
    cluster.kubectl("patch", "node", node, "--subresource=status", "--type=merge", "-p", patch)


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of = DiscoveryMemory.of
    monkeypatch.setattr(DiscoveryMemory, "of", lambda config: of(config, {"XDG_CACHE_HOME": str(tmp_path)}))


def test_recreate_is_no_failure_however_long_the_old_revision_takes_to_go(machine: Machine, monkeypatch):
    """A command that sees the endpoint degraded for a moment gives up at once here."""
    monkeypatch.setattr(rollout_status, "SETTLE_SECONDS", 0.0)
    machine.deploy("again", strategy={"type": "Recreate"}, route=INGRESS, **FAST)
    machine.until(lambda: machine.serves("again"))
    pod, seen = machine.pod("again"), []
    machine.hold("pod", pod)

    def watch() -> None:
        try:
            machine.until(
                lambda: any(pod in each.get("status", {}).get("waitingFor", "") for each in machine.records())
            )
            machine.until(lambda: pod in machine.status("again").get("waitingFor", ""), 5.0)
            reason = machine.condition("again", "Progressing")["reason"]
            seen.append((machine.says("again"), reason, machine.of("again")))
        finally:
            machine.let_go("pod", pod)

    watching = threading.Thread(target=watch)
    watching.start()
    ran = machine.pilotage("redeploy", "again", "--arg=--seed", "--arg=2", "--timeout", "60")
    watching.join()
    assert ran.code == 0, ran.err
    assert "(revision again-2, 1 of 1 ready)" in ran.out
    [(said, reason, parts)] = seen
    assert (said, reason) == (("Redeploying", "False", "True", "False"), "Recreating")
    assert not any("again-2" in part for part in parts), "the old one is proven gone first"
    assert machine.history("again") == [(1, "Previous"), (2, "Current")]


def test_one_gpu_is_enough_to_change_ones_mind(machine: Machine):
    """The next revision waits for the GPU, and says so; going back starts nothing new."""
    machine.deploy("gpu", resources=GPU, **FAST)
    machine.until(lambda: machine.serves("gpu"))
    assert machine.pilotage("redeploy", "gpu", "--arg=--seed", "--arg=2", "--no-wait").code == 0
    machine.until(lambda: machine.condition("gpu", "Progressing").get("reason") == "Unschedulable")
    assert machine.says("gpu") == ("Redeploying", "True", "True", "False")
    status = machine.status("gpu")
    assert status["waitingFor"].startswith("0/1 nodes are available: 1 Insufficient nvidia.com/gpu (pod/gpu-2-")
    assert status["waitingFor"] in [each["message"] for each in status["conditions"] if each["type"] == "Progressing"]
    ran = machine.pilotage("rollback", "gpu", "--timeout", "60")
    assert ran.code == 0, ran.err
    assert "(revision gpu-1, 1 of 1 ready)" in ran.out
    assert not [part for part in machine.of("gpu") if "gpu-1" not in part]
    assert machine.history("gpu") == [(1, "Current"), (2, "Abandoned")]

    machine.pilotage("scale", "gpu", "--replicas", "2")
    machine.until(lambda: "Insufficient" in machine.condition("gpu", "Progressing").get("message", ""))
    assert machine.says("gpu") == ("Serving", "True", "True", "False")
    assert machine.condition("gpu", "Progressing")["reason"] == "Scaling"
    machine.pilotage("scale", "gpu", "--replicas", "0")
    machine.until(lambda: machine.says("gpu") == ("ScaledToZero", "False", "False", "False"))


def test_what_fails_says_why_and_what_serves_goes_on(machine: Machine):
    """A quota stands for everything that waiting does not mend."""
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"requests.example.com/fpga": "0"}}}
    machine.cluster.request("POST", f"/api/v1/namespaces/{machine.namespace}/resourcequotas", quota)
    fpga = {"limits": {"example.com/fpga": "1"}}
    machine.deploy("works", **FAST)
    machine.deploy("fails", resources=fpga, **FAST)
    machine.until(lambda: machine.says("fails") == ("Failed", "False", "False", "True"))
    assert machine.condition("fails", "Degraded")["message"].startswith("Pods cannot be created: ")
    assert machine.history("fails") == [(1, "Failed")]
    machine.until(lambda: machine.serves("works"))
    ran = machine.pilotage("redeploy", "works", "--limit", "example.com/fpga=1", "--timeout", "60")
    assert ran.code == 1
    assert "FailedCreate: Pods cannot be created: " in ran.err
    assert "works-1 keeps serving" in ran.err
    assert machine.says("works") == ("Degraded", "True", "False", "True")
    assert machine.history("works") == [(1, "Current"), (2, "Failed")]


def test_a_container_that_exits_is_said_at_the_first_time(machine: Machine):
    machine.deploy("exits", nodeSelector={"example.com/no": "such-node"}, **FAST)
    machine.until(lambda: any(part.startswith("pods/exits-") for part in machine.parts()))
    ended = {"exitCode": 1, "reason": "Error", "message": "error: unknown model architecture"}
    container = {"name": "server", "image": "x", "imageID": "x", "ready": False, "restartCount": 1}
    container |= {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": ended}}
    scheduled = {"type": "PodScheduled", "status": "True"}
    patch = {"status": {"conditions": [scheduled], "containerStatuses": [container]}}  # as a kubelet writes it
    machine.kubectl("patch", "pod", machine.pod("exits"), "--subresource=status", "-p", json.dumps(patch))
    machine.until(lambda: machine.condition("exits", "Progressing").get("reason") == "CrashLoopBackOff")
    said = machine.status("exits")["waitingFor"]
    assert said.startswith("exited once, last with code 1: error: unknown model architecture (pod/exits-1-")
    assert machine.says("exits") == ("Deploying", "False", "True", "False")


def test_of_clients_at_once_none_takes_the_revision_of_another_for_its_own(machine: Machine):
    machine.deploy("race", **FAST)
    machine.until(lambda: machine.serves("race"))
    program = [sys.executable, "-c", "from pilotage.cli import main; main()", "redeploy", "race", "--timeout", "60"]
    cluster = ["-n", machine.namespace, "--kubeconfig", str(machine.cluster.kubeconfig)]
    clients = [
        subprocess.Popen(
            [*program, f"--arg=--seed={number}", *cluster], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for number in range(4)
    ]
    printed = [client.communicate() for client in clients]
    ended = [(client.returncode, out, err) for client, (out, err) in zip(clients, printed, strict=True)]
    for code, out, err in ended:
        assert code in (0, 1), err
        assert code == 0 or "Superseded by " in err or "was changed by another client at the same time" in err, err
        assert code == 1 or " serves: " in out
    served = {past["number"]: past["spec"]["runtime"]["args"] for past in machine.status("race")["history"]}
    mine = [(number, out) for number, (code, out, _) in enumerate(ended) if code == 0]
    for number, out in mine:
        revision = int(out.rpartition("(revision race-")[2].partition(",")[0])
        assert served[revision] == [f"--seed={number}"]


def test_one_that_goes_says_so_while_no_operator_runs_and_what_is_gone_already_is_no_error(machine: Machine):
    machine.deploy("late", route=INGRESS | {"host": "late.example.com"}, **FAST)
    machine.until(lambda: machine.serves("late"))
    machine.process.end()
    try:
        machine.delete("late")
        machine.kubectl("delete", "deployment", "late-1")
        assert machine.status("late")["phase"] == "Serving"
        titles, row = machine.kubectl("get", "se", "late").splitlines()
        assert row[titles.index("DELETING") :].split()[0].endswith("s")
        listed = machine.pilotage("list").out.splitlines()
        assert " Deleting " in next(line for line in listed if line.startswith("late "))
    finally:
        machine.process.start()
    machine.until(lambda: machine.get("late") is None)
    assert machine.of("late") == []
    assert receipt(machine, "late")["result"] == "complete"


def receipt(machine: Machine, name: str) -> Json:
    """The receipt of the delete of an endpoint."""
    [record] = [
        each
        for each in machine.records()
        if each["spec"]["target"]["name"] == name and each["spec"]["reason"] == "Deleted"
    ]
    found: Json = record["status"]["receipt"]
    return found


def renewed(cluster: Access) -> object:
    """Time at which an operator has last renewed its Lease."""
    lease = cluster.find("/apis/coordination.k8s.io/v1/namespaces/pilotage-system/leases/pilotage-operator")
    return lease["spec"].get("renewTime") if lease is not None else None


def test_a_delete_that_does_not_end_names_what_holds_it_and_forces_nothing(machine: Machine):
    """A finalizer on a Deployment, and a pod that stays in Terminating."""
    mark = machine.cluster.audit_mark()
    for name in ("held", "hung"):
        machine.deploy(name, **FAST)
    machine.until(lambda: machine.serves("held") and machine.serves("hung"))
    hung = machine.pod("hung")
    machine.hold("deployment", "held-1")
    machine.hold("pod", hung)
    try:
        machine.delete("held")
        machine.delete("hung")
        machine.until(lambda: HOLD in machine.status("held").get("waitingFor", ""))
        machine.until(lambda: f"pod/{hung}" in machine.status("hung").get("waitingFor", ""))
        assert "services/held-1" in machine.of("held"), "what comes after it waits for it"
        before = renewed(machine.cluster)  # by one that was killed in another test, perhaps: that has to run out
        machine.until(lambda: renewed(machine.cluster) != before)
        ran = machine.pilotage("delete", "se/held", "--yes", "--timeout", "6")
        assert ran.code == 1
        assert f"finalizer {HOLD}" in ran.out, "waits of the operator are shown"
        assert f"deployment/held-1 -n {machine.namespace}  finalizer {HOLD}" in ran.err
        assert f"Ask why with: pilotage why deployment/held-1 -n {machine.namespace}" in ran.err
        shown = ran.err.partition("once it has ended: ")[2].splitlines()[0]
        assert shown.startswith("pilotage receipt show td/held-")
        assert "services/hung-1" in machine.of("hung")
        assert {machine.status(name)["phase"] for name in ("held", "hung")} == {"Deleting"}
    finally:
        machine.let_go("deployment", "held-1")
        machine.let_go("pod", hung)
    machine.until(lambda: not {"held", "hung"} & set(machine.endpoints()))
    assert machine.of("held") == machine.of("hung") == []
    asked = machine.cluster.audit(since=mark, namespace=machine.namespace, user_agent="teardown/", verb="patch")
    assert not [each for each in asked if each.resource in ("deployments", "pods")], "no finalizer was forced"


def test_what_refers_to_a_part_under_whatever_name_is_found_and_each_uid_is_proven_gone(machine: Machine):
    """In a namespace of its own: teardowns in one share a search, and miss what is younger than that."""
    with machine.cluster.namespace("shared") as namespace:
        place = Machine(machine.cluster, namespace)
        place.deploy("chat", **FAST)
        place.until(lambda: place.serves("chat"))
        place.kubectl("autoscale", "deployment", "chat-1", "--name=team-hpa", "--min=1", "--max=3")
        place.kubectl("create", "ingress", "team-ingress", "--rule=team.example.com/=chat-1:80")
        labels = json.loads(place.kubectl("get", "deployment", "chat-1", "-o", "json"))["spec"]["selector"][
            "matchLabels"
        ]
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        place.kubectl("create", "pdb", "team-pdb", f"--selector={selector}", "--min-available=1")
        uids = {entry["uid"] for entry in place.status("chat")["ledger"]}
        place.delete("chat")
        place.until(lambda: place.get("chat") is None)
        found = receipt(place, "chat")
        system = json.loads(place.kubectl("get", "namespace", "kube-system", "-o", "json"))
        assert found["cluster"] == system["metadata"]["uid"]
        assert {text.partition(" -n ")[0] for text in found["references"]} == {
            "horizontalpodautoscaler/team-hpa",
            "ingress/team-ingress",
            "poddisruptionbudget/team-pdb",
        }
        assert uids <= {
            each["uid"] for each in found["objects"] if each["state"] == "gone" and each["proof"]["request"]
        }
        assert place.kubectl("get", "hpa,ingress", "-o", "name").split() == [
            "horizontalpodautoscaler.autoscaling/team-hpa",
            "ingress.networking.k8s.io/team-ingress",
        ]


def test_a_redeploy_serves_though_what_it_follows_does_not_go(machine: Machine):
    machine.deploy("stays", **FAST)
    machine.until(lambda: machine.serves("stays"))
    mark = machine.cluster.audit_mark()
    machine.hold("deployment", "stays-1")
    machine.change("stays", runtime={"args": ["--seed", "2"]})
    machine.until(lambda: machine.serves("stays", 2))
    machine.until(lambda: any(HOLD in each.get("status", {}).get("waitingFor", "") for each in machine.records()))
    assert {"deployments/stays-1", "services/stays-1"} <= set(machine.of("stays"))
    assert machine.says("stays") == ("Serving", "True", "True", "False")
    machine.let_go("deployment", "stays-1")
    machine.until(lambda: machine.says("stays") == ("Serving", "True", "False", "False"))
    assert not [part for part in machine.of("stays") if "stays-1" in part]
    asked = machine.cluster.audit(since=mark, namespace=machine.namespace)
    ours = [each for each in asked if not each.user.startswith("system:kube-controller-manager")]
    assert [each for each in ours if each.code == 409 and each.resource in ("deployments", "services")] == []


def test_a_file_with_fields_that_the_server_does_not_know_is_refused(machine: Machine, tmp_path: Path):
    head = "apiVersion: pilotage.dev/v1alpha1\nkind: {}\nmetadata: {{name: strict}}\nspec: {{{}}}\n"
    endpoint = head.format("ServingEndpoint", "model: {source: hf://a/b/c.gguf}, replcas: 3")
    model = head.format("Model", "source: hf://a/b/c.gguf, sha: x")
    fine = head.format("ServingEndpoint", "model: {name: strict}")
    for text, field in ((endpoint, "spec.replcas"), (f"{model}---\n{fine}", "spec.sha")):
        (tmp_path / "strict.yaml").write_text(text)
        ran = machine.pilotage("deploy", "-f", str(tmp_path / "strict.yaml"), "--no-wait")
        assert (ran.code, f'nothing was changed: unknown field "{field}"' in ran.err) == (2, True), ran
    assert "strict" not in machine.kubectl("get", "se,mdl", "-o", "name")
