"""Output of `pilotage tree`: parts, referrers, references, with their state; and it always ends."""

from __future__ import annotations

import json
import textwrap
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.catalogue.relation import Relation
from pilotage.kube import Json, Object, Resource
from pilotage.kube.errors import ErrorClass
from pilotage.teardown.diagnosis.tree import Node, Tree, ready, render, to_json, tree
from pilotage.teardown.relations import relate
from pilotage.teardown.snapshot.fields import span
from pilotage.teardown.snapshot.graph import Edge, Graph
from pilotage.teardown.snapshot.questions import FullObject
from pilotage.teardown.snapshot.world import Item, KindReading, Name, State, World
from tests.teardown.relations.worlds import NOW, item_of, owned_by, world_of


def shown(world: World, uid: str, **bounds: int) -> str:
    item = world.get(uid)
    assert item is not None
    return "\n".join(render(tree(world, relate(world), item, **bounds)))


def lines(text: str) -> str:
    return textwrap.dedent(text).strip()


WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  template:
    metadata: {labels: {app: web}}
    spec:
      volumes:
      - {configMap: {name: conf}}
      - {secret: {secretName: lost}}
      - {persistentVolumeClaim: {claimName: data}}
status: {replicas: 2, readyReplicas: 1}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: web-1
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: deployment/web, controller: true}]
---
apiVersion: v1
kind: Pod
metadata:
  name: web-1-a
  labels: {app: web}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, uid: replicaset/web-1, controller: true}]
status: {phase: Running, containerStatuses: [{ready: true}]}
---
apiVersion: v1
kind: Pod
metadata:
  name: web-1-b
  labels: {app: web}
  deletionTimestamp: "2026-11-15T11:46:30Z"
  deletionGracePeriodSeconds: 30
  finalizers: [example.com/drain]
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, uid: replicaset/web-1, controller: true}]
status: {phase: Running, containerStatuses: [{ready: false, state: {waiting: {reason: CrashLoopBackOff}}}]}
---
{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec: {rules: [{http: {paths: [{backend: {service: {name: web}}}]}}]}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {selector: {matchLabels: {app: web}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: conf}}
---
{apiVersion: v1, kind: Secret, metadata: {name: other}}
"""


def test_a_deployment_with_all_that_has_to_do_with_it() -> None:
    assert shown(world_of(WEB), "deployment/web") == lines(
        """
        deployment/web -n shop  1 of 2 ready
        ├─ replicaset/web-1
        │  ├─ pod/web-1-b  terminating for 14m; finalizers: example.com/drain; Running, 0 of 1 ready, CrashLoopBackOff
        │  └─ pod/web-1-a  Running, 1 of 1 ready
        ├─ referred to by
        │  ├─ horizontalpodautoscaler/web  (scales it, spec.scaleTargetRef)
        │  ├─ poddisruptionbudget/web  (protects it, spec.selector)
        │  └─ service/web  (selects it, spec.selector)
        │     └─ ingress/web  (routes to it, spec.rules[0].http.paths[0].backend.service)
        └─ refers to
           ├─ configmap/conf  (mounted by it, spec.template.spec.volumes[0].configMap)
           ├─ persistentvolumeclaim/data  unknown: it is not in the dump  \
(mounted by it, spec.template.spec.volumes[2].persistentVolumeClaim)
           └─ secret/lost  not there  (mounted by it, spec.template.spec.volumes[1].secret)
        """
    )


def test_a_part_shows_its_owners_and_whom_its_referrers_mean() -> None:
    assert shown(world_of(WEB), "replicaset/web-1") == lines(
        """
        replicaset/web-1 -n shop  present
        ├─ pod/web-1-b  terminating for 14m; finalizers: example.com/drain; Running, 0 of 1 ready, CrashLoopBackOff
        ├─ pod/web-1-a  Running, 1 of 1 ready
        ├─ owned by
        │  └─ deployment/web  1 of 2 ready
        └─ referred to by
           ├─ poddisruptionbudget/web  (protects pod/web-1-a, spec.selector)
           └─ service/web  (selects pod/web-1-a, spec.selector)
              └─ ingress/web  (routes to it, spec.rules[0].http.paths[0].backend.service)
        """
    )


def test_a_namespace_by_kind_what_nobody_owns_first_and_who_refers_to_it_from_outside() -> None:
    outside = """
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop}, status: {phase: Active}}
---
{apiVersion: v1, kind: Event, metadata: {name: noise}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: guard}
webhooks: [{name: a, clientConfig: {service: {name: web, namespace: shop}}}]
"""
    assert shown(world_of(WEB + outside), "namespace/shop") == lines(
        """
        namespace/shop  Active
        ├─ Deployment.apps (1)
        │  └─ deployment/web  1 of 2 ready
        │     └─ replicaset/web-1
        │        ├─ pod/web-1-b  terminating for 14m; finalizers: example.com/drain; Running, 0 of 1 ready, \
