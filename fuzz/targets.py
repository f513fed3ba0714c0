"""One function for each parser of untrusted bytes: it takes any bytes, and raises when a contract is broken.

The contracts: a parser raises only its own class of error; what it accepts is what a second, slower reader accepts;
what it returns is bounded by what came in. Time and memory are bounded by the fuzzer.
"""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from pilotage.catalogue.phase import Phase
from pilotage.kube import Resource
from pilotage.kube.label_requirement import SelectorError
from pilotage.kube.selectors import FieldSelector, LabelSelector
from pilotage.models.format import safetensors_data_untrusted
from pilotage.models.gguf import GgufError, read_gguf_untrusted
from pilotage.models.problems import PermanentError
from pilotage.models.source import ImageSource
from pilotage.models.sources.oci import challenge_untrusted, choose_layer, manifest_untrusted, token_untrusted
from pilotage.teardown.diagnosis.why.explain import explain
from pilotage.teardown.diagnosis.why.render import render, to_json
from pilotage.teardown.engine import receipt
from pilotage.teardown.planning.ledger import Disposition, Entry, Ledger, Policy
from pilotage.teardown.relations import relate
from pilotage.teardown.snapshot.dump import DumpError, load_dump
from pilotage_harbor.apimachinery.errors import StatusError
from pilotage_harbor.patching import apply, json_patch, merge_patch, strategic_merge
from pilotage_harbor.protobuf import BadMessage, from_protobuf_untrusted
from pilotage_harbor.schema.builtin import builtin
from pilotage_harbor.server.http1 import BadRequest, TooLarge
from pilotage_harbor.server.requests import Requests
from pilotage_harbor.verbs.bodies import from_json_untrusted, from_yaml_untrusted
from pilotage_harbor.verbs.selector_errors import field_selector_problem, label_selector_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BODY_BYTES_MAX = 4096
"""Limit for HTTP: small, so that the fuzzer finds bodies that are too large."""
EXPANSION_MAX = 64
"""Bound on the decoded size of a JSON text, as a multiple of its bytes, plus a constant."""
EXPLAINED_MAX = 3
_INT64 = range(-(2**63), 2**63)


class Target(NamedTuple):
    """A parser under test."""

    name: str
    run: Callable[[bytes], None]
    """Returns for every input; raises when a contract is broken."""
    seeds: tuple[bytes, ...]
    """Inputs to begin with."""
    bytes_max: int = 4096


class Broken(AssertionError):
    """A contract that an input has broken."""


# HTTP


def http(data: bytes) -> None:
    """The same requests come out wherever the bytes are cut, and nothing but a refusal is raised."""
    if not data:
        return
    cut, stream = data[0] % 16 + 1, data[1:]
    whole, pieces = _requests([stream]), _requests([stream[at : at + cut] for at in range(0, len(stream), cut)])
    if whole != pieces:
        raise Broken(f"cut into {cut}: {pieces!r} instead of {whole!r}")


def _requests(pieces: list[bytes]) -> list[object]:
    """The requests of a connection, and in the end whether it was refused: with which status depends on the cuts."""
    requests = Requests(BODY_BYTES_MAX)
    found: list[object] = []
    try:
        for piece in pieces:
            requests.feed(piece)
            while (request := requests.next()) is not None:
                head, body = request
                found.append((head.method, head.path, dict(head.query), head.headers.values, body))
    except (BadRequest, TooLarge):
        return [*found, "refused"]
    return found


_HTTP = (
    b"\x03GET /api/v1/pods?limit=5&labelSelector=a%3Db HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n",
    b"\x07POST /api HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.0\r\n\r\n",
    b"\x01PUT /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nT: x\r\n\r\n",
    b"\x02\r\n\r\nDELETE http://a/%7e HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n",
)


# Bodies


def json_body(data: bytes) -> None:
    """Accepted JSON is JSON to Python, too; a refusal is a Status."""
    try:
        obj, _ = from_json_untrusted(data)
    except StatusError:
        return
    _check_json(obj, len(data))
    text = data.decode(errors="replace").strip()
    if text and text != "null" and json.loads(text, parse_constant=str, parse_int=_any_int) is None:
        raise Broken("taken for an object, and is null")


