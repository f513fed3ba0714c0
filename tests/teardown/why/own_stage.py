"""Objects of ours that do not go, or do not get ready, on the real API server beside the real operator."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from controlplane import ApiError, Cluster
from pilotage.api.names import HOST_LEASES
from pilotage.catalogue.reading import FOR_FINALIZERS
from pilotage.kube import Client, Discovery, Json, load_config
from pilotage.kube.wire import format_micro_time
from pilotage.operator.install import Values, manifests
from pilotage.runtime.clock import utc_now
from pilotage.teardown.diagnosis.remedies import STRIP_FINALIZER
from pilotage.teardown.diagnosis.why.explain import explain
from pilotage.teardown.diagnosis.why.model import Explanation
from pilotage.teardown.diagnosis.why.render import ROOT_MARK, exit_code, remedies_of, render
from pilotage.teardown.relations import full_kinds, relate
from pilotage.teardown.snapshot.gather import gather
from pilotage.teardown.snapshot.resolve import until_resolved
from tests.agent.agent_host import end_all, write_model
from tests.controllers.operating import GROUP, Place

HOLD = "example.com/hold"
PLURALS = {
    "ServingEndpoint": "servingendpoints",
    "Model": "models",
    "Teardown": "teardowns",
    "HostProcess": "hostprocesses",
    "Experiment": "experiments",
    "GatewayRoute": "gatewayroutes",
}
USER = "why-operator"
HOSTS = f"{GROUP}/hosts"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{}/deployments"
SHORT_SECONDS = 2
"""Duration of the Lease of an agent that never was."""
_WITHOUT = "import ctypes, os, sys; ctypes.CDLL(None).prctl(24, {}); os.execv(sys.executable, sys.argv[1:])"
"""Program that takes a capability from the one that it becomes (PR_CAPBSET_DROP), also from root."""
WITHOUT_KILL = (sys.executable, "-c", _WITHOUT.format(5))
WITHOUT_DAC_OVERRIDE = (sys.executable, "-c", _WITHOUT.format(1))
"""Without it, the mode of a folder holds for root as for everybody."""
RBAC = "rbac.authorization.k8s.io"


class LimitedUser(NamedTuple):
    """A user with the permissions that are installed for one of our programs, but for some."""

    name: str
    program: str
    denied: Mapping[str, set[str]]
    """The verbs that are missing, by resource."""

    def permissions(self) -> list[Json]:
        """A role with the rules, and its binding."""
        installed = (each for each in manifests(Values()) if each["metadata"]["name"].startswith(self.program))
        rules = []
        for rule in (rule for each in installed if "rules" in each for rule in each["rules"]):
            denied = set().union(*(self.denied.get(each, set()) for each in rule["resources"]))
            rules.append(rule | {"verbs": [each for each in rule["verbs"] if each not in denied]})
        shared = {"apiVersion": f"{RBAC}/v1", "metadata": {"name": self.name}}
        ref = {"apiGroup": RBAC, "kind": "ClusterRole", "name": self.name}
        subject = {"apiGroup": RBAC, "kind": "User", "name": self.name}
        return [
            {**shared, "kind": "ClusterRole", "rules": rules},
            {**shared, "kind": "ClusterRoleBinding", "roleRef": ref, "subjects": [subject]},
        ]


OPERATOR_USER = LimitedUser(
    USER, "pilotage-operator", {"ingresses": {"delete"}, "leases": {"create", "patch", "update"}}
)
"""The operator of these tests: it cannot even say that it runs."""
AGENT_USER = LimitedUser("why-agent", "pilotage-agent", {"endpointslices": {"delete"}})


class Stuck(Place):
    """A namespace with things of ours that do not go, or do not get ready."""

    def __init__(self, cluster: Cluster, namespace: str, folder: Path) -> None:
        super().__init__(cluster, namespace)
        self.folder = folder
        self.agents: dict[str, subprocess.Popen[bytes]] = {}
        self.policies: list[str] = []

    # Staging

    def endpoint(self, name: str, **spec: Any) -> None:
        """One whose Deployment exists."""
        self.deploy(name, **spec)
        self.until(lambda: self.cluster.find(f"{DEPLOYMENTS.format(self.namespace)}/{name}-1"))

    def hold(self, path: str, finalizer: str) -> None:
        def add(found: Json) -> None:
            found["metadata"]["finalizers"] = [*found["metadata"].get("finalizers", []), finalizer]

        self.change_at(path, add)

    def change_at(self, path: str, change: Callable[[Json], None], subresource: str = "") -> None:
        """Change an object that others change meanwhile."""

        def is_done() -> bool:
            found = self.cluster.request("GET", path)
            change(found)
            try:
                self.cluster.request("PUT", path + subresource, found)
            except ApiError as error:
                if "the object has been modified" not in str(error):
                    raise
                return False
            return True

        self.until(is_done)

    def post(self, kind: str, name: str, spec: Json, **meta: Any) -> Json:
        body = {
            "apiVersion": "pilotage.dev/v1alpha1",
            "kind": kind,
            "metadata": {"name": name, **meta},
            "spec": spec,
        }
        where = HOSTS if kind == "Host" else self._path(kind=PLURALS[kind])
        return dict(self.cluster.request("POST", where, body))

    def write(self, path: str, status: Json) -> None:
        self.change_at(path, lambda found: found.update(status=status), "/status")

    def host(self, name: str) -> Json:
        return dict(self.cluster.find(f"{HOSTS}/{name}") or {})

    def lease(self, namespace: str, name: str, *, ago: float, seconds: int, holder: str = "somebody") -> None:
        renewed = format_micro_time(dt.datetime.now(dt.UTC) - dt.timedelta(seconds=ago))
        spec = {"holderIdentity": holder, "leaseDurationSeconds": seconds, "renewTime": renewed}
        path = LEASES.format(namespace)
        if (found := self.cluster.find(f"{path}/{name}")) is not None:
            self.cluster.request("PUT", f"{path}/{name}", found | {"spec": spec})
        else:
            self.cluster.request("POST", path, {"metadata": {"name": name}, "spec": spec})

    def machine(self) -> str:
        """A Host whose agent takes what is placed there, and is never heard of again."""
        name = f"machine-{secrets.token_hex(3)}"
        self.lease(HOST_LEASES, name, ago=0, seconds=SHORT_SECONDS)
        self.post("Host", name, {})
        self.write(f"{HOSTS}/{name}", {"phase": "Ready", "freeBytes": 2**40, "memoryBytes": 2**40})
        return name

    def process(self, endpoint: str) -> Json:
        return dict(self.cluster.find(self._path(f"{endpoint}-1-0", kind="hostprocesses")) or {})

    def on_lost_host(self, name: str) -> str:
        """An endpoint whose process was placed on a machine that is lost by now; returns the Host."""
        host = self.machine()
        self.deploy(name, placement={"kind": "Host", "host": host}, route={"kind": "None"})
        self.until(lambda: self.process(name).get("spec", {}).get("host") == host)
        self.until(lambda: self.host(host)["status"]["phase"] == "Lost")
        return host

    def agent(
        self, *flags: str, before: tuple[str, ...] = (), kubeconfig: Path | None = None, module: str = "pilotage"
    ) -> str:
        """Start a real agent with a Host of its own, by a program before it if need be; returns the Host."""
        host = f"real-{secrets.token_hex(3)}"
        flags = (*flags, "--name", host, "--address", "198.18.0.1", "--allow-commands", "--metrics-address", "")
        paths = ("--kubeconfig", kubeconfig or self.cluster.kubeconfig, "--data", self.folder / host)
        command = [sys.executable, "-m", module, "agent", *flags, *paths, "--file-roots", self.folder]
        self.agents[host] = subprocess.Popen([*before, *map(str, command)])
        return host

    def on_host(self, name: str, host: str, runtime: Json) -> None:
        """An endpoint with one server on the Host of a real agent."""
        weights = write_model(self.folder / "tiny.gguf")
        self.deploy(
            name,
            placement={"kind": "Host", "host": host},
            route={"kind": "None"},
            runtime=runtime,
            deletion={"drainSeconds": 0},
            model={"source": f"file://{weights}"},
        )

    def close(self) -> None:
        """End the agents, and what they have started."""
        for host, process in self.agents.items():
            process.send_signal(signal.SIGKILL)
            process.wait()
            end_all(self.folder / host)

    def doom(self, kind: str, name: str) -> None:
        self.cluster.request("DELETE", self.path(kind, name))

    def waiting_for(self, words: str, namespace: str = "") -> Callable[[], bool]:
        path = f"{GROUP}/namespaces/{namespace or self.namespace}/teardowns"
        return lambda: words in json.dumps([each.get("status") for each in self.cluster.request("GET", path)["items"]])

    def keep(self, resource: str, policy: str, name: str) -> None:
        """Let admission refuse each delete of an object."""
        rules = [{"apiGroups": [""], "apiVersions": ["*"], "operations": ["DELETE"], "resources": [resource]}]
        checked = {"expression": f"oldObject.metadata.name != '{name}'", "message": "nobody deletes it"}
        spec = {"matchConstraints": {"resourceRules": rules}, "validations": [checked], "failurePolicy": "Fail"}
        self.cluster.request(
            "POST", f"{ADMISSION}/validatingadmissionpolicies", {"metadata": {"name": policy}, "spec": spec}
        )
        bound = {"metadata": {"name": policy}, "spec": {"policyName": policy, "validationActions": ["Deny"]}}
        self.cluster.request("POST", f"{ADMISSION}/validatingadmissionpolicybindings", bound)
        self.policies.append(policy)
        self.until(lambda: self._is_kept(f"/api/v1/namespaces/{self.namespace}/{resource}/{name}"))

    def _is_kept(self, path: str) -> bool:
        try:
            self.cluster.request("DELETE", f"{path}?dryRun=All")
        except ApiError:
            return True
        return False

    def records_of(self, endpoint: str) -> list[str]:
        """The names of its Teardowns."""
        return [each["metadata"]["name"] for each in self.records() if each["spec"]["target"]["name"] == endpoint]

    def until_says(self, kind: str, name: str, words: str) -> None:
        """Wait until its status has these words."""
        try:
            self.until(lambda: words in json.dumps((self.cluster.find(self.path(kind, name)) or {}).get("status")))
        except AssertionError:
            raise AssertionError(f"no {words!r} in {self.cluster.find(self.path(kind, name))}") from None

    def path(self, kind: str, name: str) -> str:
        return f"{HOSTS}/{name}" if kind == "Host" else self._path(name, kind=PLURALS[kind])

    def until(self, condition: Callable[[], object], seconds: float = 30.0) -> None:
        super().until(condition, seconds)

    # Asking

    def why(self, kind: str, name: str, *, later: float = 0, namespace: str | None = None) -> Explanation:
        place = "" if kind in ("Host", "Namespace") else self.namespace if namespace is None else namespace
        return asyncio.run(_why(self.cluster, kind, place, name, later))


async def _why(cluster: Cluster, kind: str, namespace: str, name: str, later: float) -> Explanation:
    async with Client.connect(load_config(kubeconfig=str(cluster.kubeconfig))) as client:
        now = utc_now() + dt.timedelta(seconds=later)
        world = await gather(client, Discovery(client), full=full_kinds() | FOR_FINALIZERS, now=now)
        item = world.find("" if kind == "Namespace" else "pilotage.dev", kind, namespace, name)
        assert item is not None, f"there is no {kind} {name}"
        return await until_resolved(client, world, lambda known: explain(known, relate(known), item))


def stage_teardowns(stuck: Stuck) -> None:
    """Teardowns that somebody else has written, before an operator runs."""
    target = {"apiVersion": "pilotage.dev/v1alpha1", "kind": "ServingEndpoint", "name": "gone", "uid": "u-1"}
    spec = {"target": target | {"namespace": stuck.namespace}, "reason": "Deleted", "allParts": True}
    stuck.post("Teardown", "forged", spec)
    entry = {
        "resource": {"group": "", "version": "v1", "plural": "serviceaccounts", "kind": "ServiceAccount"},
        "namespace": stuck.namespace,
        "name": "default",
        "uid": "u-2",
        "phase": "stop",
        "disposition": "delete",
        "reason": "named",
    }
    ledger = {"entries": [entry], "policy": {}, "targets": [], "started": "2026-01-01T00:00:00Z"}
    stuck.write(f"{GROUP}/namespaces/{stuck.namespace}/teardowns/forged", {"phase": "stop", "ledger": ledger})
    stuck.post("Teardown", "elsewhere", spec | {"target": target | {"namespace": "default"}})


def release(stuck: Stuck) -> None:
    """Take all finalizers and policies off, so that the namespace goes."""
    for policy in stuck.policies:
        stuck.cluster.request("DELETE", f"{ADMISSION}/validatingadmissionpolicybindings/{policy}")
        stuck.cluster.request("DELETE", f"{ADMISSION}/validatingadmissionpolicies/{policy}")
    paths = [stuck._path(kind=kind) for kind in ("servingendpoints", "models", "hostprocesses", "experiments")]
    paths += [HOSTS, *(DEPLOYMENTS.format(each) for each in (stuck.namespace, f"{stuck.namespace}-2"))]
    for path in paths:
        for each in stuck.cluster.request("GET", path)["items"]:
            one = f"{path}/{each['metadata']['name']}"
            stuck.cluster.request("DELETE", one)
            if (found := stuck.cluster.find(one)) is not None:
                found["metadata"]["finalizers"] = []
                stuck.cluster.request("PUT", one, found)


class Case(NamedTuple):
    """Object that is asked about, and the answer: the root cause, and the command that comes first."""

    kind: str
    name: str
    root: str
    command: str
    steps: tuple[str, ...] = ()
    namespace: str | None = None
    dead: bool = False
    """Whether the owner of the finalizer, an agent, does not run: then its removal is offered, as the last thing."""


def check(told: Explanation, case: Case) -> None:
    """Assert that this is the answer, that it has one root, and that a finalizer of ours is not removed lightly."""
    lines = render(told)
    text = "\n".join(lines)
    marked = [line for line in lines if line.endswith(ROOT_MARK)]
    assert len(marked) == 1, text
    assert case.root in marked[0], text
    for step in case.steps:
        assert step in text[: text.index(marked[0])], text
    assert exit_code(told) == 1, text
    remedies = remedies_of(told)
    assert remedies[0].command.startswith(case.command), text
    assert "17 minutes" not in text, "that is the garbage collector, which has nothing to do with it"
    ours = [each for each in remedies if each.code == STRIP_FINALIZER and each.detail.startswith("pilotage.dev/")]
    if case.dead:
        assert ours == remedies[-1:], text
    else:
        assert ours == [], text
        assert "NOT RUNNING: its lease" not in text
