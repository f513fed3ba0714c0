"""Paths, and what cannot be one."""

import pytest

from pilotage.kube import LEASES, PODS, ObjectKey, ObjectRef, Resource
from pilotage.kube.names import is_address

NODES = Resource("", "v1", "nodes", "Node", namespaced=False)

PATHS = [
    (PODS.path(), "/api/v1/pods"),
    (PODS.path("ns"), "/api/v1/namespaces/ns/pods"),
    (PODS.path("ns", "x"), "/api/v1/namespaces/ns/pods/x"),
    (PODS.path("ns", "x", "log"), "/api/v1/namespaces/ns/pods/x/log"),
    (LEASES.path("ns", "x"), "/apis/coordination.k8s.io/v1/namespaces/ns/leases/x"),
    (NODES.path("", "x"), "/api/v1/nodes/x"),
    (NODES.path("ns", "x"), "/api/v1/nodes/x"),
    (NODES.path("", "a:b ü?#&+%"), "/api/v1/nodes/a%3Ab%20%C3%BC%3F%23%26%2B%25"),
]


@pytest.mark.parametrize(("path", "expected"), PATHS)
def test_a_path_has_every_name_quoted(path: str, expected: str) -> None:
    assert path == expected


@pytest.mark.parametrize("name", ["a/b", "/", ".", "..", "x/status"])
def test_a_name_that_would_lead_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name of an object or a namespace"):
        PODS.path("ns", name)
    with pytest.raises(ValueError, match="cannot be the name of an object or a namespace"):
        PODS.path(name)


def test_an_address_is_told_from_a_name() -> None:
    assert all(map(is_address, ["10.0.0.1", "::1", "fe80::1%eth0"]))
    assert not any(map(is_address, ["", "localhost", "10.0.0", "10.0.0.1:80", "[::1]", "10.0.0.0/8"]))


def test_how_they_are_written() -> None:
    assert str(ObjectKey("ns", "x")) == "ns/x"
    assert str(ObjectKey("", "x")) == "x"
    assert str(ObjectRef("apps/v1", "Deployment", "ns", "x", "1")) == "deployment/x -n ns"
    assert str(ObjectRef("v1", "Node", "", "x", "1")) == "node/x"
    assert (str(PODS), str(LEASES)) == ("pods", "leases.coordination.k8s.io")
    assert (PODS.api_version, LEASES.api_version) == ("v1", "coordination.k8s.io/v1")


def test_keys_are_values() -> None:
    assert {ObjectKey("a", "b"): 1}[ObjectKey("a", "b")] == 1
    assert sorted([ObjectKey("b", "a"), ObjectKey("a", "b"), ObjectKey("a", "a")]) == [
        ObjectKey("a", "a"),
        ObjectKey("a", "b"),
        ObjectKey("b", "a"),
    ]
    assert ObjectRef("v1", "Pod", "ns", "x", "1").key == ObjectKey("ns", "x")
