"""Leaks that `pilotage leaks` finds; and no leaks: objects in progress, not read, or just fine.

Most cases are worlds from manifests. What the garbage collector and the API server decide is asked of the real ones.
"""

import contextlib
import datetime as dt
from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from controlplane import Access, ApiError
from pilotage.catalogue.phase import Phase
from pilotage.catalogue.reading import FOR_LEAKS
from pilotage.kube import Client, Discovery, Json, Resource, load_config
from pilotage.kube.errors import ErrorClass
from pilotage.runtime.clock import utc_now
from pilotage.teardown.diagnosis.leaks import Leak, LeakCode, Severity, find_leaks, left_over
from pilotage.teardown.planning.ledger import HOLD, Disposition, Entry, Ledger, Policy
from pilotage.teardown.relations import full_kinds, relate
from pilotage.teardown.snapshot.gather import gather
from pilotage.teardown.snapshot.questions import FullObject
from pilotage.teardown.snapshot.resolve import until_resolved
from pilotage.teardown.snapshot.world import Item, KindReading, World
from tests.support.kinds import CLUSTER_ROLES, CONFIG_MAPS, SERVICES, existing
from tests.support.waiting import until
from tests.teardown.relations.worlds import NOW, item_of, owned_by, world_of

OLD = "2026-11-15T10:00:00Z"
YOUNG = "2026-11-15T11:59:30Z"
SLICE = "discovery.k8s.io/v1"


def bodies(manifests: str) -> list[Json]:
    """The objects, old enough to be settled unless they say when they were made."""
    found = [body for body in yaml.safe_load_all(manifests) if body]
    for body in found:
        body["metadata"].setdefault("creationTimestamp", OLD)
    return found


def seen(manifests: str, *read: str, live: bool = False) -> World:
    """A world of these objects; `read` names kinds (``apps/v1/Deployment``) that were read though none is there."""
    world = world_of(bodies(manifests), live=live)
    for each in read:
        api, _, kind = each.rpartition("/")
        group, _, version = api.rpartition("/")
        namespaced = kind not in ("Node", "Namespace")
        world.read_kind(KindReading(Resource(group, version, f"{kind.lower()}s", kind, namespaced)))
    return world


def manifest(api_version: str, kind: str, name: str, **fields: Any) -> str:
    """One more document."""
    return "---\n" + yaml.safe_dump({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}} | fields)


def made_item(api_version: str, kind: str, name: str, *, full: bool = True, **meta: Any) -> Item:
    metadata = {"name": name, "creationTimestamp": OLD} | meta
    return item_of({"apiVersion": api_version, "kind": kind, "metadata": metadata}, full=full)


def found(world: World) -> list[Leak]:
    return find_leaks(world, relate(world))


def codes(world: World) -> list[tuple[str, str]]:
    return [(str(leak.code), str(leak.subject)) for leak in found(world)]


def the(world: World) -> Leak:
    (leak,) = found(world)
    return leak


# Owners


def child(**owner: Any) -> str:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "gone"} | owner
    meta = {"name": "a", "ownerReferences": [reference]}
    return yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})


def test_an_object_whose_owner_is_gone_is_a_leak_that_the_collector_should_take():
    leak = the(seen(child(), "apps/v1/Deployment"))
    assert (leak.code, leak.severity) == (LeakCode.OWNER_GONE, Severity.LOW)
    assert "deployment/web is gone" in leak.text
    assert "should have taken it" in leak.text
    assert leak.command == "pilotage delete configmap/a -n shop"


def test_an_owner_of_the_same_name_with_another_uid_does_not_own_it():
    web = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, uid: another}\n---\n"
    leak = the(seen(web + child()))
    assert leak.code == LeakCode.OWNER_WRONG_UID
    assert "another object" in leak.text


def test_an_owner_in_another_namespace_counts_as_gone():
    web = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: other, uid: gone}\n---\n"
    assert the(seen(web + child())).code == LeakCode.OWNER_IN_OTHER_NAMESPACE


