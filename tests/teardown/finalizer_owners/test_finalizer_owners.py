"""Owners of finalizers, and whether they run: decided from worlds made by hand."""

import pytest

from pilotage.api.names import ENDPOINTS, HOSTS
from pilotage.catalogue.registry import ecosystems, find_finalizer
from pilotage.kube import Json, Resource
from pilotage.teardown.diagnosis.finalizer_owners import Liveness, abandoned, finalizer_owner
from pilotage.teardown.planning.ledger import HOLD
from pilotage.teardown.snapshot.world import Item
from tests.support import kinds
from tests.teardown.why.worlds import LEASES, PODS, REPLICA_SETS, WIDGETS, ago, going, item, world

MUTATING = Resource(
    "admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", False
)
HOUR = 3600


def held(finalizer: str, **metadata: object) -> Item:
    return item(WIDGETS, "held", metadata={**going(600, finalizer), **metadata})


def deployment(name: str, namespace: str, replicas: int = 1, available: int = 0, **metadata: object) -> Item:
    status: Json = {"availableReplicas": available} if available else {}
    return item(
        kinds.DEPLOYMENTS,
        name,
        namespace,
        metadata=metadata,
        spec={"replicas": replicas},
        status={"replicas": 0, **status},
    )


def lease(name: str, namespace: str, renewed_seconds_ago: float, holder: str = "pod_1") -> Item:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": ago(renewed_seconds_ago)}
    return item(LEASES, name, namespace, spec=spec)


def owned_by(owner: Item) -> Json:
    api, kind = owner.resource.api_version, owner.resource.kind
    reference = {"apiVersion": api, "kind": kind, "name": owner.meta.name, "uid": owner.uid, "controller": True}
    return {"ownerReferences": [reference]}


@pytest.mark.parametrize(
    ("finalizer", "who"),
    [
        ("kubernetes.io/pvc-protection", "PVC protection controller (kube-controller-manager)"),
        ("foregroundDeletion", "garbage collector (kube-controller-manager)"),
        ("service.kubernetes.io/load-balancer-cleanup", "service controller (cloud-controller-manager)"),
        ("batch.kubernetes.io/job-tracking", "job controller (kube-controller-manager)"),
        ("external-attacher/ebs-csi-aws-com", "CSI external-attacher"),
        ("customresourcecleanup.apiextensions.k8s.io", "kube-apiserver"),
        ("inferenceservice.finalizers", "KServe controller"),
        ("resources-finalizer.argocd.argoproj.io", "Argo CD application controller"),
        ("resources-finalizer.argocd.argoproj.io/background", "Argo CD application controller"),
        ("finalizers.fluxcd.io", "Flux controller"),
        ("finalizer.managedresource.crossplane.io", "Crossplane provider"),
        ("composite.apiextensions.crossplane.io", "Crossplane"),
        ("usage.apiextensions.crossplane.io", "Crossplane"),
        ("finalizer.keda.sh", "KEDA operator"),
        ("finalizer.acme.cert-manager.io", "cert-manager"),
        ("acme.cert-manager.io/finalizer", "cert-manager"),
        ("routes.serving.knative.dev", "Knative Serving"),
        ("istio-finalizer.install.istio.io", "Istio operator"),
        ("machine.cluster.x-k8s.io", "Cluster API"),
        ("awscluster.infrastructure.cluster.x-k8s.io", "Cluster API infrastructure provider"),
        ("controller.cattle.io/namespace-auth", "Rancher"),
        ("monitoring.coreos.com/status-cleanup", "Prometheus operator"),
        ("teardown.pilotage.dev/order", "Pilotage operator"),
        (HOLD, "an unfinished pilotage delete"),
    ],
)
def test_known_finalizers_have_a_keeper(finalizer: str, who: str) -> None:
    found = finalizer_owner(world(), held(finalizer), finalizer)
    assert found.who == who
    assert found.leaks.endswith(".")
    assert found.does


def test_every_row_says_what_it_does_and_what_leaks() -> None:
    for row in (row for each in ecosystems() for row in each.finalizers):
        assert row.who
        assert row.does
        assert row.leaks.endswith("."), row
        assert find_finalizer(row.patterns[0].replace("*", "x")) is row


