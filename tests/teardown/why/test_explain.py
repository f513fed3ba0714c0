"""Properties of explanations: of any world, one comes back, and it ends in a cause, in "not stuck", or in "unknown"."""

import random
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.api.names import ENDPOINTS, HOSTS, LABEL_ENDPOINT_UID, LABEL_HOST, MODELS, PROCESSES, TEARDOWNS
from pilotage.kube import Json, Object, Resource
from pilotage.teardown.diagnosis.remedies import delete_together
from pilotage.teardown.diagnosis.why.codes import NOTES, UNCERTAIN, CauseCode
from pilotage.teardown.diagnosis.why.explain import explain
from pilotage.teardown.diagnosis.why.model import Confidence, Explanation, StuckVerdict
from pilotage.teardown.diagnosis.why.render import confidence, exit_code, remedies_of, render, to_json
from pilotage.teardown.planning.ledger import HOLD
from pilotage.teardown.relations import relate
from pilotage.teardown.snapshot.graph import Graph
from pilotage.teardown.snapshot.questions import Answer, EventsAbout, FullObject
from pilotage.teardown.snapshot.world import Item, KindReading, World
from tests.support import kinds
from tests.teardown.why.worlds import ALL, NOW, PODS, WIDGETS, going, item, world

T = TypeVar("T")

