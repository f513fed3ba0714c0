"""The operator and two agents as processes on a real API server, each with the service account that is installed for
it, and real servers: what each side promises to the other holds when both are there.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from controlplane import Access, Cluster
from pilotage.agent.host import LEASE_SECONDS
from pilotage.agent.launch.process import owned
from pilotage.api.names import HOST_LEASES, LABEL_HOST, LABEL_PROCESS_UID, LABEL_REVISION
from pilotage.controllers.host.liveness import SLACK_SECONDS
from pilotage.operator.install import NAME, Values, manifests
from tests.agent.agent_host import ask, end_all
from tests.cli.running import run
from tests.controllers.operating import GROUP, Place, install

ADDRESS = "198.18.0.1"
"""kube-apiserver takes no loopback address in an EndpointSlice; servers listen there all the same."""
SHORT_SECONDS = 2
"""Duration of a Lease whose agent is dead: short, so that no test waits for long."""
LOST_SECONDS = SHORT_SECONDS + SLACK_SECONDS + 4
"""Seconds from the death of an agent until it counts as lost; some of it is for a busy machine."""
SECONDS = 60.0


class Program:
    """One of ours, as a process with a log."""

    def __init__(self, folder: Path, *command: str | Path) -> None:
        self.folder = folder
        self._command = [sys.executable, "-m", "pilotage", *map(str, command), "--metrics-address", ""]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.folder.mkdir(exist_ok=True)
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)

    def send(self, how: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(how)

    def end(self, how: signal.Signals) -> int:
        assert self._process is not None
        self._process.send_signal(how)
        code = self._process.wait(SECONDS)
        self._process = None
        return code

    def close(self) -> None:
        if self._process is not None:
            self.end(signal.SIGKILL)


class HostFleet(Place):
    """A namespace, an operator, and two Hosts with the same label."""

    def __init__(self, cluster: Cluster, namespace: str, folder: Path, model: Path) -> None:
        super().__init__(cluster, namespace)
        self.model = model
        self.label = {"fleet": namespace}
        self.hosts = [f"host-{end}-{secrets.token_hex(4)}" for end in "ab"]
        accounts = [(NAME, namespace), *((host, HOST_LEASES) for host in self.hosts)]
        self.users = {name: f"system:serviceaccount:{where}:{name}" for name, where in accounts}
        mine = self._account(NAME, namespace, folder)
        flags = ("--namespace", namespace, "--cache-root", folder / "operator" / "cache")
        self.operator = Program(folder / "operator", "operator", "--kubeconfig", mine, *flags)
        for host in self.hosts:
            cluster.kubectl("create", "serviceaccount", host, "-n", HOST_LEASES)
        theirs = {host: self._account(host, HOST_LEASES, folder) for host in self.hosts}
        self.agents = {host: self._agent(host, folder / host, theirs[host]) for host in self.hosts}

    def _agent(self, host: str, folder: Path, account: Path) -> Program:
        flags = ("--name", host, "--address", ADDRESS, "--labels", f"fleet={self.namespace}", "--data", folder / "data")
        roots = ("--cache-root", folder / "cache", "--file-roots", self.model.parent)
        return Program(folder, "agent", "--kubeconfig", account, *flags, *roots)

    def _account(self, name: str, namespace: str, folder: Path) -> Path:
        """Its kubeconfig."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        token = self.cluster.request("POST", path, {"spec": {"expirationSeconds": 3600}})["status"]["token"]
        config = yaml.safe_load(self.cluster.kubeconfig.read_text())
        config["users"] = [{"name": "sa", "user": {"token": token}}]
        config["contexts"][0]["context"]["user"] = "sa"
        file = folder / f"{name}.kubeconfig"
        file.write_text(yaml.safe_dump(config))
        return file

    @property
    def agent_users(self) -> list[str]:
        return [self.users[host] for host in self.hosts]

    # Observations

    def named(self, path: str) -> dict[str, dict[str, Any]]:
        return {each["metadata"]["name"]: each for each in self.cluster.request("GET", path)["items"]}

    def processes(self) -> dict[str, dict[str, Any]]:
        return self.named(self._path(kind="hostprocesses"))

    def slices(self) -> dict[str, dict[str, Any]]:
        return self.named(f"/apis/discovery.k8s.io/v1/namespaces/{self.namespace}/endpointslices")

    def host(self, name: str) -> dict[str, Any] | None:
        return self.cluster.find(f"{GROUP}/hosts/{name}")

    def shorten_lease(self, host: str) -> int:
        """Says how long it was."""
        path = f"/apis/coordination.k8s.io/v1/namespaces/{HOST_LEASES}/leases/{host}"
        lease = self.cluster.request("GET", path)
        before: int = lease["spec"]["leaseDurationSeconds"]
        lease["spec"]["leaseDurationSeconds"] = SHORT_SECONDS
        self.cluster.request("PUT", path, lease)
        return before

    def phase(self, host: str) -> str:
        return str((self.host(host) or {}).get("status", {}).get("phase", ""))

    def on(self, host: str) -> list[str]:
        return sorted(name for name, each in self.processes().items() if each["spec"].get("host") == host)

    def pid(self, process: str) -> int:
        return int(self.processes()[process]["status"]["pid"])

    def chat_serves(self, revision: str, ready: int) -> bool:
        status = self.status("chat")
        replicas = {"ready": ready, "desired": ready}
        return status.get("phase") == "Serving" and (status["revision"], status["replicas"]) == (revision, replicas)

    def deploy_chat(self, **spec: Any) -> None:
        self.deploy(
            "chat",
            model={"source": f"file://{self.model}"},
            runtime={"args": ["--threads", "1"]},
            placement={"kind": "Host", "hostSelector": {"matchLabels": self.label}},
            route={"kind": "None"},
            resources={"requests": {"memory": "1Gi"}},
            deletion={"drainSeconds": 2},
            **spec,
        )

    def until(self, condition: Callable[[], object], seconds: float = SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"still not so after {seconds} s\n{self.explained()}"
            time.sleep(0.1)  # reads a dozen objects of three kinds, which no single watch shows

    def explained(self) -> str:
        """State of everything, and the output of our programs, for the report of a failure."""
        logs = [f"{each.folder.name}:\n{_end(each.folder / 'log')}" for each in (self.operator, *self.agents.values())]
        states = {name: (each["spec"].get("host"), each.get("status")) for name, each in self.processes().items()}
        hosts = {name: (self.host(name) or {}).get("status") for name in self.hosts}
        return "\n".join([json.dumps(self.status("chat"))[:3000], json.dumps(states), json.dumps(hosts), *logs])

    def refusals(self, mark: int) -> list[str]:
        """Requests of our programs that were refused, but for an agent's creation of the namespace, which is installed.

        Creations in a Terminating namespace are refused, too: namespaces of other tests are being deleted.
        """
        here = ("", self.namespace, HOST_LEASES)
        return [
            f"{each.user}: {each.verb} {each.uri}"
            for user in self.users.values()
            for each in self.cluster.audit(since=mark, user=user)
            if each.code == 403 and each.namespace in here and (each.verb, each.resource) != ("create", "namespaces")
        ]


def _end(file: Path) -> str:
    return file.read_text()[-3000:] if file.exists() else ""


@pytest.fixture(scope="module")
def fleet(cluster: Access, tmp_path_factory: pytest.TempPathFactory, tiny: Path) -> Iterator[HostFleet]:
    """Operator, agents and gateway at work: both tests share them, and leave nothing in them."""
    if not isinstance(cluster, Cluster):
        pytest.skip("needs a control plane of our own, and PILOTAGE_TEST_KUBECONFIG names one of yours")
    install(cluster)
    with cluster.namespace("beside", for_pods=False) as namespace:
        installed = [each for each in manifests(Values(namespace=namespace)) if each["kind"] in (*LASTING, *POWERS)]
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=yaml.safe_dump_all(installed))
        made = HostFleet(cluster, namespace, tmp_path_factory.mktemp("fleet"), tiny)
        programs = [made.operator, *made.agents.values()]
        try:
            for each in programs:
                each.start()
            made.until(lambda: all(made.phase(host) == "Ready" for host in made.hosts))
            yield made
        finally:
            for each in programs:
                each.close()
            for agent in made.agents.values():
                end_all(agent.folder / "data")
            _clear(made)
            powers = [each for each in installed if each["kind"] in POWERS]
            cluster.kubectl("delete", "--wait=false", "-f", "-", input=yaml.safe_dump_all(powers))


