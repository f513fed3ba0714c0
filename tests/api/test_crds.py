"""Validation and defaulting of our kinds by the API server: on a real one, and the same on harbor."""

import copy
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml
from msgspec import Meta

from pilotage.api.endpoint import EndpointSpec
from pilotage.api.names import ENDPOINTS, GATEWAY_ROUTES, MODELS, PROCESSES, TEARDOWNS
from pilotage.api.structural import NotStructural, structural
from pilotage.kube import ApiError, Client, Invalid, Json, ObjectKey, Resource, load_config, merge_patch
from pilotage.operator.crds import crds
from pilotage_sim.loop import virtual
from pilotage_sim.world import SimulatedWorld
from tests.api.objects import endpoint, gateway_route, install, model, process, resource_of, teardown
from tests.support.kinds import CRDS, NAMESPACES, delete, existing
from tests.support.waiting import eventually

HOST = {"kind": "Host", "host": "gpu-3"}


def canary(*steps: Json, **more: Any) -> Json:
    return endpoint("b", {"strategy": {"type": "Canary", "canary": {"steps": list(steps), **more}}})


REFUSED = [
    (ENDPOINTS, endpoint("a" * 53), "at most 52 characters"),
    (ENDPOINTS, endpoint("1a"), "a letter first"),
    (ENDPOINTS, endpoint("a.b"), "a letter first"),
    (
        ENDPOINTS,
        endpoint("b", {"model": {}}),
        "spec.model: Invalid value: give exactly one of name (a Model) and source",
    ),
    (ENDPOINTS, endpoint("b", {"model": {"name": "a", "source": "file:///a"}}), "give exactly one"),
    (ENDPOINTS, endpoint("b", {"model": {"name": "a", "sha256": "0" * 64}}), "sha256 and secretRef go with source"),
    (ENDPOINTS, endpoint("b", {"model": {"source": "ftp://a"}}), "spec.model.source"),
    (ENDPOINTS, endpoint("b", {"runtime": {"name": "custom"}}), "a custom runtime needs an image"),
    (ENDPOINTS, endpoint("b", {"runtime": {"name": "ollama"}}), 'Unsupported value: "ollama"'),
    (ENDPOINTS, endpoint("b", {"runtime": {"port": 0}}), "spec.runtime.port"),
    (ENDPOINTS, endpoint("b", {"placement": {"kind": "Host"}}), "needs exactly one of host and hostSelector"),
    (ENDPOINTS, endpoint("b", {"placement": {**HOST, "hostSelector": {}}}), "needs exactly one of host and"),
    (ENDPOINTS, endpoint("b", {"placement": {"host": "gpu-3"}}), "are for placement.kind Host"),
    (ENDPOINTS, endpoint("b", {"placement": HOST, "route": {"kind": "Ingress"}}), "on a Host, route.kind is None or"),
    (ENDPOINTS, endpoint("b", {"autoscaling": {"min": 3, "max": 2}}), "min must not be greater than max"),
    (ENDPOINTS, endpoint("b", {"autoscaling": {}}), "spec.autoscaling.max: Required value"),
    (ENDPOINTS, endpoint("b", {"replicas": -1}), "spec.replicas"),
    (ENDPOINTS, endpoint("b", {"replicas": 1001}), "spec.replicas"),
    (ENDPOINTS, endpoint("b", {"autoscaling": {"max": 1001}}), "spec.autoscaling.max"),
    (ENDPOINTS, endpoint("b", {"autoscaling": {"min": 1001, "max": 1000}}), "spec.autoscaling.min"),
    (ENDPOINTS, endpoint("b", {"autoscaling": {"max": 2, "targetConcurrency": 2**40}}), "targetConcurrency"),
    (ENDPOINTS, endpoint("b", {"placement": {**HOST, "priority": 2**40}}), "spec.placement.priority"),
    (ENDPOINTS, endpoint("b", {"runtime": {"args": ["a"] * 513}}), "spec.runtime.args"),
    (ENDPOINTS, endpoint("b", {"runtime": {"args": ["a" * 16385]}}), "spec.runtime.args[0]"),
    (ENDPOINTS, endpoint("b", {"runtime": {"env": [{"name": "A", "value": "a" * 32769}]}}), "env[0].value"),
    (ENDPOINTS, endpoint("b", {"nodeSelector": {f"k{number}": "v" for number in range(65)}}), "spec.nodeSelector"),
    (ENDPOINTS, endpoint("b", {"tolerations": [{"key": "k" * 317}]}), "spec.tolerations[0].key"),
    (ENDPOINTS, endpoint("b", {"cache": {"size": "1" * 33}}), "spec.cache.size"),
    (ENDPOINTS, endpoint("b", {"resources": {"limits": {"cpu": "1" * 33}}}), "spec.resources.limits.cpu"),
    (
        ENDPOINTS,
        endpoint("b", {"route": {"kind": "HTTPProxy", "host": "a.example.com", "tls": {"name": "team-b/certificate"}}}),
        "spec.route.tls.name",
    ),
    (ENDPOINTS, endpoint("b", {"model": {"source": "hf://a/b", "secretRef": {"name": "../s"}}}), "secretRef.name"),
    (
        ENDPOINTS,
        endpoint("b", {"route": {"kind": "HTTPRoute", "gateway": {"name": "g", "namespace": "a/b"}}}),
        "spec.route.gateway.namespace",
    ),
    (ENDPOINTS, endpoint("b", {"resources": {"limits": {"cpu": "many"}}}), "spec.resources.limits.cpu"),
    (ENDPOINTS, canary({"setWeight": 101}), "spec.strategy.canary.steps[0].setWeight"),
    (ENDPOINTS, canary({"setWeight": -1}), "spec.strategy.canary.steps[0].setWeight"),
    (ENDPOINTS, canary({}), "give exactly one of setWeight, setScale, pause, analysis"),
    (ENDPOINTS, canary({"setWeight": 5, "pause": {}}), "give exactly one of setWeight, setScale, pause, analysis"),
    (ENDPOINTS, canary({"setScale": {}}), "give exactly one of replicas, percent and follow"),
    (ENDPOINTS, canary({"pause": {"duration": "soon"}}), "spec.strategy.canary.steps[0].pause.duration"),
    (ENDPOINTS, canary(*[{"pause": {}}] * 51), "spec.strategy.canary.steps"),
    (ENDPOINTS, canary(surge="some"), "spec.strategy.canary.surge"),
    (ENDPOINTS, canary(maxUnavailable=0), "spec.strategy.canary.maxUnavailable"),
    (ENDPOINTS, endpoint("b", {"strategy": {"type": "Canary"}}), "strategy.type Canary needs canary with steps"),
    (ENDPOINTS, endpoint("b", {"strategy": {"canary": {}}}), "canary is for strategy.type Canary"),
    (ENDPOINTS, endpoint("b", {"route": {"kind": "HTTPRoute"}}), "route.kind HTTPRoute needs route.gateway"),
    (ENDPOINTS, endpoint("b", {"route": {"gateway": {"name": "g"}}}), "gateway is for route.kind HTTPRoute"),
    (ENDPOINTS, endpoint("b", {"route": {"kind": "HTTPProxy"}}), "route.kind HTTPProxy needs route.host"),
    (ENDPOINTS, endpoint("b", {"route": {"kind": "Ingress", "host": "A B"}}), "spec.route.host"),
    (
        ENDPOINTS,
        endpoint("b", {"route": {"kind": "Ingress", "tls": {"name": "t"}}}),
        "tls of an Ingress needs route.host",
    ),
    (ENDPOINTS, endpoint("b", {"route": {"kind": "Ingress", "gateway": {"name": "g"}}}), "gateway is for route.kind"),
    (ENDPOINTS, endpoint("b", {"route": {"host": "a.example.com"}}), "host is for route.kind HTTPProxy, HTTPRoute,"),
    (ENDPOINTS, endpoint("b", {"route": {"kind": "PilotageGateway", "className": "c"}}), "className is for route.kind"),
    (ENDPOINTS, endpoint("b", {"route": {"kind": "PilotageGateway", "tls": {"name": "t"}}}), "tls is for route.kind"),
    (ENDPOINTS, endpoint("b", {"route": {"tls": {"name": "t"}}}), "tls is for route.kind HTTPProxy or Ingress"),
    (ENDPOINTS, endpoint("b", {"deletion": {"keep": ["Everything"]}}), "spec.deletion.keep[0]"),
    (ENDPOINTS, endpoint("b", {"runtime": {"env": [{"name": "A"}, {"name": "A"}]}}), "spec.runtime.env[1]: Duplicate"),
    (MODELS, model("b", {"sha256": "abc"}), "spec.sha256"),
    (MODELS, {"metadata": {"name": "b"}}, "spec: Required value"),
    (TEARDOWNS, teardown("b", {"reason": "Bored"}), 'Unsupported value: "Bored"'),
    (TEARDOWNS, teardown("b", {"ttlSecondsAfterFinished": 2**40}), "spec.ttlSecondsAfterFinished"),
    (PROCESSES, process("b", {"service": ""}), "spec.service"),
    (PROCESSES, process("b", {"model": {"name": "qwen"}}), "spec.model.source: Required value"),
    (PROCESSES, process("b", {"drainSeconds": -1}), "spec.drainSeconds"),
    (GATEWAY_ROUTES, gateway_route("b", {"endpoint": ""}), "spec.endpoint"),
    (GATEWAY_ROUTES, gateway_route("b", {"path": "v1"}), "spec.path"),
    (GATEWAY_ROUTES, gateway_route("b", {"backends": [{"service": "a", "weight": 101}]}), "spec.backends[0].weight"),
]

