"""Owners, what is asked for, what is read in full, and that no value in any field is too odd."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pilotage.catalogue.reading import in_full
from pilotage.catalogue.relation import ByName, Relation, RelationRow, TargetKind
from pilotage.kube import ApiResource, GroupKind, Json, Object, Resource
from pilotage.teardown.relations import BUILT_IN, defined_by, full_kinds, relate
from pilotage.teardown.relations.compiled import steps
from pilotage.teardown.relations.labels import LabelIndex, understand
from pilotage.teardown.snapshot.questions import FullObject
from pilotage.teardown.snapshot.world import Item, World
from tests.teardown.relations.worlds import NOW, edges_of, item_of, owned_by, world_of


def a(kind: str, name: str, *, api_version: str = "v1", **meta: Any) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **meta}}


# Owners


def test_an_owner_is_found_by_uid_kind_and_name() -> None:
    owner = a("Deployment", "web", api_version="apps/v1")
    right = a("ReplicaSet", "right", api_version="apps/v1", ownerReferences=owned_by("Deployment", "web"))
    old = a("ReplicaSet", "old", api_version="apps/v1", ownerReferences=owned_by("Deployment", "web", uid="of-before"))
    misnamed = owned_by("Deployment", "other", uid="deployment/web")
    wrong = a("ReplicaSet", "wrong", api_version="apps/v1", ownerReferences=misnamed)
    assert edges_of([owner, right, old, wrong]) == [
        "deployment/web owns replicaset/right @ metadata.ownerReferences[0]"
    ]


def test_an_owner_owns_in_its_own_namespace_alone_and_a_cluster_scoped_one_everywhere() -> None:
    reference = owned_by("ConfigMap", "root", api_version="v1")
    cluster = owned_by("ClusterRole", "root", api_version="rbac.authorization.k8s.io/v1")
    bodies = [
        a("ConfigMap", "root"),
        a("Secret", "near", ownerReferences=reference),
        a("Secret", "far", namespace="elsewhere", ownerReferences=reference),
        a("Node", "above", ownerReferences=reference),
        a("ClusterRole", "root", api_version="rbac.authorization.k8s.io/v1"),
        a("Secret", "below", namespace="elsewhere", ownerReferences=cluster),
    ]
    assert edges_of(bodies) == [
        "configmap/root owns secret/near @ metadata.ownerReferences[0]",
        "clusterrole/root owns secret/below -n elsewhere @ metadata.ownerReferences[0]",
    ]


def test_owners_are_known_from_metadata_alone() -> None:
    pod = a("Pod", "web-1", ownerReferences=owned_by("ReplicaSet", "web"))
    world = world_of([a("ReplicaSet", "web", api_version="apps/v1"), pod], full=False)
    (edge,) = relate(world).into("pod/web-1")
    assert (edge.relation, edge.source.meta.name) == (Relation.OWNS, "web")


def test_a_namespaced_target_that_is_named_from_no_namespace_is_none() -> None:
    binding = a("ClusterRoleBinding", "b", api_version="rbac.authorization.k8s.io/v1")
    account = {"kind": "ServiceAccount", "name": "robot"}
    assert edges_of([binding | {"subjects": [account]}]) == []
    assert len(edges_of([binding | {"subjects": [account | {"namespace": "ci"}]}])) == 1


# Reads and questions


def test_what_was_not_read_in_full_has_no_edges_but_those_of_its_metadata() -> None:
    service = a("Service", "web") | {"spec": {"selector": {"app": "web"}}}
    pod = a("Pod", "web-1", labels={"app": "web"})
    label = {"kubernetes.io/service-name": "web"}
    world = world_of(
        [service, pod, a("EndpointSlice", "s", api_version="discovery.k8s.io/v1", labels=label)], full=False
    )
    graph = relate(world)
    assert graph.out_of("service/web") == []
    assert [str(edge) for edge in graph.out_of("endpointslice/s")] == [
        "endpointslice/s -n shop targets service/web -n shop (metadata.labels[kubernetes.io/service-name])"
    ]


def test_pods_that_nobody_made_are_asked_for_and_no_others() -> None:
    bodies = [
        a("Pod", "bare"),
        a("Pod", "made", ownerReferences=owned_by("ReplicaSet", "web")),
        a("Pod", "odd", ownerReferences=owned_by("RayCluster", "ray", api_version="ray.io/v1")),
        a("ReplicaSet", "web", api_version="apps/v1", ownerReferences=owned_by("Deployment", "web")),
        a("ReplicaSet", "bare", api_version="apps/v1"),
    ]
    world = world_of(bodies, live=True, full=False)
    relate(world)
    assert world.wanted == {FullObject("pod/bare"), FullObject("pod/odd"), FullObject("replicaset/bare")}


def test_not_too_many_are_asked_for_and_none_of_a_dump() -> None:
    bodies = [a("Pod", f"bare-{i}") for i in range(20)]
    live = world_of(bodies, live=True, full=False)
    relate(live, asked_max=7)
    assert len(live.wanted) == 7
    dump = world_of(bodies, full=False)
    relate(dump)
    assert dump.wanted == set()


def test_what_is_made_by_the_thousand_or_is_huge_is_not_read_in_full() -> None:
    kinds = full_kinds()
    assert {
        GroupKind("apps", "Deployment"),
        GroupKind("", "Service"),
        GroupKind("policy", "PodDisruptionBudget"),
    } <= kinds
    left = (
        "Pod",
        "ReplicaSet",
        "EndpointSlice",
        "Endpoints",
        "Secret",
        "ConfigMap",
        "CustomResourceDefinition",
        "Revision",
    )
    assert {kind.kind for kind in kinds}.isdisjoint(left)
    assert not any("*" in kind.group or "*" in kind.kind for kind in kinds)


def served(group: str, kind: str, *categories: str) -> ApiResource:
    resource = Resource(group, "v1", f"{kind.lower()}s", kind)
    return ApiResource(resource, kind.lower(), (), categories, frozenset(["list"]), frozenset(), True)


def test_managed_resources_are_read_in_full_only_where_they_are_served() -> None:
    there = [
        served("s3.aws.upbound.io", "Bucket", "crossplane", "managed", "aws"),
        served("example.org", "XDatabase", "composite"),
        served("example.org", "Widget", "all"),
        served("aws.upbound.io", "ProviderConfigUsage"),
        served("apps", "ControllerRevision", "managed"),
        served("metrics.k8s.io", "NodeMetrics", "managed"),
    ]
    added = full_kinds(BUILT_IN, there) - full_kinds()
    assert added == {
        GroupKind("s3.aws.upbound.io", "Bucket"),
        GroupKind("example.org", "XDatabase"),
        GroupKind("aws.upbound.io", "ProviderConfigUsage"),
    }
    assert in_full(there) == full_kinds(BUILT_IN, there)


def test_what_has_to_be_read_is_known_before_the_rows_are() -> None:
    rows = (row for row in BUILT_IN if row.pattern)
    there = [
        served("some.example.com", f"A{row.category}" if row.kind == "*" else row.kind, row.category) for row in rows
    ]
    assert in_full(there) == full_kinds(BUILT_IN, there), "run `make manifests`"
    assert in_full(()) == full_kinds()


def test_what_is_decoded_already_is_not_decoded_again() -> None:
    world = world_of([a("Service", "web") | {"spec": {"selector": {"app": "web"}}}, a("Pod", "p", labels={"app": "x"})])
    service = world.get("service/web")
    assert service is not None
    service.read()["spec"]["selector"]["app"] = "x"  # only the decoded one says so
    assert [edge.name.name for edge in relate(world).out_of("service/web")] == ["p"]


# Definitions


def test_a_namespace_and_a_definition_define_and_nothing_else_does() -> None:
    bodies = [
        a("Namespace", "shop"),
        a("ConfigMap", "in"),
        a("ConfigMap", "out", namespace="elsewhere"),
        a("CustomResourceDefinition", "widgets.example.com", api_version="apiextensions.k8s.io/v1"),
        a("Widget", "w", api_version="example.com/v1", namespace="elsewhere"),
        a("Widget", "foreign", api_version="example.org/v1", namespace="elsewhere"),
    ]
    world = world_of(bodies)

    def names(uid: str) -> list[str]:
        item = world.get(uid)
        assert item is not None
        return [each.meta.name for each in defined_by(world, item)]

    assert names("namespace/shop") == ["in"]
    assert names("customresourcedefinition/widgets.example.com") == ["w"]
    assert names("configmap/in") == []
    assert all(edge.relation is not Relation.DEFINES for item in world for edge in relate(world).out_of(item.uid))


# Arbitrary input

WORDS = ["name", "namespace", "kind", "apiVersion", "group", "matchLabels", "matchExpressions", "any", "weight", "key"]
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "web", "a/b", "x.y.svc", "pvc://", "*", "é"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=3),
    max_leaves=6,
)
ROWS_WITH_BODY = [row for row in BUILT_IN if not row.from_metadata]


def planted(path: list[str], value: object) -> Any:
    """An object that has a value at the end of a path."""
    if not path:
        return value
    step, *rest = path
    inner = planted(rest, value)
    return [inner, value] if step == "[]" else {"some" if step == "*" else step: inner}


def merged(one: Any, other: Any) -> Any:
    if isinstance(one, dict) and isinstance(other, dict):
        return {
            key: merged(one[key], other[key]) if key in one and key in other else (one | other)[key]
            for key in one | other
        }
    return one


@st.composite
def odd_objects(draw: st.DrawFn) -> Json:
    row = draw(st.sampled_from(ROWS_WITH_BODY))
    group = "db.example.org" if row.group.startswith("*") else row.group
    kind = "Thing" if row.kind == "*" else row.kind
    way = steps(row.field)
    body = planted(way[: draw(st.integers(1, len(way)))], draw(JUNK))
    body = merged(body, planted(steps(row.field), draw(JUNK)))
    meta = {"name": draw(st.sampled_from(["web", "x"])), "uid": draw(st.uuids()).hex}
    if draw(st.booleans()):
        meta["namespace"] = "shop"
    return {"apiVersion": f"{group}/v1" if group else "v1", "kind": kind, "metadata": meta, **body}


@given(st.lists(odd_objects(), max_size=6))
@settings(max_examples=150, deadline=None)
def test_no_value_in_any_field_is_too_odd(bodies: list[Json]) -> None:
    world = World(NOW, live=False)
    for body in bodies:
        world.add(item_of(body))
    graph = relate(world)
    for item in world:
        for edge in graph.out_of(item.uid):
            assert edge.name.name
            assert edge.field
            assert edge.target is None or edge.target.name == edge.name


LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"), max_size=3)
EXPRESSION = st.fixed_dictionaries(
    {
        "key": st.sampled_from("abc"),
        "operator": st.sampled_from(["In", "NotIn"]),
        "values": st.lists(st.sampled_from("xyz"), min_size=1, max_size=2),
    }
) | st.fixed_dictionaries({"key": st.sampled_from("abc"), "operator": st.sampled_from(["Exists", "DoesNotExist"])})


@given(st.lists(LABELS, max_size=8), LABELS, st.lists(EXPRESSION, max_size=2))
@example([{"a": "x"}, {"b": "y"}], {"a": "x", "b": "y"}, [])
def test_the_index_selects_what_the_selector_matches(labelled: list[Any], pairs: Any, expressions: list[Any]) -> None:
    from pilotage.kube import LabelSelector

    selector = {"matchLabels": pairs, "matchExpressions": expressions}
    items = [item_of(a("Pod", f"p{i}", labels=labels)) for i, labels in enumerate(labelled)]
    wish = understand(selector, plain=False)
    assert wish is not None
    found = list(LabelIndex((item, item.meta.labels) for item in items).select("shop", wish))
    assert found == [item for item in items if LabelSelector.from_object(selector).matches(item.meta.labels)]


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.lists(st.integers(0, 5), max_size=3), st.sampled_from(["", "one", "two"])),
        max_size=6,
    )
)
def test_any_owners_even_circles_give_edges_that_the_collector_would_follow(graph: list[Any]) -> None:
    world = World(NOW, live=False)
    for i, (_, owners, namespace) in enumerate(graph):
        references = [owned_by("Thing", f"t{owner}", api_version="x.io/v1", uid=f"u{owner}")[0] for owner in owners]
        meta = {"name": f"t{i}", "uid": f"u{i}", "namespace": namespace, "ownerReferences": references}
        resource = Resource("x.io", "v1", "things", "Thing")
        world.add(
            Item(resource, Object.from_dict({"apiVersion": "x.io/v1", "kind": "Thing", "metadata": meta}), full=False)
        )
    found = relate(world)
    for i, (_, owners, namespace) in enumerate(graph):
        expected = {owner for owner in owners if owner < len(graph) and graph[owner][2] in ("", namespace)}
        assert {int(edge.source.uid[1:]) for edge in found.into(f"u{i}")} == expected


@pytest.mark.parametrize("path", ["", ".", "a..b", "a[", "a]b", "[]", "a.[]", "a[]b", "a**"])
def test_a_path_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="is not a path"):
        steps(path)


def test_rows_of_ones_own_are_added() -> None:
    row = RelationRow(
        Relation.MOUNTS,
        "spec.parts[].from",
        ByName((TargetKind("", "ConfigMap"),)),
        group="example.com",
        kind="Widget",
    )
    widget = a("Widget", "w", api_version="example.com/v1") | {
        "spec": {"parts": [{"from": "a"}, {"from": {"name": "b"}}]}
    }
    assert edges_of([widget], (*BUILT_IN, row)) == [
        "widget/w mounts configmap/a ! @ spec.parts[0].from",
        "widget/w mounts configmap/b ! @ spec.parts[1].from",
    ]
