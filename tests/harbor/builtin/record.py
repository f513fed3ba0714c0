"""Asks a real kube-apiserver for its answers to the cases, and records them.

    python -m tests.harbor.builtin.record

To be run again when a case is added, or when Kubernetes's version changes.
"""

from __future__ import annotations

import contextlib
import copy
import json
import ssl
import sys
import urllib.error
import urllib.request
from typing import Any

from controlplane import Cluster
from controlplane.access import ApiError
from pilotage_harbor.kinds import Kind
from tests.harbor.builtin.harness import HERE, KINDS, NAMESPACE, Case, Json, cases, merged, play

ACCOUNTS = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
COLUMN = ("name", "type", "format", "priority")
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


class Real:
    """A runner, as `harness.Runner`, whose answers are the real ones."""

    def __init__(self, case: Case, cluster: Cluster) -> None:
        self._case, self._cluster = case, cluster
        self._kind = case.kind
        self._current: Json | None = None
        self.table: Json | None = None

    def create(self) -> Json:
        answer = send(self._cluster, "POST", path(self._kind), self._case.manifest)
        if answer["kind"] != "Status":
            self._current = answer
            self.table = send(self._cluster, "GET", self._own(), accept=TABLE)
        return answer

    def update(self, patch: Json) -> Json:
        return self._put("", patch)

    def update_status(self, patch: Json) -> Json:
        return self._put("/status", patch)

    def _put(self, subresource: str, patch: Json) -> Json:
        self._current = send(self._cluster, "GET", self._own())
        answer = send(self._cluster, "PUT", self._own() + subresource, merged(copy.deepcopy(self._current), patch))
        if answer["kind"] != "Status":
            self._current = answer
        return answer

    def remove(self) -> None:
        if self._current is None:
            return
        with contextlib.suppress(ApiError):
            send(self._cluster, "DELETE", self._own() + "?gracePeriodSeconds=0")
        found = send(self._cluster, "GET", self._own())
        if found["kind"] != "Status" and found["metadata"].get("finalizers"):
            found["metadata"]["finalizers"] = None
            send(self._cluster, "PUT", self._own(), found)

    def _own(self) -> str:
        assert self._current is not None
        return f"{path(self._kind)}/{self._current['metadata']['name']}"


def path(kind: Kind) -> str:
    root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    return f"{root}/namespaces/{NAMESPACE}/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"


def send(cluster: Cluster, method: str, where: str, body: Any = None, accept: str = "application/json") -> Json:
    context = ssl.create_default_context(cafile=str(cluster.ca_file))
    token = next(iter(cluster.tokens.values()))
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Accept": accept}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(cluster.url + where, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, context=context) as answer:
            found: Json = json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            found = json.load(error)
    return found


def main() -> None:
    only = sys.argv[1:]
    answers: dict[str, Json] = {}
    tables: Json = {}
    with Cluster(components=()) as cluster:
        cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        for name in ("default", "robot"):
            cluster.request("POST", ACCOUNTS, {"metadata": {"name": name}})
        for case in cases():
            if only and case.family not in only:
                continue
            about_robot = (case.manifest["kind"], case.manifest["metadata"].get("name")) == ("ServiceAccount", "robot")
            if about_robot:
                send(cluster, "DELETE", f"{ACCOUNTS}/robot")
            real = Real(case, cluster)
            answers.setdefault(case.family, {})[case.name] = play(case, real)
            if real.table is not None:
                tables[case.name] = [
                    [c["name"], c["type"], c["format"], c["priority"]] for c in real.table["columnDefinitions"]
                ]
                answers[case.family][case.name]["cells"] = real.table["rows"][0]["cells"]
            real.remove()
            if case.manifest["kind"] == "ServiceAccount" and case.manifest["metadata"]["name"] == "robot":
                cluster.request(
                    "POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", {"metadata": {"name": "robot"}}
                )
        discovery = {group: send(cluster, "GET", group) for group in sorted({root(kind) for kind in KINDS.values()})}
    for family, found in answers.items():
        write(family, found)
    if not only:
        write("columns", tables)
        write("discovery", {group: resources(answer) for group, answer in discovery.items()})


def root(kind: Kind) -> str:
    return f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"


def resources(answer: Json) -> Json:
    return {
        each["name"]: {k: v for k, v in each.items() if k not in ("name", "storageVersionHash")}
        for each in answer["resources"]
    }


def write(name: str, found: Json) -> None:
    text = ",\n".join(f"{json.dumps(key)}: {json.dumps(value, sort_keys=True)}" for key, value in found.items())
    (HERE / "recorded").mkdir(exist_ok=True)
    (HERE / "recorded" / f"{name}.json").write_text(f"{{\n{text}\n}}\n")


if __name__ == "__main__":
    main()