@pytest.mark.parametrize(
    ("here", "code", "said"),
    [
        ("", LeakCode.OWNER_GONE, "its owner deployment/web is not in its namespace, which counts as gone: "),
        (
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, uid: another}\n---\n",
            LeakCode.OWNER_WRONG_UID,
            "its owner deployment/web is not in its namespace, which counts as gone; the one of that name",
        ),
    ],
)
def test_an_owner_that_was_looked_for_in_one_namespace_may_be_in_another(here: str, code: LeakCode, said: str):
    """The owner counts as gone all the same; but it is unknown whether another object has its uid."""
    world = seen(here + child(), "apps/v1/Deployment")
    world.namespaces = frozenset({"shop"})
    leak = the(world)
    assert leak.code == code
    assert leak.text.startswith(said)
    assert leak.evidence == ("its ownerReference names the uid gone, which no object in namespace shop has",)
    assert leak.effect.endswith("may create it again.")


def test_an_owner_without_a_namespace_is_gone_wherever_one_looked():
    world = seen(child(apiVersion="v1", kind="Node"), "v1/Node")
    world.namespaces = frozenset({"shop"})
    leak = the(world)
    assert "its owner node/web is gone" in leak.text
    assert leak.evidence == ("its ownerReference names the uid gone, which no object has",)


def test_an_owner_of_a_kind_that_is_not_served_leaves_it_for_ever():
    leak = the(seen(child(apiVersion="acme.io/v1", kind="Widget"), live=True))
    assert (leak.code, leak.severity) == (LeakCode.OWNER_NOT_SERVED, Severity.MEDIUM)
    assert "never takes it" in leak.text


def test_a_cluster_scoped_object_of_a_gone_namespaced_owner_is_never_collected():
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "a"}}
    role["metadata"]["ownerReferences"] = owned_by("Deployment", "web", uid="gone")
    leak = the(seen(yaml.safe_dump(role), "apps/v1/Deployment"))
    assert leak.code == LeakCode.OWNER_NAMESPACED
    assert "never takes it" in leak.text


def test_one_live_owner_is_enough():
    web = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, uid: there}\n---\n"
    two = yaml.safe_load(child())
    two["metadata"]["ownerReferences"].append(owned_by("Deployment", "web", uid="there")[0])
    assert codes(seen(web + yaml.safe_dump(two))) == []


@pytest.mark.parametrize("change", [{"creationTimestamp": YOUNG}, {"deletionTimestamp": OLD}])
def test_what_is_young_or_being_deleted_is_in_progress(change: Json):
    body = yaml.safe_load(child())
    body["metadata"] |= change
    assert codes(seen(yaml.safe_dump(body), "apps/v1/Deployment")) == []


def test_what_is_in_a_namespace_that_is_being_deleted_is_in_progress():
    leaving = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop, deletionTimestamp: {OLD!r}}}\n---\n"
    assert codes(seen(leaving + child(), "apps/v1/Deployment")) == []


def test_an_owner_whose_kind_was_not_read_is_unknown_and_not_gone():
    world = seen(child(), live=True)
    deployments = Resource("apps", "v1", "deployments", "Deployment")
    world.read_kind(KindReading(deployments, problem="forbidden", error_class=ErrorClass.FORBIDDEN))
    assert codes(world) == []
    assert codes(seen(child())) == []  # a dump without Deployments says nothing about them


def test_an_owner_whose_api_does_not_answer_is_unknown_and_not_unserved():
    world = seen(child(apiVersion="acme.io/v1", kind="Widget"), live=True)
    world.unreadable_groups = {"acme.io/v1": "it does not answer"}
    assert codes(world) == []


def test_an_owner_in_a_namespace_that_was_not_read_is_unknown():
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "a"}}
    role["metadata"]["ownerReferences"] = owned_by("Deployment", "web", uid="gone")
    world = seen(yaml.safe_dump(role), "apps/v1/Deployment")
    world.namespaces = frozenset({"shop"})
    assert codes(world) == []


# Traffic


