"""The store: one counter, a history that can be asked, and a journal that gives back what was acknowledged."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage_harbor.api import Harbor
from pilotage_harbor.apimachinery.calls import Call
from pilotage_harbor.apimachinery.users import LOOPBACK
from pilotage_harbor.core import Core
from pilotage_harbor.storage.journal import JournalInUse, SqliteJournal
from pilotage_harbor.storage.store import Compacted, StoredObject, VersionedStore

THINGS = "things.example.com"
NAMES = st.sampled_from(["a", "b", "c"])
WRITES = st.lists(st.tuples(st.sampled_from(["put", "remove"]), st.sampled_from(["x", "x-y"]), NAMES), max_size=40)


def entry(store, namespace, name):
    version = store.next_version()
    raw = b'{"metadata":{"name":"%s","namespace":"%s","resourceVersion":"%d"}}' % (
        name.encode(),
        namespace.encode(),
        version,
    )
    return StoredObject(raw, version, namespace, name, "", {})


def write(store, what, namespace, name):
    if what == "put":
        store.put(THINGS, entry(store, namespace, name))
    elif store.get(THINGS, namespace, name):
        store.remove(THINGS, entry(store, namespace, name))


def state(entries):
    return [(each.namespace, each.name, each.version) for each in entries]


def raw_state(store):
    return [(each.namespace, each.name, each.version, each.raw) for each in store.entries(THINGS)]


@given(WRITES, st.integers(5, 30))
def test_every_version_that_is_remembered_can_be_listed_and_replayed(writes, kept):
    store = VersionedStore(history_events_max=kept)
    versions = {store.version: state(store.entries(THINGS))}
    for what in writes:
        write(store, *what)
        versions[store.version] = state(store.entries(THINGS))
    for version, was in versions.items():
        if version < store.compacted:
            with pytest.raises(Compacted):
                store.entries_at(THINGS, version)
            with pytest.raises(Compacted):
                store.since(THINGS, version)
            continue
        assert state(store.entries_at(THINGS, version)) == was
        replayed = {(namespace, name): at for namespace, name, at in was}
        for event in store.since(THINGS, version):
            key = (event.entry.namespace, event.entry.name)
            assert (event.old.version if event.old else None) == replayed.get(key)
            if event.type == "DELETED":
                del replayed[key]
            else:
                replayed[key] = event.entry.version
        assert replayed == {(namespace, name): at for namespace, name, at in state(store.entries(THINGS))}


@given(WRITES)
def test_order_is_that_of_etcd_and_a_namespace_is_a_part_of_it(writes):
    store = VersionedStore()
    for what in writes:
        write(store, *what)
    keys = [f"{namespace}/{name}" for namespace, name, _ in state(store.entries(THINGS))]
    assert keys == sorted(keys)
    for namespace in ("x", "x-y"):
        part = [each for each in state(store.entries(THINGS)) if each[0] == namespace]
        assert state(store.entries(THINGS, namespace)) == part
        for at, (_, name, _) in enumerate(part):
            assert state(store.entries(THINGS, namespace, after=f"{namespace}/{name}")) == part[at + 1 :]


@settings(max_examples=40)
@given(writes=WRITES, more=WRITES, kept=st.integers(3, 12))
def test_what_was_written_is_there_after_a_restart(tmp_path_factory, writes, more, kept):
    path = tmp_path_factory.mktemp("journal") / "log.db"
    journal = SqliteJournal(path)
    store = VersionedStore(journal, history_events_max=kept)
    for what in writes:
        write(store, *what)
    before = (store.version, store.compacted, raw_state(store))
    history = [(event.version, event.type) for event in store.since(THINGS, store.compacted)]
    journal.close()
    journal = SqliteJournal(path)
    again = VersionedStore(journal, history_events_max=kept)
    assert (again.version, again.compacted, raw_state(again)) == before
    assert [(event.version, event.type) for event in again.since(THINGS, again.compacted)] == history
    for what in more:
        write(again, *what)
    before = (again.version, again.compacted, raw_state(again))
    journal.close()
    journal = SqliteJournal(path)
    third = VersionedStore(journal, history_events_max=kept)
    assert (third.version, third.compacted, raw_state(third)) == before
    journal.close()


def test_rows_that_nobody_needs_are_not_kept(tmp_path):
    journal = SqliteJournal(tmp_path / "log.db")
    store = VersionedStore(journal, history_events_max=10)
    for _ in range(200):
        write(store, "put", "x", "a")
    write(store, "remove", "x", "a")
    store.compact(store.version)
    _, rows = journal.load()
    assert [*rows] == []
    journal.close()


def test_a_compaction_that_fails_takes_nothing_along_and_is_made_up_for(tmp_path, caplog):
    journal = SqliteJournal(tmp_path / "log.db")
    store = VersionedStore(journal, history_events_max=4)
    heard = []
    store.listen(THINGS, lambda event: heard.append(event.version))
    journal._db.execute("CREATE TRIGGER no BEFORE DELETE ON log BEGIN SELECT RAISE(ABORT, 'no room'); END")
    for what in ("put", "put", "put", "remove", "put", "put"):
        write(store, what, "x", "a")
    assert "no room" in caplog.text
    assert heard == [2, 3, 4, 5, 6, 7]
    assert store.compacted >= 4
    before = raw_state(store)
    journal.close()

    journal = SqliteJournal(tmp_path / "log.db")
    store = VersionedStore(journal, history_events_max=100)
    assert (store.version, raw_state(store)) == (7, before)
    store.compact(5)  # fails again
    journal._db.execute("DROP TRIGGER no")
    write(store, "remove", "x", "a")
    store.compact(store.version)
    _, rows = journal.load()
    assert [*rows] == [], "what could not be deleted then was deleted now"
    journal.close()


def test_listeners_have_heard_of_a_change_before_older_ones_are_forgotten(tmp_path):
    heard, forgotten = [], []

    class Noting(SqliteJournal):
        def forget(self, versions, compacted):
            forgotten.append((heard[-1], store.version))
            super().forget(versions, compacted)

    journal = Noting(tmp_path / "log.db")
    store = VersionedStore(journal, history_events_max=4)
    store.listen(THINGS, lambda event: heard.append(event.version))
    for _ in range(5):
        write(store, "put", "x", "a")
    assert forgotten == [(6, 6)]
    journal.close()


def test_history_is_bounded_in_bytes():
    store = VersionedStore(history_bytes_max=100_000)
    for _ in range(200):
        version = store.next_version()
        store.put(THINGS, StoredObject(b"x" * 9_000, version, "x", "a", "", {}))
        kept = store.since(THINGS, store.compacted)
        assert sum(len(event.entry.raw) for event in kept) <= 100_000
    assert kept
    for _ in range(1000):
        write(store, "put", "x", "small")
    assert len(store.since(THINGS, store.compacted)) > 200, "what is gone is not counted any more"


def test_a_journal_has_one_owner(tmp_path):
    journal = SqliteJournal(tmp_path / "log.db")
    with pytest.raises(JournalInUse):
        SqliteJournal(tmp_path / "log.db")
    journal.close()


def test_listeners_hear_of_every_change_in_order():
    store = VersionedStore()
    heard = []
    stop = store.listen(THINGS, lambda event: heard.append((event.type, event.version)))
    write(store, "put", "x", "a")
    write(store, "put", "x", "a")
    write(store, "remove", "x", "a")
    stop()
    write(store, "put", "x", "a")
    assert heard == [("ADDED", 2), ("MODIFIED", 3), ("DELETED", 4)]


async def test_a_full_disk_refuses_writes_and_keeps_what_is_there(tmp_path):
    journal = SqliteJournal(tmp_path / "log.db")
    harbor = Harbor(Core(journal))
    await harbor.start()
    path = "/api/v1/namespaces/default/configmaps"

    async def create(name):
        body = json.dumps({"metadata": {"name": name}, "data": {"text": "x" * 100_000}}).encode()
        headers = {"content-type": "application/json", "accept": "application/json"}
        return await harbor.handle(Call("POST", path, {}, headers, body, LOOPBACK))

    assert (await create("before")).status == 201
    pages = journal._db.execute("PRAGMA page_count").fetchone()[0]
    journal._db.execute(f"PRAGMA max_page_count = {pages}")
    version = harbor.core.store.version
    refused = await create("during")
    assert refused.status == 500
    assert b"nothing was written" in refused.body
    assert b"full" in refused.body
    assert harbor.core.store.version == version
    journal._db.execute("PRAGMA max_page_count = 1000000")
    assert (await create("after")).status == 201
    await harbor.stop()
    journal.close()
    journal = SqliteJournal(tmp_path / "log.db")
    names = {entry.name for entry in VersionedStore(journal).entries("configmaps")}
    journal.close()
    assert {"before", "after"} <= names
    assert "during" not in names
