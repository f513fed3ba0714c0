"""A rollout in steps as a user with kubectl sees it: canary, abort, promote, hold, retry, rollback, no spare GPU."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from pilotage.api.names import ENDPOINTS, GATEWAY_ROUTES, LABEL_REVISION
from pilotage.kube import PODS, Absent, Foreign, ObjectKey, Propagation, merge_patch
from pilotage.runtime.manager import Manager
from pilotage.serving.resources import DEPLOYMENTS, JOBS, SERVICES
from pilotage_harbor.storage.store import Event
from pilotage_sim.loop import virtual
from pilotage_sim.models import job as job_model
from tests.controllers.simulated_cluster import KEY, SimulatedCluster, simulated_cluster

GATEWAY = {"kind": "PilotageGateway"}
NEXT = {"args": ["--ctx-size", "4096"]}
OTHER = {"args": ["--ctx-size", "8192"]}
ACKNOWLEDGE_SECONDS = 1.0


class RolloutCluster(SimulatedCluster):
    """A cluster with a gateway that acknowledges each version of a route a moment later, and an eye on every state."""

    early: list[str]

    def watch(self) -> None:
        self.early = []
        self.mixes: list[dict[str, int]] = []
        self.world.core.store.listen_to_all(self._note)
        self.world.live(self._acknowledge(), "gateway")

    async def _acknowledge(self) -> None:
        client = self.world.client("gateway")
        while True:
            await asyncio.sleep(ACKNOWLEDGE_SECONDS)
            for route in self.world.objects(GATEWAY_ROUTES):
                generation = route["metadata"]["generation"]
                counts = [{"service": each["service"], "inFlight": 0} for each in route["spec"]["backends"]]
                status = {"observedGeneration": generation, "state": "Programmed", "version": "1", "counts": counts}
                if any(route.get("status", {}).get(name) != value for name, value in status.items()):
                    key = ObjectKey(route["metadata"]["namespace"], route["metadata"]["name"])
                    with contextlib.suppress(Absent, Foreign):
                        patch = merge_patch({"status": status})
                        await client.patch(GATEWAY_ROUTES, key, patch, subresource="status")

    def _note(self, event: Event) -> None:
        """No Service with a weight lacks an object or replicas, in any state."""
        if event.storage == f"{GATEWAY_ROUTES.plural}.{GATEWAY_ROUTES.group}" and event.type != "DELETED":
            route = msgspec.json.decode(event.entry.raw)
            mix = {each["service"]: each["weight"] for each in route["spec"]["backends"]}
            if not self.mixes or self.mixes[-1] != mix:
                self.mixes.append(mix)
            if sum(mix.values()) != 100 and not route["spec"].get("leaving"):
                self.early.append(f"the weights are {mix}")
        elif event.storage == f"{DEPLOYMENTS.plural}.{DEPLOYMENTS.group}":
            replicas = msgspec.json.decode(event.entry.raw)["spec"]["replicas"]
            if self.weight(event.entry.name) and (event.type == "DELETED" or not replicas):
                self.early.append(f"{event.entry.name} has {self.mixes[-1]} and no replicas")
        elif event.storage == SERVICES.plural and event.type == "DELETED" and self.weight(event.entry.name):
            self.early.append(f"service {event.entry.name} went with {self.mixes[-1]}")

    def weight(self, service: str) -> int:
        return self.mixes[-1].get(service, 0) if self.mixes else 0

    @property
    def rollout(self) -> dict[str, Any]:
        found: dict[str, Any] = self.status().get("rollout", {})
        return found

    def mix(self) -> dict[str, int]:
        route = self.world.find(GATEWAY_ROUTES, KEY) or {"spec": {"backends": []}}
        return {each["service"]: each["weight"] for each in route["spec"]["backends"]}

    def replicas(self) -> dict[str, int]:
        return {each["metadata"]["name"]: each["spec"]["replicas"] for each in self.world.objects(DEPLOYMENTS)}

    def states(self) -> dict[int, str]:
        return {each["number"]: each["state"] for each in self.status()["history"]}

    async def annotate(self, **annotations: str | None) -> None:
        named = {f"pilotage.dev/{name}": value for name, value in annotations.items()}
        await self.user.patch(ENDPOINTS, KEY, merge_patch({"metadata": {"annotations": named}}))

    async def rolled(self, phase: str, step: int | None = None) -> None:
        await self.until(
            lambda: self.rollout.get("phase") == phase and (step is None or self.rollout["step"] == step), 2000.0
        )

    async def canary(self, *steps: dict[str, Any], replicas: int = 2, **more: Any) -> None:
        """An endpoint that serves, with the steps of its next revision."""
        strategy = {"type": "Canary", "canary": {"steps": list(steps), **more}}
        await self.deploy(route=GATEWAY, replicas=replicas, strategy=strategy, deletion={"drainSeconds": 5})
        await self.serving()


@contextlib.asynccontextmanager
async def place() -> AsyncIterator[RolloutCluster]:
    async with simulated_cluster(kind=RolloutCluster, operate=False) as made:
        assert isinstance(made, RolloutCluster)
        made.watch()
        made.operate()
        yield made
        assert made.early == []


@virtual
async def test_a_canary_takes_its_steps_and_is_promoted_without_a_restart():
    async with place() as cluster:
        await cluster.canary({"setWeight": 10}, {"pause": {"duration": "2m"}}, {"setWeight": 50}, {"pause": {}})
        await cluster.change(runtime=NEXT)
        await cluster.rolled("Pausing", 2)
        assert cluster.mix() == {"chat-1": 90, "chat-2": 10}
        assert cluster.status()["phase"] == "Redeploying"
        assert "step 2 of 4" in cluster.status()["waitingFor"]
        begun = asyncio.get_running_loop().time()
        await cluster.rolled("Pausing", 4)
        assert 119 < asyncio.get_running_loop().time() - begun < 150
        assert cluster.mix() == {"chat-1": 50, "chat-2": 50}
        pods = {each["metadata"]["uid"] for each in cluster.world.objects(PODS) if of(each) == "2"}
        assert len(pods) == 1, "half of two"
        await cluster.annotate(promote="chat-2/4")
        await cluster.serving("chat-2")
        assert cluster.mix() == {"chat-2": 100}
        assert pods < {each["metadata"]["uid"] for each in cluster.world.objects(PODS) if of(each) == "2"}
        assert cluster.states() == {1: "Resting", 2: "Current"}
        assert cluster.rollout["phase"] == "Promoted"
        await cluster.until(lambda: not [each for each in cluster.parts() if "chat-1" in each], 900)
        assert cluster.states() == {1: "Previous", 2: "Current"}


def of(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["labels"][LABEL_REVISION])


@virtual
async def test_an_aborted_canary_goes_back_and_is_not_tried_again_until_it_is_asked_for():
    async with place() as cluster:
        await cluster.canary({"setWeight": 50}, {"pause": {}})
        await cluster.change(runtime=NEXT)
        await cluster.rolled("Pausing", 2)
        await cluster.annotate(abort="chat-2")
        await cluster.rolled("Aborted")
        await cluster.until(lambda: not [each for each in cluster.parts() if "chat-2" in each])
        assert cluster.mix() == {"chat-1": 100}
        assert cluster.states() == {1: "Current", 2: "Aborted"}
        assert cluster.status()["phase"] == "Degraded"
        assert "pilotage.dev/retry: chat-2" in cluster.condition("Degraded")["message"]
        assert [each["spec"]["reason"] for each in cluster.records()] == ["Aborted"]
        await asyncio.sleep(1000)
        assert cluster.states() == {1: "Current", 2: "Aborted"}, "not tried again"
        await cluster.annotate(retry="chat-2")
        await cluster.rolled("Pausing", 2)
        assert cluster.rollout["revision"] == "chat-3"
        await cluster.annotate(abort="chat-3")
        await cluster.rolled("Aborted")
        await asyncio.sleep(1000)
        assert cluster.states()[3] == "Aborted", "one retry is one try"


@virtual
async def test_another_spec_may_be_tried_and_the_aborted_one_again_after_it():
    async with place() as cluster:
        await cluster.canary({"setWeight": 50}, {"pause": {}})
        await cluster.change(runtime=NEXT)
        await cluster.rolled("Pausing", 2)
        await cluster.annotate(abort="chat-2")
        await cluster.rolled("Aborted")
        await cluster.change(runtime={"args": []})
        await cluster.until(lambda: cluster.states() == {1: "Current", 2: "Abandoned"})
        await cluster.change(runtime=NEXT)
        await cluster.rolled("Pausing", 2)
        assert cluster.rollout["revision"] == "chat-3"


@virtual
async def test_a_spec_that_returns_in_a_rollout_goes_back_to_what_serves():
    async with place() as cluster:
        await cluster.canary({"setWeight": 50}, {"pause": {}})
        await cluster.change(runtime=NEXT)
        await cluster.rolled("Pausing", 2)
        await cluster.change(runtime={"args": []})
        await cluster.serving("chat-1")
        await cluster.until(lambda: not [each for each in cluster.parts() if "chat-2" in each])
        assert cluster.states() == {1: "Current", 2: "Abandoned"}


@virtual
async def test_another_spec_in_a_rollout_waits_until_the_candidate_is_out():
    async with place() as cluster:
        await cluster.canary({"setWeight": 50}, {"pause": {}})
        await cluster.change(runtime=NEXT)
        await cluster.rolled("Pausing", 2)
        await cluster.change(runtime=OTHER)
        await cluster.until(lambda: cluster.rollout.get("revision") == "chat-3")
        assert not cluster.mix().get("chat-2"), "never two candidates"
        await cluster.rolled("Pausing", 2)
        assert cluster.states() == {1: "Current", 2: "Abandoned", 3: "Starting"}


@virtual
async def test_a_rollback_in_the_window_starts_nothing():
    async with place() as cluster:
        await cluster.canary({"setWeight": 50}, surge="100%")
        await cluster.change(runtime=NEXT)
        await cluster.serving("chat-2")
        assert cluster.replicas() == {"chat-1": 2, "chat-2": 2}
        pods = {each["metadata"]["uid"] for each in cluster.world.objects(PODS)}
        begun = asyncio.get_running_loop().time()
        await cluster.change(runtime={"args": []})
        await cluster.until(lambda: cluster.mix().get("chat-1") == 100)
        assert asyncio.get_running_loop().time() - begun < 4 * ACKNOWLEDGE_SECONDS
        await cluster.serving("chat-1")
        assert pods >= {each["metadata"]["uid"] for each in cluster.world.objects(PODS)}
        assert cluster.states() == {1: "Current", 2: "Resting"}


@virtual
async def test_only_the_last_revision_that_served_rests():
    async with place() as cluster:
        await cluster.canary({"setWeight": 50})
        await cluster.change(runtime=NEXT)
        await cluster.serving("chat-2")
        await cluster.change(runtime={"args": ["--ctx-size", "1024"]})
        await cluster.serving("chat-3")
        assert cluster.states() == {1: "Previous", 2: "Resting", 3: "Current"}
        await cluster.until(lambda: not [each for each in cluster.parts() if "chat-1" in each], 60)
        assert "chat-2" in cluster.replicas()


@virtual
async def test_without_surge_one_replica_makes_room_for_the_next():
    async with place() as cluster:
        most = 0

        def note(_: Event) -> None:
            nonlocal most
            most = max(most, len(cluster.world.objects(PODS)))

        await cluster.canary({"setWeight": 25}, {"pause": {}}, replicas=4, surge=0)
        cluster.world.core.store.listen_to_all(note)
        await cluster.change(runtime=NEXT)
        await cluster.rolled("Pausing", 2)
        assert (cluster.replicas(), cluster.mix()) == ({"chat-1": 3, "chat-2": 1}, {"chat-1": 75, "chat-2": 25})
        await cluster.annotate(promote="chat-2/all")
        await cluster.serving("chat-2")
        assert most == 4
        assert [each["chat-2"] for each in cluster.mixes if "chat-2" in each] == [0, 25, 50, 100, 100]
        await cluster.until(lambda: cluster.replicas() == {"chat-2": 4})


@virtual
async def test_an_abort_without_surge_is_the_same_walk_backwards():
    async with place() as cluster:
        await cluster.canary({"setWeight": 50}, {"pause": {}}, replicas=4, surge=0)
        await cluster.change(runtime=NEXT)
        await cluster.rolled("Pausing", 2)
        assert cluster.replicas() == {"chat-1": 2, "chat-2": 2}
        await cluster.annotate(abort="chat-2")
        await cluster.rolled("Aborted")
        assert cluster.mix() == {"chat-1": 100}
        assert cluster.replicas()["chat-1"] == 4


@virtual
async def test_hold_keeps_the_weight_where_it_is():
    async with place() as cluster:
        await cluster.canary({"setWeight": 10}, {"pause": {"duration": "1m"}}, {"setWeight": 60})
        await cluster.change(runtime=NEXT)
        await cluster.rolled("Pausing", 2)
        await cluster.annotate(hold="chat-2")
        await cluster.rolled("Held")
        await asyncio.sleep(500)
        assert cluster.mix() == {"chat-1": 90, "chat-2": 10}
        await cluster.annotate(hold=None)
        await cluster.serving("chat-2")


@virtual
async def test_deleted_in_mid_shift_everything_goes_in_one_teardown():
    async with place() as cluster:
        await cluster.canary({"setWeight": 50}, {"pause": {}})
        await cluster.change(runtime=NEXT)
        await cluster.rolled("Pausing", 2)
        made = len([each for each in cluster.writes() if each.startswith("create deployments")])
        await cluster.delete()
        await cluster.gone()
        assert cluster.parts() == []
        assert [each["spec"]["reason"] for each in cluster.records()] == ["Deleted"]
        assert made == len([each for each in cluster.writes() if each.startswith("create deployments")])


@virtual
@pytest.mark.parametrize("steps", [[], [{"setWeight": 20}, {"pause": {"duration": "10m"}}]], ids=["none", "two"])
async def test_a_restart_in_a_rollout_changes_nothing(steps):
    async with place() as cluster:
        await cluster.canary(*steps)
        await cluster.change(runtime=NEXT)
        begun = asyncio.get_running_loop().time()
        for _ in range(5):
            await asyncio.sleep(20)
            cluster.managers[-1].stop()
            await asyncio.sleep(5)
            cluster.operate()
        await cluster.serving("chat-2")
        took = asyncio.get_running_loop().time() - begun
        assert not steps or 600 < took < 700


@virtual
@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"route": GATEWAY, "strategy": {"type": "Canary", "canary": {"surge": 0}}}, "strategy Recreate"),
        ({"route": {"kind": "Ingress", "host": "chat.example.com"}}, "needs route.className"),
        ({"route": {"kind": "None"}}, "has no weights"),
    ],
    ids=["one replica without surge", "no weights", "no route"],
)
async def test_what_cannot_move_in_steps_is_refused_and_nothing_is_made(spec, words):
    async with place() as cluster:
        await cluster.deploy(**{"strategy": {"type": "Canary", "canary": {}}} | spec)
        await cluster.until(lambda: cluster.status().get("phase") == "Failed")
        assert words in cluster.condition("Degraded")["message"]
        assert cluster.parts() == []


# Jobs

JOB = ObjectKey("default", "chat-2-step2")
STEPS: tuple[dict[str, Any], ...] = ({"setWeight": 50}, {"job": {"image": "eval", "atMost": "10m"}}, {"pause": {}})


async def judging(cluster: RolloutCluster) -> dict[str, Any]:
    """The Job of a rollout that waits for it."""
    await cluster.canary(*STEPS)
    await cluster.change(runtime=NEXT)
    await cluster.until(lambda: cluster.world.find(JOBS, JOB) is not None, 600)
    found = cluster.world.find(JOBS, JOB)
    assert found is not None
    return found


async def fail(cluster: RolloutCluster, job: dict[str, Any], code: int, message: str) -> None:
    """Play the kubelet and the Job controller: the pod of a Job ends, and the Job has failed."""
    meta, template = job["metadata"], job["spec"]["template"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": meta["name"], "uid": meta["uid"], "controller": True}
    name = f"{meta['name']}-x"
    labels = template["metadata"]["labels"]
    pod = {"metadata": {"name": name, "labels": labels, "ownerReferences": [owner]}, "spec": template["spec"]}
    client = cluster.world.client("job-controller")
    await client.create(PODS, pod, namespace="default")
    terminated = {"exitCode": code, "reason": "Error", "message": message}
    container = {"name": "evaluation", "image": "eval", "imageID": "", "ready": False, "restartCount": 0}
    status = {"phase": "Failed", "containerStatuses": [container | {"state": {"terminated": terminated}}]}
    await client.patch(PODS, ObjectKey("default", name), merge_patch({"status": status}), subresource="status")
    now = cluster.status()["rollout"]["since"]
    said = {"status": "True", "reason": "BackoffLimitExceeded", "message": "", "lastTransitionTime": now}
    conditions = [{"type": "FailureTarget", **said}, {"type": "Failed", **said}]
    patch = merge_patch({"status": {"startTime": now, "failed": 1, "conditions": conditions}})
    await client.patch(JOBS, JOB, patch, subresource="status")


def parts_of_job(cluster: RolloutCluster) -> list[str]:
    return [each for each in cluster.parts() if "step" in each]


@virtual
async def test_a_job_that_succeeds_passes_its_step_and_goes_with_its_pod():
    async with place() as cluster:
        manager = Manager(cluster.world.client("jobs"), name="jobs", seed=3)
        job_model.add(manager)
        cluster.world.live(manager.run(), "jobs")
        steps: list[int] = []
        cluster.world.core.store.listen_to_all(
            lambda event: steps.append(cluster.rollout["step"]) if event.storage.startswith("teardowns.") else None
        )
        made = await judging(cluster)
        writes = cluster.writes()
        ledger = [each for each in cluster.status()["ledger"] if each["kind"] == "Job"]
        assert [(each["name"], each["revision"]) for each in ledger] == [("chat-2-step2", 2)]
        assert made["metadata"]["labels"][LABEL_REVISION] == "2"
        assert writes.count("create jobs.batch default/chat-2-step2") == 1
        await cluster.rolled("Pausing", 3)
        await cluster.until(lambda: not parts_of_job(cluster))
        await cluster.until(lambda: "step" not in str(cluster.status()["ledger"]), 30)
        assert {*steps} == {3}, "it goes once the status has its answer"
        assert cluster.status()["selector"].endswith(",!batch.kubernetes.io/job-name")
        assert cluster.mix() == {"chat-1": 50, "chat-2": 50}
        assert cluster.replicas() == {"chat-1": 2, "chat-2": 1}, "the pod of the Job is not one of the candidate's"
        await cluster.annotate(promote="chat-2/3")
        await cluster.serving("chat-2")


@virtual
async def test_exit_code_1_aborts_and_says_what_the_job_said():
    async with place() as cluster:
        job = await judging(cluster)
        await fail(cluster, job, 1, "12 of 40 answers are worse")
        await cluster.rolled("Aborted")
        assert "12 of 40 answers are worse" in cluster.rollout["message"]
        assert cluster.mix() == {"chat-1": 100}
        await cluster.until(lambda: not [each for each in cluster.parts() if "chat-2" in each])


@virtual
async def test_another_exit_code_holds_and_a_deleted_job_is_created_anew():
    async with place() as cluster:
        first = await judging(cluster)
        await fail(cluster, first, 2, "no such file")
        await cluster.rolled("Held", 2)
        assert "exit code 2, no such file" in cluster.rollout["message"]
        assert cluster.mix() == {"chat-1": 50, "chat-2": 50}
        await cluster.change(strategy={"canary": {"steps": [STEPS[0], {"job": {"image": "eval:2"}}, STEPS[2]]}})
        uid = first["metadata"]["uid"]
        await asyncio.sleep(60)
        kept = cluster.world.find(JOBS, JOB)
        assert kept is not None
        assert (kept["metadata"]["uid"], kept["spec"]) == (uid, first["spec"]), "a Job is never changed"
        assert "exit code 2, no such file" in cluster.rollout["message"]
        await cluster.user.delete(JOBS, JOB, uid=uid, propagation=Propagation.BACKGROUND)
        await cluster.rolled("Judging", 2)
        await cluster.until(lambda: (cluster.world.find(JOBS, JOB) or first)["metadata"]["uid"] != uid)
        second = cluster.world.find(JOBS, JOB)
        assert second is not None
        assert second["spec"]["template"]["spec"]["containers"][0]["image"] == "eval:2"
        await cluster.annotate(promote="chat-2/2")
        await cluster.rolled("Pausing", 3)
        await cluster.until(lambda: not parts_of_job(cluster))


@virtual
async def test_a_job_that_nobody_runs_holds_the_rollout_when_its_time_is_over():
    async with place() as cluster:
        await judging(cluster)
        await cluster.rolled("Held", 2)
        assert "does kube-controller-manager run?" in cluster.rollout["message"]
        await cluster.annotate(abort="chat-2")
        await cluster.rolled("Aborted")
        await cluster.until(lambda: not [each for each in cluster.parts() if "chat-2" in each])


@virtual
async def test_a_job_of_somebody_else_is_left_alone_and_holds_the_rollout():
    async with place() as cluster:
        pod = {"containers": [{"name": "a", "image": "a"}], "restartPolicy": "Never"}
        theirs = {"metadata": {"name": JOB.name, "namespace": "default"}, "spec": {"template": {"spec": pod}}}
        await cluster.user.create(JOBS, theirs)
        await judging(cluster)
        await cluster.rolled("Held", 2)
        assert "job/chat-2-step2 -n default exists and was not made for this endpoint" in cluster.rollout["message"]
        await cluster.annotate(abort="chat-2")
        await cluster.rolled("Aborted")
        await cluster.until(lambda: not [each for each in cluster.parts() if "chat-2" in each])
        assert cluster.world.find(JOBS, JOB) is not None


@virtual
async def test_an_endpoint_that_is_deleted_takes_its_job_along():
    async with place() as cluster:
        await judging(cluster)
        await cluster.delete()
        await cluster.gone()
        assert cluster.parts() == []