def a_slice(*, owner: bool = False, pod: str = "") -> str:
    meta: Json = {"name": "web-1", "labels": {"kubernetes.io/service-name": "web"}}
    if owner:
        meta["ownerReferences"] = owned_by("Service", "web", api_version="v1")
    targets = [{"addresses": ["10.0.0.1"], "targetRef": {"kind": "Pod", "name": pod, "uid": pod}}] if pod else []
    return yaml.safe_dump({"apiVersion": SLICE, "kind": "EndpointSlice", "metadata": meta, "endpoints": targets})


WEB_SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n---\n"


def test_a_slice_made_by_hand_outlives_its_service():
    leak = the(seen(a_slice(), "v1/Service"))
    assert leak.code == LeakCode.SLICE_WITHOUT_SERVICE
    assert "service/web" in leak.text


def test_a_slice_whose_service_is_there_is_fine():
    assert codes(seen(WEB_SERVICE + a_slice(owner=True), "v1/Pod")) == []


def test_a_slice_that_sends_traffic_to_gone_pods_breaks_requests():
    leak = the(seen(WEB_SERVICE + a_slice(owner=True, pod="web-a"), "v1/Pod"))
    assert (leak.code, leak.severity) == (LeakCode.SLICE_WITH_GONE_PODS, Severity.HIGH)
    assert "web-a" in leak.text


def test_a_slice_with_a_pod_that_is_there_is_fine():
    pod = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: web-a, uid: web-a}\n"
    assert codes(seen(WEB_SERVICE + a_slice(owner=True, pod="web-a") + pod)) == []


def test_a_slice_with_a_pod_of_the_same_name_and_another_uid_is_a_leak():
    pod = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: web-a, uid: another}\n"
    world = seen(WEB_SERVICE + a_slice(owner=True, pod="web-a") + pod)
    assert codes(world) == [("slice-with-gone-pods", "endpointslice/web-1 -n shop")]


def route(*backends: Json) -> str:
    spec = {"rules": [{"backendRefs": list(backends)}]}
    return yaml.safe_dump(
        {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "r"}, "spec": spec}
    )


def test_a_route_to_a_service_that_is_not_there_fails_requests():
    leak = the(seen(route({"name": "lost"}), "v1/Service"))
    assert (leak.code, leak.severity) == (LeakCode.ROUTE_TO_NOTHING, Severity.HIGH)
    assert leak.command == "pilotage delete httproute/r -n shop"


def test_a_route_with_another_backend_is_to_be_changed_and_not_deleted():
    leak = the(seen(WEB_SERVICE + route({"name": "lost"}, {"name": "web"})))
    assert leak.command.startswith("kubectl edit")
    assert "share" in leak.costs


def test_a_backend_without_weight_breaks_nothing():
    assert codes(seen(WEB_SERVICE + route({"name": "lost", "weight": 0}, {"name": "web"}))) == []


# Children without their parent

REPLICA_SET = (
    "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: web-1, labels: {app: web, pod-template-hash: x}}\n"
)
POD = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: web-1-a, ownerReferences: %s}\n"


def test_a_replica_set_that_lost_its_deployment_runs_pods_that_nobody_updates():
    pod = POD % owned_by("ReplicaSet", "web-1")
    leak = the(seen(REPLICA_SET + pod, "apps/v1/Deployment"))
    assert (leak.code, leak.severity) == (LeakCode.REPLICASET_ORPHANED, Severity.HIGH)
    assert "runs 1 pod" in leak.text


def test_a_replica_set_that_a_deployment_will_adopt_is_none_of_ours():
    web = (
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {selector: {matchLabels: {app: web}}}"
    )
    assert codes(seen(REPLICA_SET + web)) == []


@pytest.mark.parametrize(
    ("labels", "read"),
    [
        ({"batch.kubernetes.io/job-name": "j", "batch.kubernetes.io/controller-uid": "u"}, "batch/v1/Job"),
        ({"job-name": "j"}, "batch/v1/Job"),
        ({"pod-template-hash": "x"}, "apps/v1/ReplicaSet"),
    ],
)
def test_a_pod_whose_maker_is_gone_runs_on(labels: dict[str, str], read: str):
    pod = yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": labels}})
    assert codes(seen(pod, read)) == [("pod-orphaned", "pod/p -n shop")]
    assert codes(seen(pod)) == []  # its owner was not read