TAKEN = [
    (ENDPOINTS, endpoint("a" * 52)),
    (ENDPOINTS, endpoint("b", {"replicas": 1000, "autoscaling": {"min": 1000, "max": 1000}})),
    (ENDPOINTS, endpoint("b", {"model": {"source": "hf://a/b", "secretRef": {"name": "s"}}})),
    (ENDPOINTS, endpoint("b", {"runtime": {"name": "custom", "image": "i", "command": ["serve"], "port": 80}})),
    (ENDPOINTS, endpoint("b", {"placement": HOST, "route": {"kind": "PilotageGateway"}})),
    (ENDPOINTS, endpoint("b", {"resources": {"limits": {"nvidia.com/gpu": 1, "memory": "4Gi", "cpu": "0.5"}}})),
    (ENDPOINTS, endpoint("b", {"route": {"kind": "HTTPRoute", "gateway": {"name": "g"}, "host": "*.example.com"}})),
    (ENDPOINTS, endpoint("b", {"route": {"kind": "HTTPProxy", "host": "a.example.com", "tls": {"name": "t"}}})),
    (ENDPOINTS, endpoint("b", {"tolerations": [{"key": "gpu", "operator": "Exists"}], "cache": {"size": "10Gi"}})),
    (TEARDOWNS, teardown("b", {"parts": [{"apiVersion": "v1", "kind": "S", "resource": "s", "name": "n"}]})),
    (ENDPOINTS, endpoint("e", {"runtime": {"name": "custom", "command": ["serve"]}, "placement": HOST})),
    (PROCESSES, process("a", {"hostSelector": {"matchLabels": {"gpu": "yes"}}, "memoryBytes": 2**40})),
    (GATEWAY_ROUTES, gateway_route("a", {"host": "a.example.com", "backends": [{"service": "a-1", "weight": 0}]})),
]