def test_a_part_of_kubernetes_is_alive_while_its_lease_is_fresh_and_unknown_otherwise() -> None:
    obj = held("foregroundDeletion")
    fresh = lease("kube-controller-manager", "kube-system", 2)
    assert finalizer_owner(world(fresh), obj, "foregroundDeletion").alive is Liveness.ALIVE
    late = lease("kube-controller-manager", "kube-system", HOUR)
    assert finalizer_owner(world(late), obj, "foregroundDeletion").alive is Liveness.UNKNOWN
    assert finalizer_owner(world(), obj, "foregroundDeletion").alive is Liveness.UNKNOWN
    assert finalizer_owner(world(), obj, "foregroundDeletion").builtin


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("ImagePullBackOff", "image cannot be pulled"),
        ("CrashLoopBackOff", "keeps crashing"),
        ("CreateContainerConfigError", "its configuration cannot be read"),
    ],
)
def test_why_its_pods_do_not_run_is_said(reason: str, said: str) -> None:
    manager = deployment("kserve-controller-manager", "kserve")
    replicas = item(REPLICA_SETS, "rs", "kserve", metadata=owned_by(manager))
    waiting = {"containerStatuses": [{"state": {"waiting": {"reason": reason}}}]}
    pod = item(PODS, "pod", "kserve", metadata=owned_by(replicas), status=waiting)
    found = finalizer_owner(
        world(manager, replicas, pod), held("inferenceservice.finalizers"), "inferenceservice.finalizers"
    )
    assert (found.alive, found.workload) == (Liveness.DEAD, manager)
    assert found.trouble == f"0 of 1 replicas available, {said}"


def test_since_when_it_does_not_run_is_said() -> None:
    condition = {"type": "Available", "status": "False", "lastTransitionTime": ago(2 * HOUR)}
    manager = item(
        kinds.DEPLOYMENTS, "keda-operator", "keda", spec={}, status={"replicas": 1, "conditions": [condition]}
    )
    found = finalizer_owner(world(manager), held("finalizer.keda.sh"), "finalizer.keda.sh")
    assert found.trouble == "0 of 1 replicas available, it has no pods (since 2h)"


@pytest.mark.parametrize(
    ("finalizer", "seconds", "operator", "want"),
    [
        ("finalizer.keda.sh", 1, deployment("keda-operator", "keda"), True),
        ("finalizer.keda.sh", 3600, deployment("keda-operator", "keda", available=1), False),
        ("finalizer.keda.sh", 1, deployment("other", "keda"), False),  # it may run outside of the cluster
        ("finalizer.keda.sh", 3600, deployment("other", "keda"), True),
        ("sprocket.example.com/x", 1, deployment("sprocket-operator", "acme"), False),  # found by likeness alone
        ("sprocket.example.com/x", 3600, deployment("sprocket-operator", "acme"), True),
        ("kubernetes.io/pvc-protection", 3600, deployment("other", "keda"), False),
        (HOLD, 3600, deployment("other", "keda"), False),
    ],
)
def test_whether_a_finalizer_is_worth_waiting_for(finalizer: str, seconds: int, operator: Item, want: bool) -> None:
    obj = item(WIDGETS, "held", metadata=going(seconds, finalizer))
    assert abandoned(world(obj, operator), obj, finalizer) == want


def test_what_nobody_deletes_has_not_been_waited_for() -> None:
    obj = item(WIDGETS, "held", metadata={"finalizers": ["acme.io/x"]})
    assert not abandoned(world(obj), obj, "acme.io/x")


def test_pods_that_nobody_looked_for_are_not_missed() -> None:
    operator = deployment("keda-operator", "keda")
    seen = finalizer_owner(world(operator), held("finalizer.keda.sh"), "finalizer.keda.sh")
    assert seen.trouble == "0 of 1 replicas available, it has no pods"
    unseen = finalizer_owner(world(operator, namespaces=("shop",)), held("finalizer.keda.sh"), "finalizer.keda.sh")
    assert unseen.trouble == "0 of 1 replicas available"


def test_whether_other_namespaces_were_looked_at_is_said() -> None:
    said = "Controllers in other namespaces than shop were not searched for."
    assert said in finalizer_owner(world(namespaces=("shop",)), held("acme.io/x"), "acme.io/x").evidence
    elsewhere = deployment("other", "elsewhere")
    assert said not in finalizer_owner(world(elsewhere, namespaces=("shop",)), held("acme.io/x"), "acme.io/x").evidence


def test_a_lease_that_is_renewed_wins_over_pods_that_are_not_ready() -> None:
    manager = deployment("keda-operator", "keda")
    running = lease("operator.keda.sh", "keda", 3)
    found = finalizer_owner(world(manager, running), held("finalizer.keda.sh"), "finalizer.keda.sh")
    assert (found.alive, found.lease) == (Liveness.ALIVE, running)


