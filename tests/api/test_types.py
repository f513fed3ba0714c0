"""Reading and writing values of our kinds, without a server."""

import pytest

from pilotage.api.base import InvalidField
from pilotage.api.endpoint import Autoscaling, Endpoint, EndpointSpec, Route, Runtime
from pilotage.api.endpoint_status import PastRevision, StoredEndpoint
from pilotage.api.host import ProcessSpec
from pilotage.api.model import ModelSpec
from pilotage.kube import Object
from tests.api.objects import endpoint, process

MODEL = {"name": "qwen"}


@pytest.mark.parametrize(
    ("spec", "path", "reason"),
    [
        ({}, "spec.model", "is required"),
        ({"model": MODEL, "runtime": {"port": 0}}, "spec.runtime.port", "expected int >= 1"),
        ({"model": MODEL, "replicas": 1001}, "spec.replicas", "expected int <= 1000"),
        ({"model": MODEL, "replicas": "many"}, "spec.replicas", "expected int, got str"),
        (
            {"model": MODEL, "deletion": {"keep": ["Volumes", "All"]}},
            "spec.deletion.keep[1]",
            "invalid enum value 'All': supported values: Volumes, ModelCache, Secrets",
        ),
        ({"model": MODEL, "autoscaling": {"min": 1}}, "spec.autoscaling.max", "is required"),
        ({"model": MODEL, "tolerations": [{}, {"key": 1}]}, "spec.tolerations[1].key", "expected str | null, got int"),
        ({"model": MODEL, "route": {"path": "v1"}}, "spec.route.path", "expected str matching regex '^/'"),
        ({"model": MODEL, "cache": {"size": "x"}}, "spec.cache.size", "(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?$'"),
        ({"model": MODEL, "nodeSelector": {"a": "b" * 64}}, "spec.nodeSelector[...]", "expected str of length <= 63"),
        ([], "spec", "expected object, got array"),
    ],
)
def test_a_value_that_is_not_allowed_is_named_with_its_path_and_the_reason(spec, path, reason):
    with pytest.raises(InvalidField) as error:
        EndpointSpec.read(spec)
    assert error.value.below("spec") == path
    assert error.value.reason.endswith(reason)


@pytest.mark.parametrize(
    "value",
    [
        {"source": "https://a\n"},
        {"source": "https://a b"},
        {"source": "ftp://a"},
        {"source": "file:///a", "sha256": "0" * 64 + "\n"},
        {"source": "file:///a", "secretRef": {"name": "a\n"}},
        {"source": "file:///a", "secretRef": {"name": "a/b"}},
    ],
)
def test_a_pattern_holds_to_the_end_of_the_text(value):
    with pytest.raises(InvalidField):
        ModelSpec.read(value)


def test_fields_are_camel_case_and_those_that_are_not_known_are_ignored():
    spec = Autoscaling.read({"max": 3, "targetCPUPercent": 60, "targetConcurrency": 4, "new": True})
    assert (spec.max, spec.target_cpu_percent, spec.target_concurrency) == (3, 60, 4)
    assert spec.written() == {"min": 1, "max": 3, "targetCPUPercent": 60, "targetConcurrency": 4}
    assert ProcessSpec.read(process()["spec"] | {"hostName": "gpu-1"}).host_name == "gpu-1"


def test_what_is_written_has_the_defaults_and_nothing_that_is_none():
    assert Route(kind="Ingress").written() == {"kind": "Ingress", "path": "/"}
    written = EndpointSpec.read({"model": MODEL}).written()
    assert written["deletion"]["timeouts"] == {"detach": 60, "drain": 600, "quiesce": 60, "stop": 600, "remove": 120}
    assert "autoscaling" not in written
    assert EndpointSpec.read(written).written() == written


def test_without_defaults_only_what_was_chosen_is_left():
    spec = {
        "model": MODEL,
        "runtime": {"name": "llama.cpp", "port": 1, "env": [{"name": "A", "value": ""}]},
        "tolerations": [{"key": "gpu"}],
        "strategy": {"type": "BlueGreen"},
    }
    assert EndpointSpec.read(spec).without_defaults() == {
        "model": MODEL,
        "runtime": {"port": 1, "env": [{"name": "A"}]},
        "tolerations": [{"key": "gpu"}],
    }


def test_a_default_is_nobodys_to_change():
    Runtime.read({}).args.append("--verbose")
    assert Runtime.read({}).args == []
    assert EndpointSpec.read({"model": MODEL}).runtime == Runtime()


def test_a_client_reads_what_a_newer_operator_or_an_older_schema_allowed():
    body = endpoint("a", {"runtime": {"name": "ollama"}, "strategy": {"type": "Waves"}})
    body |= {"status": {"phase": "Migrating"}}
    seen = Object.from_dict(body).decode_as(StoredEndpoint)
    assert (seen.metadata.name, seen.spec["runtime"]["name"], seen.status.phase) == ("a", "ollama", "Migrating")
    with pytest.raises(InvalidField, match=r"spec\.strategy\.type"):
        Endpoint.read(body)


def test_the_state_of_a_revision_is_one_that_the_operator_knows():
    with pytest.raises(InvalidField, match="state: invalid enum value"):
        PastRevision.read({"number": 1, "created": "2026-01-01T00:00:00Z", "state": "Odd"})
