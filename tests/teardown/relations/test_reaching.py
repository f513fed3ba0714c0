"""Kinds that can point into another namespace: known before the rows are imported, and equal to what the rows say."""

from pilotage.catalogue.reading import reaching
from pilotage.kube import ApiResource, GroupKind, Resource
from pilotage.teardown.relations import BUILT_IN, full_kinds

REACHING = tuple(row for row in BUILT_IN if row.reaches)


def served(kind: str, *categories: str) -> ApiResource:
    resource = Resource("some.example.com", "v1", f"{kind.lower()}s", kind)
    return ApiResource(resource, kind.lower(), (), categories, frozenset(["list"]), frozenset(), True)


def test_what_can_point_into_another_namespace_is_known_before_the_rows_are() -> None:
    patterns = (row for row in BUILT_IN if row.pattern)
    there = [served(f"A{row.category}" if row.kind == "*" else row.kind, row.category) for row in patterns]
    assert reaching(there) == full_kinds(REACHING, there), "run `make manifests`"
    assert reaching(()) == full_kinds(REACHING)


def test_it_is_told_by_how_the_target_is_named() -> None:
    kinds = reaching(())
    assert {
        GroupKind("gateway.networking.k8s.io", "HTTPRoute"),  # a namespace beside the name
        GroupKind("networking.istio.io", "DestinationRule"),  # a host name
        GroupKind("projectcontour.io", "HTTPProxy"),  # a slash before the name
        GroupKind("monitoring.coreos.com", "ServiceMonitor"),  # a selector of namespaces
        GroupKind("rbac.authorization.k8s.io", "RoleBinding"),
    } <= kinds
    here = ("Deployment", "Ingress", "Service", "HorizontalPodAutoscaler", "EndpointSlice", "PodDisruptionBudget")
    assert {kind.kind for kind in kinds}.isdisjoint(here)
