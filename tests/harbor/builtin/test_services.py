"""Addresses and ports of Services: never given twice, kept over updates, and loopback where it is wanted."""

from __future__ import annotations

import copy
import ipaddress
from typing import Any

import pytest

from pilotage_harbor.apimachinery.errors import StatusError
from pilotage_harbor.builtin.service_allocation import RANGE
from tests.harbor.builtin.harness import KINDS, SYSTEM, Json, Shelf

STRATEGY = KINDS["v1", "Service"].strategy


def service(name: str, **spec: Any) -> Json:
    meta = SYSTEM | {"name": name, "namespace": "n", "uid": f"uid-of-{name}"}
    spec.setdefault("ports", [{"port": 80}])
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}


def created(obj: Json, *others: Json) -> Json:
    STRATEGY.default(obj)
    STRATEGY.prepare_create(obj, Shelf(services=list(others)))
    assert STRATEGY.validate(obj, Shelf()) == []
    return obj


def test_each_service_gets_an_address_of_its_own():
    services: list[Json] = []
    for number in range(50):
        services.append(created(service(f"s{number}"), *services))
    addresses = [each["spec"]["clusterIP"] for each in services]
    assert len(set(addresses)) == 50
    assert all(ipaddress.ip_address(each) in RANGE for each in addresses)


def test_the_same_seed_finds_another_address_when_its_own_is_taken():
    first = created(service("a"))
    second = service("a")
    second["metadata"]["namespace"] = "elsewhere"
    assert created(second, first)["spec"]["clusterIP"] != first["spec"]["clusterIP"]


def test_an_address_is_not_given_twice():
    first = created(service("a", clusterIP="10.0.0.9"))
    with pytest.raises(StatusError, match="provided IP is already allocated") as refused:
        created(service("b", clusterIP="10.0.0.9"), first)
    assert refused.value.code == 422


def test_a_node_port_is_not_given_twice():
    first = created(service("a", type="NodePort", ports=[{"port": 80, "nodePort": 30001}]))
    with pytest.raises(StatusError, match="provided port is already allocated"):
        created(service("b", type="NodePort", ports=[{"port": 80, "nodePort": 30001}]), first)
    automatic = created(service("c", type="NodePort"), first)
    assert automatic["spec"]["ports"][0]["nodePort"] not in (0, 30001)


def test_an_update_that_does_not_mention_them_keeps_address_and_port():
    old = created(service("a", type="NodePort", ports=[{"port": 80, "nodePort": 30100}]))
    new = service("a", type="NodePort", selector={"x": "y"})
    STRATEGY.default(new)
    STRATEGY.prepare_update(new, copy.deepcopy(old), Shelf(services=[old]))
    assert new["spec"]["clusterIP"] == old["spec"]["clusterIP"]
    assert new["spec"]["ports"] == old["spec"]["ports"]


@pytest.mark.parametrize("address", ["127.0.0.1", "127.1.2.3"])
def test_endpoints_may_be_on_loopback(address: str):
    piece = {
        "metadata": {"name": "a", "namespace": "n"},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address]}],
        "ports": [{"port": 80}],
    }
    kind = KINDS["discovery.k8s.io/v1", "EndpointSlice"]
    kind.strategy.default(piece)
    assert kind.strategy.validate(piece, Shelf()) == []
    older = {"metadata": {"name": "a", "namespace": "n"}, "subsets": [{"addresses": [{"ip": address}]}]}
    kind = KINDS["v1", "Endpoints"]
    kind.strategy.default(older)
    assert kind.strategy.validate(older, Shelf()) == []
