"""The store equals a plain dict, and each index equals a scan of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.kube import ObjectKey
from pilotage.runtime.store import Store
from tests.runtime.objects import thing


def by_namespace(obj):
    return (obj.meta.namespace,)


def by_owner(obj):
    return (owner.uid for owner in obj.meta.owner_references)


def owned(name: str, namespace: str, owners: frozenset[str]):
    references = [{"apiVersion": "v1", "kind": "X", "name": uid, "uid": uid} for uid in sorted(owners)]
    return thing(name, namespace=namespace, ownerReferences=references)


names = st.sampled_from("abc")
namespaces = st.sampled_from(["ns1", "ns2", ""])
puts = st.builds(owned, names, namespaces, st.frozensets(st.sampled_from(["o1", "o2", "o3"])))
removes = st.builds(ObjectKey, namespaces, names)


@given(st.lists(st.one_of(puts, removes)), st.integers(0, 5))
def test_indexes_equal_a_scan(steps, index_added_at):
    store, plain = Store(), {}
    for number, step in enumerate(steps):
        if number == index_added_at:
            store.add_index("owner", by_owner)
        if isinstance(step, ObjectKey):
            assert store.remove(step) is plain.pop(step, None)
        else:
            assert store.put(step) is plain.get(step.key)
            plain[step.key] = step
    store.add_index("owner", by_owner)
    store.add_index("namespace", by_namespace)
    assert dict(store.items()) == plain
    for uid in ("o1", "o2", "o3"):
        scanned = [obj for obj in plain.values() if uid in {owner.uid for owner in obj.meta.owner_references}]
        assert {obj.key for obj in store.indexed("owner", uid)} == {obj.key for obj in scanned}
    assert {obj.key for obj in store.indexed("namespace", "ns1")} == {key for key in plain if key.namespace == "ns1"}
    assert {obj.key for obj in store.list("ns2")} == {key for key in plain if key.namespace == "ns2"}


def test_two_indexes_of_one_name_are_refused():
    store = Store()
    store.add_index("by", by_owner)
    with pytest.raises(ValueError, match="another index named 'by'"):
        store.add_index("by", by_namespace)
