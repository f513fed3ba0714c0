"""Puts the questions of `cases.py` to a server: ``python -m tests.harbor.schema.recording KUBECONFIG`` prints nothing
and writes the answers to `recorded.json`. Without an argument it starts a real API server and asks that.

What it makes it deletes. Where it can it only asks (dryRun).
"""

import http.client
import json
import re
import ssl
import sys
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any
from urllib.parse import urlsplit

import yaml

from tests.harbor.schema import cases

Json = dict[str, Any]
Send = Callable[..., tuple[int, Json]]
"""Method, path and body to status and answer."""

RECORDED = Path(__file__).with_name("recorded.json")
GROUP = "schema.example.com"
TIMEOUT_SECONDS = 30


@contextmanager
def sender(kubeconfig: Path) -> Iterator[Send]:
    """Function that sends requests to the server of a kubeconfig, with a client certificate or a token."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    context = ssl.create_default_context(cadata=_content(cluster, "certificate-authority").decode())
    if "client-certificate-data" in user or "client-certificate" in user:
        with NamedTemporaryFile() as both:
            both.write(_content(user, "client-certificate") + b"\n" + _content(user, "client-key"))
            both.flush()
            context.load_cert_chain(both.name)
    address = urlsplit(cluster["server"])
    connection = http.client.HTTPSConnection(address.hostname or "", address.port, context=context)

    def send(method: str, path: str, body: object = None) -> tuple[int, Json]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if "token" in user:
            headers["Authorization"] = f"Bearer {user['token']}"
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
        # A path that is not served yet is answered with a line of text.
        return answer.status, json.loads(text) if text.startswith(b"{") else {
            "kind": "Status",
            "message": text.decode(),
        }

    with closing(connection):
        yield send


def _content(holder: Json, name: str) -> bytes:
    return b64decode(holder[f"{name}-data"]) if f"{name}-data" in holder else Path(holder[name]).read_bytes()


def definition(schema: Json, plural: str) -> Json:
    """A CustomResourceDefinition with one version."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {"plural": plural, "singular": plural[:-1], "kind": kind_of(plural)},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def kind_of(plural: str) -> str:
    """The kind of a plural of ours."""
    return plural[:-1].title()


def complete(case: cases.Case, obj: Json) -> Json:
    """The object of a case with all that an object needs."""
    meta = {"name": "case", **obj.get("metadata", {})}
    return {"apiVersion": f"{GROUP}/v1", "kind": kind_of(plural_of(case.schema)), **obj, "metadata": meta}


def plural_of(schema: str) -> str:
    """The plural of the kind that has a schema of ours."""
    return f"{re.sub('[^a-z]', '', schema)}s"


def ask(send: Send) -> Json:
    """All answers of a server."""
    return {
        "definitions": {name: _ask_definition(send, schema) for name, schema in cases.DEFINITIONS.items()},
        "bodies": {body.name: _status(*send("POST", f"{body.path}?dryRun=All", body.body)) for body in cases.BODIES},
        "strict": {body.name: _strict(send, body.path, body.body) for body in cases.STRICT},
        "cases": _ask_cases(send),
    }


def _ask_definition(send: Send, schema: Json) -> Json:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All"
    return _status(*send("POST", path, definition(schema, "samples")))


def _strict(send: Send, path: str, body: object) -> Json:
    return _status(*send("POST", f"{path}?dryRun=All&fieldValidation=Strict", body))


def _ask_cases(send: Send) -> Json:
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    answers = {}
    try:
        for schema in cases.SCHEMAS:  # all at once: it takes the server a second or two to serve new kinds
            crd = definition(cases.LOOSE.get(schema, cases.SCHEMAS[schema]), plural_of(schema))
            code, answer = send("POST", crds, crd)
            assert code == 201, answer
        for schema in cases.SCHEMAS:
            plural = plural_of(schema)
            _wait_for(lambda: send("GET", f"/apis/{GROUP}/v1/{plural}")[0] == 200)  # noqa: B023
            for number, case in enumerate(case for case in cases.CASES if case.schema == schema):
                answers[case.name] = _ask_case(send, case, number)
            if schema == "shape":
                answers |= {f"metadata: {name}": _ask_metadata(send, meta) for name, meta in cases.METADATA.items()}
    finally:
        for schema in cases.SCHEMAS:
            send("DELETE", f"{crds}/{plural_of(schema)}.{GROUP}")
    return answers