def test_ready_pods_whose_lease_expired_are_dead_if_one_of_them_holds_it() -> None:
    manager = deployment("keda-operator", "keda", available=1)
    replicas = item(REPLICA_SETS, "rs", "keda", metadata=owned_by(manager))
    pod = item(PODS, "keda-operator-1", "keda", metadata=owned_by(replicas))
    theirs = lease("operator.keda.sh", "keda", HOUR, holder="keda-operator-1_abc")
    found = finalizer_owner(world(manager, replicas, pod, theirs), held("finalizer.keda.sh"), "finalizer.keda.sh")
    assert found.alive is Liveness.DEAD
    old = lease("operator.keda.sh", "keda", HOUR, holder="keda-operator-of-last-year_abc")
    found = finalizer_owner(world(manager, replicas, pod, old), held("finalizer.keda.sh"), "finalizer.keda.sh")
    assert found.alive is Liveness.ALIVE


def test_no_trace_of_a_controller_is_no_proof_that_it_is_dead() -> None:
    found = finalizer_owner(world(), held("finalizer.keda.sh"), "finalizer.keda.sh")
    assert (found.alive, found.workload) == (Liveness.UNKNOWN, None)
    assert found.evidence == ("No workload is named like KEDA operator: keda-operator.",)


def test_kinds_that_could_not_be_read_are_named() -> None:
    made = world(unread={kinds.DEPLOYMENTS: "forbidden"})
    found = finalizer_owner(made, held("finalizer.keda.sh"), "finalizer.keda.sh")
    assert "Deployment.apps could not be read: forbidden." in found.evidence


def test_the_writer_of_a_finalizer_is_read_from_managed_fields() -> None:
    fields = [
        {"manager": "kubectl-create", "time": ago(9 * HOUR), "fieldsV1": {"f:metadata": {"f:labels": {}}}},
        {
            "manager": "manager",
            "time": ago(72 * HOUR),
            "fieldsV1": {"f:metadata": {"f:finalizers": {'v:"finalizer.keda.sh"': {}}}},
        },
    ]
    found = finalizer_owner(world(), held("finalizer.keda.sh", managedFields=fields), "finalizer.keda.sh")
    assert 'The finalizer was last written by "manager" 3d ago.' in found.evidence


def test_whoever_makes_pods_of_a_template_is_not_the_owner_of_its_finalizers() -> None:
    """A finalizer of a pod template: "Install kube-controller-manager again" would help nobody."""
    finalizer = "mesh.example.com/deregister"
    copied = [
        {
            "manager": "kube-controller-manager",
            "time": ago(HOUR),
            "fieldsV1": {"f:metadata": {"f:finalizers": {f'v:"{finalizer}"': {}}}},
        }
    ]
    found = finalizer_owner(world(), held(finalizer, managedFields=copied), finalizer)
    assert (found.workload, found.who, found.alive) == (None, "", Liveness.UNKNOWN)
    assert 'The finalizer was last written by "kube-controller-manager" 60m ago.' in found.evidence


def test_an_unknown_one_is_found_by_the_webhook_of_its_api_group() -> None:
    crd = item(kinds.CRDS, "widgets.gadgets.example.com")
    hooks = {
        "clientConfig": {"service": {"namespace": "ops", "name": "hooks"}},
        "rules": [{"apiGroups": ["gadgets.example.com"]}],
    }
    configuration = item(MUTATING, "gadget-hooks", webhooks=[hooks])
    service = item(kinds.SERVICES, "hooks", "ops", spec={"selector": {"app": "gadgetry"}})
    one = deployment("other", "ops", available=1, labels={"app": "other"})
    two = deployment("gadgetry", "ops", replicas=0, labels={"app": "gadgetry"})
    made = world(crd, configuration, service, one, two)
    found = finalizer_owner(made, held("gadgets.example.com/clean-up"), "gadgets.example.com/clean-up")
    assert (found.workload, found.alive, found.trouble) == (two, Liveness.DEAD, "scaled to 0")
    assert not found.guessed


def test_an_unknown_one_is_found_by_the_release_that_brought_its_definition() -> None:
    notes = {"meta.helm.sh/release-name": "gadgets", "meta.helm.sh/release-namespace": "ops"}
    crd = item(kinds.CRDS, "widgets.gadgets.example.com", metadata={"annotations": notes})
    runs = deployment("gg-controller", "ops", available=1, annotations=notes)
    other = deployment("other", "ops", available=1)
    found = finalizer_owner(
        world(crd, other, runs), held("finalizer.gadgets.example.com"), "finalizer.gadgets.example.com"
    )
    assert (found.workload, found.alive) == (runs, Liveness.ALIVE)


