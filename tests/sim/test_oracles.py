"""Equality of the ends of two stories."""

from pilotage_sim.oracles import same_state

OLD, NEW = "0f8fad5b-d9cb-469f-a165-70867728950e", "7c9e6679-7425-40de-944b-e07fc1f90ae7"


def source(uid):
    return {"metadata": {"name": "a", "uid": uid, "resourceVersion": uid[:2]}}


def copy(of):
    return {"metadata": {"name": "a-copy", "uid": "1b4e28ba-2fa1-41d2-883f-0016d3cca427", "labels": {"source": of}}}


def test_uids_and_versions_may_differ():
    assert same_state({"a": source(OLD), "copy": copy(OLD)}, {"a": source(NEW), "copy": copy(NEW)}) == []


def test_the_very_same_object_differs_when_what_it_refers_to_is_another_one():
    (problem,) = same_state({"a": source(OLD), "copy": copy(OLD)}, {"a": source(NEW), "copy": copy(OLD)})
    assert problem == "copy: .metadata.labels.source is '?', not '<uid of a>'"
