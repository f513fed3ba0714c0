"""Arbitrary content of the objects that a family reads, and arbitrary answers: the result is an explanation."""

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilotage.kube import ErrorClass, Json, Resource
from pilotage.teardown.diagnosis.fix import propose
from pilotage.teardown.diagnosis.why.explain import explain
from pilotage.teardown.diagnosis.why.model import Explanation, StuckCause, StuckVerdict
from pilotage.teardown.diagnosis.why.render import remedies_of
from pilotage.teardown.relations import relate
from pilotage.teardown.snapshot.questions import Answer
from tests.support.kinds import CONFIG_MAPS, NAMESPACES
from tests.teardown.why import objects, worlds
from tests.teardown.why.worlds import ago, item, world

KINDS = (
    objects.API_SERVICES,
    objects.ATTACHMENTS,
    objects.AUTOSCALERS,
    objects.BINDINGS,
    objects.BUDGETS,
    objects.CLAIMS,
    objects.DEPLOYMENTS,
    objects.JOBS,
    objects.NODES,
    objects.POLICIES,
    objects.SERVICES,
    objects.SLICES,
    objects.STATEFUL_SETS,
    objects.VALIDATING,
    objects.VOLUMES,
    worlds.PODS,
    NAMESPACES,
    Resource("argoproj.io", "v1alpha1", "applications", "Application"),
    Resource("keda.sh", "v1alpha1", "scaledobjects", "ScaledObject"),
    Resource("protection.crossplane.io", "v1beta1", "clusterusages", "ClusterUsage", False),
    Resource("protection.crossplane.io", "v1beta1", "usages", "Usage"),
)
_FIELDS = """
    addresses apiGroups apiVersion apiVersions attacher by claimName claimRef clientConfig conditions containers
    containerStatuses detachError disruptionsAllowed endpoints ephemeral failurePolicy ingress jobTemplate key kind
    labels lastScaleTime lastTransitionTime lifecycle limits loadBalancer matchConditions matchConstraints
    matchExpressions matchLabels matchResources maxUnavailable message metadata minAvailable minReplicaCount
    minReplicas name namespace namespaceSelector nodeName objectSelector of operations operator
    persistentVolumeClaim persistentVolumeName persistentVolumeReclaimPolicy phase policyName preStop ready reason
    replicas resourceRef resourceRules resources rules running scaleTargetRef scope selector service sideEffects
    source spec state status syncPolicy template type validationActions values volumeClaimTemplates volumes waiting
    webhooks
"""
FIELDS = tuple(_FIELDS.split())
HOSTILE = "x'; rm -rf ~ #$(id)`id`|&<>\n\x1b[2J\""
"""Characters that a shell would act upon, if they were unquoted in a command that is shown to be copied."""
WORDS = (
    "",
    "*",
    "a",
    "b",
    HOSTILE,
    "shop",
    "DELETE",
    "UPDATE",
    "Deny",
    "Ready",
    "Available",
    "False",
    "Unknown",
    "In",
    "Pod",
)
LABELS = (
    "app",
    "argocd.argoproj.io/instance",
    "batch.kubernetes.io/controller-uid",
    "crossplane.io/composite",
    "crossplane.io/in-use",
    "job-name",
    "kubernetes.io/service-name",
    "kustomize.toolkit.fluxcd.io/name",
)
ANNOTATIONS = ("argocd.argoproj.io/tracking-id", "kubernetes.io/config.mirror", "meta.helm.sh/release-name")
FINALIZERS = (
    "acme.example.com/hold",
    f"acme.example.com/{HOSTILE}",
    "batch.kubernetes.io/job-tracking",
    "foregroundDeletion",
    "kubernetes.io/pv-protection",
    "kubernetes.io/pvc-protection",
    "service.kubernetes.io/load-balancer-cleanup",
    "usage.apiextensions.crossplane.io",
)
MESSAGES = (
    "",
    'failed calling webhook "a": failed to call webhook: connection refused',
    'admission webhook "b" denied the request',
    "ValidatingAdmissionPolicy 'a' with binding 'b' denied request: no",
    "Widget is invalid",
    f"ValidatingAdmissionPolicy 'a' with binding '{HOSTILE}' denied request: no",
    f'deployments.apps is forbidden: User "{HOSTILE}" cannot delete resource "deployments" in API group "apps"',
)