def test_an_unknown_one_is_found_by_its_lease() -> None:
    theirs = lease("8f2a.gadgets.example.com", "ops", HOUR)
    finalizer = "8f2a.gadgets.example.com/clean-up"
    found = finalizer_owner(world(theirs), held(finalizer), finalizer)
    assert (found.lease, found.alive) == (theirs, Liveness.DEAD)
    assert found.who == "the holder of lease/8f2a.gadgets.example.com -n ops"


def test_of_several_leases_below_a_domain_none_is_taken_for_its_controllers() -> None:
    one, two = lease("a1b2.example.com", "ops", HOUR), lease("c3d4.example.com", "shop", HOUR)
    assert finalizer_owner(world(one), held("example.com/x"), "example.com/x").lease is one
    assert finalizer_owner(world(one, two), held("example.com/x"), "example.com/x").lease is None
    exact = lease("example.com", "ops", 3)
    assert finalizer_owner(world(one, two, exact), held("example.com/x"), "example.com/x").lease is exact


def test_our_own_hold_has_no_controller_that_could_be_dead() -> None:
    operator = deployment("pilotage-operator", "pilotage", replicas=0)
    found = finalizer_owner(world(operator, namespaces=("shop",)), held(HOLD), HOLD)
    assert (found.workload, found.alive, found.evidence) == (None, Liveness.UNKNOWN, ())


@pytest.mark.parametrize(
    ("finalizer", "name", "namespace"),
    [
        ("hold.test/crd", "web", "test-definitions-a1b2"),
        ("hold.test/crd", "test-runner", "shop"),
        ("acme.example.org/x", "example-app", "example"),
        ("acme.software/x", "software-catalog", "shop"),
        ("payments.acme.io/x", "database", "payments"),
    ],
)
def test_a_word_that_many_share_makes_nobody_the_controller(finalizer: str, name: str, namespace: str) -> None:
    somebody = deployment(name, namespace, replicas=0)
    found = finalizer_owner(world(somebody), held(finalizer), finalizer)
    assert (found.workload, found.who, found.alive) == (None, "", Liveness.UNKNOWN)


def test_a_controller_in_a_namespace_of_that_name_is_a_guess() -> None:
    runs = deployment("controller-manager", "gadgetry-system", available=1)
    other = deployment("database", "gadgetry-system", replicas=0)
    found = finalizer_owner(world(other, runs), held("gadgetry.example.net/x"), "gadgetry.example.net/x")
    assert (found.workload, found.guessed) == (runs, True)


def test_a_likeness_of_names_is_a_guess() -> None:
    runs = deployment("gadgetry-operator", "ops", available=1)
    found = finalizer_owner(world(runs), held("gadgetry.example.net/x"), "gadgetry.example.net/x")
    assert (found.workload, found.guessed) == (runs, True)


def test_a_known_name_in_its_usual_namespace_comes_first() -> None:
    here = deployment("crossplane", "crossplane-system", available=1)
    elsewhere = deployment("crossplane", "playground", replicas=0)
    finalizer = "composite.apiextensions.crossplane.io"
    assert finalizer_owner(world(elsewhere, here), held(finalizer), finalizer).workload is here


def test_a_name_that_many_have_is_not_enough() -> None:
    somebody = deployment("controller", "unrelated", replicas=0)
    finalizer = "routes.serving.knative.dev"
    assert finalizer_owner(world(somebody), held(finalizer), finalizer).workload is None


def test_nothing_known_gives_an_empty_name_and_says_what_may_leak() -> None:
    found = finalizer_owner(world(), held("hold.test/x"), "hold.test/x")
    assert (found.who, found.alive) == ("", Liveness.UNKNOWN)
    assert "nothing here tells what that is" in found.leaks


def test_what_was_read_by_metadata_alone_is_asked_for() -> None:
    body = {"metadata": {"uid": "d1"}}
    thin = item(kinds.DEPLOYMENTS, "keda-operator", "keda", full=False, **body)
    made = world(thin, live=True)
    found = finalizer_owner(made, held("finalizer.keda.sh"), "finalizer.keda.sh")
    assert found.alive is Liveness.UNKNOWN
    assert {question.uid for question in made.wanted} == {"d1"}  # type: ignore[union-attr]


def process(host: str = "gpu-1") -> Item:
    labels = {"pilotage.dev/host": host} if host else {}
    return held("pilotage.dev/agent", labels=labels)