def _ask_metadata(send: Send, meta: object) -> Json:
    plural = plural_of("shape")
    body = {"apiVersion": f"{GROUP}/v1", "kind": kind_of(plural), "metadata": meta}
    return _status(*send("POST", f"/apis/{GROUP}/v1/{plural}?dryRun=All", body))


def _ask_case(send: Send, case: cases.Case, number: int) -> Json:
    path = f"/apis/{GROUP}/v1/{plural_of(case.schema)}"
    if case.old is None:
        answer = _status(*send("POST", f"{path}?dryRun=All", complete(case, case.obj)))
        strict = _status(*send("POST", f"{path}?dryRun=All&fieldValidation=Strict", complete(case, case.obj)))
        # The causes of two equal refusals come in any order, so the messages alone cannot be compared.
        if "strict decoding error" in strict.get("message", ""):
            answer["strict"] = strict["message"]
        return answer
    name = f"case{number}"
    code, created = send("POST", path, {**complete(case, case.old), "metadata": {"name": name}})
    assert code == 201, created
    if case.schema in cases.LOOSE:
        _tighten(send, case.schema)
    changed = {**complete(case, case.obj), "metadata": created["metadata"]}
    answer = _status(*send("PUT", f"{path}/{name}?dryRun=All", changed))
    if case.schema in cases.LOOSE:
        _set_schema(send, case.schema, cases.LOOSE[case.schema])
    return answer


def _tighten(send: Send, schema: str) -> None:
    _set_schema(send, schema, cases.SCHEMAS[schema])


def _set_schema(send: Send, schema: str, wanted: Json) -> None:
    """Give a definition another schema, and wait until it holds: the server learns of it a moment later."""
    plural = plural_of(schema)
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{GROUP}"
    crd = send("GET", path)[1]
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = wanted
    code, answer = send("PUT", path, crd)
    assert code == 200, answer
    probe = {"apiVersion": f"{GROUP}/v1", "kind": kind_of(plural), "metadata": {"name": "probe"}, "spec": {"a": "long"}}
    strict = wanted is cases.SCHEMAS[schema]
    _wait_for(lambda: (send("POST", f"/apis/{GROUP}/v1/{plural}?dryRun=All", probe)[0] == 422) == strict)


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _status(code: int, answer: Json) -> Json:
    if answer.get("kind") != "Status":
        return {"code": code, "spec": answer.get("spec")}
    result = {"code": code, "message": answer["message"]}
    if causes := answer.get("details", {}).get("causes"):
        result["causes"] = [[c.get("field", ""), c["reason"], c["message"]] for c in causes]
    return result


def differences(recorded: Json, answers: Json) -> list[str]:
    """Questions with different answers. The order of causes and of unknown fields does not count."""
    return [
        f"{part}: {name}: {wanted} but {answers[part].get(name)}"
        for part, questions in recorded.items()
        for name, wanted in questions.items()
        if _unordered(wanted) != _unordered(answers[part].get(name, {}))
    ]


def _unordered(answer: Json) -> Json:
    causes = answer.get("causes", [])
    return {**answer, "causes": sorted(causes), "message": "" if len(causes) > 1 else answer.get("message")}


def main() -> None:
    if len(sys.argv) > 1:
        with sender(Path(sys.argv[1])) as send:
            answers = ask(send)
    else:
        from controlplane import Cluster

        with Cluster(components=()) as cluster, sender(cluster.kubeconfig) as send:
            answers = ask(send)
    RECORDED.write_text(json.dumps(answers, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
