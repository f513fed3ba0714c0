"""Selectors: labels and fields, what they choose and what is refused."""

from __future__ import annotations

from urllib.parse import quote

from tests.contract.case import Theme
from tests.contract.kit import Kit
from tests.contract.objects import CM, Kind, cm, obj, props, secret, with_pod, with_service_account

theme = Theme("select")

LABELS = {
    "one": {"app": "web", "tier": "front", "n": "1"},
    "two": {"app": "web", "tier": "back", "n": "5"},
    "three": {"app": "db", "tier": "back", "empty": ""},
    "four": {"n": "x"},
}


def by_label(name: str, selector: str) -> None:
    async def run(kit: Kit) -> None:
        for each, labels in LABELS.items():
            await kit.quiet.create(CM, cm(each, labels=labels | {"own": "yes"}))
        names = kit.picking(lambda b: [i["metadata"]["name"] for i in b["items"]] if "items" in b else b)
        await names.list(CM, labelSelector=f"own,{selector}")

    theme.add(name, run)


by_label("equal", "app=web")
by_label("equal twice", "app==web")
by_label("not equal", "app!=web")
by_label("two requirements", "app=web,tier=back")
by_label("in", "tier in (front, back)")
by_label("not in", "tier notin (front)")
by_label("exists", "app")
by_label("does not exist", "!app")
by_label("greater than", "n>1")
by_label("less than", "n<5")
by_label("greater than text", "n>x")
by_label("empty value", "empty=")
by_label("value in spaces", " app = web ")
by_label("in an empty set", "app in ()")
by_label("contradiction", "app=web,app=db")

for name, selector in {
    "lone operator": "=x",
    "missing parenthesis": "a in (b",
    "bad key": "a b=c",
    "bad value": "a=b c",
    "value too long": "a=" + "x" * 64,
    "double comma": "a=b,,c=d",
    "unknown operator": "a~b",
    "bang in the middle": "a,!,b",
}.items():
    theme.asks(f"labels {name}", "GET", f"/api/v1/namespaces/{{ns}}/configmaps?labelSelector={quote(selector)}")

for name, resource, selector in (
    ("unknown", "configmaps", "data.k=v"),
    ("unknown of pods", "pods", "spec.hostname=x"),
    ("malformed", "configmaps", "metadata.name"),
    ("with in", "configmaps", "metadata.name in (a)"),
    ("bad escape", "configmaps", r"metadata.name=a\q"),
):
    theme.asks(f"fields {name}", "GET", f"/api/v1/namespaces/{{ns}}/{resource}?fieldSelector={quote(selector)}")


@theme.case()
async def fields_by_name(kit: Kit) -> None:
    for name in "ab":
        await kit.quiet.create(CM, cm(name))
    names = kit.picking(lambda b: [i["metadata"]["name"] for i in b["items"]])
    await names.list(CM, fieldSelector="metadata.name=a")
    await names.list(CM, fieldSelector=f"metadata.name=a,metadata.namespace={kit.ns}")
    await names.list(CM, fieldSelector="metadata.name=a,metadata.namespace=other")
    await names.list(CM, fieldSelector="metadata.name!=a,metadata.name!=kube-root-ca.crt")
    await names.list(CM, fieldSelector="metadata.name=")


@theme.case()
async def fields_of_pods(kit: Kit) -> None:
    await with_pod(kit, "p", nodeName="far", restartPolicy="Never")
    await with_pod(kit, "q")
    names = kit.picking(lambda b: [i["metadata"]["name"] for i in b["items"]])
    for selector in (
        "spec.nodeName=far",
        "spec.nodeName=",
        "status.phase=Pending",
        "status.phase!=Pending",
        "spec.restartPolicy=Never",
        "spec.serviceAccountName=default",
        "spec.schedulerName=default-scheduler",
    ):
        await names.list("pods", fieldSelector=selector)


@theme.case()
async def fields_of_secrets(kit: Kit) -> None:
    await kit.quiet.create("secrets", secret("a", {}))
    await kit.quiet.create("secrets", secret("b", {}, type="example.com/special"))
    names = kit.picking(lambda b: [i["metadata"]["name"] for i in b["items"]])
    await names.list("secrets", fieldSelector="type=Opaque")
    await names.list("secrets", fieldSelector="type=example.com/special")


@theme.case()
async def fields_of_events(kit: Kit) -> None:
    await kit.quiet.create(
        "events",
        obj(
            "v1",
            "Event",
            "e",
            involvedObject={"kind": "Pod", "name": "p", "namespace": kit.ns, "uid": "u"},
            reason="Tested",
            type="Warning",
            source={"component": "contract"},
        ),
    )
    names = kit.picking(lambda b: [i["metadata"]["name"] for i in b["items"]])
    for selector in (
        "involvedObject.name=p",
        "involvedObject.kind=Node",
        "reason=Tested",
        "type=Normal",
        "involvedObject.uid=u,source=contract",
        "reportingComponent=",
    ):
        await names.list("events", fieldSelector=selector)


@theme.case()
async def fields_of_namespaces(kit: Kit) -> None:
    names = kit.picking(lambda b: [i["metadata"]["name"] for i in b["items"]])
    await names.list("/namespaces", fieldSelector=f"status.phase=Active,metadata.name={kit.ns}")
    await names.list("/namespaces", fieldSelector=f"status.phase=Terminating,metadata.name={kit.ns}")


@theme.case()
async def fields_of_custom_resources(kit: Kit) -> None:
    kind = Kind(kit, props(color={"type": "string"}), selectableFields=[{"jsonPath": ".spec.color"}])
    await kind.served()
    await kit.quiet.create(kind.resource, kind.object("a", {"color": "red"}))
    await kit.quiet.create(kind.resource, kind.object("b", {"color": "blue"}))
    await kit.quiet.create(kind.resource, kind.object("c", {}))
    names = kit.picking(lambda b: [i["metadata"]["name"] for i in b["items"]] if "items" in b else b)
    await names.list(kind.resource, fieldSelector="spec.color=red")
    await names.list(kind.resource, fieldSelector="spec.color!=red")
    await names.list(kind.resource, fieldSelector="spec.color=")
    await names.list(kind.resource, fieldSelector="spec.size=1")


@theme.case()
async def services_by_cluster_ip(kit: Kit) -> None:
    await kit.quiet.create("services", obj("v1", "Service", "a", spec={"clusterIP": "None", "ports": [{"port": 1}]}))
    names = kit.picking(lambda b: [i["metadata"]["name"] for i in b["items"]])
    await names.list("services", fieldSelector="spec.clusterIP=None")
    await names.list("services", fieldSelector="spec.type=NodePort")


@theme.case()
async def delete_collection_by_labels(kit: Kit) -> None:
    for name, label in (("a", "x"), ("b", "x"), ("c", "y")):
        await kit.quiet.create("secrets", secret(name, {}) | {"metadata": {"name": name, "labels": {"l": label}}})
    await kit.delete("secrets", labelSelector="l=x")
    await kit.list("secrets")


@theme.case()
async def delete_collection_by_fields(kit: Kit) -> None:
    await with_service_account(kit)
    for name in "ab":
        await kit.quiet.create("secrets", secret(name, {}))
    await kit.delete("secrets", fieldSelector="metadata.name=a")
    await kit.list("secrets")
