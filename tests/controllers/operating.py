"""The operator as a process of its own beside a real API server, and what a person sees of its work."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from controlplane import Cluster
from controlplane.access import wait_for
from pilotage.operator.crds import crds

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "/apis/pilotage.dev/v1alpha1"
PARTS = (
    "/apis/apps/v1/namespaces/{}/deployments",
    "/apis/apps/v1/namespaces/{}/replicasets",
    "/api/v1/namespaces/{}/pods",
    "/api/v1/namespaces/{}/services",
    "/api/v1/namespaces/{}/persistentvolumeclaims",
    "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices",
    "/apis/autoscaling/v2/namespaces/{}/horizontalpodautoscalers",
    "/apis/batch/v1/namespaces/{}/jobs",
    "/apis/networking.k8s.io/v1/namespaces/{}/ingresses",
)
ROUTES = ("ingresses", "httproutes", "httpproxies")
RANKS = dict.fromkeys(ROUTES, 1) | {
    "horizontalpodautoscalers": 2,
    "deployments": 3,
    "jobs": 3,
    "services": 4,
    "persistentvolumeclaims": 4,
}
LABEL = "pilotage.dev/endpoint-uid"
DELETES = "teardown/"
"""User agent prefix of the controller that deletes parts; no other part of the operator deletes them."""


def install(cluster: Cluster) -> None:
    """Our kinds, and the operator's namespace; what is there stays."""
    for crd in crds():
        if cluster.find(f"{DEFINITIONS}/{crd['metadata']['name']}") is None:
            cluster.request("POST", DEFINITIONS, crd)
    if cluster.find("/api/v1/namespaces/pilotage-system") is None:
        cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": "pilotage-system"}})
    for crd in crds():
        wait_for("established definition", partial(_is_established, cluster, crd["metadata"]["name"]))


def _is_established(cluster: Cluster, name: str) -> bool:
    conditions = cluster.request("GET", f"{DEFINITIONS}/{name}").get("status", {}).get("conditions", ())
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


class Operator:
    """One process at a time, started by a program `before` it if need be. Its log is a file."""

    def __init__(self, cluster: Cluster, folder: Path, *flags: str, before: Sequence[str] = ()) -> None:
        self.log = folder / "operator.log"
        command = [
            *before,
            sys.executable,
            "-m",
            "tests.controllers.operator_with_short_settling",
            "operator",
            "--kubeconfig",
            str(cluster.kubeconfig),
        ]
        command += ["--no-leader-election", "--metrics-address", "", "--fetch-image", "pilotage:test"]
        self._command = [*command, "--cache-root", str(folder / "cache"), *flags]
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    def start(self) -> None:
        assert self._process is None
        with self.log.open("ab") as log:
            env = {**os.environ, "PYTHONUNBUFFERED": "1"}
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, env=env)
        self.starts += 1

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait; returns how it ended."""
        assert self._process is not None
        self._process.send_signal(how)
        code = self._process.wait(60)
        self._process = None
        return code

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Let it do nothing meanwhile."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None


@contextlib.contextmanager
def operator(cluster: Cluster, folder: Path, *flags: str, before: Sequence[str] = ()) -> Iterator[Operator]:
    made = Operator(cluster, folder, *flags, before=before)
    made.start()
    try:
        yield made
    finally:
        if made.runs:
            made.end(signal.SIGKILL)


class Place:
    """A namespace on the real server."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace

    def _path(self, name: str = "", kind: str = "servingendpoints") -> str:
        return f"{GROUP}/namespaces/{self.namespace}/{kind}" + (f"/{name}" if name else "")

    def deploy(self, name: str, **spec: Any) -> str:
        body = {
            "apiVersion": "pilotage.dev/v1alpha1",
            "kind": "ServingEndpoint",
            "metadata": {"name": name},
            "spec": {"model": {"source": "hf://org/repo/model.gguf"}, **spec},
        }
        return str(self.cluster.request("POST", self._path(), body)["metadata"]["uid"])

    def change(self, name: str, **spec: Any) -> None:
        patch = json.dumps({"spec": spec})
        self.cluster.kubectl("patch", "se", name, "-n", self.namespace, "--type=merge", "-p", patch)

    def delete(self, name: str, *flags: str) -> None:
        self.cluster.kubectl("delete", "se", name, "-n", self.namespace, "--wait=false", *flags)

    def get(self, name: str) -> dict[str, Any] | None:
        return self.cluster.find(self._path(name))

    def status(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = (self.get(name) or {}).get("status", {})
        return found

    def endpoints(self) -> dict[str, dict[str, Any]]:
        return {each["metadata"]["name"]: each for each in self.cluster.request("GET", self._path())["items"]}

    def records(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.cluster.request("GET", self._path(kind="teardowns"))["items"]
        return found

    def serves(self, name: str, revision: int = 1) -> bool:
        status = self.status(name)
        return status.get("phase") == "Serving" and status.get("revision") == f"{name}-{revision}"

    def all_serve(self, revision: int = 1) -> bool:
        """Whether each endpoint serves with a revision, and nothing of another one is there."""
        found = self.endpoints()
        return all(
            (status := each.get("status", {})).get("phase") == "Serving"
            and status.get("revision") == f"{name}-{revision}"
            and {entry.get("revision", revision) for entry in status["ledger"]} == {revision}
            for name, each in found.items()
        )

    def parts(self) -> list[str]:
        """All that is labelled as a part of an endpoint."""
        return sorted(
            f"{path.rpartition('/')[2]}/{each['metadata']['name']}"
            for path in PARTS
            for each in self.cluster.request("GET", path.format(self.namespace))["items"]
            if LABEL in each["metadata"].get("labels", {})
        )

    def until(self, condition: Callable[[], object], seconds: float = 60.0) -> None:
        deadline, pause = time.monotonic() + seconds, 0.05
        while not condition():
            if time.monotonic() > deadline:
                states = {name: _short(each) for name, each in self.endpoints().items()}
                raise AssertionError(f"still not so: {json.dumps(states)}\n{[*map(_short, self.records())]}"[:6000])
            time.sleep(pause)
            pause = min(0.2, pause * 1.1)  # frequent requests would slow down the operator that is waited for


def out_of_order(cluster: Cluster, mark: int, namespace: str) -> list[str]:
    """Parts that were deleted before one that has to go earlier: by revision, and with the route for the last one."""
    deletes = [
        (record.resource, record.name)
        for record in cluster.audit(since=mark, namespace=namespace, verb="delete", user_agent=DELETES)
        if record.resource in RANKS and record.code < 300
    ]
    wrong = []
    names = {name for resource, name in deletes if resource == "deployments"}
    assert names, "nothing was deleted"
    for kind, route in (each for each in deletes if each[0] in ROUTES):
        last = max(index for index, each in enumerate(deletes) if each[1].rpartition("-")[0] == route)
        if last < deletes.index((kind, route)):
            wrong.append(f"{kind} {route} went after all else")
    for name in names:
        ranks = [RANKS[resource] for resource, each in deletes if each == name]
        if ranks != sorted(ranks):
            wrong.append(f"{name}: {[resource for resource, each in deletes if each == name]}")
    return wrong


def _short(obj: dict[str, Any]) -> dict[str, Any]:
    """Status without its long fields."""
    status = obj.get("status", {})
    return {name: value for name, value in status.items() if name not in ("history", "ledger", "receipt")}
