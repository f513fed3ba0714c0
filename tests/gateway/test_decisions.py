"""The pure decisions: holders of names, weights, messages, counts and texts."""

import datetime as dt
import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.api.names import LABEL_KEEP_ALIVE
from pilotage.gateway import overload
from pilotage.gateway.claims import ClaimConflict, ClaimedName, decide
from pilotage.gateway.counts import Counts, read
from pilotage.gateway.division import SLOTS, runs, shares, slots, unrolled
from pilotage.gateway.inputs import (
    GatewayBackend,
    GatewayCopies,
    ProxiedRoute,
    Service,
    UpstreamHost,
    cluster_name,
    copies_name,
    keep_seconds,
    parsed_name,
    read_hosts,
    takes_requests,
)
from pilotage.gateway.snapshot import CDS, EDS, LDS, SRDS, ListenerConfig, Snapshot
from pilotage.gateway.status import RouteProgress, status_of
from pilotage.kube import Object, ObjectKey

ADDRESS = ListenerConfig("127.0.0.1", 8080)
NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def route(name="chat", *backends, created="2026-01-01T00:00:00Z", **fields):
    made = tuple(GatewayBackend(service, 80, weight) for service, weight in backends)
    return ProxiedRoute(ObjectKey("ns", name), f"uid-{name}", 1, created, name, backends=made, **fields)


def claimed(routes):
    return decide(routes, {}).claims


def up(*services):
    return {Service("ns", each): (UpstreamHost("10.0.0.1", 8000),) for each in services}


def compiled(address, claims, hosts, kept=()):
    """A snapshot with these claims, made at once."""
    made = Snapshot(address)
    made.apply(made.change({each.route.uid: each for each in claims}, hosts, keep=kept))
    return made


weights = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 100)), max_size=4, unique_by=lambda each: each[0])


@given(weights, st.sets(st.sampled_from("abcd")))
def test_shares_go_to_those_that_can_serve_and_never_to_weight_zero(backends, ready):
    found = shares("ns", route("chat", *backends).backends, up(*ready))
    wanted = {cluster_name("ns", service, 80): weight for service, weight in backends}
    able = {cluster_name("ns", service, 80) for service, weight in backends if weight and service in ready}
    if not any(wanted.values()):
        assert found == {}
    elif able:
        assert {name for name, weight in found.items() if weight} == able
    else:
        assert found == wanted
    assert all(weight in (0, wanted[name]) for name, weight in found.items())
    assert found.keys() == (wanted.keys() if found else set())