def _any_int(text: str) -> float | int:
    return int(text) if len(text) < 4000 else float("inf")


def yaml_body(data: bytes) -> None:
    """Accepted YAML can be written as JSON, and its size is bounded by that of the input."""
    try:
        loaded = from_yaml_untrusted(data)
    except StatusError:
        return
    _check_json(loaded.value, len(data) * 1000)  # aliases, up to harbor's own bound


def _check_json(value: object, length: int) -> None:
    """Fits into JSON, and into a multiple of what came."""
    try:
        written = msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise Broken(f"cannot be written as JSON: {error}") from error
    if len(written) > EXPANSION_MAX * length + 1024:
        raise Broken(f"{length} bytes stand for {len(written)}")


_JSON = (
    b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"}}',
    b'{"a":[1,-2.5e3,true,null,"\\ud83d\\ude00"],"a":{"b":{}}}',
    b'{"n":123456789012345678901234567890,"u":"\\ud800","\xff":"\xc3"}',
)
_YAML = (
    b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  k: |\n    text\n  b: !!binary aGk=\n",
    b"a: &x [1, 0x1f, 0o7, 1e3, .inf, 2001-01-01, yes, ~]\nb: *x\n<<: {c: 1}\n? d\n: 'e'\n",
    b"%YAML 1.1\n---\n- &a {b: *c}\n...\n---\n!!set {a, b}\n",
)


def protobuf_body(data: bytes) -> None:
    """A message is JSON, or is refused."""
    try:
        value = from_protobuf_untrusted(b"k8s\x00" + data)
    except BadMessage:
        return
    _check_json(value, len(data) * 1000)


_PROTOBUF = (
    b'\n\x0f\n\x02v1\x12\tNamespace\x12\x0b\n\t\n\x03abc\x1a\x00*\x00\x1a\x00"\x00',
    b"\n\x0b\n\x02v1\x12\x05Event\x12\x04\n\x02\n\x00",
)


# Patches

