"""Placement of a process, decided from Hosts that are made by hand."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.controllers.host.scheduling import CandidateHost, Requirements, Scheduled, Unschedulable, schedule

GIB = 2**30
GPU = {"gpu": "a100"}


def host(name: str = "a", **about: Any) -> CandidateHost:
    return CandidateHost(name, **about)


@pytest.mark.parametrize(
    ("hosts", "why"),
    [
        ([], "host/a does not exist; is its agent installed?"),
        ([host("b")], "host/a does not exist; is its agent installed?"),
        ([host(alive=False)], "host/a is lost: its agent does not renew its Lease"),
        ([host(deleting=True)], "host/a is being deleted"),
        ([host(unschedulable=True)], "host/a is unschedulable"),
        ([host(phase="Pressed")], "host/a is Pressed"),
        ([host(phase="")], "host/a is not ready yet"),
    ],
)
def test_a_host_by_name_that_cannot_take_it_says_why(hosts, why):
    assert schedule(Requirements(host="a"), hosts) == Unschedulable(why)


@pytest.mark.parametrize("where", ["namespaces", "agent_namespaces"])
def test_a_host_takes_processes_of_the_namespaces_that_both_its_spec_and_its_agent_name(where):
    names = {"namespaces": "spec.allowedNamespaces", "agent_namespaces": "agent's --namespaces"}
    hosts = [host(**{where: ["team-a"]})]
    assert schedule(Requirements(host="a", namespace="team-a"), hosts) == Scheduled("a")
    for need in (Requirements(host="a", namespace="team-b"), Requirements(namespace="team-b")):
        why = f"host/a runs nothing of namespace team-b, which its {names[where]} does not name"
        assert schedule(need, hosts) == Unschedulable(why)
    assert schedule(Requirements(namespace="team-b"), [*hosts, host("b")]) == Scheduled("b")


def test_the_memory_of_a_host_by_name_is_its_agents_to_judge():
    assert schedule(Requirements(host="a", memory_bytes=8 * GIB), [host(free_bytes=GIB), host("b")]) == Scheduled("a")


def test_of_those_with_the_labels_the_one_with_the_most_free_memory_takes_it():
    hosts = [
        host("small", labels=GPU, free_bytes=4 * GIB),
        host("large", labels=GPU, free_bytes=9 * GIB),
        host("largest", free_bytes=64 * GIB),
        host("mute", labels=GPU),
    ]
    assert schedule(Requirements(labels=GPU, memory_bytes=2 * GIB), hosts) == Scheduled("large")


def test_what_was_promised_to_others_is_not_free():
    hosts = [
        host("a", free_bytes=9 * GIB, promised_bytes=8 * GIB),
        host("b", free_bytes=4 * GIB),
    ]
    assert schedule(Requirements(), hosts) == Scheduled("b")
    assert schedule(Requirements(memory_bytes=5 * GIB), hosts) == Unschedulable(
        "host/a has 1.0 GiB free, and 5.0 GiB are needed; host/b has 4.0 GiB free, and 5.0 GiB are needed"
    )


def test_where_nothing_is_known_of_memory_they_are_spread():
    assert schedule(Requirements(), [host("a", processes=2), host("b", processes=1)]) == Scheduled("b")


def test_hosts_without_the_labels_are_not_asked_further():
    assert schedule(Requirements(labels=GPU), [host("a"), host("b")]) == Unschedulable(
        "none of 2 Hosts has the labels gpu=a100"
    )
    assert schedule(Requirements(labels=GPU), []) == Unschedulable("there are no Hosts")


def test_of_many_that_cannot_a_few_are_named():
    said = schedule(Requirements(), [host(f"h{number}", unschedulable=True) for number in range(9)])
    assert isinstance(said, Unschedulable)
    assert said.text.count("unschedulable") == 5
    assert said.text.endswith("and 4 more")


candidates = st.builds(
    CandidateHost,
    st.sampled_from("abcdefg"),
    st.dictionaries(st.sampled_from(["gpu", "zone"]), st.sampled_from(["1", "2"])),
    st.booleans(),
    st.sampled_from(["Ready", "Pressed", "Stopping", "Lost", ""]),
    st.booleans(),
    st.booleans(),
    st.none() | st.integers(0, 100),
    st.integers(0, 100),
    st.integers(0, 5),
)


@given(
    st.builds(
        Requirements,
        st.sampled_from(["", "a"]),
        st.dictionaries(st.sampled_from(["gpu", "zone"]), st.sampled_from(["1", "2"])),
        st.none() | st.integers(0, 100),
    ),
    st.lists(candidates, unique_by=lambda each: each.name),
)
def test_nothing_is_ever_placed_where_it_may_not_be(need, hosts):
    found = schedule(need, hosts)
    able = {each.name: each for each in hosts if each.alive and not each.deleting and not each.unschedulable}
    if isinstance(found, Scheduled):
        chosen = able[found.host]
        assert chosen.phase == "Ready"
        if need.host:
            assert chosen.name == need.host
            return
        assert need.labels.items() <= chosen.labels.items()
        if need.memory_bytes is not None and chosen.left_bytes is not None:
            assert chosen.left_bytes >= need.memory_bytes
    else:
        assert found.text
