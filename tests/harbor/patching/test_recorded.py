"""Recorded answers of a real kube-apiserver to the scenarios: our functions give the same."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.harbor.patching import recording
from tests.harbor.patching.scenarios import CRD, SCENARIOS

if TYPE_CHECKING:
    from controlplane import Cluster

# Kinds that no controller of a real cluster touches: the others would change between two steps.
INERT = ("Box", "ConfigMap", "Lease", "NetworkPolicy", "Role")
RECORDS = list(recording.recorded())


def test_every_step_is_recorded() -> None:
    recorded = json.loads(recording.RECORDED.read_text())
    assert {name: len(steps) for name, steps in recorded.items()} == {one.name: len(one.steps) for one in SCENARIOS}


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.scenario.name}: {record.step.verb}")
def test_recorded_answer(record: recording.Record) -> None:
    recording.check(record)


def test_a_real_server_still_answers_so(own_cluster: Cluster, namespace: str) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    send = recording.sender(own_cluster.kubeconfig)
    own_cluster.request("POST", path, CRD)
    try:
        recording.wait_for_boxes(send, namespace)
        for number, scenario in enumerate(SCENARIOS):
            if scenario.kind in INERT:
                for record in recording.run(send, scenario, f"s{number}", namespace):
                    recording.check(record)
    finally:
        own_cluster.request("DELETE", f"{path}/{CRD['metadata']['name']}")
