"""Fields that are written, and fields that are left alone."""

import copy
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pilotage.kube import Object, Resource
from pilotage.serving import desired_objects
from pilotage.serving.drift import apply_body, same
from pilotage.serving.manifests import SCALED_BY, TEMPLATE
from pilotage.serving.parts import DesiredObject, EndpointRef
from tests.serving.cases import ALL, GGUF, cases, subject

CASES = cases()
Json = dict[str, Any]


def part(wanted: EndpointRef, kind: str, **capabilities: Any) -> DesiredObject:
    parts = desired_objects(wanted, 1, GGUF, ALL._replace(**capabilities))
    return next(each for each in parts if each.resource.kind == kind)


def on_server(wanted: DesiredObject, change: Any = None) -> Object:
    body = copy.deepcopy(wanted.body)
    body["metadata"] |= {"uid": "u", "namespace": "chat", "generation": 1}
    if change is not None:
        change(body)
    return Object.from_dict(body)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all single values."""
    if isinstance(value, dict):
        return [each for name, inner in value.items() for each in leaves(inner, (*path, name))]
    if isinstance(value, list):
        return [each for index, inner in enumerate(value) for each in leaves(inner, (*path, index))]
    return [path]


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_every_value_that_is_ours_is_put_right(data):
    case = CASES[data.draw(st.sampled_from(sorted(CASES)))]
    wanted = data.draw(st.sampled_from(desired_objects(case.subject, 1, case.model, ALL)))
    path = data.draw(
        st.sampled_from(leaves({"spec": wanted.body["spec"], "labels": wanted.body["metadata"]["labels"]}))
    )

    def change(body: Json) -> None:
        inner = body["metadata"] if path[0] == "labels" else body
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = "other" if isinstance(inner[path[-1]], str) else 12345

    assume(wanted.resource.kind != "PersistentVolumeClaim")  # most of one cannot be changed
    others = SCALED_BY in wanted.body["metadata"].get("annotations", {}) and path == ("spec", "replicas")
    assert same(wanted, on_server(wanted))
    assert same(wanted, on_server(wanted, change)) == others


def test_what_others_add_is_left_alone():
    wanted = part(subject(resources={"limits": {"cpu": 1}}), "Deployment")

    def change(body: Json) -> None:
        body["metadata"]["labels"]["team"] = "a"
        body["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = "1"
        pod = body["spec"]["template"]["spec"]
        pod["dnsPolicy"] = "ClusterFirst"
        pod["containers"].insert(0, {"name": "sidecar", "image": "other"})
        pod["containers"][1] |= {"imagePullPolicy": "IfNotPresent", "resources": {"limits": {"cpu": "1000m"}}}

    assert same(wanted, on_server(wanted, change))


@pytest.mark.parametrize(
    ("field", "added"),
    [
        ("containers", {"name": "sidecar", "image": "other"}),
        ("initContainers", {"name": "istio-init", "image": "other"}),
        ("volumes", {"name": "token", "emptyDir": {}}),
        ("containers.0.env", {"name": "ISTIO_META", "value": "1"}),
        ("containers.0.ports", {"name": "metrics", "containerPort": 9}),
        ("containers.0.volumeMounts", {"name": "token", "mountPath": "/token"}),
    ],
)
@pytest.mark.parametrize("at", [0, 1], ids=["first", "last"])
def test_what_a_webhook_adds_to_a_list_of_a_pod_is_left_alone(field: str, added: Json, at: int):
    """A sidecar injector or an agent for secrets adds to these lists: taking it out again would be a fight."""
    spec = {"runtime": {"name": "custom", "image": "x", "env": [{"name": "MINE", "value": "1"}]}}
    wanted = part(subject(spec), "Deployment")

    def change(body: Json) -> None:
        inner = body["spec"]["template"]["spec"]
        for step in field.split("."):
            inner = inner[int(step)] if step.isdigit() else inner[step]
        assert inner, "the list has something of ours"
        inner.insert(at * len(inner), added)

    assert same(wanted, on_server(wanted, change))


def test_an_amount_of_another_size_is_put_right():
    wanted = part(subject(resources={"limits": {"cpu": 1}}), "Deployment")

    def change(body: Json) -> None:
        body["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "1001m"

    assert not same(wanted, on_server(wanted, change))


def test_one_more_service_of_a_route_is_a_difference():
    """Other controllers may add containers to a pod; a route with a foreign backend sends requests there."""
    proxies = Resource("projectcontour.io", "v1", "httpproxies", "HTTPProxy")
    ours = {"name": "assistant-2", "port": 80, "weight": 100}
    body = {"metadata": {"name": "assistant"}, "spec": {"routes": [{"services": [ours]}]}}
    wanted = DesiredObject(proxies, "assistant", body, None)

    def change(body: Json) -> None:
        body["spec"]["routes"][0]["services"].append({"name": "assistant-1", "port": 80, "weight": 0})

    assert same(wanted, on_server(wanted))
    assert not same(wanted, on_server(wanted, change))


@pytest.mark.parametrize("kind", ["Deployment", "KServe"])
def test_pods_stay_when_another_version_of_us_would_make_others(kind):
    """An upgrade of the operator restarts no model."""
    spec = {"placement": {"kind": kind}}
    old = part(subject(spec), {"KServe": "InferenceService"}.get(kind, kind))
    new = part(subject(spec, replicas=5, deletion={"drainSeconds": 77}), old.resource.kind)
    seen = on_server(old)
    body = apply_body(new, seen)
    assert not same(new, seen)  # for the replicas
    if kind == "Deployment":
        assert body["spec"]["replicas"] == 5
        assert body["spec"]["template"] == old.body["spec"]["template"]
    else:
        assert body["spec"]["predictor"] == old.body["spec"]["predictor"] | {"minReplicas": 5, "maxReplicas": 5}
    assert body["metadata"]["annotations"][TEMPLATE] == old.body["metadata"]["annotations"][TEMPLATE]
    assert body["metadata"]["uid"] == "u"
    assert same(new, Object.from_dict(body))


@pytest.mark.parametrize("kind", ["Deployment", "KServe"])
def test_another_drain_time_alone_writes_nothing(kind):
    spec = {"placement": {"kind": kind}}
    old = part(subject(spec), {"KServe": "InferenceService"}.get(kind, kind))
    assert same(part(subject(spec, deletion={"drainSeconds": 77}), old.resource.kind), on_server(old))


def test_replicas_are_the_autoscalers_from_the_moment_that_there_is_one():
    fixed = part(subject(replicas=4), "Deployment")
    scaled = part(subject(autoscaling={"max": 9}), "Deployment")

    def change(body: Json) -> None:
        body["spec"]["replicas"] = 6

    assert apply_body(scaled, on_server(fixed))["spec"]["replicas"] == 4
    assert same(scaled, on_server(scaled, change))
    assert not same(fixed, on_server(fixed, change))


def test_a_claim_grows_and_what_it_cannot_do_is_left_alone():
    claim = "PersistentVolumeClaim"
    seen = on_server(part(subject(cache={"size": "2Gi", "storageClassName": "slow"}), claim))
    larger = part(subject(cache={"size": "3Gi", "storageClassName": "slow"}), claim)
    other = part(subject(cache={"size": "1Gi", "storageClassName": "fast", "accessMode": "ReadWriteMany"}), claim)
    assert not same(larger, seen)
    assert apply_body(larger, seen)["spec"]["resources"]["requests"]["storage"] == "3Gi"
    assert same(other, seen)