@pytest.mark.parametrize(
    ("leases", "alive", "trouble"),
    [
        ([lease("gpu-1", "pilotage-hosts", 5)], Liveness.ALIVE, ""),
        ([lease("gpu-1", "pilotage-hosts", HOUR)], Liveness.DEAD, "its lease expired 59m ago"),
        ([lease("gpu-1", "pilotage-hosts", 5, holder="")], Liveness.DEAD, "it has stopped"),
        ([lease("gpu-2", "pilotage-hosts", 5), lease("gpu-1", "elsewhere", 5)], Liveness.UNKNOWN, ""),
    ],
    ids=["renewed", "stale", "given up", "another's"],
)
def test_a_process_is_kept_by_the_agent_of_its_host_and_the_lease_says_whether_that_lives(leases, alive, trouble):
    found = finalizer_owner(world(process(), *leases), process(), "pilotage.dev/agent")
    assert found.who == "the agent of host/gpu-1"
    assert (found.alive, found.trouble) == (alive, trouble)
    assert "keeps running" in found.leaks


def test_a_process_that_is_on_no_host_is_the_operators():
    assert finalizer_owner(world(process("")), process(""), "pilotage.dev/agent").who == "Pilotage operator"


def written_by(manager: str, seconds_ago: float) -> Item:
    """An endpoint whose status was written by a client of this name."""
    fields = [{"manager": manager, "subresource": "status", "time": ago(seconds_ago)}]
    return item(ENDPOINTS, "chat", metadata={**going(600, "pilotage.dev/endpoint"), "managedFields": fields})


@pytest.mark.parametrize(
    ("renewed", "manager", "wrote", "alive"),
    [
        (5, "teardown", 5, Liveness.ALIVE),
        (HOUR, "teardown", 5, Liveness.ALIVE),
        (HOUR, "teardown", 600, Liveness.UNKNOWN),
        (HOUR, "teardown", 2 * HOUR, Liveness.DEAD),
        (HOUR, "kubectl-edit", 5, Liveness.DEAD),
        (30, "teardown", 20, Liveness.DEAD),
        (None, "teardown", 5, Liveness.ALIVE),
        (None, "teardown", 600, Liveness.UNKNOWN),
    ],
    ids=[
        "holds its Lease",
        "writes without a Lease",
        "wrote after the Lease expired",
        "wrote while the Lease was held",
        "a person wrote",
        "died with its Lease",
        "writes, and there is no Lease",
        "wrote, and there is no Lease",
    ],
)
def test_an_operator_that_writes_runs_whatever_an_old_lease_says(renewed, manager, wrote, alive):
    leases = [] if renewed is None else [lease("pilotage-operator", "pilotage-system", renewed)]
    stuck = written_by(manager, wrote)
    assert finalizer_owner(world(stuck, *leases), stuck, "pilotage.dev/endpoint").alive is alive


@pytest.mark.parametrize(("lost_ago", "alive"), [(3, Liveness.DEAD), (60, Liveness.ALIVE)])
def test_an_agent_that_the_operator_has_given_up_since_its_last_renewal_is_dead(lost_ago, alive):
    said = {"type": "AgentAlive", "status": "False", "lastTransitionTime": ago(lost_ago)}
    host = item(HOSTS, "gpu-1", status={"phase": "Lost", "conditions": [said]})
    seen = world(process(), host, lease("gpu-1", "pilotage-hosts", 20))
    assert finalizer_owner(seen, process(), "pilotage.dev/agent").alive is alive


def test_all_likely_owners_are_named_and_one_that_runs_is_enough():
    gizmo, acme = deployment("gizmo-controller", "gizmos", available=1), deployment("acme-operator", "acme")
    found = finalizer_owner(world(gizmo, acme), held("acme.io/gizmo"), "acme.io/gizmo")
    assert (found.who, found.guessed, found.alive) == ("gizmo-controller or acme-operator", True, Liveness.ALIVE)
    assert (found.workload, found.others) == (gizmo, (acme,))
    both = finalizer_owner(
        world(deployment("gizmo-controller", "gizmos"), acme), held("acme.io/gizmo"), "acme.io/gizmo"
    )
    assert both.alive is Liveness.DEAD


@pytest.mark.parametrize(
    ("finalizer", "leaks"),
    [
        ("pilotage.dev/endpoint", "the endpoint's parts"),
        ("pilotage.dev/model", "the fetched files"),
        ("pilotage.dev/host", "the HostProcesses that were placed on it"),
        ("pilotage.dev/agent", "the server, if its machine is up"),
        (HOLD, "nothing, if its parts are gone"),
    ],
)
def test_each_of_our_finalizers_says_what_leaks_of_its_own_kind(finalizer: str, leaks: str) -> None:
    assert finalizer_owner(world(), held(finalizer), finalizer).leaks.startswith(leaks)