def test_a_pod_that_a_stateful_set_selects_is_adopted():
    labels = {"controller-revision-hash": "x", "app": "db"}
    pod = yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "db-0", "labels": labels}})
    db = "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec: {selector: {matchLabels: {app: db}}}"
    assert codes(seen(pod + db, "apps/v1/DaemonSet")) == []
    assert codes(seen(pod, "apps/v1/StatefulSet", "apps/v1/DaemonSet")) == [("pod-orphaned", "pod/db-0 -n shop")]


def test_a_pod_that_a_person_made_is_none_of_ours():
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: debug, labels: {app: web}}"
    assert codes(seen(pod, "apps/v1/ReplicaSet", "batch/v1/Job", "apps/v1/StatefulSet", "apps/v1/DaemonSet")) == []


def a_claim(manager: str) -> str:
    managed = [{"manager": manager, "operation": "Update", "fieldsV1": {"f:spec": {"f:accessModes": {}}}}]
    meta = {"name": "data-db-0", "managedFields": managed}
    return yaml.safe_dump({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta})


def test_a_claim_outlives_the_stateful_set_it_was_made_for():
    leak = the(seen(a_claim("kube-controller-manager"), "apps/v1/StatefulSet", "v1/Pod"))
    assert leak.code == LeakCode.CLAIM_OF_GONE_STATEFULSET
    assert "LOSES ITS DATA" in leak.effect


def test_a_claim_that_somebody_made_or_that_is_used_is_none_of_ours():
    assert codes(seen(a_claim("kubectl-client-side-apply"), "apps/v1/StatefulSet", "v1/Pod")) == []
    db = manifest("apps/v1", "StatefulSet", "db", spec={"volumeClaimTemplates": [{"metadata": {"name": "data"}}]})
    assert codes(seen(a_claim("kube-controller-manager") + db, "v1/Pod")) == []
    volumes = [{"persistentVolumeClaim": {"claimName": "data-db-0"}}]
    pod = manifest("v1", "Pod", "x-0", spec={"volumes": volumes})
    assert codes(seen(a_claim("kube-controller-manager") + pod, "apps/v1/StatefulSet")) == []


def test_a_claim_is_none_of_ours_while_a_pod_that_was_not_read_may_mount_it():
    world = seen(a_claim("kube-controller-manager"), "apps/v1/StatefulSet", live=True)
    owners = owned_by("Cluster", "db", api_version="acme.io/v1", uid="cluster")
    cluster = made_item("acme.io/v1", "Cluster", "db", uid="cluster")
    pod = made_item("v1", "Pod", "db-x", full=False, ownerReferences=owners)
    for item in (cluster, pod):
        world.add(item)
        world.read_kind(KindReading(item.resource))
    assert codes(world) == []
    assert FullObject(pod.uid) in world.wanted
    world.add(made_item("v1", "Pod", "db-x", ownerReferences=owners))  # as it was asked for: it mounts nothing
    assert codes(world) == [("claim-of-gone-statefulset", "persistentvolumeclaim/data-db-0 -n shop")]


def test_a_job_that_lost_its_cron_job_is_kept_by_no_limit():
    annotations = {"batch.kubernetes.io/cronjob-scheduled-timestamp": OLD}
    job = yaml.safe_dump(
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "annotations": annotations}}
    )
    assert codes(seen(job, "batch/v1/CronJob")) == [("job-orphaned", "job/j -n shop")]


# About nothing


def test_an_autoscaler_of_nothing():
    scaler = """
        apiVersion: autoscaling/v2
        kind: HorizontalPodAutoscaler
        metadata: {name: web}
        spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
        """
    assert codes(seen(scaler, "apps/v1/Deployment")) == [("scales-nothing", "horizontalpodautoscaler/web -n shop")]
    web = "\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
    assert codes(seen(yaml.safe_dump(yaml.safe_load(scaler)) + web)) == []


SELECTS_WEB = {"selector": {"matchLabels": {"app": "web"}}}
BUDGET = manifest("policy/v1", "PodDisruptionBudget", "b", spec=SELECTS_WEB)
ALL_MAKERS = ("v1/Pod", "apps/v1/Deployment", "apps/v1/StatefulSet", "apps/v1/DaemonSet", "apps/v1/ReplicaSet")


