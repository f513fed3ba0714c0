"""Records an API server's answers to scenarios, and checks that our functions give the same.

`check` needs nothing but the answers, so those of a real kube-apiserver are kept in recorded.json:
``python -m tests.harbor.patching.recording`` asks one again and writes it.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import yaml

from controlplane import Cluster
from controlplane.access import wait_for
from pilotage_harbor.apimachinery.errors import StatusError
from pilotage_harbor.patching import apply, json_patch, keep_times, merge_patch, strategic_merge, track_update
from pilotage_harbor.schema.builtin import builtin
from pilotage_harbor.schema.defaults import apply_defaults
from pilotage_harbor.schema.node import SchemaNode
from pilotage_harbor.schema.openapi import from_openapi
from tests.harbor.patching.scenarios import (
    APPLY,
    CRD,
    CREATE,
    JSON,
    LAST_APPLIED,
    MERGE,
    SCENARIOS,
    STRATEGIC,
    UPDATE,
    Scenario,
    Step,
)

Json = dict[str, Any]
Send = Callable[[str, str, Any, str], tuple[int, Json]]
"""Method, path, body, content type: status code and answer."""

RECORDED = Path(__file__).with_name("recorded.json")
_TYPES = {
    CREATE: "application/json",
    UPDATE: "application/json",
    MERGE: "application/merge-patch+json",
    JSON: "application/json-patch+json",
    STRATEGIC: "application/strategic-merge-patch+json",
    APPLY: "application/apply-patch+yaml",
}
_METHODS = {CREATE: "POST", UPDATE: "PUT"}
_BOX = from_openapi(CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"])


class Record(NamedTuple):
    """One step: the object before it, the request, and the answer."""

    scenario: Scenario
    step: Step
    body: Any
    before: Json | None
    code: int
    answer: Json


def run(send: Send, scenario: Scenario, name: str, namespace: str) -> Iterator[Record]:
    """Do the steps on a server, one record after the other."""
    group = f"apis/{scenario.api_version}" if "/" in scenario.api_version else f"api/{scenario.api_version}"
    collection = f"/{group}/namespaces/{namespace}/{scenario.plural}"

    def ask(step: Step, body: Any) -> tuple[int, Json]:
        query = {"fieldManager": step.manager, **({"force": "true"} if step.force else {})}
        path = collection if step.verb == CREATE else f"{collection}/{name}"
        path += f"/{step.subresource}" if step.subresource else ""
        return send(_METHODS.get(step.verb, "PATCH"), f"{path}?{urlencode(query)}", body, _TYPES[step.verb])

    return _records(scenario, name, ask)


def replay(scenario: Scenario, name: str, answers: Iterable[tuple[int, Json]]) -> Iterator[Record]:
    """The records of answers that were given before."""
    given = iter(answers)
    return _records(scenario, name, lambda _step, _body: next(given))


def _records(scenario: Scenario, name: str, ask: Callable[[Step, Any], tuple[int, Json]]) -> Iterator[Record]:
    live: Json | None = None
    for step in scenario.steps:
        body = _body(scenario, step, name, live)
        code, answer = ask(step, body)
        yield Record(scenario, step, body, live, code, answer)
        if code < 400:
            live = answer


def _body(scenario: Scenario, step: Step, name: str, live: Json | None) -> Any:
    body = step.body
    if step.verb == UPDATE:
        assert live is not None
        return merge_patch(live, body)
    if step.verb in (CREATE, APPLY):
        metadata = {"name": name, **body.get("metadata", {})}
        annotations = metadata.get("annotations")
        if annotations and LAST_APPLIED in annotations:
            text = json.dumps(annotations[LAST_APPLIED]).replace("{name}", name)
            metadata["annotations"] = {LAST_APPLIED: text}
        return {"apiVersion": scenario.api_version, "kind": scenario.kind, **body, "metadata": metadata}
    return body


def check(record: Record) -> None:
    """Do the step with our functions, on the object that the server had, and compare with what the server made."""
    step, answer = record.step, record.answer
    where = (record.scenario.name, *step)
    found = _attempted(record)
    if isinstance(found, StatusError):
        assert _without_order(found.status) == _without_order(answer), where
        return
    if record.code == 422 and answer["details"].get("causes"):
        # The patched object is not valid: that is not for this package to say.
        return
    assert record.code < 400, (where, answer)
    assert found["metadata"].pop("managedFields", None) == answer["metadata"].get("managedFields"), where
    if step.verb != CREATE and record.before is not None:
        assert not _lacks(answer, found), where


def _without_order(status: Json) -> Json:
    """kube-apiserver lists the managers that one conflicts with in any order."""
    causes = status.get("details", {}).get("causes", [])
    return {**status, "details": sorted(map(json.dumps, causes))}


def _attempted(record: Record) -> Json | StatusError:
    try:
        return _done(record)
    except StatusError as error:
        return error


def _done(record: Record) -> Json:
    scenario, step, body, before, code, answer = record
    schema = _schema(scenario)
    after = answer.get("metadata", {}).get("managedFields") or []
    options: Any = {
        "schema": schema,
        "manager": step.manager,
        "api_version": scenario.api_version,
        "subresource": step.subresource,
        "now": max([entry["time"] for entry in after if "time" in entry], default="2020-01-01T00:00:00Z"),
        "reset": _reset(scenario.kind, step.subresource),
    }
    if step.verb == APPLY:
        result = apply(before, body, force=step.force, **options)
        _settle(result, record)
        if before is not None:
            keep_times(result, before)
        return result
    if step.verb in (CREATE, UPDATE):
        # The server's object before it allocated anything: defaults are none of this package's business.
        result = json.loads(json.dumps(answer if code < 400 else body))
        if step.verb == CREATE:
            for name in step.dropped:
                result["spec"].pop(name, None)
            meta = result["metadata"]
            result["metadata"] = {k: v for k, v in meta.items() if k not in _SERVERS}
        result["metadata"].pop("managedFields", None)
        if "managedFields" in body["metadata"]:
            result["metadata"]["managedFields"] = body["metadata"]["managedFields"]
    else:
        assert before is not None
        if step.verb == STRATEGIC:
            result = strategic_merge(before, body, schema)
        else:
            result = (json_patch if step.verb == JSON else merge_patch)(before, body)
        if code < 400:
            _settle(result, record)
    track_update(result, before, **options)
    return result


def _settle(result: Json, record: Record) -> None:
    """Treat an object as a server does after a patch, as far as these scenarios need it: defaults, dropped no-ops."""
    kind, before, subresource = record.scenario.kind, record.before, record.step.subresource
    if before is not None:
        for name in {*result, *before} - {"metadata", "apiVersion", "kind"}:
            if (name != "status") if subresource == "status" else (name == "status"):
                result.pop(name, None)
                if name in before:
                    result[name] = before[name]
        if subresource == "status" and kind == "Box":
            managed = result["metadata"].get("managedFields")
            result["metadata"] = {**before["metadata"], "managedFields": managed}
    if kind == "Box":
        apply_defaults(_BOX, result)
    elif record.step.verb != APPLY:
        _default_like(result, record.answer)


def _default_like(result: Any, answer: Any) -> None:
    """Set what the server's answer has and a patched object has not, inside elements of lists: these are defaults."""
    if type(result) is dict and type(answer) is dict:
        for name, item in result.items():
            _default_like(item, answer.get(name))
    elif type(result) is list and type(answer) is list and len(result) == len(answer):
        for mine, theirs in zip(result, answer, strict=True):
            if type(mine) is dict and type(theirs) is dict:
                for name, item in theirs.items():
                    mine.setdefault(name, item)
            _default_like(mine, theirs)