async def refusals(client: Client, namespace: str) -> list[str]:
    """Objects that were not refused with the expected words, and objects that were refused though they are valid."""
    wrong = []
    for resource, body, words in REFUSED:
        try:
            await client.create(resource, body, namespace=namespace, dry_run=True)
            wrong.append(f"{body} is taken")
        except Invalid as error:
            if words not in error.message:
                wrong.append(f"{body}: {error.message}")
    for resource, body in TAKEN:
        try:
            await client.create(resource, body, namespace=namespace, dry_run=True)
        except Invalid as error:
            wrong.append(f"{body}: {error.message}")
    return wrong


@pytest.fixture
async def client(cluster):
    async with Client.connect(load_config(kubeconfig=str(cluster.kubeconfig))) as client:
        await install(client)
        yield client


async def test_a_real_server_refuses_what_makes_no_sense_and_says_why(client, namespace):
    assert await refusals(client, namespace) == []


@virtual
async def test_harbor_refuses_the_same():
    async with SimulatedWorld(latency=(0, 0)) as world:
        client = world.client("admin")
        await install(client)
        assert await refusals(client, "default") == []


async def scale_too_far(client: Client, namespace: str) -> None:
    made = await client.create(ENDPOINTS, endpoint("scaled"), namespace=namespace)
    with pytest.raises(Invalid, match="replicas"):
        await client.patch(ENDPOINTS, made.key, merge_patch({"spec": {"replicas": 1001}}), subresource="scale")
    assert (await client.get(ENDPOINTS, made.key)).get("spec", "replicas") == 1


