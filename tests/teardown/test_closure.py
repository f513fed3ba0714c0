"""What belongs to a teardown, and what stays."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from pilotage.teardown.closure import gather_members
from pilotage.teardown.graph import Edge, Graph, Relation
from pilotage.teardown.policy import Keep, Policy
from pilotage.teardown.world import Item
from tests.teardown.building import item, world_of

DEPLOYMENT = item("Deployment")
REPLICA_SET = item("ReplicaSet", owners=(DEPLOYMENT,))
POD = item("Pod", owners=(REPLICA_SET,))
SERVICE = item("Service")
SLICE = item("EndpointSlice", labels={"kubernetes.io/service-name": "web"})
ENDPOINTS = item("Endpoints")
INGRESS, CONFIG, SECRET, CLAIM = item("Ingress"), item("ConfigMap"), item("Secret"), item("PersistentVolumeClaim")
SHARED = item("Secret", "shared", owners=(DEPLOYMENT, SERVICE))
ELSEWHERE = item("Pod", "elsewhere", owners=(DEPLOYMENT,), namespace="other")
NAMESPACE = item("Namespace", "shop")
ROOT_CA = item("ConfigMap", "kube-root-ca.crt")
DEFINITION = item("CustomResourceDefinition", "apps.test.dev")
APP = item("App")
OWNED_CONFIG = item("ConfigMap", "owned", owners=(DEPLOYMENT,))
EVERYTHING = (DEPLOYMENT, REPLICA_SET, POD, SERVICE, INGRESS, CONFIG, SECRET, CLAIM, APP)


def edge(source: Item, relation: Relation, target: Item) -> Edge:
    return Edge(source, relation, target.name, target, "spec")


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


CASES = [
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
    Case("what refers to it stays, unless asked for", EVERYTHING, [SERVICE], {SERVICE: "named"},
         edges=[edge(INGRESS, Relation.ROUTES_TO, SERVICE)]),
    Case("with --adopt it goes, if it refers to nothing else", EVERYTHING, [SERVICE],
         {SERVICE: "named", INGRESS: "routes to service/web -n shop, and nothing else"},
         edges=[edge(INGRESS, Relation.ROUTES_TO, SERVICE)], adopt=True),
    Case("one that also serves another stays", (*EVERYTHING, item("Service", "other")), [SERVICE],
         {SERVICE: "named"}, edges=[edge(INGRESS, Relation.ROUTES_TO, SERVICE),
                                    edge(INGRESS, Relation.ROUTES_TO, item("Service", "other"))], adopt=True),
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