def test_a_budget_for_nothing():
    assert codes(seen(BUDGET, *ALL_MAKERS)) == [("protects-nothing", "poddisruptionbudget/b -n shop")]
    assert codes(seen(BUDGET, *ALL_MAKERS[:-1])) == []  # ReplicaSets were not read
    template = {"metadata": {"labels": {"app": "web"}}}
    web = manifest("apps/v1", "Deployment", "web", spec={"replicas": 0, "template": template})
    assert codes(seen(BUDGET + web, *ALL_MAKERS)) == []  # scaled to zero is not gone


def test_a_monitor_for_nothing():
    monitor = manifest("monitoring.coreos.com/v1", "ServiceMonitor", "m", spec=SELECTS_WEB)
    assert codes(seen(monitor, "v1/Service")) == [("monitors-nothing", "servicemonitor/m -n shop")]
    service = "\n---\napiVersion: v1\nkind: Service\nmetadata: {name: web, labels: {app: web}}"
    assert codes(seen(monitor + service)) == []


def hook(*policies: str) -> str:
    service = {"namespace": "ops", "name": "hook"}
    webhooks = [
        {"name": f"w{i}.io", "failurePolicy": policy, "clientConfig": {"service": service}}
        for i, policy in enumerate(policies)
    ]
    return yaml.safe_dump(
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "w"},
            "webhooks": webhooks,
        }
    )


def test_a_webhook_without_its_service_refuses_writes_if_it_fails_closed():
    leak = the(seen(hook("Fail"), "v1/Service"))
    assert (leak.code, leak.severity) == (LeakCode.WEBHOOK_WITHOUT_SERVICE, Severity.HIGH)
    assert "w0.io" in leak.text
    assert the(seen(hook("Ignore"), "v1/Service")).severity is Severity.LOW


def test_an_aggregated_api_without_its_service_holds_every_namespace_up():
    spec = {"service": {"namespace": "ops", "name": "x"}}
    api = manifest("apiregistration.k8s.io/v1", "APIService", "v1.x.io", spec=spec)
    leak = the(seen(api, "v1/Service"))
    assert leak.code == LeakCode.APISERVICE_WITHOUT_SERVICE
    assert "no namespace" in leak.costs
    world = seen(api, "v1/Service")
    world.namespaces = frozenset({"shop"})
    assert codes(world) == []  # its namespace was not read


# Storage


def volume(phase: str, policy: str, since: str = OLD) -> str:
    claim = {"namespace": "shop", "name": "data"}
    spec = {"persistentVolumeReclaimPolicy": policy, "claimRef": claim}
    status = {"phase": phase, "lastPhaseTransitionTime": since}
    return yaml.safe_dump(
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"}, "spec": spec, "status": status}
    )


def test_a_released_volume_is_paid_for():
    leak = the(seen(volume("Released", "Retain")))
    assert leak.code == LeakCode.VOLUME_RELEASED
    assert "STORAGE BEHIND IT STAYS" in leak.effect
    assert leak.concerns("shop")
    assert not leak.concerns("other")


def test_a_volume_that_is_bound_or_being_reclaimed_is_fine():
    assert codes(seen(volume("Bound", "Retain"))) == []
    assert codes(seen(volume("Released", "Delete", YOUNG))) == []
    assert codes(seen(volume("Released", "Delete"))) == [("volume-released", "persistentvolume/pv")]
    assert codes(seen(volume("Failed", "Delete"))) == [("volume-failed", "persistentvolume/pv")]


def test_an_attachment_to_a_gone_node_keeps_the_volume_from_others():
    attachment = """
        apiVersion: storage.k8s.io/v1
        kind: VolumeAttachment
        metadata: {name: va}
        spec: {nodeName: lost, source: {persistentVolumeName: pv}}
        """
    assert codes(seen(attachment, "v1/Node")) == [("attached-to-gone-node", "volumeattachment/va")]
    assert codes(seen(attachment)) == []


# Ours