names = st.from_regex(r"[a-z]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)


@given(names, names, st.integers(1, 65535))
def test_names_of_clusters_can_be_taken_apart(namespace, service, port):
    assert parsed_name(cluster_name(namespace, service, port)) == (Service(namespace, service), port, None)
    copies = GatewayCopies(service, port, 100, port)
    assert parsed_name(copies_name(namespace, copies)) == (Service(namespace, service), port, port)
    for other in ("control", "a_b", "a_b_x", "a_b_80_copies", "a_b_80_other2", "a_b_80_copies2_3"):
        assert parsed_name(other) is None


def test_versions_are_made_of_content_alone():
    routes = [route("a", ("a-1", 100), models=("a",)), route("b", ("b-1", 50), ("b-2", 50), host="b.example.com")]
    hosts = up("a-1", "b-1", "b-2")
    first = compiled(ADDRESS, claimed(routes), hosts)
    again = compiled(ADDRESS, claimed(reversed(routes)), dict(reversed(hosts.items())))
    assert {name: each.version for name, each in first.types.items()} == {
        name: each.version for name, each in again.types.items()
    }
    # In another process, too: nothing depends on the hashes of Python.
    program = (
        "from tests.gateway.test_decisions import *\n"
        "r = [route('a', ('a-1', 100), models=('a',)), route('b', ('b-1', 50), ('b-2', 50), host='b.example.com')]\n"
        "print(compiled(ADDRESS, claimed(r), up('a-1', 'b-1', 'b-2')).version)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == first.version


def test_each_change_changes_the_version_of_its_type_only():
    hosts = up("a-1", "a-2")
    base = compiled(ADDRESS, claimed([route("a", ("a-1", 100), ("a-2", 0))]), hosts)

    def changed(routes, addresses, kept=()):
        made = compiled(ADDRESS, claimed(routes), addresses, kept)
        return {each for each in (CDS, EDS, LDS, SRDS) if made.types[each].version != base.types[each].version}

    assert changed([route("a", ("a-1", 0), ("a-2", 100))], hosts) == {SRDS}
    more = hosts | {Service("ns", "a-1"): (UpstreamHost("10.0.0.1", 8000), UpstreamHost("10.0.0.2", 8000))}
    assert changed([route("a", ("a-1", 100), ("a-2", 0))], more) == {EDS}
    assert changed([route("a", ("a-1", 100), ("a-2", 0))], hosts, [cluster_name("ns", "old", 80)]) == {CDS, EDS}
    assert changed([route("a", ("a-1", 100), ("a-2", 0))._replace(generation=2)], hosts) == set()


def test_a_slice_says_who_takes_requests():
    def hosts(*conditions, ports=({"port": 1},), addresses=("10.0.0.1",)):
        endpoints = [{"addresses": list(addresses), "conditions": each} for each in conditions]
        return read_hosts([Object.from_dict({"ports": list(ports), "endpoints": endpoints})])

    assert hosts({}) == hosts({"ready": None}) == (UpstreamHost("10.0.0.1", 1),)
    assert hosts({"ready": False}) == hosts({"ready": False, "serving": False}) == ()
    assert hosts({"ready": False, "serving": True}) == (UpstreamHost("10.0.0.1", 1, draining=True),)
    assert hosts({"ready": False, "serving": True}, {"ready": True}) == (UpstreamHost("10.0.0.1", 1),)
    assert hosts({}, addresses=["not-an-address"]) == ()
    assert hosts({}, ports=[{"name": "a", "port": 1}, {"name": "b", "port": 2}]) == ()
    assert read_hosts([Object.from_dict({"endpoints": None})]) == ()
    assert not takes_requests((UpstreamHost("10.0.0.1", 1, draining=True),))


@pytest.mark.parametrize("text", ["", "-1", "x", "5.5", "99999", "٥"])
def test_a_label_that_is_no_number_keeps_nothing(text):
    assert keep_seconds(read_hosts([labelled(text)])) == 0


def test_connections_are_kept_where_all_servers_do():
    assert keep_seconds(read_hosts([labelled("60"), labelled("5", "10.0.0.2")])) == 5
    assert keep_seconds((UpstreamHost("10.0.0.1", 1, keep_seconds=5), UpstreamHost("10.0.0.2", 1))) == 0
    assert keep_seconds(read_hosts([labelled("60"), labelled("5")])) == 5
    assert keep_seconds(()) == 0


def labelled(text, address="10.0.0.1"):
    return Object.from_dict(
        {
            "metadata": {"name": "x", "namespace": "ns", "labels": {LABEL_KEEP_ALIVE: text}},
            "ports": [{"port": 1}],
            "endpoints": [{"addresses": [address]}],
        }
    )


def test_memory_and_connections_are_bounded_by_the_machine():
    assert overload.LEAST <= overload.machine_share() <= overload.MOST
    assert overload.connections_max(overload.LEAST) <= overload.LEAST // overload.CONNECTION_BYTES
    assert overload.connections_max(10**12) <= overload.CONNECTIONS_MAX


def stats(downstream, **clusters):
    lines = [f"http.gateway.downstream_rq_active: {downstream}", "cluster.control.upstream_rq_active: 1"]
    for name, (active, pending) in clusters.items():
        lines += [
            f"cluster.{name}.upstream_rq_active: {active}",
            f"cluster.{name}.upstream_rq_pending_active: {pending}",
        ]
    return "\n".join(lines).encode()


def test_what_no_cluster_has_may_still_come():
    reading = read(stats(9, ns_a_80=(2, 1), ns_b_80=(4, 0)))
    assert reading.under_way == {"ns_a_80": 3, "ns_b_80": 4}
    assert reading.unrouted == 2
    assert read(stats(0, ns_a_80=(2, 0))).unrouted == 0


class Said:
    """An Envoy that says one thing after the other."""

    def __init__(self, *answers):
        self.answers = [*answers]

    async def get(self, _):
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


async def test_a_count_only_falls_and_zero_is_final():
    quiet = stats(0, ns_a_80=(0, 0))
    # An upload is under way (1 of 1); one reading misses it; then another cluster has all; then a new upload comes.
    admin = Said(stats(1), stats(0), stats(1), *[stats(2, ns_b_80=(2, 0))] * 3, *[stats(5)] * 3, quiet)
    counts = Counts(admin)
    counts.begin(["ns_a_80"])
    assert counts.of("ns_a_80") is None
    await counts.refresh()
    assert counts.of("ns_a_80") == 1
    await counts.refresh()
    assert counts.of("ns_a_80") == 0
    await counts.refresh()
    assert counts.of("ns_a_80") == 0  # those belong to others: the servers that led there before have come
    counts.end(["ns_a_80"])
    counts.begin(["ns_a_80"])
    assert counts.of("ns_a_80") is None


async def test_zero_is_not_final_where_copies_still_come():
    admin = Said(*[stats(1, ns_a_80_copies2=(0, 0), ns_b_80=(1, 0))] * 3, *[stats(1, ns_a_80_copies2=(2, 0))] * 3)
    counts = Counts(admin)
    counts.begin(["ns_a_80_copies2"], ["ns_a_80_copies2"])
    await counts.refresh()
    assert counts.of("ns_a_80_copies2") == 0
    await counts.refresh()
    assert counts.of("ns_a_80_copies2") == 2
    # A copy is no request of a client: what no cluster has is still one.
    assert read(stats(1, ns_a_80_copies2=(2, 0))).unrouted == 1
    counts.begin(["ns_a_80_copies2"])  # no more copies: what arrives now may have led there before
    assert counts.of("ns_a_80_copies2") is None
    await counts.refresh()
    assert counts.of("ns_a_80_copies2") == 3


cluster_weights = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 100), min_size=1).filter(
    lambda each: any(each.values())
)


