"""Members of a teardown, and objects that stay."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from pilotage.catalogue.kind import Keep
from pilotage.catalogue.relation import Relation
from pilotage.teardown.planning.closure import gather_members
from pilotage.teardown.planning.ledger import Policy
from pilotage.teardown.snapshot.graph import Edge, Graph
from pilotage.teardown.snapshot.questions import FullObject
from pilotage.teardown.snapshot.world import Item, KindReading
from tests.teardown.building import KINDS, item, world_of

DEPLOYMENT = item("Deployment")
REPLICA_SET = item("ReplicaSet", owners=(DEPLOYMENT,))
POD = item("Pod", owners=(REPLICA_SET,))
SERVICE = item("Service")
SLICE = item("EndpointSlice", labels={"kubernetes.io/service-name": "web"})
ENDPOINTS = item("Endpoints")
INGRESS, CONFIG, SECRET, CLAIM = item("Ingress"), item("ConfigMap"), item("Secret"), item("PersistentVolumeClaim")
CACHE, MODEL = item("PersistentVolumeClaim", "web-cache"), item("Model", "weights")
CACHE_VOLUME = item("PersistentVolume", "disk", spec={"claimRef": {"uid": CACHE.uid}})
FREE_VOLUME = item("PersistentVolume", "free", spec={})
SHARED = item("Secret", "shared", owners=(DEPLOYMENT, SERVICE))
FAR_INGRESS, FAR_CONFIG = item("Ingress", "far", namespace="edge"), item("ConfigMap", "far", namespace="edge")
ELSEWHERE = item("Pod", "elsewhere", owners=(DEPLOYMENT,), namespace="other")
NAMESPACE = item("Namespace", "shop")
ROOT_CA = item("ConfigMap", "kube-root-ca.crt")
DEFINITION = item("CustomResourceDefinition", "apps.test.dev")
APP = item("App")
OWNED_CONFIG = item("ConfigMap", "owned", owners=(DEPLOYMENT,))
BUDGET, USAGE, WEBHOOK = item("PodDisruptionBudget"), item("Usage"), item("ValidatingWebhookConfiguration")
SCALER = item("HorizontalPodAutoscaler")
OWN_SLICE = item("EndpointSlice", "web-1", owners=(SERVICE,))
EVERYTHING = (DEPLOYMENT, REPLICA_SET, POD, SERVICE, INGRESS, CONFIG, SECRET, CLAIM, APP)


def edge(source: Item, relation: Relation, target: Item) -> Edge:
    return Edge(source, relation, target.name, target, "spec")


def dangling(source: Item, relation: Relation, target: Item) -> Edge:
    return Edge(source, relation, target.name, None, "spec")


def volume(policy: str, *, full: bool = True, claimed_by: str = CLAIM.uid) -> Item:
    read = item(
        "PersistentVolume", "disk", spec={"persistentVolumeReclaimPolicy": policy, "claimRef": {"uid": claimed_by}}
    )
    return read if full else Item(read.resource, read.object, full=False)


@dataclass(frozen=True)
class Case:
    name: str
    items: tuple[Item, ...]
    targets: list[Item]
    going: dict[Item, str]
    kept: dict[Item, str] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    adopt: bool = False
    policy: Policy = field(default_factory=Policy)
    remarks: list[str] = field(default_factory=list)


ENDPOINT = item("ServingEndpoint", "chat", spec={"deletion": {"keep": ["Volumes"]}})
SERVED = item("Deployment", "chat-1", labels={"pilotage.dev/endpoint-uid": ENDPOINT.uid})
SERVED_POD = item("Pod", "chat-1", owners=(SERVED,))
SERVED_CLAIM = item("PersistentVolumeClaim", "chat-1", labels={"pilotage.dev/endpoint-uid": ENDPOINT.uid})
NAMED_ALIKE = item("Service", "chat-1")
OF_ENDPOINT = [edge(ENDPOINT, Relation.DEFINES, each) for each in (SERVED, SERVED_CLAIM, NAMED_ALIKE)]
HOST = item("Host", "gpu")
PROCESS = item("HostProcess", "chat-1-0")

CASES = [
    Case("an endpoint goes with its parts, but for what its spec keeps and what only has the name of one",
         (ENDPOINT, SERVED, SERVED_POD, SERVED_CLAIM, NAMED_ALIKE), [ENDPOINT],
         {ENDPOINT: "named", SERVED: "made for servingendpoint/chat -n shop",
          SERVED_POD: "owned by deployment/chat-1 -n shop"},
         {SERVED_CLAIM: "spec.deletion of servingendpoint/chat -n shop keeps it"}, OF_ENDPOINT),
    Case("with its namespace goes all of it", (NAMESPACE, ENDPOINT, SERVED_CLAIM), [NAMESPACE],
         {NAMESPACE: "named", ENDPOINT: "in namespace/shop", SERVED_CLAIM: "in namespace/shop"},
         edges=OF_ENDPOINT[1:2]),
    Case("with its namespace goes all of it, but for what is kept on request and by its spec",
         (NAMESPACE, ENDPOINT, SERVED_CLAIM), [NAMESPACE], {ENDPOINT: "in namespace/shop"},
         {SERVED_CLAIM: "spec.deletion of servingendpoint/chat -n shop keeps it",
          NAMESPACE: "it would take persistentvolumeclaim/chat-1 -n shop along, which is kept"},
         OF_ENDPOINT[1:2], policy=Policy(keep=frozenset({Keep.VOLUMES})),
         remarks=["namespace/shop stays: it would take persistentvolumeclaim/chat-1 -n shop along, which is kept"]),
    Case("a Host goes with the processes on it", (HOST, PROCESS), [HOST],
         {HOST: "named", PROCESS: "made for host/gpu"}, edges=[edge(PROCESS, Relation.NEEDS, HOST)]),
    Case("what was named goes, with all it owns", EVERYTHING, [DEPLOYMENT],
         {DEPLOYMENT: "named", REPLICA_SET: "owned by deployment/web -n shop",
          POD: "owned by replicaset/web -n shop"}),
    Case("with a Service go its Endpoints and the slices that nobody owns", (SERVICE, SLICE, ENDPOINTS), [SERVICE],
         {SERVICE: "named", ENDPOINTS: "the endpoints of service/web -n shop",
          SLICE: "labelled as a slice of service/web -n shop"}),
    Case("what has another owner that stays stays with it", (DEPLOYMENT, SERVICE, SHARED), [DEPLOYMENT],
         {DEPLOYMENT: "named"}, remarks=["secret/shared -n shop stays: service/web -n shop owns it, too"]),
    Case("if all its owners go, it goes", (DEPLOYMENT, SERVICE, SHARED), [DEPLOYMENT, SERVICE],
         {DEPLOYMENT: "named", SERVICE: "named", SHARED: "owned by deployment/web -n shop"}),
    Case("what was named goes, whoever owns it", (DEPLOYMENT, SERVICE, SHARED), [DEPLOYMENT, SHARED],
         {DEPLOYMENT: "named", SHARED: "named"}),
    Case("an owner in another namespace is none", (DEPLOYMENT, ELSEWHERE), [DEPLOYMENT], {DEPLOYMENT: "named"}),
    Case("with a namespace goes what is in it, but for what the cluster makes there",
         (NAMESPACE, CONFIG, ROOT_CA, ELSEWHERE), [NAMESPACE],
         {NAMESPACE: "named", CONFIG: "in namespace/shop"}),
    Case("with a definition go its objects", (DEFINITION, APP, CONFIG), [DEFINITION],
         {DEFINITION: "named", APP: "defined by customresourcedefinition/apps.test.dev"}),
    Case("what is to be kept stays, though its owner goes", (DEPLOYMENT, OWNED_CONFIG), [DEPLOYMENT],
         {DEPLOYMENT: "named"}, {OWNED_CONFIG: "kept as asked; owned by deployment/web -n shop"},
         policy=Policy(keep=frozenset({Keep.CONFIGS}))),
    Case("a namespace with something in it that is kept stays", (NAMESPACE, CONFIG, CLAIM), [NAMESPACE],
         {CONFIG: "in namespace/shop"},
         {CLAIM: "kept as asked; in namespace/shop",
          NAMESPACE: "it would take persistentvolumeclaim/web -n shop along, which is kept"},
         policy=Policy(keep=frozenset({Keep.VOLUMES})),
         remarks=["namespace/shop stays: it would take persistentvolumeclaim/web -n shop along, which is kept"]),
    Case("weights that were fetched can be kept, whatever becomes of other claims", (CLAIM, CACHE, MODEL),
         [CLAIM, CACHE, MODEL], {CLAIM: "named"}, {CACHE: "kept as asked; named", MODEL: "kept as asked; named"},
         policy=Policy(keep=frozenset({Keep.CACHES}))),
    Case("with a claim that is kept its volume is, though it was named", (CACHE, CACHE_VOLUME, FREE_VOLUME),
         [CACHE, CACHE_VOLUME, FREE_VOLUME], {FREE_VOLUME: "named"},
         {CACHE: "kept as asked; named",
          CACHE_VOLUME: "persistentvolumeclaim/web-cache -n shop is kept, and with it the data of its volume"},
         policy=Policy(keep=frozenset({Keep.CACHES}))),
    Case("what refers to it stays, unless asked for", EVERYTHING, [SERVICE], {SERVICE: "named"},
         edges=[edge(INGRESS, Relation.ROUTES_TO, SERVICE)]),
    Case("with --adopt it goes, if it refers to nothing else", EVERYTHING, [SERVICE],
         {SERVICE: "named", INGRESS: "routes to service/web -n shop, and nothing else"},
         edges=[edge(INGRESS, Relation.ROUTES_TO, SERVICE)], adopt=True),
    Case("one in another namespace stays, and so does configuration there", (*EVERYTHING, FAR_INGRESS, FAR_CONFIG),
         [SERVICE], {SERVICE: "named"},
         edges=[edge(FAR_INGRESS, Relation.ROUTES_TO, SERVICE), edge(SERVICE, Relation.MOUNTS, FAR_CONFIG)],
         kept={FAR_CONFIG: "not asked for; service/web -n shop mounts it"}, adopt=True),
    Case("unless something there was named as well", (*EVERYTHING, FAR_INGRESS, FAR_CONFIG), [SERVICE, FAR_CONFIG],
         {SERVICE: "named", FAR_CONFIG: "named", FAR_INGRESS: "routes to service/web -n shop, and nothing else"},
         edges=[edge(FAR_INGRESS, Relation.ROUTES_TO, SERVICE)], adopt=True),
    Case("one that also serves another stays", (*EVERYTHING, item("Service", "other")), [SERVICE],
         {SERVICE: "named"}, edges=[edge(INGRESS, Relation.ROUTES_TO, SERVICE),
                                    edge(INGRESS, Relation.ROUTES_TO, item("Service", "other"))], adopt=True),
    Case("one that also is about another in any way stays", (*EVERYTHING, SCALER), [DEPLOYMENT],
         {DEPLOYMENT: "named", REPLICA_SET: "owned by deployment/web -n shop", POD: "owned by replicaset/web -n shop"},
         edges=[edge(SCALER, Relation.SCALES, DEPLOYMENT), edge(SCALER, Relation.TARGETS, APP)], adopt=True),
    Case("and so does one that is about something that was not seen", EVERYTHING, [SERVICE], {SERVICE: "named"},
         edges=[edge(INGRESS, Relation.ROUTES_TO, SERVICE), dangling(INGRESS, Relation.TARGETS, APP)], adopt=True),
    Case("what it mounts, needs or owns does not keep it", (DEPLOYMENT, SERVICE, OWN_SLICE, SECRET), [DEPLOYMENT],
         {DEPLOYMENT: "named", SERVICE: "selects deployment/web -n shop, and nothing else",
          OWN_SLICE: "owned by service/web -n shop"},
         {SECRET: "not asked for; service/web -n shop mounts it"},
         edges=[edge(SERVICE, Relation.SELECTS, DEPLOYMENT), edge(SERVICE, Relation.OWNS, OWN_SLICE),
                edge(SERVICE, Relation.MOUNTS, SECRET), dangling(SERVICE, Relation.NEEDS, APP)], adopt=True),
    Case("a budget is adopted, and a usage is not: it belongs to its user", (APP, BUDGET, USAGE), [APP],
         {APP: "named", BUDGET: "protects app/web -n shop, and nothing else"},
         edges=[edge(BUDGET, Relation.PROTECTS, APP), edge(USAGE, Relation.PROTECTS, APP)], adopt=True),
    Case("what is about it in another way is not adopted: it may serve others", (SERVICE, WEBHOOK), [SERVICE],
         {SERVICE: "named"}, edges=[edge(WEBHOOK, Relation.TARGETS, SERVICE)], adopt=True),
    Case("configuration that only it mounts is adopted, and volumes are not, but listed", (DEPLOYMENT, CONFIG, CLAIM),
         [DEPLOYMENT], {DEPLOYMENT: "named", CONFIG: "mounted by deployment/web -n shop, and by nothing else"},
         {CLAIM: "not asked for; deployment/web -n shop mounts it"},
         edges=[edge(DEPLOYMENT, Relation.MOUNTS, CONFIG), edge(DEPLOYMENT, Relation.MOUNTS, CLAIM)], adopt=True),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_who_goes_and_who_stays(case):
    world = world_of(*case.items)
    members = gather_members(world, Graph(case.edges), case.targets, case.policy, adopt=case.adopt)
    assert {uid: members.reasons[uid] for uid in members.going} == {each.uid: why for each, why in case.going.items()}
    assert {uid: members.reasons[uid] for uid in members.kept} == {each.uid: why for each, why in case.kept.items()}
    assert members.remarks == case.remarks


def test_what_is_going_already_cannot_be_kept():
    going = item("ConfigMap", terminating=True, finalizers=("test.dev/x",))
    members = gather_members(world_of(going), Graph([]), [going], Policy(keep=frozenset({Keep.CONFIGS})), adopt=False)
    assert members.remarks == ["configmap/web -n shop cannot be kept: its deletion has begun already"]


def test_parts_are_owned_and_in_the_same_namespace():
    members = gather_members(
        world_of(DEPLOYMENT, REPLICA_SET, POD, ELSEWHERE), Graph([]), [DEPLOYMENT, ELSEWHERE], Policy(), adopt=False
    )
    assert members.parts(DEPLOYMENT.uid) == [REPLICA_SET.uid]
    assert members.below(DEPLOYMENT.uid) == {REPLICA_SET.uid, POD.uid}


@pytest.mark.parametrize(
    ("disk", "kept", "remarks"),
    [
        pytest.param(volume("Retain"), "its reclaim policy is Retain", [], id="one that is retained is kept"),
        pytest.param(
            volume("Delete"),
            None,
            ["persistentvolume/disk goes with its claim (reclaim policy Delete): its data is lost"],
            id="one that is deleted goes",
        ),
        pytest.param(
            volume("Recycle"),
            None,
            ["persistentvolume/disk is emptied once its claim is gone (reclaim policy Recycle): its data is lost"],
            id="one that is recycled is emptied",
        ),
        pytest.param(
            volume("Delete", full=False),
            None,
            ["persistentvolume/disk: whether it goes with its claim is not known, its reclaim policy was not read"],
            id="of one that was not read it is not known",
        ),
        pytest.param(
            volume("Delete", claimed_by="another"),
            "not asked for; persistentvolumeclaim/web -n shop claims it",
            [],
            id="one that another claim has stays with that",
        ),
    ],
)
def test_what_becomes_of_the_volume_of_a_claim_that_goes(disk: Item, kept: str | None, remarks: list[str]):
    edges = [edge(CLAIM, Relation.CLAIMS, disk), edge(CLAIM, Relation.CLAIMS, disk)]  # from both sides
    members = gather_members(world_of(CLAIM, disk), Graph(edges), [CLAIM], Policy(), adopt=False)
    assert {uid: members.reasons[uid] for uid in members.kept} == ({disk.uid: kept} if kept else {})
    assert members.remarks == remarks


def test_of_volumes_that_nobody_could_read_it_is_said_that_they_may_go():
    world = world_of(CLAIM)
    edges = Graph([dangling(CLAIM, Relation.CLAIMS, volume("Delete"))])
    assert gather_members(world, edges, [CLAIM], Policy(), adopt=False).remarks == []  # it is not there
    world.read_kind(KindReading(KINDS["PersistentVolume"], problem="forbidden"))
    assert gather_members(world, edges, [CLAIM], Policy(), adopt=False).remarks == [
        "persistentvolume/disk: whether it goes with its claim is not known, its reclaim policy was not read"
    ]


def test_the_volume_is_asked_for():
    disk = volume("Delete", full=False)
    world = world_of(CLAIM, disk)
    gather_members(world, Graph([edge(CLAIM, Relation.CLAIMS, disk)]), [CLAIM], Policy(), adopt=False)
    assert world.wanted == {FullObject(disk.uid)}