CrashLoopBackOff
        │        └─ pod/web-1-a  Running, 1 of 1 ready
        ├─ ConfigMap (1)
        │  └─ configmap/conf
        ├─ HorizontalPodAutoscaler.autoscaling (1)
        │  └─ horizontalpodautoscaler/web
        ├─ Ingress.networking.k8s.io (1)
        │  └─ ingress/web
        ├─ PodDisruptionBudget.policy (1)
        │  └─ poddisruptionbudget/web
        ├─ Secret (1)
        │  └─ secret/other
        ├─ Service (1)
        │  └─ service/web
        ├─ referred to by
        │  └─ validatingwebhookconfiguration/guard  (targets service/web, webhooks[0].clientConfig.service)
        └─ refers to
           ├─ persistentvolumeclaim/data  unknown: it is not in the dump  \
(mounted by deployment/web, spec.template.spec.volumes[2].persistentVolumeClaim)
           └─ secret/lost  not there  (mounted by deployment/web, spec.template.spec.volumes[1].secret)
        """
    )


def test_of_a_namespace_the_workload_is_told_before_its_pods() -> None:
    pod = a("Pod", "web-1", ownerReferences=owned_by("Deployment", "web")) | {"spec": {"serviceAccountName": "lost"}}
    web = a("Deployment", "web", api_version="apps/v1") | {
        "spec": {"template": {"spec": {"serviceAccountName": "lost"}}}
    }
    text = shown(world_of([pod, web, a("Namespace", "shop"), a("ServiceAccount", "default")]), "namespace/shop")
    assert "serviceaccount/lost  not there  (mounted by deployment/web" in text


def a(kind: str, name: str, *, api_version: str = "v1", **meta: Any) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **meta}}


def test_a_circle_of_owners_ends_and_a_shared_part_is_shown_once() -> None:
    def owners(*names: str) -> list[Json]:
        return [owned_by("Thing", name, api_version="x.io/v1")[0] for name in names]

    bodies = [
        a("Thing", "a", api_version="x.io/v1", ownerReferences=owners("c")),
        a("Thing", "b", api_version="x.io/v1", ownerReferences=owners("a")),
        a("Thing", "c", api_version="x.io/v1", ownerReferences=owners("b", "a")),
        a("Namespace", "shop"),
    ]
    world = world_of(bodies)
    assert shown(world, "thing/a") == lines(
        """
        thing/a -n shop  present
        ├─ thing/b
        │  └─ thing/c
        │     └─ thing/a  (see above)
        ├─ thing/c  (see above)
        └─ owned by
           └─ thing/c  (see above)
        """
    )
    assert shown(world, "namespace/shop") == lines(
        """
        namespace/shop  present
        └─ own each other in a cycle (3)
           ├─ thing/a
           │  ├─ thing/b
           │  │  └─ thing/c
           │  │     └─ thing/a  (see above)
           │  └─ thing/c  (see above)
           ├─ thing/b  (see above)
           └─ thing/c  (see above)
        """
    )


def test_of_many_alike_the_first_are_shown_and_what_is_going_before_all() -> None:
    pods = [a("Pod", f"p{i:04}", ownerReferences=owned_by("ReplicaSet", "web")) for i in range(5000)]
    pods[4321]["metadata"]["deletionTimestamp"] = "2026-11-15T11:00:00Z"
    world = world_of([a("ReplicaSet", "web", api_version="apps/v1"), *pods], full=False)
    text = shown(world, "replicaset/web").splitlines()
    assert len(text) == 22
    assert text[1] == "├─ pod/p4321  terminating for 60m"
    assert text[-1] == "└─ … and 4,980 more of kind Pod"


def test_what_is_not_there_is_never_left_out() -> None:
    volumes = [{"configMap": {"name": f"c{i}"}} for i in range(30)] + [{"configMap": {"name": "lost"}}]
    body = a("Pod", "web") | {"spec": {"volumes": volumes}}
    text = shown(world_of([body, *(a("ConfigMap", f"c{i}") for i in range(30))]), "pod/web", alike_max=3)
    assert "configmap/lost  not there" in text
    assert "… and 28 more of kind ConfigMap" in text


def test_a_huge_tree_is_cut_off() -> None:
    bodies = [a("Namespace", "shop")]
    bodies += [a(f"Kind{i}", f"n{j}", api_version="x.io/v1") for i in range(30) for j in range(10)]
    text = shown(world_of(bodies), "namespace/shop", nodes_max=50).splitlines()
    assert sum("/n" in line for line in text) == 49
    assert sum("… and 10 more of kind" in line for line in text) == 25


def test_pods_that_are_shown_are_asked_for_and_not_too_many() -> None:
    pods = [a("Pod", f"p{i}", ownerReferences=owned_by("ReplicaSet", "web")) for i in range(5)]
    world = world_of([a("ReplicaSet", "web", api_version="apps/v1"), *pods], live=True, full=False)
    item = world.get("replicaset/web")
    assert item is not None
    tree(world, Graph(relate(world).out_of("replicaset/web")), item, alike_max=3)
    assert {q for q in world.wanted if isinstance(q, FullObject)} >= {FullObject(f"pod/p{i}") for i in range(3)}
    assert FullObject("pod/p4") not in world.wanted


def test_what_could_not_be_read_is_said() -> None:
    world = world_of(WEB)
    secrets = Resource("", "v1", "secrets", "Secret")
    world.read_kind(KindReading(secrets, problem="secrets is forbidden", error_class=ErrorClass.FORBIDDEN))
    world.unreadable_groups["metrics.k8s.io/v1beta1"] = "the server is currently unable to handle the request"
    text = shown(world, "deployment/web")
    assert "secret/lost  unknown: secrets is forbidden" in text
    assert text.endswith(
        "\nThis may be incomplete. These could not be read:\n"
        "  metrics.k8s.io/v1beta1: the server is currently unable to handle the request\n"
        "  secrets: secrets is forbidden"
    )


def test_many_kinds_that_could_not_be_read_are_counted_and_do_not_bury_the_tree() -> None:
    world = world_of(WEB)
    for number in range(36):
        each = Resource(f"g{number:02}.example.com", "v1", "things", "Thing")
        world.read_kind(KindReading(each, problem="things is forbidden: User …", error_class=ErrorClass.FORBIDDEN))
    text = shown(world, "deployment/web")
    assert text.splitlines()[-1] == (
        "This may be incomplete: 36 kinds could not be read (things.g00.example.com, things.g01.example.com, "
        "things.g02.example.com and 33 more); -o json says why."
    )
    assert "is forbidden" not in text


def test_programs_get_the_same_tree() -> None:
    world = world_of(WEB)
    item = world.get("deployment/web")
    assert item is not None
    found = json.loads(json.dumps(to_json(tree(world, relate(world), item))))
    parts = found["root"]["nodes"]
    assert found["unread"] == []
    assert parts[0]["nodes"][0] == {
        "group": "", "kind": "Pod", "namespace": "shop", "name": "web-1-b", "uid": "pod/web-1-b",
        "state": "terminating",
        "text": "terminating for 14m; finalizers: example.com/drain; Running, 0 of 1 ready, CrashLoopBackOff",
    }  # fmt: skip
    assert [part.get("title") for part in parts] == [None, "referred to by", "refers to"]
    lost = parts[2]["nodes"][2]
    assert (lost["name"], lost["state"], lost["uid"], lost["how"]) == ("lost", "gone", "", "mounted by it")


def test_a_pod_in_its_grace_period_says_how_much_is_left() -> None:
    meta: dict[str, Any] = {"deletionTimestamp": "2026-11-15T12:00:12Z", "deletionGracePeriodSeconds": 30}
    assert shown(world_of([a("Pod", "p", **meta)]), "pod/p") == (
        "pod/p -n shop  terminating for 18 s, 12 s of grace left"
    )


def test_readiness_is_told_in_a_few_words() -> None:
    def told(kind: str, api_version: str, **body: Any) -> str:
        return ready(item_of(a(kind, "x", api_version=api_version) | body))

    assert told("StatefulSet", "apps/v1", spec={"replicas": 3}, status={"replicas": 3}) == "0 of 3 ready"
    assert told("DaemonSet", "apps/v1", status={"numberReady": 1, "desiredNumberScheduled": 4}) == "1 of 4 ready"
    assert told("PersistentVolumeClaim", "v1", status={"phase": "Bound"}) == "Bound"
    down = {"type": "Ready", "status": "False", "reason": "Broken"}
    assert told("InferenceService", "serving.kserve.io/v1beta1", status={"conditions": [down]}) == "not ready: Broken"
    up = {"type": "Available", "status": "True"}
    assert told("Model", "pilotage.dev/v1alpha1", status={"conditions": [{"type": "Odd"}, up]}) == "available"
    serving = {"phase": "Serving", "replicas": {"ready": 1, "desired": 2}}
    assert told("ServingEndpoint", "pilotage.dev/v1alpha1", spec={"replicas": 2}, status=serving) == "1 of 2 ready"
    assert told("ConfigMap", "v1") == ""
    assert [span(seconds) for seconds in (0, 59, 120, 7200, 172800)] == ["0 s", "59 s", "2m", "2h", "2d"]


# Whatever the graph


KINDS = [("", "Namespace"), ("", "Pod"), ("apps", "Deployment"), ("x.io", "Thing")]
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | st.sampled_from(["", "Running", "True", "Ready"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "state"]), inner, max_size=2),
    max_leaves=4,
)

FIELDS = JUNK | st.dictionaries(st.sampled_from(["phase", "replicas", "readyReplicas", "conditions"]), JUNK, max_size=3)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[World, Graph]:
    world = World(NOW, live=draw(st.booleans()))
    count = draw(st.integers(1, 7))
    for i in range(count):
        group, kind = draw(st.sampled_from(KINDS))
        meta: Json = {"name": "a" if i == 0 else f"n{i}", "uid": f"u{i}"}
        if kind != "Namespace":
            meta["namespace"] = draw(st.sampled_from(["a", "b", ""]))
        if draw(st.booleans()):
            meta["deletionTimestamp"] = draw(st.sampled_from(["2026-11-15T11:00:00Z", "soon", "2026-11-15T11:00:00"]))
            meta["finalizers"] = draw(st.lists(st.sampled_from(["x.io/f", "kubernetes"]), max_size=2))
        body = {"metadata": meta, "spec": draw(FIELDS), "status": draw(FIELDS)}
        world.add(Item(Resource(group, "v1", kind.lower(), kind), Object.from_dict(body), full=draw(st.booleans())))
    items = list(world)
    edges = []
    for _ in range(draw(st.integers(0, 12))):
        source, target = draw(st.sampled_from(items)), draw(st.sampled_from([*items, None]))
        name = target.name if target else Name("", "Secret", "a", "lost")
        edges.append(Edge(source, draw(st.sampled_from(list(Relation))), name, target, "spec.x"))
    return world, Graph(edges)


def every(node: Node) -> list[Node]:
    return [node, *(inner for child in node.nodes for inner in every(child))]


@given(worlds(), st.integers(1, 3), st.integers(0, 12))
@settings(max_examples=100, deadline=None)
def test_any_graph_gives_a_tree_that_ends_and_shows_each_object_once(
    given_world: tuple[World, Graph], alike_max: int, nodes_max: int
) -> None:
    world, graph = given_world
    for item in world:
        for bounds in ({}, {"alike_max": alike_max, "nodes_max": nodes_max}):
            found: Tree = tree(world, graph, item, **bounds)
            nodes = every(found.root)
            assert all("\n" not in line for line in render(found))
            json.dumps(to_json(found))
            opened = [node.item.uid for node in nodes if node.item is not None and node.nodes]
            assert len(opened) == len(set(opened))
            assert all(node.state in (State.GONE, State.UNKNOWN) for node in nodes if node.name and node.item is None)
            if not bounds:
                assert {edge.target.uid for edge in graph.out_of(item.uid) if edge.target} <= {
                    node.item.uid for node in nodes if node.item
                }


def test_a_long_chain_of_owners_ends() -> None:
    bodies = [a("Thing", "t0", api_version="x.io/v1")]
    for i in range(1, 3000):
        owner = owned_by("Thing", f"t{i - 1}", api_version="x.io/v1")
        bodies.append(a("Thing", f"t{i}", api_version="x.io/v1", ownerReferences=owner))
    world = world_of(bodies, full=False)
    assert shown(world, "thing/t0").splitlines()[-1].endswith("└─ … and 1 more of kind Thing")
    assert len(shown(world, "thing/t2999").splitlines()) < 40
