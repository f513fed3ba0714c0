"""Output for a person, and output for a program."""

import msgspec
import pytest
from msgspec.structs import replace

from pilotage.kube import Json, Resource
from pilotage.teardown.diagnosis.remedies import Remedy
from pilotage.teardown.diagnosis.why.codes import CauseCode
from pilotage.teardown.diagnosis.why.explain import explain
from pilotage.teardown.diagnosis.why.model import Confidence, Explanation, StuckCause, StuckVerdict
from pilotage.teardown.diagnosis.why.render import confidence, exit_code, remedies_of, render, to_json
from pilotage.teardown.snapshot.graph import Graph
from pilotage.teardown.snapshot.world import Item, Name
from tests.support import kinds
from tests.teardown.why.worlds import LEASES, PODS, REPLICA_SETS, ago, going, item, world

SERVICES = Resource("serving.kserve.io", "v1beta1", "inferenceservices", "InferenceService")
INGRESSES = Resource("networking.k8s.io", "v1", "ingresses", "Ingress")
HOUR = 3600


def owned_by(owner: Item) -> Json:
    api, kind = owner.resource.api_version, owner.resource.kind
    return {"ownerReferences": [{"apiVersion": api, "kind": kind, "name": owner.meta.name, "uid": owner.uid}]}