LASTING = ("Namespace", "ServiceAccount")
POWERS = (
    *("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
    *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
)


def _clear(fleet: HostFleet) -> None:
    """Remove whatever a failed test has left that would disturb others."""
    left = [("se", name) for name in fleet.endpoints()] + [("hostprocesses", name) for name in fleet.processes()]
    left += [("hosts", name) for name in fleet.hosts if fleet.host(name)]
    for kind, name in left:
        where = () if kind == "hosts" else ("-n", fleet.namespace)
        fleet.cluster.kubectl("delete", kind, name, *where, "--wait=false")
        patch = '{"metadata":{"finalizers":null}}'
        with contextlib.suppress(Exception):  # gone by itself
            fleet.cluster.kubectl("patch", kind, name, *where, "--type=merge", "-p", patch)


def conditions(found: dict[str, Any]) -> dict[str, bool]:
    """Conditions of the one address in a slice."""
    (address,) = found["endpoints"]
    assert address["addresses"] == [ADDRESS]
    said: dict[str, bool] = address["conditions"]
    return said


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_an_endpoint_on_two_hosts_comes_changes_and_goes_in_order(fleet: HostFleet) -> None:
    mark = fleet.cluster.audit_mark()
    fleet.deploy_chat(replicas=2)
    fleet.until(lambda: fleet.chat_serves("chat-1", 2))
    service = fleet.cluster.request("GET", f"/api/v1/namespaces/{fleet.namespace}/services/chat-1")
    assert "selector" not in service["spec"]
    assert [each["name"] for each in service["spec"]["ports"]] == ["http"]
    processes, slices = fleet.processes(), fleet.slices()
    assert slices.keys() == processes.keys() == {"chat-1-0", "chat-1-1"}
    for name, found in slices.items():
        assert conditions(found) == {"ready": True, "serving": True, "terminating": False}
        meta, process = found["metadata"], processes[name]
        assert meta["labels"]["kubernetes.io/service-name"] == "chat-1"
        assert [owner["uid"] for owner in meta["ownerReferences"]] == [service["metadata"]["uid"]]
        assert meta["labels"][LABEL_PROCESS_UID] == process["metadata"]["uid"]
        assert meta["labels"][LABEL_HOST] == process["spec"]["host"]
        assert meta["labels"][LABEL_REVISION] == "1"
        (port,) = found["ports"]
        assert (port["name"], port["port"]) == ("http", process["status"]["port"])
        assert ask(port["port"])["usage"]["completion_tokens"] == 4
    assert sorted(map(len, map(fleet.on, fleet.hosts))) == [1, 1]
    ran = run("logs", "chat", "--tail", "1", "-n", fleet.namespace, kubeconfig=fleet.cluster.kubeconfig)
    assert sorted(line.split()[0] for line in ran.out.splitlines()) == ["[chat-1-0]", "[chat-1-1]"], ran

    fleet.change("chat", runtime={"args": ["--threads", "1", "--ctx-size", "512"]})
    fleet.until(lambda: fleet.chat_serves("chat-2", 2) and fleet.processes().keys() == {"chat-2-0", "chat-2-1"})
    assert fleet.slices().keys() == {"chat-2-0", "chat-2-1"}
    fleet.delete("chat")
    fleet.until(lambda: not fleet.endpoints())
    assert (fleet.processes(), fleet.slices(), fleet.parts()) == ({}, {}, [])
    for host in fleet.hosts:
        data = fleet.agents[host].folder / "data"
        assert (owned(data), [*(data / "logs").glob("*")]) == ({}, [])
    acts = done(fleet, mark)
    for revision in (1, 2):
        for number in (0, 1):
            name = f"chat-{revision}-{number}"
            wanted = ["shown", "delete", "withdrawn", "unregistered", "released"]
            assert [act for act, each in acts if each == name] == wanted, acts
            assert acts.index(("released", name)) < acts.index(("service", f"chat-{revision}")), acts
    first_delete = min(acts.index(("delete", f"chat-1-{number}")) for number in (0, 1))
    assert {("shown", "chat-2-0"), ("shown", "chat-2-1")} <= {*acts[:first_delete]}, acts
    assert fleet.refusals(mark) == []


def done(fleet: HostFleet, mark: int) -> list[tuple[str, str]]:
    """Writes to processes and Services, in the order of the API server."""
    found = []
    for record in fleet.cluster.audit(since=mark, namespace=fleet.namespace):
        act = ""
        match record.verb, record.resource, record.user:
            case "create", "endpointslices", _:
                act = "shown"
            case "patch", "endpointslices", user if user in fleet.agent_users:
                act = "withdrawn" if record.body["endpoints"][0]["conditions"]["terminating"] else ""
            case "delete", "endpointslices", _:
                act = "unregistered"
            case "delete", "hostprocesses", _:
                act = "delete"
            case "patch", "hostprocesses", user if user in fleet.agent_users and not record.subresource:
                act = "released"
            case "delete", "services", _:
                act = "service"
        if act and record.code < 300:
            found.append((act, record.name or record.body["metadata"]["name"]))
    return found


def test_a_slice_without_its_label_goes_with_its_replica(fleet: HostFleet) -> None:
    """The label is lost, and its process deleted, before the agent sees either."""
    fleet.deploy_chat(replicas=2)
    fleet.until(lambda: fleet.chat_serves("chat-1", 2))
    agent = fleet.agents[fleet.processes()["chat-1-1"]["spec"]["host"]]
    agent.send(signal.SIGSTOP)
    try:
        fleet.cluster.kubectl("label", "endpointslice", "chat-1-1", f"{LABEL_PROCESS_UID}-", "-n", fleet.namespace)
        fleet.change("chat", replicas=1)
        fleet.until(lambda: "deletionTimestamp" in fleet.processes()["chat-1-1"]["metadata"])
    finally:
        agent.send(signal.SIGCONT)
    fleet.until(lambda: fleet.processes().keys() == {"chat-1-0"})
    assert fleet.slices().keys() == {"chat-1-0"}
    fleet.delete("chat")
    fleet.until(lambda: not fleet.endpoints())


def test_hosts_that_die_are_withdrawn_and_come_back_or_are_swept(fleet: HostFleet) -> None:
    mark = fleet.cluster.audit_mark()
    fleet.deploy_chat(replicas=2)
    fleet.until(lambda: fleet.chat_serves("chat-1", 2))
    back, gone = fleet.hosts
    (stays,), (moves,) = fleet.on(back), fleet.on(gone)
    pids = {name: fleet.pid(name) for name in (stays, moves)}
    ports = [each["ports"][0]["port"] for each in fleet.slices().values()]

    for agent in fleet.agents.values():
        agent.end(signal.SIGKILL)
    died = time.monotonic()
    for host in fleet.hosts:
        assert fleet.shorten_lease(host) == LEASE_SECONDS
    fleet.until(lambda: not any(conditions(each)["ready"] for each in fleet.slices().values()), LOST_SECONDS)
    sys.stdout.write(f"withdrawn {time.monotonic() - died:.1f} s after the death of the agents\n")
    fleet.until(lambda: all(fleet.phase(host) == "Lost" for host in fleet.hosts))
    fleet.until(lambda: fleet.status("chat")["phase"] == "Unknown")
    available = next(each for each in fleet.status("chat")["conditions"] if each["type"] == "Available")
    assert (available["status"], available["reason"]) == ("False", "HostLost")
    assert "is lost: its agent has not renewed its Lease" in available["message"]
    assert [ask(port)["usage"]["completion_tokens"] for port in ports] == [4, 4], "servers go on"

    fleet.agents[back].start()
    fleet.until(lambda: conditions(fleet.slices()[stays])["ready"])
    fleet.until(lambda: agent_alive(fleet.host(back)) == ("Ready", "True"))
    process = fleet.processes()[stays]
    assert (process["status"]["pid"], process["status"]["restarts"]) == (pids[stays], 0)
    assert not conditions(fleet.slices()[moves])["ready"]

    fleet.cluster.request("DELETE", f"{GROUP}/hosts/{gone}")
    fleet.until(lambda: fleet.host(gone) is None)
    assert fleet.cluster.find(f"/apis/coordination.k8s.io/v1/namespaces/{HOST_LEASES}/leases/{gone}") is None
    fleet.until(lambda: fleet.chat_serves("chat-1", 2))
    assert fleet.on(back) == sorted((stays, moves)), "the one that was swept is made anew where there is an agent"
    assert fleet.pid(stays) == pids[stays]
    assert is_alive(pids[moves]), "nobody was there to stop it"
    fleet.agents[gone].start()
    fleet.until(lambda: not is_alive(pids[moves]))
    fleet.until(lambda: fleet.phase(gone) == "Ready")
    assert all(conditions(each)["ready"] for each in fleet.slices().values())

    fleet.delete("chat")
    fleet.until(lambda: not fleet.endpoints())
    assert (fleet.processes(), fleet.slices(), fleet.parts()) == ({}, {}, [])
    assert [agent.end(signal.SIGTERM) for agent in fleet.agents.values()] == [0, 0]
    assert fleet.refusals(mark) == []


def agent_alive(host: dict[str, Any] | None) -> tuple[str, str]:
    """The phase of a Host, and whether it says that its agent lives."""
    status = (host or {})["status"]
    said = {each["type"]: each["status"] for each in status["conditions"]}
    return status["phase"], said.get("AgentAlive", "True")
