"""Changes that make a new revision, and changes that do not."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.api.endpoint import REVISION_FIELDS, EndpointSpec
from pilotage.serving import desired_objects
from pilotage.serving.manifests import TEMPLATE
from pilotage.serving.parts import ResolvedModel
from pilotage.serving.revision import fingerprint
from tests.serving.cases import ALL, GGUF, subject

Json = dict[str, Any]

IN_PODS: dict[str, list[Any]] = {
    "runtime": [
        {"name": "vllm"},
        {"name": "vllm", "args": ["--x"]},
        {"image": "other:1"},
        {"command": ["/x"]},
        {"env": [{"name": "A", "value": "1"}]},
        {"env": [{"name": "A"}]},
        {"port": 9},
        {"healthPath": "/x"},
    ],
    "resources": [
        {"limits": {"cpu": "2"}},
        {"limits": {"cpu": "2"}, "requests": {"cpu": "500m"}},
        {"requests": {"cpu": "2"}},
    ],
    "nodeSelector": [{"gpu": ""}, {"gpu": "a100"}],
    "tolerations": [[{"key": "gpu"}], [{"key": "gpu", "tolerationSeconds": 0, "effect": "NoExecute"}]],
    "cache": [{"size": "1Gi"}, {"size": "1Gi", "accessMode": "ReadWriteMany"}],
}
IN_PLACE: dict[str, list[Any]] = {
    "replicas": [0, 1, 7],
    "autoscaling": [{"max": 3}, {"min": 2, "max": 9, "targetConcurrency": 4}],
    "route": [{"kind": "HTTPProxy", "host": "a.example.com"}, {"kind": "Ingress"}],
    "strategy": [{"type": "Recreate"}],
    "deletion": [{"drainSeconds": 300}, {"keep": ["Volumes"]}],
}


def test_every_field_either_makes_a_revision_or_changes_in_place():
    """A new field has to be put into one of the two, with values that the tests below try."""
    assert {*IN_PODS, "model", "placement"} == {*REVISION_FIELDS}
    assert {*REVISION_FIELDS, *IN_PLACE} == {*EndpointSpec.__struct_encode_fields__}


def some_of(choices: dict[str, list[Any]]) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in choices.items()})


def spec_of(*parts: Json) -> EndpointSpec:
    whole: Json = {"model": {"name": "qwen"}}
    for part in parts:
        whole |= part
    return EndpointSpec.read(whole)


def shuffled(value: Any, seed: int) -> Any:
    """The same with its fields in another order."""
    if not isinstance(value, dict):
        return value
    names = sorted(value)
    random.Random(seed).shuffle(names)
    return {name: shuffled(value[name], seed) for name in names}


@given(some_of(IN_PODS), some_of(IN_PLACE), some_of(IN_PLACE), st.integers())
@settings(max_examples=50, deadline=None)
def test_replicas_route_strategy_and_deletion_make_none(pods, before, after, seed):
    assert fingerprint(spec_of(pods, before), GGUF) == fingerprint(spec_of(shuffled(pods, seed), after), GGUF)


@given(some_of(IN_PODS))
@settings(max_examples=50, deadline=None)
def test_defaults_that_are_written_out_make_none(pods):
    spec = spec_of(pods)
    assert fingerprint(EndpointSpec.read(spec.written()), GGUF) == fingerprint(spec, GGUF)


@given(some_of(IN_PODS), some_of(IN_PODS))
@settings(max_examples=100, deadline=None)
def test_other_pods_make_one(one, other):
    """The fingerprint covers everything visible in the pods, or in the claim that they share, and nothing else."""

    def seen(given: Json) -> Any:
        parts = {each.resource.kind: each.body for each in desired_objects(subject(given), 1, GGUF, ALL)}
        return parts["Deployment"]["metadata"]["annotations"][TEMPLATE], parts.get("PersistentVolumeClaim")

    assert (fingerprint(spec_of(one), GGUF) == fingerprint(spec_of(other), GGUF)) == (seen(one) == seen(other))


@pytest.mark.parametrize("field", ["name", "source", "sha256", "secret"])
def test_another_model_makes_one(field):
    model = ResolvedModel("qwen", "s3://b/a", "ab" * 32, "s")
    assert fingerprint(spec_of(), model) != fingerprint(spec_of(), model._replace(**{field: "other"}))


def test_another_placement_makes_one():
    kinds = [{"kind": "Deployment"}, {"kind": "KServe"}, {"kind": "Host", "host": "a"}, {"kind": "Host", "host": "b"}]
    assert len({fingerprint(spec_of({"placement": each}), GGUF) for each in kinds}) == len(kinds)


@pytest.mark.parametrize(
    ("one", "other"), [(1, "1"), ("1", "1000m"), ("1Gi", "1024Mi"), ("2000", "2k"), ("0.5", "500m")]
)
def test_amounts_count_by_what_they_mean(one, other):
    def found(value: Any) -> str:
        return fingerprint(spec_of({"resources": {"limits": {"memory": value}}}), GGUF)

    assert found(one) == found(other) != found("3")


def test_it_is_the_same_in_every_version_of_ours():
    """Another value here would redeploy every endpoint there is when the operator is upgraded."""
    spec = spec_of({"runtime": {"args": ["--ctx-size", "8192"]}, "resources": {"limits": {"cpu": "2"}}})
    assert fingerprint(spec, GGUF) == "5dc5a2dd85934a89"


def test_with_kserve_scaling_by_itself_makes_one_and_the_numbers_do_not():
    def found(**more: Any) -> str:
        return fingerprint(spec_of({"placement": {"kind": "KServe"}}, more), GGUF)

    assert found(replicas=1) == found(replicas=5)
    assert found(autoscaling={"max": 2}) == found(autoscaling={"max": 5}, replicas=3)
    assert found() != found(autoscaling={"max": 2})