def the_dead_manager() -> Explanation:
    """The example of the documentation: KServe's manager cannot pull its image, and an endpoint serves on."""
    fields = [
        {
            "manager": "manager",
            "time": ago(72 * HOUR),
            "fieldsV1": {"f:metadata": {"f:finalizers": {'v:"inferenceservice.finalizers"': {}}}},
        }
    ]
    endpoint = item(
        SERVICES, "assistant", "chat", metadata=going(14 * 60, "inferenceservice.finalizers", managedFields=fields)
    )
    available = {"type": "Available", "status": "False", "lastTransitionTime": ago(2 * HOUR)}
    manager = item(
        kinds.DEPLOYMENTS,
        "kserve-controller-manager",
        "kserve",
        spec={"replicas": 1},
        status={"conditions": [available]},
    )
    replicas = item(REPLICA_SETS, "kserve-1", "kserve", metadata=owned_by(manager))
    waiting = {"containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]}
    pod = item(PODS, "kserve-1-a", "kserve", metadata=owned_by(replicas), status=waiting)
    lease = item(
        LEASES,
        "kserve-controller-manager-leader-lock",
        "kserve",
        spec={"holderIdentity": "kserve-1-a_x", "leaseDurationSeconds": 15, "renewTime": ago(2 * HOUR + 15)},
    )
    predictor = item(kinds.DEPLOYMENTS, "assistant-predictor", "chat", metadata=owned_by(endpoint), spec={}, status={})
    service = item(kinds.SERVICES, "assistant-predictor", "chat", metadata=owned_by(endpoint), spec={})
    pods = [item(PODS, f"web-{number}", "chat", metadata=owned_by(predictor)) for number in (1, 2)]
    ingress = item(INGRESSES, "assistant", "chat", metadata=owned_by(endpoint))
    made = world(endpoint, manager, replicas, pod, lease, predictor, service, *pods, ingress)
    return explain(made, Graph(()), endpoint)


def test_the_example_of_the_documentation() -> None:
    assert render(the_dead_manager()) == [
        "inferenceservice/assistant -n chat  terminating for 14m",
        "└─ waits for finalizer inferenceservice.finalizers",
        "   └─ kept by KServe controller  deployment/kserve-controller-manager -n kserve",
        "      └─ NOT RUNNING: 0 of 1 replicas available, image cannot be pulled (since 2h)      ← root cause",
        "",
        "Still serving: deployment/assistant-predictor, service/assistant-predictor, ingress/assistant, 2 pods",
        (
            "Confidence: high. Deployment/kserve-controller-manager -n kserve: 0 of 1 replicas available, image cannot "
            "be pulled (since 2h). Lease/kserve-controller-manager-leader-lock -n kserve expired 2h ago; kserve-1-a_x "
            'held it. The finalizer was last written by "manager" 3d ago.'
        ),
        "",
        "What to do, least destructive first",
        (
            "1. Find out why the controller does not run, and mend that:  "
            "kubectl describe deployment/kserve-controller-manager -n kserve"
        ),
        "   It finishes the deletion by itself. Nothing leaks.",
        (
            "2. Take down what it would have taken down, in order, then release it:  "
            "pilotage delete inferenceservices.serving.kserve.io/assistant -n chat --adopt"
        ),
        (
            "   Would delete 5 objects, and say how to release inferenceservice/assistant -n chat. "
            "Nothing leaks that Pilotage can see."
        ),
        (
            "3. Remove the finalizer:  pilotage why inferenceservices.serving.kserve.io/assistant -n chat "
            "--fix=strip-finalizer --finalizer inferenceservice.finalizers"
        ),
        "   LEAKS: TrainedModels of this service, and whatever else that controller made outside this cluster.",
    ]


def test_json_says_the_same() -> None:
    answer = to_json(the_dead_manager())
    assert msgspec.json.decode(msgspec.json.encode(answer)) == answer
    assert (answer["verdict"], answer["exitCode"], answer["confidence"]) == ("stuck", 1, "high")
    assert [root["code"] for root in answer["rootCauses"]] == ["finalizer-controller-dead"]
    step = answer["causes"][0]
    assert step["because"][0]["because"][0]["subject"]["name"] == "kserve-controller-manager"
    assert [remedy["code"] for remedy in answer["remedies"]] == ["", "", "strip-finalizer"]
    assert {each["kind"] for each in answer["stillServing"]} == {"Deployment", "Service", "Ingress", "Pod"}


def explanation(*causes: StuckCause, verdict: StuckVerdict = StuckVerdict.STUCK) -> Explanation:
    return Explanation(item(kinds.CONFIG_MAPS, "it"), verdict, "terminating for 14m", causes)


def cause(
    code: str, text: str, *because: StuckCause, sure: Confidence = Confidence.HIGH, remedies: tuple[Remedy, ...] = ()
) -> StuckCause:
    return StuckCause(
        code, Name("", "ConfigMap", "shop", "it"), text, because=because, confidence=sure, remedies=remedies
    )


def test_branches_are_drawn() -> None:
    lines = render(explanation(cause("a", "one", cause("b", "two"), cause("c", "three")), cause("d", "four")))
    assert [line.split("  ←")[0].rstrip() for line in lines[1:5]] == ["├─ one", "│  ├─ two", "│  └─ three", "└─ four"]


def test_another_object_is_named_unless_the_line_does() -> None:
    other = Name("", "Pod", "shop", "web")
    silent = replace(cause("a", "is on a lost node"), subject=other)
    naming = replace(cause("b", "pod/web -n shop is on a lost node"), subject=other)
    lines = render(explanation(silent, naming))
    assert lines[1].startswith("├─ pod/web -n shop: is on a lost node")
    assert lines[2].startswith("└─ pod/web -n shop is on a lost node")


def test_an_explanation_is_as_sure_as_its_least_sure_step() -> None:
    chain = cause("a", "one", cause("b", "two", cause("c", "three"), sure=Confidence.LOW))
    assert confidence(explanation(chain)) is Confidence.LOW
    assert confidence(explanation(cause("d", "four"), chain)) is Confidence.LOW
    note = cause(CauseCode.OWNER_GONE, "a note", sure=Confidence.LOW)
    assert confidence(explanation(cause("a", "one"), note)) is Confidence.HIGH


def test_remedies_are_ordered_by_harm_and_given_once() -> None:
    strip = Remedy("Remove the finalizer", "strip", "LEAKS: all.", 10, code="strip-finalizer")
    look = Remedy("Look", "look", "Nothing changes.", 0)
    found = remedies_of(explanation(cause("a", "one", cause("b", "two", remedies=(strip, look)), remedies=(strip,))))
    assert found == [look, strip]


@pytest.mark.parametrize(
    ("verdict", "code"), [(StuckVerdict.NOT_STUCK, 0), (StuckVerdict.STUCK, 1), (StuckVerdict.UNKNOWN, 3)]
)
def test_the_exit_code_follows_from_the_verdict(verdict: StuckVerdict, code: int) -> None:
    assert exit_code(explanation(verdict=verdict)) == code


def test_notes_get_no_mark_of_a_root_cause() -> None:
    lines = render(explanation(cause(CauseCode.RECREATED, "another one"), verdict=StuckVerdict.NOT_STUCK))
    assert lines[1] == "└─ another one"


@pytest.mark.parametrize(
    ("evidence", "shown"),
    [
        ("no pod matches its selector", "No pod matches its selector."),
        ("it says: no", "It says: no."),
        ("deployment/a -n shop is scaled to 0.", "Deployment/a -n shop is scaled to 0."),
        ("custom.metrics.k8s.io/v1beta1: no answer", "custom.metrics.k8s.io/v1beta1: no answer."),
        ("acme-manager wrote it", "acme-manager wrote it."),
        ('Post "https://a": refused', 'Post "https://a": refused.'),
    ],
)
def test_evidence_is_in_sentences_and_names_keep_their_case(evidence: str, shown: str):
    cause = StuckCause(CauseCode.WEBHOOK_ERRS, Name("", "Secret", "shop", "a"), "fails", (evidence,))
    told = replace(the_dead_manager(), causes=(cause,))
    assert f"Confidence: high. {shown}" in render(told)