_SERVERS = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")
_DEFAULTED = ("policies", "replicas", "rollingUpdate", "scaleUp")


def _lacks(answer: Any, found: Any, path: str = "") -> list[str]:
    """Path at which the server's object differs from the one found, defaults of new elements aside."""
    if type(answer) is dict and type(found) is dict:
        skipped = ("resourceVersion", "generation", "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds")
        problems = []
        for name in {*answer, *found} - set(skipped):
            if name not in answer:
                if found[name] not in (None, [], {}, "", False, 0):
                    problems.append(f"{path}.{name} should be gone")
            elif name not in found:
                if "[" not in path and answer[name] not in (None, {}, []) and name not in _DEFAULTED:
                    problems.append(f"{path}.{name} is missing")
            else:
                problems += _lacks(answer[name], found[name], f"{path}.{name}")
        return problems
    if type(answer) is list and type(found) is list and len(answer) == len(found):
        return [problem for pair in zip(answer, found, strict=True) for problem in _lacks(*pair, f"{path}[]")]
    return [] if answer == found else [f"{path}: {found!r} is not {answer!r}"]


def _schema(scenario: Scenario) -> SchemaNode:
    if scenario.kind == "Box":
        return _BOX
    group, _, version = scenario.api_version.rpartition("/")
    return builtin(group, version, scenario.kind)