_POD: Any = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "namespace": "b", "labels": {"c": "d"}, "finalizers": ["e/f"]},
    "spec": {
        "containers": [{"name": "x", "image": "y", "ports": [{"containerPort": 1}], "env": [{"name": "A"}]}],
        "tolerations": [{"key": "k"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    },
}


def patch(data: bytes) -> None:
    """Every patch is applied to an object that stays as it was, or is refused with a Status."""
    try:
        change, _ = from_json_untrusted(b'{"patch":' + data + b"}")
        value = change.get("patch")
    except StatusError:
        return
    before = msgspec.json.encode(_POD)
    for applied in _patches(value):
        _check_json(applied, len(data) + len(before) + 3 * 1024 * 1024)
    if msgspec.json.encode(_POD) != before:
        raise Broken("the object that was patched has changed in place")


def _patches(value: Any) -> Iterator[object]:  # noqa: ANN401 - JSON
    schema = builtin("", "v1", "Pod")
    ways: tuple[Callable[[], object], ...] = (
        lambda: json_patch(_POD, value),
        lambda: merge_patch(_POD, value),
        lambda: strategic_merge(_POD, value, schema),
        lambda: apply(
            _POD,
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": value},
            schema=schema,
            manager="fuzz",
            api_version="v1",
            now="2026-01-01T00:00:00Z",
            force=True,
        ),
    )
    for way in ways:
        try:
            yield way()
        except StatusError:
            continue


_PATCHES = (
    b'[{"op":"test","path":"/metadata/name","value":"a"},{"op":"add","path":"/spec/containers/-","value":{}}]',
    b'[{"op":"copy","from":"/spec","path":"/metadata/annotations"},{"op":"move","from":"/spec/volumes","path":"/a~1b"}]',
    b'[{"op":"remove","path":"/spec/containers/-1"},{"op":"replace","path":"","value":{}}]',
    b'{"metadata":{"labels":{"c":null},"$deleteFromPrimitiveList/finalizers":["e/f"]},"spec":{"$patch":"replace"}}',
    (
        b'{"spec":{"containers":[{"name":"x","$patch":"delete"}],"$setElementOrder/containers":[{"name":"x"}],'
        b'"volumes":[{"name":"v","$retainKeys":["name"]}]}}'
    ),
    b'{"containers":[{"name":"x","ports":[{"containerPort":1,"protocol":"TCP"}]}],"tolerations":[{}]}',
)


# Selectors


def selector(data: bytes) -> None:
    """A selector that parses means the same when it is written and parsed again."""
    text = data.decode(errors="replace")
    try:
        labels = LabelSelector.parse(text)
    except SelectorError:
        label_selector_problem(text)
    else:
        again = LabelSelector.parse(str(labels))
        for each in ({}, {"a": "b"}, {"a": "1", "b.c/d": ""}, {"x": "5"}):
            if labels.matches(each) != again.matches(each):
                raise Broken(f"{text!r} and {labels!s} do not choose the same")
    try:
        fields = FieldSelector.parse(text)
    except SelectorError:
        field_selector_problem(text)
    else:
        if FieldSelector.parse(str(fields)) != fields:
            raise Broken(f"{text!r} is not {fields!s}")
        fields.matches({"metadata.name": "a"})


_SELECTORS = (
    b"a=b,c!=d,!e,f,g in (h, i),j notin (),k>5,l<7,b.c/d==e",
    b"metadata.name=a,metadata.namespace!=b\\,c\\=d\\\\",
)


# Files


def gguf(data: bytes) -> None:
    """A header is refused, or what it says can be shown and stored."""
    try:
        found = read_gguf_untrusted(io.BytesIO(b"GGUF" + data))
    except GgufError:
        return
    for text in (found.architecture, found.name, found.quantization):
        if len(text) > 200 or not text.isprintable():
            raise Broken(f"{text[:300]!r} is not fit to be shown")
    for number in (found.context_length or 0, found.parameters or 0):
        if number not in _INT64:
            raise Broken(f"{number} does not fit into a status")
    if found.length < 4 + 20:
        raise Broken(f"a file of {found.length} bytes has no header")


def safetensors(data: bytes) -> None:
    """A header is refused, or says how much follows it."""
    try:
        found = safetensors_data_untrusted(data)
    except ValueError:
        return
    if found < 0:
        raise Broken(f"{found} bytes follow")


_SAFETENSORS = (
    b'{"__metadata__":{"format":"pt"},"a":{"dtype":"F16","shape":[2,3],"data_offsets":[0,12]}}   ',
    b'{"a":{"data_offsets":[12345678901234567890123,-1]},"b":[[[[[]]]]]}',
)


def manifest(data: bytes) -> None:
    """A manifest is refused, or names a layer by a digest; a challenge and a token fit into a request."""
    challenge = challenge_untrusted(data.decode(errors="replace"))
    if challenge.realm and not urlsplit(challenge.realm).hostname:
        raise Broken(f"{challenge.realm!r} is no URL")
    if not token_untrusted(data).isprintable():
        raise Broken("a token is not fit for a header")
    try:
        layer = choose_layer(manifest_untrusted(data, "it"), ImageSource("a", "b", "c"))
    except PermanentError as error:
        if not str(error).isprintable():
            raise Broken(f"{error!s:.300} is not fit to be shown") from error
        return
    if len(layer.digest) != len("sha256:") + 64:
        raise Broken(f"{layer.digest!r} is no digest")


_LAYER = b'{"mediaType":"a/b","digest":"sha256:%s","size":5,"annotations":{"org.opencontainers.image.title":"a.gguf"}}'
_MANIFESTS = (
    b'{"schemaVersion":2,"config":{},"layers":[' + _LAYER % (b"0" * 64) + b"]}",
    b'{"manifests":[' + _LAYER % (b"f" * 64) + b'],"layers":[]}',
    b'Bearer realm="https://auth.example.com/token",service="registry",scope="repository:a/b:pull"',
    b'{"token":"abc","access_token":"def"}',
)


def _entry(key: bytes, kind: int, value: bytes) -> bytes:
    return len(key).to_bytes(8, "little") + key + kind.to_bytes(4, "little") + value


def _gguf(*entries: bytes, tensors: bytes = b"", count: int = 0) -> bytes:
    head = (3).to_bytes(4, "little") + count.to_bytes(8, "little") + len(entries).to_bytes(8, "little")
    return head + b"".join(entries) + tensors


_LLAMA = len(b"llama").to_bytes(8, "little") + b"llama"
_GGUF = (
    _gguf(),
    _gguf(
        _entry(b"general.architecture", 8, _LLAMA),
        _entry(b"llama.context_length", 10, (4096).to_bytes(8, "little")),
        _entry(b"general.file_type", 4, (7).to_bytes(4, "little")),
        _entry(b"l", 9, (8).to_bytes(4, "little") + (1).to_bytes(8, "little") + _LLAMA),
        tensors=_LLAMA
        + (2).to_bytes(4, "little")
        + (3).to_bytes(8, "little") * 2
        + (1).to_bytes(4, "little")
        + (0).to_bytes(8, "little"),
        count=1,
    ),
)


def dump(data: bytes) -> None:
    """A dump is refused in one sentence, or every object in it can be explained."""
    _FILE.write_bytes(data)
    try:
        world = load_dump([_FILE])
    except DumpError as error:
        if "\n" in str(error):
            raise Broken(f"more than one line: {error}") from error
        return
    graph = relate(world)
    for item in [*world][:EXPLAINED_MAX]:
        explanation = explain(world, graph, item)
        msgspec.json.encode(to_json(explanation))
        [*render(explanation)]


_DUMPS = (
    (
        b"apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  namespace: b\n  uid: u\n"
        b"  deletionTimestamp: '2026-01-01T00:00:00Z'\n  finalizers: [a.example/f]\n"
        b"  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: x, controller: true}]\n"
    ),
    (
        b'{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a","uid":"1",'
        b'"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"finalizers":["kubernetes"]},"status":{"conditions":'
        b'[{"type":"NamespaceContentRemaining","status":"True","message":"m"}]}}]}'
    ),
    b"kind: ServiceList\napiVersion: v1\nmetadata: {resourceVersion: '5'}\nitems:\n- &s\n  metadata: {name: a}\n- *s\n",
    b"---\napiVersion: a/v1\nkind: B\nmetadata: {generateName: c-, name: c}\n---\n# nothing\n",
)


def receipts(data: bytes) -> None:
    """A receipt is refused, or can be written again."""
    _FILE.write_bytes(data)
    try:
        found = receipt.load(_FILE)
    except receipt.ReceiptError:
        return
    receipt.save(found, _FILE)
    if receipt.load(_FILE) != found:
        raise Broken("a receipt is another one when it is written again")


_LEDGER = Ledger(
    entries=(
        Entry(
            resource=Resource("apps", "v1", "deployments", "Deployment"),
            namespace="a",
            name="b",
            uid="u",
            phase=Phase.STOP,
            disposition=Disposition.DELETE,
            reason="named",
            after=("v",),
        ),
    ),
    targets=("deployment/b -n a",),
    policy=Policy(),
    started="2026-01-01T00:00:00Z",
)
_RECEIPTS = (msgspec.json.encode(receipt.begin(_LEDGER, "https://127.0.0.1:6443", "c")), b'{"format":"x"}')

_FILE = Path(tempfile.gettempdir()) / "pilotage-fuzz"
"""Folder of the inputs of targets that read files; `use` gives each process its own."""


def use(folder: Path) -> None:
    """Keep the file of this process in a folder of its own."""
    global _FILE  # one file for each process, which calls a target millions of times
    _FILE = folder / "input"


TARGETS = {
    each.name: each
    for each in (
        Target("http", http, _HTTP),
        Target("json", json_body, _JSON),
        Target("yaml", yaml_body, _YAML),
        Target("protobuf", protobuf_body, _PROTOBUF, 1024),
        Target("patch", patch, _PATCHES, 1024),
        Target("selector", selector, _SELECTORS, 512),
        Target("gguf", gguf, _GGUF, 1024),
        Target("safetensors", safetensors, _SAFETENSORS, 1024),
        Target("manifest", manifest, _MANIFESTS, 1024),
        Target("dump", dump, _DUMPS),
        Target("receipt", receipts, _RECEIPTS),
    )
}