def held(since: str, **meta: Any) -> str:
    fields: Json = {"f:metadata": {"f:finalizers": {f'v:"{HOLD}"': {}}}}
    managed = [{"manager": "pilotage", "operation": "Update", "time": since, "fieldsV1": fields}]
    meta |= {"name": "h", "finalizers": [HOLD], "managedFields": managed}
    return yaml.safe_dump({"apiVersion": "acme.io/v1", "kind": "Widget", "metadata": meta})


def test_our_own_hold_is_a_leak_when_no_teardown_takes_that_long():
    leak = the(seen(held(OLD, deletionTimestamp=OLD)))
    assert leak.code == LeakCode.HOLD_LEFT
    assert leak.command == "pilotage delete widgets.acme.io/h -n shop"
    assert codes(seen(held(YOUNG, deletionTimestamp=YOUNG))) == []  # a teardown is under way


# Receipts


def ledger(*entries: Entry) -> Ledger:
    return Ledger(targets=("deployment/web -n shop",), started=OLD, policy=Policy(), entries=entries)


def entry(uid: str, name: str = "a", *, kind: str = "ConfigMap", keep: bool = False) -> Entry:
    return Entry(
        resource=Resource("", "v1", f"{kind.lower()}s", kind),
        namespace="shop",
        name=name,
        uid=uid,
        phase=Phase.REMOVE,
        disposition=Disposition.KEEP if keep else Disposition.DELETE,
        reason="named",
    )


CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, uid: u1}\n"


def test_what_a_receipt_took_down_and_lives_on():
    result = left_over(seen(CONFIG), ledger(entry("u1")))
    assert [leak.code for leak in result.leaks] == [LeakCode.LIVES_ON]
    assert result.unread == {}


def test_a_successor_of_the_same_name_and_what_was_kept_are_no_leaks():
    assert left_over(seen(CONFIG), ledger(entry("u0"))).leaks == []
    assert left_over(seen(CONFIG), ledger(entry("u1", keep=True))).leaks == []


def test_what_a_receipt_names_and_could_not_be_read_is_told():
    result = left_over(seen(CONFIG), ledger(entry("u2", kind="Secret")))
    assert result.leaks == []
    assert list(result.unread) == ["secret/a -n shop"]


def test_what_a_receipt_owned_and_did_not_list_stayed():
    owned = yaml.safe_load(CONFIG)
    owned["metadata"]["ownerReferences"] = owned_by("ConfigMap", "gone", api_version="v1", uid="u0")
    result = left_over(seen(yaml.safe_dump(owned)), ledger(entry("u0", "gone")))
    assert [(leak.code, leak.subject.uid) for leak in result.leaks] == [(LeakCode.OWNED_BY_THE_GONE, "u1")]


# Any world

NAMES = st.sampled_from(["a", "b", "web-0"])
UIDS = st.sampled_from(["u1", "u2", "u3"])
KINDS = st.sampled_from(
    [
        ("v1", "Pod"), ("v1", "Service"), ("apps/v1", "Deployment"), ("apps/v1", "ReplicaSet"),
        (SLICE, "EndpointSlice"),
        ("policy/v1", "PodDisruptionBudget"), ("v1", "PersistentVolume"), ("v1", "PersistentVolumeClaim"),
        ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"), ("networking.k8s.io/v1", "Ingress"),
        ("storage.k8s.io/v1", "VolumeAttachment"), ("batch/v1", "Job"),
    ]
)  # fmt: skip
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a", "Released", "Fail", OLD]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["spec", "name", "service", "selector", "phase", "endpoints"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


@st.composite
def objects(draw: st.DrawFn) -> Json:
    api_version, kind = draw(KINDS)
    owners = [
        {"apiVersion": api, "kind": owner, "name": draw(NAMES), "uid": draw(UIDS)}
        for api, owner in draw(st.lists(KINDS, max_size=2))
    ]
    keys = st.sampled_from(["pod-template-hash", "job-name", "kubernetes.io/service-name", "controller-revision-hash"])
    meta: Json = {"name": draw(NAMES), "uid": draw(UIDS), "creationTimestamp": draw(st.sampled_from([OLD, YOUNG, ""]))}
    meta |= {"ownerReferences": owners, "labels": draw(st.dictionaries(keys, NAMES, max_size=2))}
    body: Json = {"apiVersion": api_version, "kind": kind, "metadata": meta}
    fields = st.sampled_from(["spec", "status", "webhooks", "endpoints"])
    return body | draw(st.dictionaries(fields, JUNK, max_size=3))