@given(st.lists(cluster_weights, min_size=1, max_size=5))
def test_slots_follow_the_weights_and_nobody_gives_one_up_who_need_not(changes):
    owners: tuple[str, ...] = ()
    for each in changes:
        before, owners = owners, slots(each, owners)
        assert len(owners) == SLOTS
        assert unrolled(runs(owners)) == owners
        total = sum(each.values())
        for name in "abcd":
            now, was = owners.count(name), before.count(name)
            assert abs(now - each.get(name, 0) * SLOTS / total) < 1
            kept = sum(old == new == name for old, new in zip(before, owners, strict=False))
            assert kept == min(now, was)


async def test_without_a_listener_nothing_is_known_of_what_clients_have_under_way():
    early = b"cluster.ns_a_80.upstream_rq_active: 0\ncluster.ns_a_80.upstream_rq_pending_active: 0"
    assert read(early).unrouted is None
    counts = Counts(Said(early, *[stats(3)] * 3, stats(3), early, early))
    counts.begin(["ns_a_80"])
    await counts.refresh()
    assert counts.of("ns_a_80") is None
    await counts.refresh()
    assert counts.of("ns_a_80") == 3
    await counts.refresh()  # one reading of the round tells nothing: what was known holds
    assert counts.of("ns_a_80") == 3


def test_a_status_that_says_the_same_is_the_same():
    chat = route("chat", ("a", 0))
    state = RouteProgress("Programmed", "v1", None, {"a": 0})
    first = status_of({}, chat, state, NOW)
    assert first == {
        "observedGeneration": 1,
        "state": "Programmed",
        "version": "v1",
        "counts": [{"service": "a", "inFlight": 0}],
    }
    later = NOW + dt.timedelta(days=1)
    assert status_of(first, chat, state._replace(version="v2"), later) == first
    changed = status_of(first, chat._replace(generation=2), state._replace(version="v2"), later)
    assert (changed["observedGeneration"], changed["version"]) == (2, "v2")
    taken = state._replace(conflicts=(ClaimConflict(ClaimedName("model", "m"), "model m is taken", "uid"),))
    conflicted = status_of(first, chat, taken, NOW)
    assert status_of(conflicted, chat, taken, later) == conflicted
    assert json.dumps(status_of(conflicted, chat, state, later)["conditions"]).count('"False"') == 1