scalars = st.none() | st.booleans() | st.integers() | st.sampled_from(WORDS) | st.text(max_size=3)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=8,
)
parts = st.dictionaries(st.sampled_from(FIELDS), anything, max_size=5)
names = st.sampled_from(("a", "b", HOSTILE))


@st.composite
def metadata(draw: Any) -> Json:
    meta: Json = {
        "labels": draw(st.dictionaries(st.sampled_from(LABELS), st.sampled_from(WORDS), max_size=3)),
        "annotations": draw(st.dictionaries(st.sampled_from(ANNOTATIONS), st.sampled_from(WORDS), max_size=2)),
        "finalizers": draw(st.lists(st.sampled_from(FINALIZERS), max_size=2, unique=True)),
        "creationTimestamp": draw(st.sampled_from(("", ago(10), ago(10**6), "soon"))),
        "managedFields": draw(st.lists(anything, max_size=2)),
    }
    if draw(st.booleans()):
        meta |= {"deletionTimestamp": draw(st.sampled_from((ago(600), ago(-60), "now")))}
        meta |= {"deletionGracePeriodSeconds": draw(st.integers(0, 60))}
    return meta


@st.composite
def things(draw: Any) -> Any:
    resource = draw(st.sampled_from(KINDS))
    top = {name: draw(parts) for name in ("spec", "status")} | {"webhooks": draw(anything), "endpoints": draw(anything)}
    if resource is NAMESPACES:
        top["spec"] |= {"finalizers": draw(st.lists(st.sampled_from(FINALIZERS), max_size=2))}
    return item(resource, draw(names), full=draw(st.booleans()), metadata=draw(metadata()), **top)


answers = st.builds(
    Answer,
    allowed=st.booleans(),
    body=parts,
    items=st.lists(parts, max_size=2).map(tuple),
    error_class=st.none() | st.sampled_from(ErrorClass),
    message=st.sampled_from(MESSAGES),
)


def means_one_thing(command: str) -> bool:
    """Outside of quotes, nothing in it means anything to a shell but the `&&` of ours."""
    bare = re.sub(r"'[^']*'|\"'\"", "", command).replace(" && ", " ")
    return re.fullmatch(r"[\w@%+=:,./ …-]*", bare, re.ASCII) is not None


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(things(), min_size=1, max_size=4), st.booleans(), st.data())
def test_any_content_and_any_answer(seen: list[Any], live: bool, data: st.DataObject) -> None:
    made = world(*seen, live=live)
    graph = relate(made)
    for each in seen:
        explanation = explain(made, graph, each)
        for question in sorted(made.wanted - made.answers.keys(), key=repr):
            made.answers[question] = data.draw(answers)
        explanation = explain(made, graph, each)
        assert explanation.verdict in StuckVerdict
        assert all(cause.text and cause.subject for cause in explanation.roots)
        for remedy in remedies_of(explanation):
            assert means_one_thing(remedy.command), remedy.command
        for remedy in remedies_of(explanation) if live else ():
            if remedy.code:  # the offered remedies can be applied
                alone = (StuckCause("staged", each, "is staged", remedies=(remedy,)),)
                offered = Explanation(each, StuckVerdict.STUCK, "stuck", alone)
                assert propose(made, offered, remedy.code, finalizer=remedy.detail).remedy is remedy


@pytest.mark.parametrize("field", ["namespaceSelector", "objectSelector"])
def test_a_selector_that_nobody_understands_may_match(field: str) -> None:
    """The server is asked rather than the webhook overlooked; in a dump, what is behind it decides."""
    rule = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}
    service = {"namespace": "guards", "name": "guard"}
    hook = {"name": "guard", "rules": [rule], "clientConfig": {"service": service}}
    strange = {"matchExpressions": [{"key": "a", "operator": ["In"]}]}
    guard = item(objects.VALIDATING, "guard", webhooks=[hook | {field: strange}])
    settings_ = item(CONFIG_MAPS, "settings")
    made = world(guard, settings_)
    explanation = explain(made, relate(made), settings_)
    assert [str(cause.code) for cause in explanation.causes] == ["webhook-fails-on-delete"]