@given(st.lists(objects(), max_size=5))
def test_any_world_is_looked_at_without_a_fault_and_what_is_young_is_never_a_leak(made: list[Json]):
    for leak in found(world_of(made)):
        assert leak.subject.meta.creation_timestamp == OLD
        assert leak.text
        assert leak.command


# The real garbage collector


@contextlib.asynccontextmanager
async def connected(cluster: Access) -> AsyncIterator[Client]:
    async with Client.connect(load_config(kubeconfig=str(cluster.kubeconfig))) as client:
        yield client


async def gathered(client: Client, namespace: str = "") -> list[Leak]:
    """Leaks that would be found in five minutes, if nothing happened until then."""
    later = utc_now() + dt.timedelta(minutes=5)
    places = [namespace] if namespace else []
    world = await gather(client, Discovery(client), namespaces=places, full=full_kinds() | FOR_LEAKS, now=later)
    return await until_resolved(client, world, lambda world: find_leaks(world, relate(world)))


async def test_the_collector_takes_what_we_say_it_takes_and_leaves_what_we_say_it_leaves(
    cluster: Access, namespace: str
):
    reference = {"name": "gone", "uid": "00000000-0000-0000-0000-000000000000"}
    never = [{"apiVersion": "never.example.com/v1", "kind": "Widget", **reference}]
    taken = [{"apiVersion": "v1", "kind": "ConfigMap", **reference}]
    async with connected(cluster) as client:
        left = {"metadata": {"name": "left", "ownerReferences": never}}
        await client.create(CONFIG_MAPS, left, namespace=namespace)
        gone = await client.create(
            CONFIG_MAPS, {"metadata": {"name": "gone", "ownerReferences": taken}}, namespace=namespace
        )
        role = {"metadata": {"name": f"{namespace}-role", "ownerReferences": taken}}
        async with existing(client, CLUSTER_ROLES, role):
            await until(client, CONFIG_MAPS, gone.key, lambda found: found is None)
            codes = {leak.subject.meta.name: leak.code for leak in await gathered(client, namespace)}
            everywhere = {leak.subject.meta.name: leak.code for leak in await gathered(client)}
    assert codes == {"left": LeakCode.OWNER_NOT_SERVED}
    assert everywhere[f"{namespace}-role"] is LeakCode.OWNER_NAMESPACED


async def test_a_real_namespace_in_order_has_no_leaks_and_one_in_disorder_has_them(cluster: Access, namespace: str):
    service = {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}], "selector": {"app": "web"}}}
    slice_ = {
        "metadata": {"name": "hand", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "endpoints": [],
    }
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    ingress = {"metadata": {"name": "web"}, "spec": {"defaultBackend": backend}}
    slices = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
    ingresses = Resource("networking.k8s.io", "v1", "ingresses", "Ingress")
    async with connected(cluster) as client:
        made = await client.create(SERVICES, service, namespace=namespace)
        await client.create(slices, slice_, namespace=namespace)
        await client.create(ingresses, ingress, namespace=namespace)
        assert await gathered(client, namespace) == []
        with contextlib.suppress(ApiError):
            cluster.request("DELETE", f"/api/v1/namespaces/{namespace}/services/web")
        await until(client, SERVICES, made.key, lambda found: found is None)
        codes = {(str(leak.code), leak.subject.meta.name) for leak in await gathered(client, namespace)}
    assert {("slice-without-service", "hand"), ("route-to-nothing", "web")} <= codes


def test_the_worst_comes_first():
    world = seen(route({"name": "lost"}) + "---\n" + child(), "v1/Service", "apps/v1/Deployment")
    assert [leak.severity for leak in found(world)] == [Severity.HIGH, Severity.LOW]
    assert world.now == NOW
