"""Objects that exist after a start, and those that a start restores."""

from __future__ import annotations

from pilotage_harbor.access.bootstrap import bootstrap_objects
from pilotage_sim.loop import virtual
from tests.harbor.housekeeping.support import World

ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"


async def restart(world: World) -> None:
    await world.housekeeping.stop()
    await world.housekeeping.start()


@virtual
async def test_what_every_cluster_has() -> None:
    async with World() as world:
        namespaces = await world.ask("GET", "/api/v1/namespaces")
        assert [item["metadata"]["name"] for item in namespaces["items"]] == [
            "default",
            "kube-node-lease",
            "kube-public",
            "kube-system",
        ]
        service = await world.ask("GET", "/api/v1/namespaces/default/services/kubernetes")
        assert service["spec"]["clusterIP"] == "10.0.0.1"
        assert service["metadata"]["labels"] == {"component": "apiserver", "provider": "kubernetes"}
        priorities = await world.ask("GET", "/apis/scheduling.k8s.io/v1/priorityclasses")
        assert {item["metadata"]["name"]: item["value"] for item in priorities["items"]} == {
            "system-cluster-critical": 2_000_000_000,
            "system-node-critical": 2_000_001_000,
        }
        for path, kind in ((ROLES, "ClusterRole"), (BINDINGS, "ClusterRoleBinding")):
            listed = await world.ask("GET", path)
            names = {obj["metadata"]["name"] for obj in bootstrap_objects() if obj["kind"] == kind}
            assert {item["metadata"]["name"] for item in listed["items"]} == names


@virtual
async def test_a_second_start_writes_nothing() -> None:
    async with World() as world:
        version = world.core.store.version
        await restart(world)
        await world.settle(10)
        assert world.core.store.version == version


@virtual
async def test_what_a_role_has_lost_comes_back_and_what_was_added_stays() -> None:
    async with World() as world:
        role = await world.ask("GET", f"{ROLES}/system:kube-scheduler")
        lost = role["rules"].pop()
        added = {"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["get"]}
        role["rules"].append(added)
        del role["metadata"]["labels"]["kubernetes.io/bootstrapping"]
        await world.ask("PUT", f"{ROLES}/system:kube-scheduler", role)
        await restart(world)
        role = await world.ask("GET", f"{ROLES}/system:kube-scheduler")
        assert lost in role["rules"]
        assert added in role["rules"]
        assert role["metadata"]["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults"


@virtual
async def test_one_that_is_not_to_be_updated_is_left_alone() -> None:
    async with World() as world:
        role = await world.ask("GET", f"{ROLES}/system:kube-scheduler")
        role["rules"] = []
        role["metadata"]["annotations"][AUTOUPDATE] = "false"
        await world.ask("PUT", f"{ROLES}/system:kube-scheduler", role)
        await restart(world)
        assert not (await world.ask("GET", f"{ROLES}/system:kube-scheduler")).get("rules")


@virtual
async def test_a_binding_gets_its_subjects_back_and_a_deleted_one_is_made_anew() -> None:
    async with World() as world:
        binding = await world.ask("GET", f"{BINDINGS}/cluster-admin")
        subjects = binding.pop("subjects")
        await world.ask("PUT", f"{BINDINGS}/cluster-admin", binding)
        await world.ask("DELETE", f"{BINDINGS}/system:discovery")
        await restart(world)
        assert (await world.ask("GET", f"{BINDINGS}/cluster-admin"))["subjects"] == subjects
        assert (await world.ask("GET", f"{BINDINGS}/system:discovery"))["subjects"]
