"""Jobs, the pods they leave, and the CronJobs above them."""

from collections.abc import AsyncIterator

import pytest

from pilotage.kube import PODS, Client, Json, Object, Propagation
from pilotage.teardown.diagnosis.why.model import StuckVerdict
from tests.support.kinds import CONFIG_MAPS, config_map
from tests.support.waiting import eventually, until
from tests.teardown.why.objects import CRON_JOBS, JOBS, force_pods_out, pod
from tests.teardown.why.staging import Stage, root_codes, the

TRACKING = "batch.kubernetes.io/job-tracking"

pytestmark = pytest.mark.usefixtures("namespace_for_pods")


@pytest.fixture(autouse=True)
async def no_pods_left(client: Client, namespace: str) -> AsyncIterator[None]:
    yield
    await force_pods_out(client, namespace)


def job_spec() -> Json:
    return {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]}}}


async def test_a_pod_that_outlived_its_job(stage: Stage):
    job = await stage.make(JOBS, {"metadata": {"name": "report"}, "spec": job_spec()})

    async def its_pod() -> Object | None:
        return next(iter((await stage.client.list(PODS, stage.namespace)).items), None)

    made = await eventually(its_pod)
    assert "job-pod-orphaned" not in root_codes(await stage.why(PODS, made))
    await stage.delete(JOBS, job, Propagation.ORPHAN)
    await until(stage.client, JOBS, job.key, lambda now: now is None)
    await until(stage.client, PODS, made.key, lambda now: now and TRACKING not in now.meta.finalizers)
    found = await stage.why(PODS, made)
    assert found.verdict is StuckVerdict.NOT_STUCK
    assert "job-pod-orphaned" in root_codes(found)
    note = the(found, "job-pod-orphaned")
    assert "its Job report is gone" in note.text
    assert note.remedies[0].command == f"kubectl delete pod/{made.meta.name} -n {stage.namespace}"


async def test_a_pod_that_is_held_by_the_tracking_of_a_job_that_is_gone(stage: Stage):
    """The Job controller releases orphans, but not a pod that another owner controls."""
    owner = await stage.make(CONFIG_MAPS, config_map("owner"))
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": owner.meta.uid,
        "controller": True,
    }
    uid = "5f3d1c8e-0000-4000-8000-000000000000"
    labels = {"batch.kubernetes.io/job-name": "report", "batch.kubernetes.io/controller-uid": uid}
    made = await stage.make(
        PODS, pod("report-x", "node-0", grace=1), labels=labels, finalizers=[TRACKING], ownerReferences=[reference]
    )
    await stage.delete(PODS, made)
    found = await stage.why(PODS, made, seconds_later=60)
    assert found.verdict is StuckVerdict.STUCK
    assert "job-tracking-left" in root_codes(found)
    root = the(found, "job-tracking-left")
    assert "ConfigMap owner controls it" in root.evidence[1]
    assert root.remedies[0].code == "strip-finalizer"
    assert root.remedies[0].detail == TRACKING


async def test_a_job_that_a_cron_job_makes_again(stage: Stage):
    spec = {"schedule": "0 4 * * *", "suspend": True, "jobTemplate": {"spec": job_spec()}}
    cron = await stage.make(CRON_JOBS, {"metadata": {"name": "nightly"}, "spec": spec})
    reference = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": "nightly",
        "uid": cron.meta.uid,
        "controller": True,
    }
    job = await stage.make(JOBS, {"metadata": {"name": "nightly-1"}, "spec": job_spec()}, ownerReferences=[reference])
    found = await stage.why(JOBS, job)
    assert found.verdict is StuckVerdict.NOT_STUCK
    note = the(found, "job-made-by-cronjob")
    assert str(note.subject) == f"cronjob/nightly -n {stage.namespace}"
    assert '"suspend":true' in note.remedies[0].command
