"""Verification of a receipt on a real API server: by uid, whatever object has the name now."""

import contextlib
from collections.abc import AsyncIterator, Callable

import msgspec
import pytest
from msgspec.structs import replace

from controlplane import Access, Cluster
from pilotage.catalogue.phase import Phase
from pilotage.kube import Client, Object, Resource, load_config
from pilotage.teardown.engine.receipt import ObjectRecord, Receipt
from pilotage.teardown.engine.verify import ReceiptVerdict, verify
from pilotage.teardown.planning.ledger import Disposition, Entry, Ledger, Policy
from tests.support.kinds import CONFIG_MAPS, config_map, delete

SERVER = "https://here:6443"


@contextlib.asynccontextmanager
async def connected(kubeconfig: object) -> AsyncIterator[Client]:
    async with Client.connect(load_config(kubeconfig=str(kubeconfig))) as client:
        yield client


def entry(obj: Object, *, keep: bool = False, resource: Resource = CONFIG_MAPS) -> Entry:
    return Entry(
        resource=resource,
        namespace=obj.meta.namespace,
        name=obj.meta.name,
        uid=obj.meta.uid,
        phase=Phase.REMOVE,
        disposition=Disposition.KEEP if keep else Disposition.DELETE,
        reason="named",
    )


def receipt(*entries: Entry, result: str = "complete") -> Receipt:
    ledger = Ledger(targets=("configmap/a",), started="2026-11-15T10:00:00Z", policy=Policy(), entries=entries)
    objects = tuple(record(each) for each in entries)
    return Receipt(("configmap/a",), SERVER, "", ledger.started, ledger, result=result, objects=objects)


def record(entry: Entry) -> ObjectRecord:
    version, state = entry.resource.api_version, "kept" if entry.disposition is Disposition.KEEP else "gone"
    return ObjectRecord(version, entry.resource.kind, entry.namespace, entry.name, entry.uid, "named", "remove", state)


async def gone(client: Client, namespace: str, name: str = "a") -> Object:
    made = await client.create(CONFIG_MAPS, config_map(name), namespace=namespace)
    await delete(client, CONFIG_MAPS, made)
    return made


async def test_what_is_gone_and_what_is_kept_holds(cluster: Access, namespace: str):
    async with connected(cluster.kubeconfig) as client:
        left = await gone(client, namespace)
        kept = await client.create(CONFIG_MAPS, config_map("kept"), namespace=namespace)
        found = await verify(client, receipt(entry(left), entry(kept, keep=True)), server=SERVER)
    assert found.verdict is ReceiptVerdict.HOLDS
    assert [each.name for each in found.gone] == ["a"]
    assert [each.name for each in found.kept] == ["kept"]


async def test_another_object_of_the_name_is_another_object(cluster: Access, namespace: str):
    """One by one, and by a list where there are many."""
    async with connected(cluster.kubeconfig) as client:
        for names in (["a"], ["b", "c", "d"]):
            left = [await gone(client, namespace, name) for name in names]
            another = await client.create(CONFIG_MAPS, config_map(names[0]), namespace=namespace)
            found = await verify(client, receipt(*map(entry, left)), server=SERVER)
            assert found.verdict is ReceiptVerdict.HOLDS
            assert found.successors == {f"configmap/{names[0]} -n {namespace}": another.meta.uid}


async def test_what_is_there_does_not_hold(cluster: Access, namespace: str):
    async with connected(cluster.kubeconfig) as client:
        left = await gone(client, namespace)
        there = await client.create(CONFIG_MAPS, config_map("b"), namespace=namespace)
        found = await verify(client, receipt(entry(left), entry(there)), server=SERVER)
    assert found.verdict is ReceiptVerdict.DOES_NOT_HOLD
    assert [each.name for each in found.back] == ["b"]


async def test_what_was_to_be_kept_and_is_gone_does_not_hold(cluster: Access, namespace: str):
    async with connected(cluster.kubeconfig) as client:
        found = await verify(client, receipt(entry(await gone(client, namespace), keep=True)), server=SERVER)
    assert found.verdict is ReceiptVerdict.DOES_NOT_HOLD
    assert [each.name for each in found.lost] == ["a"]


