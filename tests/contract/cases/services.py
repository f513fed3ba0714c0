"""Services: addresses, ports, types, and what may not change."""

from __future__ import annotations

from typing import Any

from tests.contract.case import Theme
from tests.contract.kit import Kit
from tests.contract.objects import obj, service

theme = Theme("service")


def creates(name: str, **spec: Any) -> None:
    theme.creates(name, "services", service("a", **spec))


creates("cluster ip")
creates("headless", clusterIP="None")
creates("headless without selector", clusterIP="None", selector=None)
creates("external name", type="ExternalName", externalName="example.com", ports=None)
creates("external name missing", type="ExternalName")
creates("external name invalid", type="ExternalName", externalName="not valid")
creates("node port", type="NodePort")
creates("load balancer", type="LoadBalancer")
creates("type unknown", type="Teleport")
creates("without ports", ports=[])
creates("port zero", ports=[{"port": 0}])
creates("port too large", ports=[{"port": 70_000}])
creates("ports without names", ports=[{"port": 80}, {"port": 81}])
creates("ports named twice", ports=[{"port": 80, "name": "a"}, {"port": 81, "name": "a"}])
creates("ports twice", ports=[{"port": 80, "name": "a"}, {"port": 80, "name": "b"}])
creates("target port by name", ports=[{"port": 80, "targetPort": "http"}])
creates("target port invalid", ports=[{"port": 80, "targetPort": "not valid"}])
creates("protocol unknown", ports=[{"port": 80, "protocol": "XYZ"}])
creates("address outside", clusterIP="192.168.0.1")
creates("address malformed", clusterIP="300.1.1.1")
creates("affinity", sessionAffinity="ClientIP")
creates("affinity unknown", sessionAffinity="Magic")
creates("selector invalid", selector={"a b": "c"})
creates("policy on cluster ip", externalTrafficPolicy="Local")
creates("node port on cluster ip", ports=[{"port": 80, "nodePort": 30_080}])
creates("node port out of range", type="NodePort", ports=[{"port": 80, "nodePort": 80}])
creates("external addresses", externalIPs=["1.2.3.4", "127.0.0.1"])
theme.creates("name with a dot", "services", service("a.b"))
theme.creates("name that begins with a digit", "services", service("1a"))
theme.creates("without spec", "services", obj("v1", "Service", "a"))


@theme.case()
async def addresses_differ(kit: Kit) -> None:
    shown = kit.picking(lambda b: [b["spec"]["clusterIP"], b["spec"]["clusterIPs"]])
    await shown.create("services", service("a"))
    await shown.create("services", service("b"))
    await shown.get("services", "a")


@theme.case()
async def address_chosen(kit: Kit) -> None:
    address = "10.0.7.77"
    await kit.create("services", service("a", clusterIP=address))
    await kit.create("services", service("b", clusterIP=address))
    await kit.quiet.delete("services", "a")
    answer = await kit.create("services", service("b", clusterIP=address))
    kit.note("given", answer.body["spec"]["clusterIP"] == address)


@theme.case(alone=True)  # a dry run is checked against any one of the ServiceCIDRs, and other cases create some
async def dry_run_takes_no_address(kit: Kit) -> None:
    address = "10.0.7.78"
    await kit.picking(lambda b: b["spec"]["clusterIP"]).create(
        "services", service("a", clusterIP=address), dryRun="All"
    )
    await kit.picking(lambda b: b["spec"]["clusterIP"]).create("services", service("a", clusterIP=address))


@theme.case()
async def address_is_immutable(kit: Kit) -> None:
    await kit.quiet.create("services", service("a", clusterIP="10.0.7.79"))
    await kit.patch("services", "a", {"spec": {"clusterIP": "10.0.7.80"}})
    await kit.patch("services", "a", {"spec": {"clusterIP": "10.0.7.80", "clusterIPs": ["10.0.7.80"]}})


@theme.case()
async def update_keeps_the_address(kit: Kit) -> None:
    made = await kit.quiet.create("services", service("a"))
    answer = await kit.picking(lambda b: b["spec"]).put("services", "a", service("a", ports=[{"port": 81}]))
    kit.note("kept", answer.body["spec"]["clusterIP"] == made.body["spec"]["clusterIP"])


@theme.case()
async def to_external_name_and_back(kit: Kit) -> None:
    await kit.quiet.create("services", service("a"))
    patch = {"spec": {"type": "ExternalName", "externalName": "example.com", "clusterIP": None, "clusterIPs": None}}
    await kit.picking(lambda b: b.get("spec", b)).patch("services", "a", patch)
    await kit.picking(lambda b: b.get("spec", b)).patch(
        "services", "a", {"spec": {"type": "ClusterIP", "externalName": None}}
    )


@theme.case()
async def to_node_port(kit: Kit) -> None:
    await kit.quiet.create("services", service("a"))
    await kit.picking(lambda b: b["spec"]).patch("services", "a", {"spec": {"type": "NodePort"}})
    await kit.picking(lambda b: b["spec"]).patch("services", "a", {"spec": {"type": "ClusterIP"}})


@theme.case()
async def of_the_api_server(kit: Kit) -> None:
    await (
        kit.in_namespace("default")
        .picking(
            lambda b: [
                b["metadata"]["labels"],
                [port | {"targetPort": 0} for port in b["spec"]["ports"]],
                b["spec"]["type"],
            ]
        )
        .get("services", "kubernetes")
    )