async def test_a_real_server_scales_no_further_than_the_bound(client, namespace):
    await scale_too_far(client, namespace)


@virtual
async def test_harbor_scales_no_further_either():
    async with SimulatedWorld(latency=(0, 0)) as world:
        client = world.client("admin")
        await install(client)
        await scale_too_far(client, "default")


async def test_a_real_server_fills_in_what_the_types_have_as_defaults(client, namespace):
    made = await client.create(ENDPOINTS, endpoint(), namespace=namespace, dry_run=True)
    spec = made.to_dict()["spec"]
    assert spec["placement"] == {"kind": "Deployment", "priority": 0, "protected": False}
    assert EndpointSpec.read(spec) == EndpointSpec.read(endpoint()["spec"])


async def test_kubectl_shows_what_a_person_wants(cluster, client, namespace):
    await client.create(MODELS, model(), namespace=namespace)
    await client.create(TEARDOWNS, teardown(), namespace=namespace)
    made = await client.create(ENDPOINTS, endpoint(), namespace=namespace)
    await client.create(ENDPOINTS, endpoint("inline", {"model": {"source": "file:///a.gguf"}}), namespace=namespace)
    status = {
        "phase": "Serving",
        "url": "http://a/v1",
        "revision": "assistant-7",
        "replicas": {"ready": 2, "desired": 2},
        "ready": "2/2",
    }
    status |= {"selector": "pilotage.dev/endpoint=assistant", "waitingFor": "nothing"}
    await client.patch(ENDPOINTS, made.key, merge_patch({"status": status}), subresource="status")

    def get(*args: str) -> list[list[str]]:
        return [line.split() for line in cluster.kubectl("-n", namespace, "get", *args).splitlines()]

    head, first, second = get("se")
    assert head == ["NAME", "MODEL", "PLACEMENT", "READY", "PHASE", "DELETING", "URL", "AGE"]
    assert first[:-1] == ["assistant", "qwen", "Deployment", "2/2", "Serving", "http://a/v1"]
    assert second[:3] == ["inline", "file:///a.gguf", "Deployment"]
    head, first, _ = get("se", "-o", "wide")
    assert head[8:] == ["REVISION", "ROUTE", "WAITING"]
    assert first[7:] == ["assistant-7", "None", "nothing"]
    assert get("td")[0] == ["NAME", "TARGET", "PHASE", "WAITING-FOR", "LEFT", "AGE"]
    assert get("mdl")[0] == ["NAME", "SOURCE", "PHASE", "SIZE", "AGE"]
    cluster.kubectl("-n", namespace, "scale", "se/assistant", "--replicas", "3")
    scaled = await client.get(ENDPOINTS, made.key)
    assert scaled.get("spec", "replicas") == 3


async def test_the_spec_of_a_teardown_stays_as_it_was(client, namespace):
    made = await client.create(TEARDOWNS, teardown(), namespace=namespace)
    with pytest.raises(Invalid, match="cannot be changed"):
        await client.patch(TEARDOWNS, made.key, merge_patch({"spec": {"reason": "Failed"}}))


async def test_a_process_is_placed_once(client, namespace):
    made = await client.create(PROCESSES, process(), namespace=namespace)
    await client.patch(PROCESSES, made.key, merge_patch({"spec": {"host": "gpu-1"}}))
    for elsewhere in ("gpu-2", None):
        with pytest.raises(Invalid, match="a HostProcess stays on its Host"):
            await client.patch(PROCESSES, made.key, merge_patch({"spec": {"host": elsewhere}}))


