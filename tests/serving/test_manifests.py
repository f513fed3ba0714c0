"""Parts of every endpoint, whatever its runtime, placement and options."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

from pilotage.api.names import LABEL_KEEP_ALIVE
from pilotage.serving import backend, desired_objects
from pilotage.serving.parts import labels
from pilotage.serving.problems import problems
from pilotage.serving.runtimes.stop import WITHDRAW_SECONDS
from tests.serving.cases import ALL, GGUF, REPOSITORY, UID, Case, cases, subject

CASES = cases()
Json = dict[str, Any]


def pods_of(case: Case, revision: int = 7) -> Iterator[Json]:
    """The pods that its parts make."""
    for part in desired_objects(case.subject, revision, case.model, ALL):
        spec = part.body["spec"]
        if part.resource.kind == "Deployment":
            yield spec["template"]["spec"]
        elif part.resource.kind == "InferenceService":
            yield spec["predictor"]


def for_every_case(check: Callable[[Case], None]) -> Callable[[], None]:
    """One test for all of them: as tests of their own, they would take longer to report than to run."""

    @functools.wraps(check)
    def test() -> None:
        for name, case in CASES.items():
            try:
                check(case)
            except AssertionError as error:
                raise AssertionError(f"{name}: {error}") from error

    del test.__wrapped__  # pytest would search for the argument there
    return test


@for_every_case
def test_all_of_them_can_be_served(case):
    assert problems(case.subject, case.model, ALL) == []


@for_every_case
def test_parts_are_labelled_and_owned_by_nobody(case):
    for part in desired_objects(case.subject, 7, case.model, ALL):
        metadata = part.body["metadata"]
        expected = labels(case.subject, part.revision)
        assert expected["pilotage.dev/endpoint-uid"] == UID
        assert expected.items() <= metadata["labels"].items()
        assert "ownerReferences" not in metadata
        assert "namespace" not in metadata
        assert part.revision in (7, None)
        assert (part.revision is None) == (part.resource.kind == "PersistentVolumeClaim")


@for_every_case
def test_a_service_says_for_how_long_its_servers_keep_connections(case):
    for part in desired_objects(case.subject, 7, case.model, ALL):
        kept = {"vllm": "5", "sglang": "5", "tgi": "60"}.get(case.subject.spec.runtime.name)
        assert part.body["metadata"]["labels"].get(LABEL_KEEP_ALIVE) == (
            kept if part.resource.kind == "Service" else None
        )


def test_where_the_user_sets_how_long_connections_are_kept_they_are_not_used_again():
    env = [{"name": "VLLM_HTTP_TIMEOUT_KEEP_ALIVE", "value": "1"}]
    for part in desired_objects(subject(runtime={"name": "vllm", "env": env}), 7, REPOSITORY, ALL):
        assert LABEL_KEEP_ALIVE not in part.body["metadata"]["labels"]


@for_every_case
def test_pods_are_labelled_and_are_what_the_service_selects(case):
    parts = {each.resource.kind: each for each in desired_objects(case.subject, 7, case.model, ALL)}
    if case.subject.spec.placement.kind == "KServe":
        return  # copies the labels of the InferenceService
    on_pods = parts["Deployment"].body["spec"]["template"]["metadata"]["labels"]
    assert on_pods["pilotage.dev/revision"] == "7"
    assert parts["Service"].body["spec"]["selector"].items() <= on_pods.items()
    assert parts["Deployment"].body["spec"]["selector"]["matchLabels"].items() <= on_pods.items()


@for_every_case
def test_names_are_short_enough_for_labels_and_addresses(case):
    names = [each.name for each in desired_objects(case.subject, 99_999, case.model, ALL)]
    service = backend(case.subject, 99_999).service
    made_by_kserve = f"isvc.{service}" if case.subject.spec.placement.kind == "KServe" else ""
    assert max(map(len, [*names, service, made_by_kserve])) <= 63


@for_every_case
def test_a_pod_says_how_it_is_and_lets_requests_finish(case):
    [pod] = pods_of(case)
    [server] = pod["containers"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert server[probe].get("httpGet", server[probe].get("tcpSocket"))["port"] == "http"
    drain = case.subject.spec.deletion.drain_seconds
    hook = server["lifecycle"]["preStop"]
    before = hook["sleep"]["seconds"] if "sleep" in hook else WITHDRAW_SECONDS
    assert before >= WITHDRAW_SECONDS
    assert pod["terminationGracePeriodSeconds"] > before
    assert pod["terminationGracePeriodSeconds"] > WITHDRAW_SECONDS + drain


@for_every_case
def test_a_pod_has_no_access_to_the_api_and_no_variables_of_other_services(case):
    [pod] = pods_of(case)
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False


@for_every_case
def test_what_is_mounted_is_there(case):
    [pod] = pods_of(case)
    volumes = {each["name"] for each in pod["volumes"]}
    containers = [*pod["containers"], *pod.get("initContainers", [])]
    assert {mount["name"] for each in containers for mount in each["volumeMounts"]} <= volumes


def test_an_ingress_of_kserves_own_is_not_asked_for():
    case = CASES["KServe, vllm, plain"]
    [service] = desired_objects(case.subject, 1, case.model, ALL)
    assert service.body["metadata"]["labels"]["networking.kserve.io/visibility"] == "cluster-local"


def test_for_a_host_there_is_a_service_and_a_process_for_each_replica():
    endpoint = subject(
        placement={"kind": "Host", "hostSelector": {"matchLabels": {"gpu": "yes"}}, "priority": 3, "protected": True},
        replicas=2,
        runtime={"args": ["--ctx-size", "8192"], "port": 9000},
        resources={"limits": {"memory": "8Gi"}, "requests": {"memory": "1.5Gi"}},
        deletion={"drainSeconds": 7},
    )
    model = GGUF._replace(secret="hf-token")
    assert problems(endpoint, model, ALL) == []
    service, first, second = desired_objects(endpoint, 7, model, ALL)
    assert (service.name, first.name, second.name) == ("assistant-7", "assistant-7-0", "assistant-7-1")
    assert service.body["spec"] == {"ports": [{"name": "http", "port": 80, "targetPort": "http"}]}
    assert second.body["metadata"]["finalizers"] == ["pilotage.dev/agent"]
    assert second.body["metadata"]["labels"] == service.body["metadata"]["labels"]
    assert second.body["spec"] == first.body["spec"]
    spec = first.body["spec"]
    assert spec["model"] == {"name": "qwen", "source": model.source, "sha256": model.sha256, "secret": "hf-token"}
    assert (spec["runtime"]["args"], spec["port"]) == (["--ctx-size", "8192"], 9000)
    assert {name: spec[name] for name in ("endpoint", "service", "memoryBytes", "priority", "protected")} == {
        "endpoint": "assistant",
        "service": "assistant-7",
        "memoryBytes": 3 * 2**29,
        "priority": 3,
        "protected": True,
    }
    assert (spec["drainSeconds"], spec["hostSelector"]) == (7, {"matchLabels": {"gpu": "yes"}})
    assert "host" not in spec
    assert "hostName" not in spec
