"""Built-in kinds: Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs."""

from __future__ import annotations

from tests.contract.case import Theme
from tests.contract.kit import Kit
from tests.contract.objects import (
    DEPLOYMENTS,
    container,
    deployment,
    job,
    obj,
    stateful_set,
    template,
)

theme = Theme("kind")
creates = theme.creates

creates("deployment minimal", DEPLOYMENTS, deployment("a"))
creates(
    "deployment full",
    DEPLOYMENTS,
    deployment(
        "a",
        replicas=0,
        strategy={"type": "Recreate"},
        minReadySeconds=3,
        revisionHistoryLimit=2,
        progressDeadlineSeconds=60,
        paused=True,
    ),
)
creates("deployment without selector", DEPLOYMENTS, obj("apps/v1", "Deployment", "a", spec={"template": template("a")}))
creates("deployment selector empty", DEPLOYMENTS, deployment("a", selector={}))
creates("deployment selector does not match", DEPLOYMENTS, deployment("a", selector={"matchLabels": {"app": "b"}}))
creates("deployment without spec", DEPLOYMENTS, obj("apps/v1", "Deployment", "a"))
creates("deployment replicas negative", DEPLOYMENTS, deployment("a", replicas=-1))
creates("deployment restart policy", DEPLOYMENTS, deployment("a", template=template("a", restartPolicy="Never")))
creates(
    "deployment rolling update of nothing",
    DEPLOYMENTS,
    deployment("a", strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
)
creates(
    "deployment rolling update of percents",
    DEPLOYMENTS,
    deployment("a", strategy={"rollingUpdate": {"maxSurge": "150%", "maxUnavailable": "150%"}}),
)
creates(
    "deployment recreate with rolling update",
    DEPLOYMENTS,
    deployment("a", strategy={"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}),
)
creates("deployment strategy unknown", DEPLOYMENTS, deployment("a", strategy={"type": "Magic"}))
creates(
    "deployment deadline below ready seconds",
    DEPLOYMENTS,
    deployment("a", minReadySeconds=60, progressDeadlineSeconds=30),
)
creates(
    "deployment without containers",
    DEPLOYMENTS,
    deployment("a", template={"metadata": {"labels": {"app": "a"}}, "spec": {"containers": []}}),
)
creates("deployment name with dots", DEPLOYMENTS, deployment("a.b"))
creates(
    "replica set",
    "apps/v1/replicasets",
    obj("apps/v1", "ReplicaSet", "a", spec={"selector": {"matchLabels": {"app": "a"}}, "template": template("a")}),
)
creates(
    "replica set without template",
    "apps/v1/replicasets",
    obj("apps/v1", "ReplicaSet", "a", spec={"selector": {"matchLabels": {"app": "a"}}}),
)
creates("stateful set", "apps/v1/statefulsets", stateful_set("a"))
claim = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
creates(
    "stateful set with claims",
    "apps/v1/statefulsets",
    stateful_set("a", volumeClaimTemplates=[claim], podManagementPolicy="Parallel"),
    facts=(5,),
)
creates("stateful set management unknown", "apps/v1/statefulsets", stateful_set("a", podManagementPolicy="Random"))
creates(
    "stateful set retention unknown",
    "apps/v1/statefulsets",
    stateful_set("a", persistentVolumeClaimRetentionPolicy={"whenDeleted": "Sell"}),
)
creates(
    "daemon set",
    "apps/v1/daemonsets",
    obj("apps/v1", "DaemonSet", "a", spec={"selector": {"matchLabels": {"app": "a"}}, "template": template("a")}),
)
creates("job minimal", "batch/v1/jobs", job("a"))
creates(
    "job full",
    "batch/v1/jobs",
    job(
        "a",
        parallelism=3,
        completions=5,
        backoffLimit=1,
        ttlSecondsAfterFinished=9,
        activeDeadlineSeconds=100,
        completionMode="Indexed",
    ),
)
creates("job restart policy", "batch/v1/jobs", job("a", template={"spec": {"containers": [container()]}}))
creates("job negative", "batch/v1/jobs", job("a", parallelism=-1, backoffLimit=-1))
creates("job selector given", "batch/v1/jobs", job("a", selector={"matchLabels": {"x": "y"}}))
creates(
    "cron job",
    "batch/v1/cronjobs",
    obj("batch/v1", "CronJob", "a", spec={"schedule": "* * * * *", "jobTemplate": {"spec": job("x")["spec"]}}),
)
creates(
    "cron job schedule",
    "batch/v1/cronjobs",
    obj("batch/v1", "CronJob", "a", spec={"schedule": "often", "jobTemplate": {"spec": job("x")["spec"]}}),
)


@theme.case()
async def stateful_set_update(kit: Kit) -> None:
    await kit.quiet.create("apps/v1/statefulsets", stateful_set("a"))
    await kit.patch("apps/v1/statefulsets", "a", {"spec": {"serviceName": "other"}})
    await kit.picking(lambda b: [b["metadata"]["generation"], b["spec"]["replicas"]]).patch(
        "apps/v1/statefulsets", "a", {"spec": {"replicas": 3}}
    )


@theme.case()
async def job_update(kit: Kit) -> None:
    await kit.quiet.create("batch/v1/jobs", job("a"))
    await kit.patch("batch/v1/jobs", "a", {"spec": {"completions": 3}})
    await kit.picking(lambda b: [b["metadata"]["generation"], b["spec"]["parallelism"]]).patch(
        "batch/v1/jobs", "a", {"spec": {"parallelism": 3}}
    )