CHANGES = (
    {"runtime": {"command": ["/bin/sh", "-c", "id"]}},
    {"runtime": {"args": ["--path", "/"]}},
    {"model": {"source": "file:///etc/passwd"}},
    {"service": "kubernetes"},
    {"priority": 1000},
    {"protected": True},
    {"memoryBytes": 1},
    {"port": 8080},
    {"hostName": "gpu-2"},
    {"drainSeconds": 0},
)


async def changes_taken(client: Client, namespace: str) -> list[Json]:
    """Changes to the spec of a process, which is what runs on a machine, that the server accepts."""
    made = await client.create(PROCESSES, process("fixed"), namespace=namespace)
    taken = []
    for change in CHANGES:
        try:
            await client.patch(PROCESSES, made.key, merge_patch({"spec": change}))
        except Invalid as error:
            taken += [] if "another spec is another process" in error.message else [change]
        else:
            taken.append(change)
    return taken


async def test_what_a_process_runs_is_never_changed(client, namespace):
    assert await changes_taken(client, namespace) == []


@virtual
async def test_what_a_process_runs_is_never_changed_on_harbor_either():
    async with SimulatedWorld(latency=(0, 0)) as world:
        client = world.client("admin")
        await install(client)
        assert await changes_taken(client, "default") == []


def renamed(crd: Json, group: str) -> Json:
    """The same kind in another group, which a test may change without disturbing others."""
    made = copy.deepcopy(crd)
    made["spec"]["group"] = group
    made["spec"]["names"] |= {"shortNames": [], "categories": []}
    made["metadata"]["name"] = f"{made['spec']['names']['plural']}.{group}"
    return made


def forbid_everything(schema: Json) -> None:
    """A later version of the schema, to which the object of the test does not fit in any way."""
    schema["x-kubernetes-validations"].append(
        {"rule": "oldSelf.hasValue() || self.metadata.name == 'b'", "message": "name", "optionalOldSelf": True}
    )
    spec = schema["properties"]["spec"]
    spec["x-kubernetes-validations"].append({"rule": "self.replicas != 5", "message": "five"})
    spec["required"].append("cache")
    fields = spec["properties"]
    fields["replicas"]["maximum"] = 3
    fields["nodeSelector"]["maxProperties"] = 1
    runtime = fields["runtime"]["properties"]
    runtime["name"]["enum"] = ["llama.cpp"]
    runtime["args"]["x-kubernetes-list-type"] = "set"
    runtime["healthPath"]["pattern"] = "^/v2"


