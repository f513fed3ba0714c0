"""Stand-ins behave as the controllers whose place they take were observed to."""

import time

import pytest

from controlplane import Access
from tests.teardown.staged import Placed, wait_until
from tests.teardown.staging import crossplane_tree, kserve_tree
from tests.teardown.standins import RECREATE_SECONDS, crossplane_controllers, kserve_controller


def test_kserve_brings_back_its_children_but_the_hpa_until_it_is_deleted(cluster: Access, namespace_for_pods: str):
    with kserve_tree(cluster, namespace_for_pods, "llm") as staged:
        service, autoscaler = staged.find("Service"), staged.find("HorizontalPodAutoscaler")
        ingress, owner = staged.find("Ingress"), staged.find("InferenceService")
        with kserve_controller(cluster, namespace_for_pods):
            delete(cluster, autoscaler)
            delete(cluster, service)
            wait_until(lambda: came_back(cluster, service), "the Service to come back")
            assert cluster.find(autoscaler.path) is None

            hold(cluster, owner, "example.com/hold")
            delete(cluster, owner)
            wait_until(lambda: finalizers(cluster, owner) == ["example.com/hold"], "its own finalizer to go")
            delete(cluster, ingress)
            wait_until(lambda: cluster.find(ingress.path) is None, "the Ingress to go")
            assert stays_away(cluster, ingress)


def test_without_its_controller_it_stays_until_the_test_takes_it_away(cluster: Access, namespace_for_pods: str):
    with kserve_tree(cluster, namespace_for_pods, "llm") as staged:
        owner = staged.find("InferenceService")
        delete(cluster, owner)
        assert owner in staged.left()
    assert staged.left() == []


def test_crossplane_lets_go_of_users_first_and_of_nothing_without_its_configuration(
    cluster: Access, namespace_for_pods: str
):
    with crossplane_tree(cluster, namespace_for_pods, "ml") as staged:
        usage, config = staged.find("Usage"), staged.find("ProviderConfig")
        instance, database = staged.find("Instance"), staged.find("Database")
        hold(cluster, instance, "example.com/hold")
        with crossplane_controllers(cluster, namespace_for_pods):
            delete(cluster, staged.find("ModelEndpoint"))
            for each in (instance, usage, config):
                delete(cluster, each)
            wait_until(lambda: finalizers(cluster, instance) == ["example.com/hold"], "the provider to let go")
            assert finalizers(cluster, usage), "it protects as long as the Instance is there"
            assert finalizers(cluster, config), "it is in use"

            let_go(cluster, instance)
            wait_until(lambda: cluster.find(usage.path) is None, "the Usage to go")
            found = cluster.find(database.path)
            assert found is None or "crossplane.io/in-use" not in found["metadata"]["labels"]


@pytest.mark.parametrize("stage", [kserve_tree, crossplane_tree])
def test_every_phase_names_what_was_staged(cluster: Access, namespace_for_pods: str, stage):
    with stage(cluster, namespace_for_pods, "some") as staged:
        named = {name for names in staged.phases.values() for name in names}
        assert named <= {str(each) for each in staged.objects}


def delete(cluster: Access, placed: Placed) -> None:
    cluster.request("DELETE", placed.path, {"propagationPolicy": "Background"})


def hold(cluster: Access, placed: Placed, finalizer: str) -> None:
    body = cluster.request("GET", placed.path)
    body["metadata"].setdefault("finalizers", []).append(finalizer)
    cluster.request("PUT", placed.path, body)


def let_go(cluster: Access, placed: Placed) -> None:
    body = cluster.request("GET", placed.path)
    body["metadata"]["finalizers"] = []
    cluster.request("PUT", placed.path, body)


def finalizers(cluster: Access, placed: Placed) -> list[str]:
    found = cluster.find(placed.path) or {"metadata": {}}
    names: list[str] = found["metadata"].get("finalizers", [])
    return names


def came_back(cluster: Access, placed: Placed) -> bool:
    found = cluster.find(placed.path)
    return found is not None and found["metadata"]["uid"] != placed.uid


def stays_away(cluster: Access, placed: Placed) -> bool:
    """Check for twice as long as the slowest controller would take to recreate it."""
    deadline = time.monotonic() + 2 * RECREATE_SECONDS[1]
    while time.monotonic() < deadline:
        if cluster.find(placed.path):
            return False
    return True