RESOURCES = (
    *ALL,
    Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
    Resource("", "v1", "persistentvolumes", "PersistentVolume", False),
    Resource("", "v1", "nodes", "Node", False),
    Resource("", "v1", "events", "Event"),
    Resource("batch", "v1", "jobs", "Job"),
    Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
    Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
    Resource("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", False),
    Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice"),
    Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", False),
    Resource("apiextensions.crossplane.io", "v1beta1", "usages", "Usage", False),
    Resource(
        "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", False
    ),
    *(ENDPOINTS, TEARDOWNS, MODELS, HOSTS, PROCESSES),
)
UIDS = ("u0", "u1", "u2", "u3", "u4", "u5", "u6", "u7")
NAMES = ("a", "b", "kserve-controller-manager", "widgets.gadgets.example.com", "v1.gadgets.example.com")
FINALIZERS = (
    "foregroundDeletion",
    "orphan",
    "kubernetes",
    "kubernetes.io/pvc-protection",
    "inferenceservice.finalizers",
    "gadgets.example.com/clean-up",
    "hold.test/x",
    "customresourcecleanup.apiextensions.k8s.io",
    "batch.kubernetes.io/job-tracking",
    "",
    *("pilotage.dev/endpoint", "pilotage.dev/model", "pilotage.dev/host", "pilotage.dev/agent"),
)
FIELDS = (
    *("status", "conditions", "type", "message", "reason", "lastTransitionTime", "spec", "replicas", "selector"),
    *(
        "holderIdentity",
        "renewTime",
        "leaseDurationSeconds",
        "webhooks",
        "rules",
        "apiGroups",
        "clientConfig",
        "service",
    ),
    *("namespace", "name", "finalizers", "containerStatuses", "state", "waiting", "availableReplicas", "nodeName"),
    *("volumes", "persistentVolumeClaim", "claimName", "managedFields", "manager", "time", "fieldsV1", "phase", "data"),
    *("waits", "object", "text", "until", "since", "ledger", "entries", "uid", "history", "message", "cause"),
    *("matchLabels", "operations", "resources", "apiVersions", "of", "by", "resourceRef", "scaleTargetRef", "kind"),
)
LABELS = ("app", "job-name", LABEL_HOST, LABEL_ENDPOINT_UID)
TIMES = ("2026-11-01T11:59:00Z", "2026-11-01T12:00:30Z", "2020-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "soon", "")

SCALARS = (*NAMES, *UIDS, *TIMES, "True", "False", "*", None, True, False, 0, -5, 10**12)


class Maker:
    """Any world, from a seed: well-formed metadata, since the API and dumps see to that, and anything else in the rest.

    By hand, because drawing so much nested data one by one takes hypothesis ten times as long as explaining it.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._objects = 1 + seed % len(UIDS)

    def world(self) -> World:
        made = World(NOW, live=self._maybe(), namespaces=self._random.choice(((), ("a",))))
        for resource in self._some(RESOURCES, len(RESOURCES)):
            made.read_kind(KindReading(resource, problem=self._random.choice(("", "", "forbidden"))))
        if self._maybe():
            made.unreadable_groups = {"gadgets.example.com/v1": "it does not answer"}
        for uid in UIDS[: self._objects]:
            made.add(self._item(uid))
            if self._maybe():
                made.answers[EventsAbout(uid)] = Answer(items=(self._event(), self._event()))
            if self._maybe():
                made.answers[FullObject(uid)] = Answer(allowed=False, message="is gone")
        return made

    def _item(self, uid: str) -> Item:
        choice = self._random.choice
        resource = choice(RESOURCES)
        metadata: Json = {"name": choice(NAMES), "uid": uid, "creationTimestamp": choice(TIMES)}
        if resource.namespaced:
            metadata["namespace"] = choice(("a", "b"))
        if self._maybe():
            metadata |= {"deletionTimestamp": choice(TIMES), "deletionGracePeriodSeconds": choice((0, 30, 10**15))}
        metadata["finalizers"] = self._some(FINALIZERS, 3)
        metadata["ownerReferences"] = [self._owner() for _ in range(self._random.randrange(4))]
        metadata["labels"] = {key: choice(NAMES + UIDS) for key in self._some(LABELS, 2)}
        metadata["managedFields"] = self._garbage(4)
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
        body |= {field: self._garbage(6) for field in self._some(("spec", "status", "webhooks", "message"), 4)}
        return Item(resource, Object.from_dict(body), full=self._maybe())

    def _owner(self) -> Json:
        choice = self._random.choice
        resource = choice(RESOURCES)
        named = {"apiVersion": resource.api_version, "kind": resource.kind, "name": choice(NAMES), "uid": choice(UIDS)}
        return {**named, "blockOwnerDeletion": self._maybe()}

    def _event(self) -> Json:
        return {field: self._garbage(2) for field in ("type", "message", "reason", "lastTimestamp", "source")}

    def _garbage(self, depth: int) -> Any:
        shape = self._random.random() if depth else 1.0
        if shape < 0.25:
            return [self._garbage(depth - 1) for _ in range(self._random.randrange(3))]
        if shape < 0.7:
            return {field: self._garbage(depth - 1) for field in self._some(FIELDS, 4)}
        return self._random.choice(SCALARS)

    def _some(self, things: tuple[T, ...], most: int) -> list[T]:
        return self._random.sample(things, self._random.randrange(min(most, len(things)) + 1))

    def _maybe(self) -> bool:
        return self._random.random() < 0.5


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**40))
def test_any_world_can_be_explained(seed: int) -> None:
    made = Maker(seed).world()
    graph = relate(made)
    for each in list(made):
        explanation = explain(made, graph, each)
        check(explanation)
        lines = render(explanation)
        assert lines[0].startswith(str(each))
        assert to_json(explanation)["exitCode"] == exit_code(explanation)


def check(explanation: Explanation) -> None:
    """It ends in a cause, in "not stuck", or in "unknown"; and the way of stripping a finalizer comes last."""
    codes = {root.code for root in explanation.roots}
    assert codes <= {code.value for code in CauseCode}
    if explanation.verdict is StuckVerdict.STUCK:
        assert codes - NOTES - UNCERTAIN
    elif explanation.verdict is StuckVerdict.NOT_STUCK:
        assert codes <= NOTES or explanation.headline == "is gone"
    else:
        assert codes & UNCERTAIN or not codes or explanation.unread
    remedies = [(remedy.code == "strip-finalizer", remedy.harm) for remedy in remedies_of(explanation)]
    assert remedies == sorted(remedies)
    assert confidence(explanation)


def test_a_chain_of_a_thousand_owners_ends() -> None:
    made = world()
    uid = ""
    for number in range(1000):
        owner = [_reference(uid, number - 1)] if uid else []
        uid = f"uid-{number}"
        body = going(600, "foregroundDeletion", uid=uid, ownerReferences=owner)
        made.add(item(kinds.CONFIG_MAPS, f"map-{number}", metadata=body))
    top = made.get("uid-0")
    assert top is not None
    explanation = explain(made, Graph(()), top)
    assert {root.code for root in explanation.roots} == {CauseCode.TOO_DEEP}
    assert (explanation.verdict, exit_code(explanation)) == (StuckVerdict.UNKNOWN, 3)


def test_shared_dependents_do_not_multiply() -> None:
    """Each of a layer is owned by both of the layer above: as a tree that would be two to the power of the layers."""
    made = world()
    for layer in range(20):
        for side in "lr":
            owner = [_reference(f"{above}-{layer - 1}", layer - 1) for above in "lr"] if layer else []
            more = ("hold.test/x",) if layer == 19 else ()
            body = going(600, "foregroundDeletion", *more, uid=f"{side}-{layer}", ownerReferences=owner)
            made.add(item(WIDGETS if side == "l" else kinds.CONFIG_MAPS, f"{side}-{layer}", metadata=body))
    top = made.get("l-0")
    assert top is not None
    explanation = explain(made, Graph(()), top)
    assert CauseCode.FINALIZER_UNCLAIMED in {root.code for root in explanation.roots}
    assert len(render(explanation)) < 1000


def test_a_dump_without_the_needed_kinds_is_unknown() -> None:
    made = world(
        item(kinds.CONFIG_MAPS, "top", metadata=going(600, "foregroundDeletion", uid="t")), unread={PODS: "no"}
    )
    top = made.get("t")
    assert top is not None
    explanation = explain(made, Graph(()), top)
    assert {root.code for root in explanation.roots} == {CauseCode.UNREADABLE}
    assert (explanation.verdict, exit_code(explanation)) == (StuckVerdict.UNKNOWN, 3)
    assert explanation.unread == ("Pod: no",)
    assert "Could not be read: Pod: no" in render(explanation)


def test_a_controller_that_nobody_looked_for_is_not_called_missing() -> None:
    held = item(WIDGETS, "held", metadata=going(600, "finalizer.keda.sh"))
    everywhere = explain(world(held), Graph(()), held)
    assert {root.code for root in everywhere.roots} == {CauseCode.FINALIZER_CONTROLLER_MISSING}
    for made in (world(held, unread={kinds.DEPLOYMENTS: "forbidden"}), world(held, namespaces=("shop",))):
        explanation = explain(made, Graph(()), held)
        assert {root.code for root in explanation.roots} == {CauseCode.FINALIZER_CONTROLLER_UNCLEAR}
        assert confidence(explanation) is Confidence.LOW


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(3600, "NOT FINISHED: its parts go first"), (60, "UNDER WAY, or not finished: its parts go first")],
)
def test_what_an_unfinished_teardown_holds_is_taken_down_by_finishing_it(seconds: float, said: str) -> None:
    held = item(WIDGETS, "held", metadata=going(seconds, HOLD))
    for made in (world(held), world(held, namespaces=("shop",))):  # no owner has to be searched for
        explanation = explain(made, Graph(()), held)
        assert explanation.verdict is StuckVerdict.STUCK
        (root,) = explanation.roots
        assert root.code == CauseCode.FINALIZER_TEARDOWN_UNFINISHED
        assert root.text.startswith(said)
        assert any("kept by an unfinished pilotage delete" in line for line in render(explanation))
        finish, strip = remedies_of(explanation)
        assert finish.command == "pilotage delete widgets.gadgets.example.com/held -n shop"
        assert "--resume RECEIPT" in finish.effect
        assert "Nothing leaks" in finish.effect
        assert (strip.code, strip.detail) == ("strip-finalizer", HOLD)
        assert "in any order" in strip.effect


def test_a_delete_of_what_an_unfinished_teardown_holds_would_hang() -> None:
    held = item(WIDGETS, "held", metadata={"finalizers": [HOLD]})
    explanation = explain(world(held), Graph(()), held)
    assert {root.code for root in explanation.roots} == {CauseCode.FINALIZER_TEARDOWN_UNFINISHED}
    assert [remedy.command for remedy in remedies_of(explanation)] == [
        "pilotage delete widgets.gadgets.example.com/held -n shop"
    ]


@pytest.mark.parametrize(
    ("places", "command"),
    [
        (("shop", "shop"), "pilotage delete widgets.gadgets.example.com/a configmap/b -n shop"),
        (("shop", "bank"), "kubectl describe widgets.gadgets.example.com/a -n shop"),  # one command has one namespace
    ],
)
def test_those_that_wait_for_each_other_go_together_if_one_command_can_name_them(
    places: tuple[str, str], command: str
) -> None:
    circle = [
        item(WIDGETS, "a", places[0], metadata=going(600, "x")),
        item(kinds.CONFIG_MAPS, "b", places[1], metadata=going(600, "x")),
    ]
    assert delete_together(circle).command == command


def test_a_namespace_of_many_alike_is_told_in_a_few_lines() -> None:
    namespace = item(kinds.NAMESPACES, "shop", metadata=going(600), spec={"finalizers": ["kubernetes"]})
    many = [item(kinds.CONFIG_MAPS, f"map-{number}", metadata=going(600, "hold.test/x")) for number in range(2000)]
    explanation = explain(world(namespace, *many), Graph(()), namespace)
    assert "(and 1999 more like it)" in explanation.causes[0].text
    assert len(render(explanation)) < 20


def test_what_is_held_by_nothing_for_an_hour_is_unknown() -> None:
    held = item(kinds.CONFIG_MAPS, "odd", metadata=going(3600))
    explanation = explain(world(held), Graph(()), held)
    assert explanation.verdict is StuckVerdict.UNKNOWN
    assert explanation.headline == "terminating for 60m; nothing that could be read holds it"


def test_a_pod_in_its_grace_is_not_stuck() -> None:
    pod = item(PODS, "web", metadata={**going(-12), "deletionGracePeriodSeconds": 30}, status={"phase": "Running"})
    explanation = explain(world(pod), Graph(()), pod)
    assert explanation.verdict is StuckVerdict.NOT_STUCK
    assert explanation.headline == "not stuck: 12 s of grace left"


def _reference(uid: str, number: int) -> Json:
    meta = {"apiVersion": "v1", "kind": "ConfigMap", "name": f"map-{number}", "uid": uid}
    return {**meta, "blockOwnerDeletion": True}
