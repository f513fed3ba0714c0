"""`pilotage delete` on a real API server: the order that its audit log shows, the receipt, and that nothing is left."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from controlplane import Cluster
from pilotage.cli import pilotage
from tests.teardown.staged import Placed, Staged
from tests.teardown.staging import crossplane_tree, kserve_tree, raw_endpoint, rollout_tree
from tests.teardown.standins import crossplane_controllers, kserve_controller

HOLD = "pilotage.dev/teardown"


class Deleted:
    """One run of the command: what it printed, its receipt, and its writes as the API server saw them."""

    def __init__(self, cluster: Cluster, receipt: Path, *arguments: str) -> None:
        mark = cluster.audit_mark()
        command = ["delete", "--yes", "--receipt", str(receipt), "--kubeconfig", str(cluster.kubeconfig), *arguments]
        answer = CliRunner().invoke(pilotage, command, catch_exceptions=False)
        self.output = answer.output
        self.exit_code = answer.exit_code
        self.receipt: dict[str, Any] = json.loads(receipt.read_text()) if receipt.exists() else {}
        # In the order in which they were sent: an answer may be later than the effects of its write.
        self.writes = [
            record
            for record in sorted(cluster.audit(since=mark, user_agent="pilotage/"), key=lambda each: each.received)
            if record.verb in ("create", "delete", "patch", "update") and record.code < 300
        ]
        self.order = [f"{record.resource}/{record.name}" for record in self.writes if record.verb == "delete"]

    def states(self) -> dict[str, str]:
        return {f"{each['kind']}/{each['name']}": each["state"] for each in self.receipt["objects"]}

    def held(self) -> list[str]:
        """Objects that were held and released again: the last write to each removes the hold."""
        holds = [each for each in self.writes if each.verb == "patch" and HOLD in json.dumps(each.body)]
        return [f"{each.resource}/{each.name}" for each in holds]


def assert_in_phases(deleted: Deleted, staged: Staged, *, marked_first: tuple[str, ...] = ()) -> None:
    """Every delete of a phase came after all deletes of the phases before it. Those that are held are marked first."""
    phase_of = {
        name: list(staged.phases).index(phase)
        for phase, names in staged.phases.items()
        for name in names
        if name not in marked_first
    }
    seen = [phase_of[name] for name in deleted.order if name in phase_of]
    assert seen == sorted(seen), deleted.order
    assert set(phase_of) <= set(deleted.order), (set(phase_of) - set(deleted.order), deleted.output)
    for name in marked_first:  # before any of its parts
        parts = {str(each) for each in staged.objects if _owned_by(each, name)}
        assert parts & set(deleted.order)
        assert deleted.order.index(name) < min(deleted.order.index(part) for part in parts & set(deleted.order))


def _owned_by(placed: Placed, name: str) -> bool:
    owners = placed.body["metadata"].get("ownerReferences", [])
    return any(owner["name"] == name.rpartition("/")[2] for owner in owners)


def assert_all_uids_were_said(deleted: Deleted) -> None:
    assert deleted.order
    for record in deleted.writes:
        if record.verb == "delete":
            assert record.body["preconditions"]["uid"], record
            assert record.body["propagationPolicy"] in ("Foreground", "Background"), record


def assert_receipt_is_true(deleted: Deleted, staged: Staged, kept: tuple[str, ...] = ()) -> None:
    left = {str(each) for each in staged.left()}
    assert left == set(kept)
    gone = {each["uid"] for each in deleted.receipt["objects"] if each["state"] == "gone"}
    assert {each.uid for each in staged.objects if str(each) not in kept} <= gone
    assert all(each["proof"]["request"] for each in deleted.receipt["objects"] if each["state"] == "gone")
    assert deleted.receipt["result"] == "complete"


def test_a_raw_endpoint_goes_in_phases(own_cluster, namespace_for_pods, tmp_path):
    with raw_endpoint(own_cluster, namespace_for_pods, "chat") as staged:
        deleted = Deleted(own_cluster, tmp_path / "r.json", "-n", namespace_for_pods, "-l", "app=chat")
        assert deleted.exit_code == 0, deleted.output
        assert_all_uids_were_said(deleted)
        assert_in_phases(deleted, staged)
        assert_receipt_is_true(deleted, staged)
        order = deleted.order
        for left, maker in (
            ("replicasets/", "deployments/chat"),
            ("pods/", "deployments/chat"),
            ("endpoint", "services/chat"),
        ):
            assert all(order.index(name) > order.index(maker) for name in order if name.startswith(left)), order


def test_what_is_kept_stays_and_is_listed(own_cluster, namespace_for_pods, tmp_path):
    with raw_endpoint(own_cluster, namespace_for_pods, "chat") as staged:
        deleted = Deleted(
            own_cluster, tmp_path / "r.json", "-n", namespace_for_pods, "-l", "app=chat", "--keep", "volumes"
        )
        assert deleted.exit_code == 0, deleted.output
        assert_all_uids_were_said(deleted)
        assert_receipt_is_true(deleted, staged, kept=("persistentvolumeclaims/chat-cache",))
        assert deleted.states()["PersistentVolumeClaim/chat-cache"] == "kept"


def test_adopting_takes_along_what_refers_to_a_deployment_and_to_nothing_else(
    own_cluster, namespace_for_pods, tmp_path
):
    with raw_endpoint(own_cluster, namespace_for_pods, "chat") as staged:
        deleted = Deleted(own_cluster, tmp_path / "r.json", "-n", namespace_for_pods, "deploy/chat", "--adopt")
        assert deleted.exit_code == 0, deleted.output
        assert_all_uids_were_said(deleted)
        kept = ("secrets/chat", "persistentvolumeclaims/chat-cache", "servicemonitors/chat")
        assert {str(each) for each in staged.left()} <= set(kept)
        assert deleted.order[:2] in (["ingresses/chat", "httproutes/chat"], ["httproutes/chat", "ingresses/chat"])
        assert deleted.states()["Secret/chat"] == "kept"


def test_what_stays_and_points_at_what_is_gone_is_named(own_cluster, namespace_for_pods, tmp_path):
    with raw_endpoint(own_cluster, namespace_for_pods, "chat"):
        deleted = Deleted(own_cluster, tmp_path / "r.json", "-n", namespace_for_pods, "deploy/chat")
        assert deleted.exit_code == 0, deleted.output
        assert_all_uids_were_said(deleted)
        references = [text.replace(f" -n {namespace_for_pods}", "") for text in deleted.receipt["references"]]
        assert "horizontalpodautoscaler/chat scales deployment/chat" in references
        assert "service/chat selects deployment/chat" in references
        assert f"{len(references)} references left" in deleted.output


def test_a_tree_of_kserve_goes_in_phases_though_its_controller_brings_parts_back(
    own_cluster, namespace_for_pods, tmp_path
):
    with kserve_tree(own_cluster, namespace_for_pods, "llm") as staged:
        with kserve_controller(own_cluster, namespace_for_pods):
            deleted = Deleted(own_cluster, tmp_path / "r.json", "-n", namespace_for_pods, "inferenceservice/llm")
        assert deleted.exit_code == 0, deleted.output
        assert_all_uids_were_said(deleted)
        assert_in_phases(deleted, staged, marked_first=("inferenceservices/llm",))
        assert deleted.held() == ["inferenceservices/llm"]
        assert deleted.writes[-1].verb == "patch"
        assert deleted.writes[-1].resource == "inferenceservices"
        assert_receipt_is_true(deleted, staged)


def test_a_dead_controller_of_kserve_is_named_and_nothing_is_stripped(own_cluster, namespace_for_pods, tmp_path):
    with kserve_tree(own_cluster, namespace_for_pods, "llm") as staged:
        arguments = ("-n", namespace_for_pods, "inferenceservice/llm")
        deleted = Deleted(own_cluster, tmp_path / "r.json", *arguments, "--timeout", "6")
        assert deleted.exit_code == 1
        assert_all_uids_were_said(deleted)
        assert "inferenceservice.finalizers" in deleted.output
        assert {str(each) for each in staged.left()} == {"inferenceservices/llm"}
        with kserve_controller(own_cluster, namespace_for_pods):
            resumed = Deleted(own_cluster, tmp_path / "r.json", "--resume", str(tmp_path / "r.json"))
        assert resumed.exit_code == 0, resumed.output
        assert_receipt_is_true(resumed, staged)


def test_a_rollout_in_mid_experiment_goes_in_phases(own_cluster, namespace_for_pods, tmp_path):
    with rollout_tree(own_cluster, namespace_for_pods, "shop") as staged:
        words = [f"{kind}/{name}" for kind, name in _roots(staged)]
        deleted = Deleted(own_cluster, tmp_path / "r.json", "-n", namespace_for_pods, *words)
        assert deleted.exit_code == 0, deleted.output
        assert_all_uids_were_said(deleted)
        assert_in_phases(deleted, staged, marked_first=("rollouts/shop",))
        assert_receipt_is_true(deleted, staged)


def test_a_composition_of_crossplane_goes_users_first(own_cluster, namespace_for_pods, tmp_path):
    with crossplane_tree(own_cluster, namespace_for_pods, "ml") as staged:
        with crossplane_controllers(own_cluster, namespace_for_pods):
            deleted = Deleted(
                own_cluster,
                tmp_path / "r.json",
                "-n",
                namespace_for_pods,
                "modelendpoint/ml",
                _providerconfig(staged),
            )
        assert deleted.exit_code == 0, deleted.output
        assert_all_uids_were_said(deleted)
        order = deleted.order
        assert order.index("instances/ml-app") < order.index("databases/ml-db")
        assert order.index("databases/ml-db") < order.index("providerconfigs/ml")
        assert deleted.held() == ["modelendpoints/ml"]
        assert_receipt_is_true(deleted, staged)


def test_a_namespace_goes_with_everything_in_it_in_phases(own_cluster, namespace_for_pods, tmp_path):
    name = f"{namespace_for_pods[:50]}-whole"
    own_cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    own_cluster.wait_for_service_account(name)
    with raw_endpoint(own_cluster, name, "chat") as staged:
        deleted = Deleted(own_cluster, tmp_path / "r.json", f"namespace/{name}")
        assert deleted.exit_code == 0, deleted.output
        assert_all_uids_were_said(deleted)
        assert_in_phases(deleted, staged)
        assert deleted.order[-1] == f"namespaces/{name}"
        assert_receipt_is_true(deleted, staged)


def _roots(staged: Staged) -> list[tuple[str, str]]:
    """Objects that no other object of the tree owns."""
    return [
        (each.path.split("/")[-2], each.name)
        for each in staged.objects
        if not each.body["metadata"].get("ownerReferences")
    ]


def _providerconfig(staged: Staged) -> str:
    placed = staged.find("ProviderConfig")
    group = placed.body["apiVersion"].partition("/")[0]
    return f"providerconfigs.{group}/{placed.name}"


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