async def test_a_receipt_without_an_end_proves_nothing(cluster: Access, namespace: str):
    async with connected(cluster.kubeconfig) as client:
        left = entry(await gone(client, namespace))
        cut_off = await verify(client, receipt(left, result="running"), server=SERVER)
        record = ObjectRecord("v1", "ConfigMap", namespace, "a", left.uid, "named", "remove", "left")
        unfinished = msgspec.structs.replace(receipt(left, result="incomplete"), objects=(record,))
        ended = await verify(client, unfinished, server=SERVER)
    assert cut_off.verdict is ended.verdict is ReceiptVerdict.DOES_NOT_HOLD
    assert "cut off" in cut_off.incomplete
    assert f"ended without configmap/a -n {namespace}" in ended.incomplete


async def test_what_may_not_be_read_is_unknown(own_cluster: Cluster, namespace: str):
    async with connected(own_cluster.kubeconfig) as client:
        left = await gone(client, namespace)
    async with connected(own_cluster.user(f"nobody-{namespace[-8:]}")) as client:
        found = await verify(client, receipt(entry(left)), server=SERVER)
    assert found.verdict is ReceiptVerdict.UNKNOWN
    assert "cannot get resource" in found.unread[f"configmap/a -n {namespace}"]


async def test_a_kind_that_is_not_served_is_unknown(cluster: Access, namespace: str):
    widgets = Resource("never.example.com", "v1", "widgets", "Widget")
    async with connected(cluster.kubeconfig) as client:
        left = await gone(client, namespace)
        found = await verify(client, receipt(entry(left, resource=widgets)), server=SERVER)
    assert found.verdict is ReceiptVerdict.UNKNOWN


async def test_on_another_cluster_all_seems_to_be_gone(cluster: Access, namespace: str):
    async with connected(cluster.kubeconfig) as client:
        left = entry(await gone(client, namespace))
        kept = await client.create(CONFIG_MAPS, config_map("kept"), namespace=namespace)
        elsewhere = await verify(client, receipt(left), server="https://elsewhere:6443")
        moved = await verify(client, receipt(left, entry(kept, keep=True)), server="https://elsewhere:6443")
    assert elsewhere.verdict is ReceiptVerdict.UNKNOWN
    assert SERVER in elsewhere.elsewhere
    assert moved.verdict is ReceiptVerdict.HOLDS  # the kept object is there: it is the same cluster


@pytest.mark.parametrize(
    ("forge", "said"),
    [
        (lambda objects: (), "its ledger has configmap/a -n"),
        (lambda objects: (replace(objects[0], uid="of-another"),), "its ledger has configmap/a -n"),
        (lambda objects: (replace(objects[0], name="b"),), "its ledger has configmap/a -n"),
        (
            lambda objects: (replace(objects[0], state="left"),),
            "it is called complete, and configmap/a",
        ),
        (
            lambda objects: (*objects, replace(objects[0], uid="one-more")),
            "(uid one-more), and its ledger",
        ),
        (lambda objects: objects * 2, "it has an object twice"),
    ],
)
async def test_objects_that_are_not_those_of_the_ledger_do_not_hold(
    cluster: Access, namespace: str, forge: Callable[[tuple[ObjectRecord, ...]], tuple[ObjectRecord, ...]], said: str
):
    """Only the ledger is read again: whoever reads the objects must be told the same."""
    async with connected(cluster.kubeconfig) as client:
        written = receipt(entry(await gone(client, namespace)))
        forged = msgspec.structs.replace(written, objects=forge(written.objects))
        found = await verify(client, forged, server=SERVER)
    assert found.verdict is ReceiptVerdict.DOES_NOT_HOLD
    assert said in found.contradiction


async def test_the_identity_of_the_cluster_counts_and_not_its_address(cluster: Access, namespace: str):
    async with connected(cluster.kubeconfig) as client:
        written = msgspec.structs.replace(receipt(entry(await gone(client, namespace))), cluster="c1")
        same = await verify(client, written, server="https://elsewhere:1", cluster="c1")
        other = await verify(client, written, server=SERVER, cluster="c2")
    assert same.verdict is ReceiptVerdict.HOLDS
    assert other.verdict is ReceiptVerdict.UNKNOWN
    assert other.elsewhere == "the receipt was made on the cluster c1, and this is c2"