def _reset(kind: str, subresource: str) -> tuple[str, ...]:
    if kind in ("ConfigMap", "Role", "Lease", "EndpointSlice"):
        return ()
    if subresource == "status":
        return (
            ("spec", "metadata")
            if kind == "Box"
            else ("spec", "metadata.labels")
            if kind == "Deployment"
            else ("spec",)
        )
    return ("status",)


def sender(kubeconfig: Path) -> Send:
    """Requests as the user of a kubeconfig with a client certificate."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    context = ssl.create_default_context(cadata=_data(cluster, "certificate-authority").decode())
    with tempfile.NamedTemporaryFile() as pem:
        pem.write(_data(user, "client-certificate") + b"\n" + _data(user, "client-key"))
        pem.flush()
        context.load_cert_chain(pem.name)
    host = urlsplit(cluster["server"]).netloc

    def send(method: str, path: str, body: Any, content_type: str) -> tuple[int, Json]:
        connection = http.client.HTTPSConnection(host, context=context)
        try:
            connection.request(method, path, json.dumps(body), {"Content-Type": content_type})
            response = connection.getresponse()
            text = response.read()
            # A path that is not served yet is answered in plain words.
            return response.status, json.loads(text) if text.startswith(b"{") else {}
        finally:
            connection.close()

    return send


def _data(section: Json, name: str) -> bytes:
    if f"{name}-data" in section:
        return base64.b64decode(section[f"{name}-data"])
    return Path(section[name]).read_bytes()


def wait_for_boxes(send: Send, namespace: str) -> None:
    """Wait until the server serves the kind of the CRD."""
    boxes = f"/apis/patching.test/v1/namespaces/{namespace}/boxes"
    wait_for("Box", lambda: send("GET", boxes, None, "application/json")[0] == 200)


def recorded() -> Iterator[Record]:
    """Recorded answers of a real server."""
    answers = json.loads(RECORDED.read_text())
    for number, scenario in enumerate(SCENARIOS):
        yield from replay(scenario, f"s{number}", answers[scenario.name])


def main() -> None:
    """Ask a kube-apiserver of our own and write what it answers."""
    with Cluster(components=()) as cluster:
        send = sender(cluster.kubeconfig)
        cluster.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
        wait_for_boxes(send, "default")
        found = {
            scenario.name: [[one.code, one.answer] for one in run(send, scenario, f"s{number}", "default")]
            for number, scenario in enumerate(SCENARIOS)
        }
    lines = [f"{json.dumps(name)}: {json.dumps(steps, separators=(',', ':'))}" for name, steps in found.items()]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