async def finalize_under_a_stricter_schema(client: Client, namespace: str) -> None:
    crd = renamed(
        next(each for each in crds() if each["metadata"]["name"] == str(ENDPOINTS)), f"g{secrets.token_hex(4)}.dev"
    )
    kind: Resource = resource_of(crd)
    spec = {"replicas": 5, "nodeSelector": {"a": "b", "c": "d"}}
    spec["runtime"] = {"name": "vllm", "args": ["a", "a"], "healthPath": "/health"}
    async with existing(client, CRDS, {key: crd[key] for key in ("metadata", "spec")}) as installed:
        await eventually(lambda: _taken(client, kind, endpoint(), namespace))
        made = await client.create(
            kind, endpoint("old", spec, finalizers=["pilotage.dev/endpoint"]), namespace=namespace
        )
        await delete(client, kind, made)
        forbid_everything(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
        await client.patch(CRDS, ObjectKey("", installed.meta.name), merge_patch({"spec": crd["spec"]}))
        await eventually(lambda: _refused(client, kind, endpoint("new", spec), namespace))
        await client.patch(kind, made.key, merge_patch({"status": {"phase": "Deleting"}}), subresource="status")
        await client.patch(kind, made.key, merge_patch({"metadata": {"finalizers": []}}))
        assert not (await client.list(kind, namespace)).items


async def _taken(client, kind, body, namespace):
    try:
        return await client.create(kind, body, namespace=namespace, dry_run=True)
    except ApiError:
        return None


async def _refused(client, kind, body, namespace):
    try:
        await client.create(kind, body, namespace=namespace, dry_run=True)
    except Invalid:
        return True
    return False


async def test_what_was_valid_once_can_go_on_a_real_server(client, namespace):
    await finalize_under_a_stricter_schema(client, namespace)


@virtual
async def test_what_was_valid_once_can_go_on_harbor():
    async with SimulatedWorld(latency=(0, 0)) as world:
        client = world.client("admin")
        await client.create(NAMESPACES, {"metadata": {"name": "chat"}})
        await finalize_under_a_stricter_schema(client, "chat")


def spec_fields(schema: Json, path: str = "spec"):
    """All fields of a schema, with their paths."""
    for name, each in schema.get("properties", {}).items():
        yield f"{path}.{name}", each
        yield from spec_fields(each, f"{path}.{name}")
    if "items" in schema:
        yield from spec_fields(schema["items"], f"{path}[]")


def test_kubectl_explains_every_field_of_a_spec():
    silent = [
        f"{crd['spec']['names']['kind']} {path}"
        for crd in crds()
        for path, each in spec_fields(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"])
        if not each.get("description")
    ]
    # Their names say it all: those of objects, and of the seconds of each phase.
    expected = ("name", "kind", "apiVersion", "resource", "namespace", "uid", "value")
    left = [each for each in silent if each.rpartition(".")[2] not in expected and ".timeouts." not in each]
    assert left == []


def unbounded(schema: Json, path: str, *, numbers: bool) -> list[str]:
    """Texts, lists and maps in a schema without an upper bound; numbers, if they are asked for."""
    found = []
    if schema.get("type") == "string" and "enum" not in schema and "maxLength" not in schema:
        found.append(path)
    if numbers and schema.get("type") == "integer" and not {"minimum", "maximum"} <= schema.keys():
        found.append(path)
    if "items" in schema:
        found += [path] if "maxItems" not in schema else []
        found += unbounded(schema["items"], f"{path}[]", numbers=numbers)
    if isinstance(values := schema.get("additionalProperties"), dict):
        found += [path] if "maxProperties" not in schema else []
        found += unbounded(values, f"{path}{{}}", numbers=numbers)
    for name, each in schema.get("properties", {}).items():
        found += unbounded(each, f"{path}.{name}", numbers=numbers)
    return found


@pytest.mark.parametrize("crd", crds(), ids=lambda crd: crd["spec"]["names"]["kind"])
def test_every_text_list_map_and_number_that_a_person_writes_has_a_bound(crd):
    fields = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    assert unbounded(fields["spec"], "spec", numbers=True) == []
    assert unbounded(fields.get("status", {}), "status", numbers=False) == []


def test_a_status_has_what_its_writer_wrote_and_only_phases_that_there_are():
    for crd in crds():
        status = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"].get("status", {})
        fields = dict(spec_fields(status, "status"))
        assert [path for path, each in fields.items() if "default" in each] == []
        if crd["spec"]["names"]["kind"] != "Teardown":  # its phases are the engine's
            named = [each for path, each in fields.items() if path in ("status.phase", "status.state")]
            assert all("Pending" in each["enum"] or "Ready" in each["enum"] for each in named)


def test_what_no_structural_schema_can_say_is_an_error():
    for type_ in (int | bool, Annotated[int, Meta(multiple_of=2)], bytes, tuple[str, ...]):
        with pytest.raises(NotStructural):
            structural(type_, {})


def test_the_committed_definitions_are_current():
    folder = Path(__file__).parents[2] / "deploy" / "crds"
    written = {file.name: yaml.safe_load(file.read_text()) for file in folder.glob("*.yaml")}
    made = {f"{crd['spec']['names']['plural']}.yaml": crd for crd in crds()}
    assert written == made, "run `make manifests`"


def test_no_field_has_a_name_that_yaml_takes_for_a_truth_value():
    """kubectl reads ``n: 5`` as ``false: 5``: YAML 1.1 has more words for true and false than two."""
    taken = {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "~"}

    def named(schema: Any) -> Iterator[str]:
        for name, inner in schema.get("properties", {}).items():
            yield name
            yield from named(inner)
        for inner in (schema.get("items"), schema.get("additionalProperties")):
            yield from named(inner) if isinstance(inner, dict) else ()

    for crd in crds():
        names = {*named(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])}
        assert {each for each in names if each.lower() in taken} == set()
