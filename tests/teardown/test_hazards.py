"""Hazards that `pilotage plan` predicts, and which of them block. A real API server decides where only one can tell."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from controlplane import Access, Cluster
from pilotage.kube import Client, Discovery, Json, Resource, load_config
from pilotage.kube.errors import ErrorClass
from pilotage.teardown.diagnosis.hazards import FULL, Hazard, HazardCode, predict
from pilotage.teardown.diagnosis.hazards.finalizers import others_matter
from pilotage.teardown.diagnosis.hazards.permissions import EVERYTHING
from pilotage.teardown.planning.ledger import Disposition, Entry, Ledger, Policy
from pilotage.teardown.planning.plan import make_ledger
from pilotage.teardown.relations import full_kinds, relate
from pilotage.teardown.snapshot.gather import gather
from pilotage.teardown.snapshot.questions import Answer, DryRunDelete, FullObject, MayI
from pilotage.teardown.snapshot.resolve import until_resolved
from pilotage.teardown.snapshot.world import KindReading, World
from tests.support.kinds import CONFIG_MAPS, SERVICES, config_map, existing
from tests.support.waiting import eventually
from tests.teardown.relations.worlds import owned_by, world_of

OLD = "2026-11-15T10:00:00Z"
KSERVE = "inferenceservice.finalizers"
WEBHOOKS = "admissionregistration.k8s.io/v1"


def made(api_version: str, kind: str, name: str, meta: Json | None = None, **fields: Any) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name} | (meta or {})} | fields


def predicted(world: World, *uids: str, **options: Any) -> list[Hazard]:
    """Hazards of a teardown of these uids, as a plan finds them."""
    graph = relate(world)
    items = [item for uid in uids if (item := world.get(uid))]
    assert len(items) == len(uids)
    ledger = make_ledger(world, graph, items, Policy(**options))
    return predict(world, graph, ledger)


def codes(hazards: list[Hazard]) -> dict[str, bool]:
    """The codes, and whether one of each blocks."""
    found: dict[str, bool] = {}
    for hazard in hazards:
        found[str(hazard.code)] = found.get(str(hazard.code), False) or hazard.blocks
    return found


def the(hazards: list[Hazard], code: HazardCode) -> Hazard:
    (hazard,) = [each for each in hazards if each.code is code]
    return hazard


# Finalizers and their owners


def operator(available: int, namespace: str = "kserve") -> Json:
    status = {"replicas": 1, "availableReplicas": available}
    return made(
        "apps/v1",
        "Deployment",
        "kserve-controller-manager",
        {"namespace": namespace},
        spec={"replicas": 1},
        status=status,
    )


def service_of_kserve(name: str = "chat", **meta: Any) -> Json:
    return made("serving.kserve.io/v1beta1", "InferenceService", name, {"finalizers": [KSERVE]} | meta)


CHAT = "inferenceservice/chat"
OPERATOR = "deployment/kserve-controller-manager"


def test_a_dead_controller_blocks_what_waits_for_it():
    hazard = the(predicted(world_of([service_of_kserve(), operator(0)]), CHAT), HazardCode.KEEPER_DEAD)
    assert hazard.blocks
    assert "inferenceservice/chat -n shop will hang on finalizer inferenceservice.finalizers" in hazard.text
    assert "kubectl describe deployment/kserve-controller-manager -n kserve" in hazard.command


def test_a_controller_that_runs_is_no_hazard():
    assert predicted(world_of([service_of_kserve(), operator(1)]), CHAT) == []


def test_alike_objects_are_told_once():
    hazards = predicted(world_of([service_of_kserve("a"), service_of_kserve("b"), operator(0)]), *(
        "inferenceservice/a", "inferenceservice/b"
    ))  # fmt: skip
    assert "and 1 more like it" in the(hazards, HazardCode.KEEPER_DEAD).text


def test_a_finalizer_of_the_table_is_told_once_for_all_kinds():
    other = made("serving.kserve.io/v1alpha1", "TrainedModel", "m", {"finalizers": [KSERVE]})
    hazards = predicted(world_of([service_of_kserve(), other, operator(0)]), CHAT, "trainedmodel/m")
    assert "and 1 more like it" in the(hazards, HazardCode.KEEPER_DEAD).text


def test_a_keeper_that_was_guessed_by_its_name_blocks_nothing():
    config = made("v1", "ConfigMap", "a", {"finalizers": ["cleanup.acme.io/x"]})
    worker = made("apps/v1", "Deployment", "acme-worker", spec={"replicas": 0})
    assert codes(predicted(world_of([config, worker]), "configmap/a")) == {"keeper-dead": False}


def test_an_operator_that_goes_while_its_objects_stay_leaves_them_undeletable():
    hazard = the(predicted(world_of([service_of_kserve(), operator(1)]), OPERATOR), HazardCode.KEEPER_GOES_FIRST)
    assert hazard.blocks
    assert "inferenceservice/chat" in hazard.text
    assert "in the same teardown" in hazard.advice


def test_an_operator_that_goes_with_its_objects_goes_after_them():
    assert predicted(world_of([service_of_kserve(), operator(1)]), CHAT, OPERATOR) == []


def test_an_operator_whose_namespace_is_being_deleted_is_killed_first():
    leaving = made("v1", "Namespace", "kserve", {"deletionTimestamp": OLD})
    hazards = predicted(world_of([service_of_kserve(), operator(1), leaving]), CHAT)
    assert the(hazards, HazardCode.KEEPER_GOES_FIRST).blocks


def test_a_finalizer_that_nobody_was_seen_to_keep_is_worth_a_word():
    hazards = predicted(world_of([made("v1", "ConfigMap", "a", {"finalizers": ["acme.io/x"]})]), "configmap/a")
    assert codes(hazards) == {"keeper-unknown": False}


@pytest.mark.parametrize("gone", [{}, {"deletionTimestamp": OLD}])
def test_a_finalizer_that_nothing_in_the_cluster_removes_blocks(gone: dict[str, str]):
    kept = made("v1", "ConfigMap", "a", {"finalizers": ["acme.io/x"], **gone})
    hazards = predicted(world_of([kept, operator(1)]), "configmap/a")
    assert codes(hazards) == {"keeper-missing": True}
    assert hazards[0].text == (
        "configmap/a -n shop will hang on finalizer acme.io/x: nothing was found that removes it"
    )
    assert hazards[0].command == "pilotage why configmap/a -n shop"


def test_a_load_balancer_without_a_cloud_controller():
    balancer = made("v1", "Service", "web", {"finalizers": ["service.kubernetes.io/load-balancer-cleanup"]})
    assert codes(predicted(world_of([balancer]), "service/web")) == {"load-balancer-unkept": False}


# Permissions


def ask_about(allowed: dict[MayI, Answer]) -> tuple[World, list[Hazard]]:
    world = world_of([made("v1", "ConfigMap", "a"), made("v1", "ConfigMap", "b")], live=True)
    for question, answer in allowed.items():
        world.answers[question] = answer
    return world, predicted(world, "configmap/a", "configmap/b")


def test_who_may_do_everything_is_asked_one_question():
    world, hazards = ask_about({EVERYTHING: Answer(allowed=True)})
    assert hazards == []
    assert world.wanted == set()


def test_others_are_asked_once_for_each_verb_and_place():
    world, _ = ask_about({EVERYTHING: Answer(allowed=False)})
    assert world.wanted == {MayI(verb, "", "configmaps", "shop") for verb in ("delete", "list", "watch")}


def test_a_permission_that_is_missing_blocks_and_an_answer_that_is_missing_does_not():
    yes, no = Answer(allowed=True), Answer(allowed=False)
    rest = {MayI(verb, "", "configmaps", "shop"): yes for verb in ("list", "watch")}
    delete = MayI("delete", "", "configmaps", "shop")
    _, hazards = ask_about({EVERYTHING: no, delete: no} | rest)
    assert codes(hazards) == {"may-not-delete": True}
    assert "kubectl auth can-i delete configmaps -n shop" in hazards[0].command
    failed = Answer(allowed=False, error_class=ErrorClass.UNAVAILABLE, message="no answer")
    assert ask_about({EVERYTHING: no, delete: failed} | rest)[1] == []


def test_without_the_right_to_watch_it_is_slower_and_not_blocked():
    no = Answer(allowed=False)
    rest = {MayI(verb, "", "configmaps", "shop"): Answer(allowed=True) for verb in ("list", "delete")}
    _, hazards = ask_about({EVERYTHING: no, MayI("watch", "", "configmaps", "shop"): no} | rest)
    assert codes(hazards) == {"may-not-watch": False}


def test_what_is_to_be_kept_from_its_owner_has_to_be_changed():
    owner = made("v1", "ConfigMap", "a")
    kept = made("v1", "Secret", "s", {"ownerReferences": owned_by("ConfigMap", "a", api_version="v1")})
    world = world_of([owner, kept], live=True)
    world.answers[EVERYTHING] = Answer(allowed=False)
    predicted(world, "configmap/a", keep_uids=frozenset({"secret/s"}))
    asked = {each for each in world.wanted if isinstance(each, MayI) and each.plural == "secrets"}
    assert asked == {MayI("patch", "", "secrets", "shop")}


# Admission


def webhook(name: str = "guard", *operations: str, **more: Any) -> Json:
    rule = {"operations": list(operations) or ["DELETE"], "apiGroups": [""], "resources": ["configmaps"]}
    service = {"namespace": "ops", "name": "hook"}
    hook = {"name": "w.io", "rules": [rule], "clientConfig": {"service": service}, "sideEffects": "None"} | more
    return made(WEBHOOKS, "ValidatingWebhookConfiguration", name, webhooks=[hook])


def with_webhook(answer: Answer | None, configuration: Json) -> tuple[World, list[Hazard]]:
    world = world_of([made("v1", "ConfigMap", "a"), configuration], live=True)
    world.read_kind(KindReading(Resource("", "v1", "services", "Service")))
    world.answers[EVERYTHING] = Answer(allowed=True)
    if answer is not None:
        world.answers[DryRunDelete("configmap/a")] = answer
    return world, predicted(world, "configmap/a")


def refused(message: str, error_class: ErrorClass = ErrorClass.FORBIDDEN) -> Answer:
    return Answer(allowed=False, error_class=error_class, message=message)


def test_a_webhook_that_lets_the_dry_run_pass_is_no_hazard():
    assert with_webhook(Answer(), webhook())[1] == []


def test_a_webhook_that_fails_or_denies_blocks():
    failing = refused('Internal error occurred: failed calling webhook "w.io": no endpoints', ErrorClass.UNAVAILABLE)
    assert codes(with_webhook(failing, webhook())[1]) == {"webhook-fails": True}
    denying = refused('admission webhook "w.io" denied the request: not on Fridays')
    hazard = the(with_webhook(denying, webhook())[1], HazardCode.WEBHOOK_DENIES)
    assert hazard.blocks
    assert "not on Fridays" in hazard.evidence[0]


def test_a_refusal_for_lack_of_permission_is_not_blamed_on_admission():
    answer = refused('configmaps "a" is forbidden: User "eve" cannot delete resource "configmaps" in API group ""')
    assert with_webhook(answer, webhook())[1] == []


def test_the_webhook_of_crossplane_is_never_asked():
    usages = webhook("crossplane-no-usages")
    world, hazards = with_webhook(None, usages)
    assert DryRunDelete("configmap/a") not in world.wanted
    assert codes(hazards) == {"webhook-fails": True}  # its Service does not exist, as the snapshot shows


def test_a_webhook_with_side_effects_is_judged_by_what_is_behind_it():
    world, hazards = with_webhook(None, webhook(sideEffects="Some"))
    assert DryRunDelete("configmap/a") not in world.wanted
    assert codes(hazards) == {"webhook-fails": True}


def test_where_no_webhook_is_asked_nothing_is_tried():
    world, hazards = with_webhook(None, webhook("guard", "CREATE"))
    assert (world.wanted, hazards) == (set(), [])


# Whole namespaces

SHOP = made("v1", "Namespace", "shop")


def dead_api(status: str = "False") -> Json:
    condition = {"type": "Available", "status": status, "reason": "ServiceNotFound"}
    spec = {"service": {"namespace": "ops", "name": "x"}}
    return made("apiregistration.k8s.io/v1", "APIService", "v1.x.io", spec=spec, status={"conditions": [condition]})


def test_a_dead_api_keeps_every_namespace():
    assert codes(predicted(world_of([SHOP, dead_api()]), "namespace/shop")) == {"apiservice-dead": True}
    assert predicted(world_of([SHOP, dead_api("True")]), "namespace/shop") == []
    assert predicted(world_of([SHOP, made("v1", "ConfigMap", "a"), dead_api()]), "configmap/a") == []


def test_what_could_not_be_read_may_be_missing_from_the_plan():
    world = world_of([SHOP, made("v1", "ConfigMap", "a")])
    secrets = Resource("", "v1", "secrets", "Secret")
    world.read_kind(KindReading(secrets, problem="you may not", error_class=ErrorClass.FORBIDDEN))
    assert codes(predicted(world, "configmap/a")) == {"kinds-unread": False}
    assert codes(predicted(world, "namespace/shop")) == {"namespace-content-unknown": False}
    world.read_kind(KindReading(secrets, problem="no answer", error_class=ErrorClass.UNAVAILABLE))
    assert codes(predicted(world, "namespace/shop")) == {"namespace-content-unknown": True}


# Protection


def usage(**meta: Any) -> Json:
    of = {"apiVersion": "v1", "kind": "ConfigMap", "resourceRef": {"name": "a"}}
    return made("protection.crossplane.io/v1beta1", "Usage", "u", meta, spec={"of": of})


def test_a_usage_refuses_the_delete_unless_it_goes_first():
    config = made("v1", "ConfigMap", "a", {"labels": {"crossplane.io/in-use": "true"}})
    hazard = the(predicted(world_of([config, usage()]), "configmap/a"), HazardCode.IN_USE)
    assert hazard.blocks
    assert hazard.text.startswith("usage/u -n shop protects configmap/a -n shop")
    assert predicted(world_of([config, usage()]), "configmap/a", "usage/u") == []
    assert codes(predicted(world_of([config]), "configmap/a")) == {"in-use": False}  # the label alone


def claimed(*more: Json) -> World:
    claim = made("v1", "PersistentVolumeClaim", "data")
    pod = {"volumes": [{"persistentVolumeClaim": {"claimName": "data"}}]}
    web = made("apps/v1", "Deployment", "web", spec={"template": {"spec": pod}})
    return world_of([claim, web, *more])


def test_a_claim_waits_for_the_pods_that_stay():
    pods = [
        made("apps/v1", "ReplicaSet", "web-1", {"ownerReferences": owned_by("Deployment", "web")}),
        made("v1", "Pod", "web-1-a", {"ownerReferences": owned_by("ReplicaSet", "web-1")}),
    ]
    hazard = the(predicted(claimed(*pods), "persistentvolumeclaim/data"), HazardCode.CLAIM_IN_USE)
    assert hazard.blocks
    assert "pod/web-1-a" in hazard.text
    assert predicted(claimed(*pods), "persistentvolumeclaim/data", "deployment/web") == []
    assert predicted(claimed(), "persistentvolumeclaim/data") == []  # nothing runs


def test_a_budget_does_not_keep_pods_from_being_deleted():
    pod = made("v1", "Pod", "a", {"labels": {"app": "web"}})
    budget = made("policy/v1", "PodDisruptionBudget", "b", spec={"selector": {"matchLabels": {"app": "web"}}})
    assert codes(predicted(world_of([pod, budget]), "pod/a")) == {"budget-ignored": False}


# References

WEB = made("v1", "Service", "web", spec={"selector": {"app": "web"}})


def test_a_route_that_stays_breaks_for_its_share():
    rules = [{"backendRefs": [{"name": "web"}]}]
    route = made("gateway.networking.k8s.io/v1", "HTTPRoute", "r", spec={"rules": rules})
    hazard = the(predicted(world_of([WEB, route]), "service/web"), HazardCode.ROUTE_LOSES_BACKEND)
    assert not hazard.blocks
    assert "answers 500 for its share" in hazard.text
    assert predicted(world_of([WEB, route]), "service/web", "httproute/r") == []


def test_a_route_in_another_namespace_is_told_as_such():
    rules = [{"backendRefs": [{"name": "web", "namespace": "shop"}]}]
    meta = {"namespace": "edge"}
    route = made("gateway.networking.k8s.io/v1", "HTTPRoute", "r", meta, spec={"rules": rules})
    hazard = the(predicted(world_of([WEB, route]), "service/web"), HazardCode.ROUTE_LOSES_BACKEND)
    assert "it goes from namespace edge to shop" in hazard.evidence
    hazards = predicted(world_of([WEB, route]), "httproute/r")
    assert codes(hazards) == {"refers-to-other-namespace": False}


def test_a_reference_to_a_namespace_that_was_not_read_is_told_with_care():
    rules = [{"backendRefs": [{"name": "web", "namespace": "shop"}]}]
    route = made("gateway.networking.k8s.io/v1", "HTTPRoute", "r", {"namespace": "edge"}, spec={"rules": rules})
    world = world_of([route])
    world.namespaces = frozenset({"edge"})
    hazard = the(predicted(world, "httproute/r"), HazardCode.REFERS_TO_OTHER_NAMESPACE)
    assert "service/web -n shop, which is in another namespace, and stays if it is there" in hazard.text
    everything = world_of([route, WEB | {"metadata": {"name": "other"}}])
    assert predicted(everything, "httproute/r") == []  # all was read, and it is not there


def test_a_monitor_of_all_namespaces_may_select_more_than_was_read():
    spec = {"selector": {"matchLabels": {"app": "web"}}, "namespaceSelector": {"any": True}}
    monitor = made("monitoring.coreos.com/v1", "ServiceMonitor", "all", {"namespace": "watch"}, spec=spec)
    web = made("v1", "Service", "web", {"labels": {"app": "web"}})
    world = world_of([monitor, web])
    assert codes(predicted(world, "service/web")) == {"selects-nothing-left": False}
    world.namespaces = frozenset({"shop"})
    assert predicted(world, "service/web") == []


def test_what_runs_elsewhere_matters_for_finalizers_that_are_not_of_kubernetes_itself():
    def matters(*bodies: Json) -> bool:
        world = world_of(list(bodies))
        world.namespaces = frozenset({"shop"})
        return others_matter(world)

    assert not matters(made("v1", "PersistentVolumeClaim", "c", {"finalizers": ["kubernetes.io/pvc-protection"]}))
    assert matters(made("v1", "ConfigMap", "a", {"finalizers": [KSERVE]}))
    assert not matters(service_of_kserve(namespace="elsewhere"))
    assert matters(service_of_kserve(namespace="elsewhere"), operator(1, namespace="shop"))


def test_an_autoscaler_and_a_service_that_stay_have_nothing_left():
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    scaler = made("autoscaling/v2", "HorizontalPodAutoscaler", "web", spec={"scaleTargetRef": target})
    template = {"metadata": {"labels": {"app": "web"}}}
    web = made("apps/v1", "Deployment", "web", spec={"template": template})
    hazards = predicted(world_of([WEB, web, scaler]), "deployment/web")
    assert codes(hazards) == {"scaler-loses-target": False, "selects-nothing-left": False}
    twin = made("apps/v1", "Deployment", "twin", spec={"template": template})
    hazards = predicted(world_of([WEB, web, twin, scaler]), "deployment/web")
    assert codes(hazards) == {"scaler-loses-target": False}


def test_a_webhook_or_api_that_outlives_its_service_refuses_or_blocks_others():
    hook = made("v1", "Service", "hook", {"namespace": "ops"})
    world = world_of([hook, webhook()])
    hazard = the(predicted(world, "service/hook"), HazardCode.WEBHOOK_LOSES_SERVICE)
    assert hazard.blocks
    assert "what w.io checks is refused then" in hazard.text
    assert not the(predicted(world_of([hook, webhook(failurePolicy="Ignore")]), "service/hook"), hazard.code).blocks
    assert predicted(world, "service/hook", "validatingwebhookconfiguration/guard") == []
    served = made("v1", "Service", "x", {"namespace": "ops"})
    hazards = predicted(world_of([served, dead_api("True")]), "service/x")
    assert codes(hazards) == {"apiservice-loses-service": True}


def test_a_binding_to_an_account_that_goes():
    account = made("v1", "ServiceAccount", "bot")
    subjects = [{"kind": "ServiceAccount", "name": "bot", "namespace": "shop"}]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
    binding = made("rbac.authorization.k8s.io/v1", "RoleBinding", "b", subjects=subjects, roleRef=role)
    assert codes(predicted(world_of([account, binding]), "serviceaccount/bot")) == {"reference-dangles": False}


# Owners


def test_what_is_controlled_from_above_is_made_again():
    above = made("apps/v1", "Deployment", "web")
    part = made("apps/v1", "ReplicaSet", "web-1", {"ownerReferences": owned_by("Deployment", "web")})
    hazard = the(predicted(world_of([above, part]), "replicaset/web-1"), HazardCode.OWNER_MAKES_IT_AGAIN)
    assert hazard.text.startswith("deployment/web -n shop stays and controls replicaset/web-1")
    assert predicted(world_of([above, part]), "deployment/web") == []
    assert predicted(world_of([above, part]), "replicaset/web-1", "deployment/web") == []


def test_what_has_no_namespace_is_not_collected_with_what_has_one():
    owners = owned_by("ConfigMap", "a", api_version="v1")
    role = made("rbac.authorization.k8s.io/v1", "ClusterRole", "r", {"ownerReferences": owners})
    hazards = predicted(world_of([made("v1", "ConfigMap", "a"), role]), "configmap/a")
    assert "never-collected" in codes(hazards)


def test_pods_that_a_job_lost_before_stay():
    labels = {"batch.kubernetes.io/controller-uid": "job/j"}
    pod = made("v1", "Pod", "p", {"labels": labels})
    job = made("batch/v1", "Job", "j")
    assert codes(predicted(world_of([job, pod]), "job/j")) == {"job-pods-orphaned": False}
    owned = made("v1", "Pod", "p", {"labels": labels, "ownerReferences": owned_by("Job", "j", api_version="batch/v1")})
    assert predicted(world_of([job, owned]), "job/j") == []
    both = [*owned_by("Job", "j", api_version="batch/v1"), *owned_by("ConfigMap", "a", api_version="v1")]
    shared = made("v1", "Pod", "p", {"labels": labels, "ownerReferences": both})
    assert predicted(world_of([job, shared, made("v1", "ConfigMap", "a")]), "job/j") == []  # it stays with its other


# Nodes, volumes, cycles, kept objects


def on_node(ready: str | None) -> World:
    pod = made("v1", "Pod", "p", spec={"nodeName": "n1"})
    conditions = [{"type": "Ready", "status": ready, "reason": "NodeStatusUnknown"}]
    node = made("v1", "Node", "n1" if ready else "n2", status={"conditions": conditions})
    return world_of([pod, node])


def test_a_pod_on_a_lost_node_is_never_confirmed_to_have_ended():
    assert codes(predicted(on_node("Unknown"), "pod/p")) == {"pod-on-lost-node": True}
    assert codes(predicted(on_node(None), "pod/p")) == {"pod-on-lost-node": True}
    assert predicted(on_node("True"), "pod/p") == []


def test_no_pod_is_asked_for_its_node_where_no_node_was_read():
    owner = made("apps/v1", "ReplicaSet", "web")
    pod = made("v1", "Pod", "p", {"ownerReferences": owned_by("ReplicaSet", "web")}, spec={"nodeName": "n1"})
    world = world_of([owner, pod], live=True, full=False)
    assert predicted(world, "replicaset/web") == []
    assert FullObject("pod/p") not in world.wanted


def test_a_volume_that_is_retained_stays_when_its_claim_goes():
    claim = made("v1", "PersistentVolumeClaim", "data", spec={"volumeName": "pv"})
    ref = {"namespace": "shop", "name": "data"}
    spec = {"persistentVolumeReclaimPolicy": "Retain", "claimRef": ref}
    volume = made("v1", "PersistentVolume", "pv", spec=spec)
    assert codes(predicted(world_of([claim, volume]), "persistentvolumeclaim/data")) == {"volume-retained": False}


def test_what_is_kept_is_taken_from_its_owner():
    owner = made("apps/v1", "Deployment", "web")
    secret = made("v1", "Secret", "s", {"ownerReferences": owned_by("Deployment", "web")})
    hazards = predicted(world_of([owner, secret]), "deployment/web", keep_uids=frozenset({"secret/s"}))
    assert codes(hazards) == {"kept-from-owner": False}


def test_a_circle_is_told():
    world = world_of([made("v1", "ConfigMap", "a"), made("v1", "ConfigMap", "b")])
    graph = relate(world)
    both = [item for item in world]  # noqa: C416 - a list of what is iterated
    ledger = make_ledger(world, graph, both, Policy())
    circular = Ledger(
        targets=ledger.targets,
        started=ledger.started,
        policy=ledger.policy,
        entries=ledger.entries,
        cycles=(("configmap/a", "configmap/b"),),
    )
    assert codes(predict(world, graph, circular)) == {"cycle": False}


def test_what_blocks_comes_first_and_nothing_in_the_way_is_nothing_said():
    balancer = made("v1", "Service", "web", {"finalizers": ["service.kubernetes.io/load-balancer-cleanup"]})
    world = world_of([service_of_kserve(), operator(0), balancer])
    assert [each.blocks for each in predicted(world, "service/web", CHAT)] == [True, False]
    assert predicted(world_of([made("v1", "ConfigMap", "a")]), "configmap/a") == []


# Any world

NAMES = st.sampled_from(["a", "b"])
KINDS = st.sampled_from(
    [
        ("v1", "Pod"), ("v1", "Service"), ("v1", "Namespace"), ("v1", "PersistentVolumeClaim"),
        ("apps/v1", "Deployment"), ("batch/v1", "Job"), ("policy/v1", "PodDisruptionBudget"),
        (WEBHOOKS, "ValidatingWebhookConfiguration"),
        ("apiregistration.k8s.io/v1", "APIService"), ("protection.crossplane.io/v1beta1", "Usage"),
    ]
)  # fmt: skip
JUNK = st.recursive(
    st.none() | st.integers(-2, 2) | st.sampled_from(["", "a", "Unknown", "DELETE", "*"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["service", "name", "rules", "conditions", "of", "nodeName"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


@st.composite
def objects(draw: st.DrawFn) -> Json:
    api_version, kind = draw(KINDS)
    name = draw(NAMES)
    meta: Json = {"finalizers": draw(st.lists(st.sampled_from([KSERVE, "acme.io/x"]), max_size=2))}
    if draw(st.booleans()):
        meta["deletionTimestamp"] = OLD
    owner_api, owner = draw(KINDS)
    if draw(st.booleans()):
        meta["ownerReferences"] = owned_by(owner, draw(NAMES), api_version=owner_api)
    return made(api_version, kind, name, meta, **draw(st.dictionaries(st.sampled_from(["spec", "status"]), JUNK)))


@given(st.lists(objects(), min_size=1, max_size=5), st.booleans())
def test_any_ledger_of_any_world_is_judged_without_a_fault(bodies: list[Json], live: bool):
    world = world_of(bodies, live=live)
    first = next(iter(world))
    for hazard in predicted(world, first.uid):
        assert hazard.text
        assert hazard.to_json()["code"] == str(hazard.code)


# Answers of a real API server


@contextlib.asynccontextmanager
async def connected(kubeconfig: object) -> AsyncIterator[Client]:
    async with Client.connect(load_config(kubeconfig=str(kubeconfig))) as client:
        yield client


async def planned(client: Client, namespace: str, uid: str) -> list[Hazard]:
    world = await gather(client, Discovery(client), namespaces=[namespace], full=full_kinds() | FULL)
    graph = relate(world)
    item = world.get(uid)
    assert item is not None
    ledger = make_ledger(world, graph, [item], Policy())
    return await until_resolved(client, world, lambda world: predict(world, graph, ledger))


async def test_a_plain_object_has_nothing_in_its_way_and_a_dead_webhook_is_found(cluster: Access, namespace: str):
    rule = {"operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["*"], "resources": ["configmaps"]}
    dead: Json = {
        "name": "dead.pilotage.example.com",
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "clientConfig": {"service": {"namespace": namespace, "name": "nobody"}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1,
    }
    configurations = Resource(
        "admissionregistration.k8s.io",
        "v1",
        "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration",
        namespaced=False,
    )
    async with connected(cluster.kubeconfig) as client:
        config = await client.create(CONFIG_MAPS, config_map("a"), namespace=namespace)
        assert await planned(client, namespace, config.meta.uid) == []
        async with existing(client, configurations, {"metadata": {"name": namespace}, "webhooks": [dead]}):

            async def refused() -> list[Hazard] | None:  # the server takes a moment to heed a new configuration
                return await planned(client, namespace, config.meta.uid) or None

            hazard = the(await eventually(refused), HazardCode.WEBHOOK_FAILS)
        assert hazard.blocks
        assert "dead.pilotage.example.com" in hazard.text
        assert 'service "nobody" not found' in hazard.evidence[0]
        assert await client.get(CONFIG_MAPS, config.key)  # a dry run deletes nothing


async def test_a_user_who_may_read_but_not_delete_is_told_so(own_cluster: Cluster, namespace: str):
    who = f"reader-{namespace[-8:]}"
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": who}
    bindings = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"
    own_cluster.request("POST", bindings, {"metadata": {"name": "v"}, "roleRef": role, "subjects": [subject]})
    service = {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}
    async with connected(own_cluster.kubeconfig) as admin:
        uid = (await admin.create(SERVICES, service, namespace=namespace)).meta.uid
    async with connected(own_cluster.user(who)) as client:
        hazards = await planned(client, namespace, uid)
    assert {str(each.code) for each in hazards if each.blocks} == {"may-not-delete"}
    assert "kinds-unread" in codes(hazards)


def test_an_entry_that_is_not_in_the_world_is_no_fault():
    world = world_of([made("v1", "ConfigMap", "a")])
    ledger = make_ledger(world, relate(world), [*world], Policy())
    gone = Entry(
        resource=Resource("", "v1", "pods", "Pod"),
        namespace="shop",
        name="gone",
        uid="gone",
        phase=ledger.entries[0].phase,
        disposition=Disposition.DELETE,
        reason="named",
    )
    more = Ledger(targets=(), started=ledger.started, policy=ledger.policy, entries=(*ledger.entries, gone))
    assert predict(world, relate(world), more) == []
    assert yaml.safe_dump([each.to_json() for each in predict(world, relate(world), more)]) == "[]\n"


def test_who_does_not_answer_is_not_asked_for_a_permission():
    world = world_of([made("v1", "ConfigMap", "a", {})])
    world.unreadable_groups["metrics.k8s.io/v1"] = "the server is currently unable to handle the request"
    (hazard,) = predicted(world, "configmap/a")
    assert hazard.advice.startswith("Bring these APIs back, or make sure that nothing of these kinds belongs to it")
    world.unreadable_groups.clear()
    secrets = Resource("", "v1", "secrets", "Secret")
    world.read_kind(KindReading(secrets, problem="forbidden", error_class=ErrorClass.FORBIDDEN))
    (hazard,) = predicted(world, "configmap/a")
    assert hazard.advice.startswith("Ask for the permission to list them, or ")
