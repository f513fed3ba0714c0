"""Actions on a cluster whose controllers react to them; each in a namespace of its own."""

import asyncio
from collections.abc import Awaitable, Callable

from pilotage.kube import Client, Json, Object, ObjectKey, Propagation, Resource, merge_patch
from pilotage_sim.models.common import AUTOSCALERS, CONTROLLERS, DEPLOYMENTS, JOBS, PODS, REPLICA_SETS, SERVICES

Story = Callable[[Client, str], Awaitable[None]]
POLL_SECONDS = 0.2
SECONDS_MAX = 60.0


def template(app: str, image: str = "one") -> Json:
    container = {"name": "main", "image": image, "ports": [{"name": "web", "containerPort": 8080}]}
    return {
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 2},
    }


async def deploy(client: Client, namespace: str, replicas: int = 3, **spec: object) -> ObjectKey:
    body = {
        "metadata": {"namespace": namespace, "name": "web", "annotations": {"team": "blue"}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template("web"),
            **spec,
        },
    }
    key = (await client.create(DEPLOYMENTS, body)).key
    await rolled_out(client, key)
    return key


async def serve(client: Client, namespace: str, **spec: object) -> None:
    ports = [{"name": "http", "port": 80, "targetPort": "web"}, {"name": "raw", "port": 81, "targetPort": 9000}]
    body = {
        "metadata": {"namespace": namespace, "name": "web", "labels": {"tier": "front"}},
        "spec": {"selector": {"app": "web"}, "ports": ports, **spec},
    }
    await client.create(SERVICES, body)


async def change(client: Client, key: ObjectKey, spec: Json) -> None:
    await client.patch(DEPLOYMENTS, key, merge_patch({"spec": spec}))


async def set_image(client: Client, key: ObjectKey, image: str) -> None:
    await change(client, key, {"template": template("web", image)})
    await rolled_out(client, key)


async def until(client: Client, resource: Resource, key: ObjectKey, condition: Callable[[Object], object]) -> Object:
    async with asyncio.timeout(SECONDS_MAX):
        while not condition(obj := await client.get(resource, key)):  # noqa: ASYNC110 - on two kinds of loop
            await asyncio.sleep(POLL_SECONDS)
    return obj


async def rolled_out(client: Client, key: ObjectKey) -> None:
    def done(obj: Object) -> bool:
        status, wanted = obj.get("status", default={}), obj.get("spec", "replicas")
        counts = [status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")]
        return status.get("observedGeneration", 0) >= obj.meta.generation and counts == [wanted] * 3

    await until(client, DEPLOYMENTS, key, done)


async def delete(client: Client, resource: Resource, key: ObjectKey, propagation: Propagation) -> None:
    uid = (await client.get(resource, key)).meta.uid
    await client.delete(resource, key, uid=uid, propagation=propagation)


async def a_new_namespace(client: Client, namespace: str) -> None:
    pass


async def a_deployment_behind_a_service(client: Client, namespace: str) -> None:
    await serve(client, namespace)
    await deploy(client, namespace)


async def a_headless_service_that_publishes_everything(client: Client, namespace: str) -> None:
    await serve(client, namespace, clusterIP="None", publishNotReadyAddresses=True)
    await deploy(client, namespace, 2)


async def a_service_without_pods(client: Client, namespace: str) -> None:
    await serve(client, namespace)


async def a_rolling_update(client: Client, namespace: str) -> None:
    await serve(client, namespace)
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    key = await deploy(client, namespace, 4, strategy=strategy)
    await set_image(client, key, "two")


async def an_update_in_percent_that_is_then_scaled(client: Client, namespace: str) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "30%", "maxUnavailable": "50%"}}
    key = await deploy(client, namespace, 5, strategy=strategy)
    await set_image(client, key, "two")
    await change(client, key, {"replicas": 2})
    await rolled_out(client, key)


async def a_recreate(client: Client, namespace: str) -> None:
    key = await deploy(client, namespace, 2, strategy={"type": "Recreate"})
    await set_image(client, key, "two")


async def an_update_and_back_with_a_short_history(client: Client, namespace: str) -> None:
    key = await deploy(client, namespace, 2, revisionHistoryLimit=1)
    for image in ("two", "three", "two"):
        await set_image(client, key, image)


async def an_update_of_a_paused_deployment(client: Client, namespace: str) -> None:
    key = await deploy(client, namespace, 2)
    await change(client, key, {"paused": True})
    await change(client, key, {"template": template("web", "two"), "replicas": 3})
    await until(client, DEPLOYMENTS, key, lambda obj: obj.get("status", "availableReplicas") == 3)


async def a_foreground_delete(client: Client, namespace: str) -> None:
    await serve(client, namespace)
    key = await deploy(client, namespace, 2)
    await delete(client, DEPLOYMENTS, key, Propagation.FOREGROUND)


async def an_orphaning_delete(client: Client, namespace: str) -> None:
    key = await deploy(client, namespace, 2)
    await delete(client, DEPLOYMENTS, key, Propagation.ORPHAN)


async def a_replica_set_that_adopts_and_releases(client: Client, namespace: str) -> None:
    orphan = {"metadata": {"namespace": namespace, "name": "orphan", "labels": {"app": "web"}}}
    await client.create(PODS, orphan | {"spec": template("web")["spec"]})
    body = {
        "metadata": {"namespace": namespace, "name": "set"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template("web")},
    }
    key = (await client.create(REPLICA_SETS, body)).key
    await until(client, REPLICA_SETS, key, lambda obj: obj.get("status", "availableReplicas") == 2)
    await client.patch(PODS, ObjectKey(namespace, "orphan"), merge_patch({"metadata": {"labels": {"app": "free"}}}))
    await until(client, PODS, ObjectKey(namespace, "orphan"), lambda obj: obj.meta.controller is None)


async def a_replication_controller_scaled_down(client: Client, namespace: str) -> None:
    body = {
        "metadata": {"namespace": namespace, "name": "old"},
        "spec": {"replicas": 3, "selector": {"app": "web"}, "template": template("web")},
    }
    key = (await client.create(CONTROLLERS, body)).key
    await until(client, CONTROLLERS, key, lambda obj: obj.get("status", "availableReplicas") == 3)
    await client.scale(CONTROLLERS, key, 1)


async def _autoscaled(client: Client, namespace: str, before: int, after: int) -> ObjectKey:
    key = await deploy(client, namespace, before)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 3}
    await client.create(AUTOSCALERS, {"metadata": {"namespace": namespace, "name": "web"}, "spec": spec})
    await until(client, DEPLOYMENTS, key, lambda obj: obj.get("spec", "replicas") == after)
    await rolled_out(client, key)
    return key


async def an_autoscaler_above_too_few(client: Client, namespace: str) -> None:
    await _autoscaled(client, namespace, 1, 2)


async def an_autoscaler_below_too_many(client: Client, namespace: str) -> None:
    await _autoscaled(client, namespace, 5, 3)


async def an_autoscaler_of_nothing(client: Client, namespace: str) -> None:
    key = await _autoscaled(client, namespace, 1, 2)
    await client.scale(DEPLOYMENTS, key, 0)
    await rolled_out(client, key)
    await asyncio.sleep(4)  # longer than an autoscaler waits here: it must not do anything


async def a_job(client: Client, namespace: str) -> None:
    spec = template("job")
    spec["spec"]["restartPolicy"] = "Never"
    wanted = {"completions": 3, "parallelism": 2, "template": spec}
    body = {"metadata": {"namespace": namespace, "name": "job"}, "spec": wanted}
    key = (await client.create(JOBS, body)).key
    await until(client, JOBS, key, lambda obj: obj.get("status", "completionTime"))


STORIES: list[Story] = [
    a_new_namespace,
    a_deployment_behind_a_service,
    a_headless_service_that_publishes_everything,
    a_service_without_pods,
    a_rolling_update,
    an_update_in_percent_that_is_then_scaled,
    a_recreate,
    an_update_and_back_with_a_short_history,
    an_update_of_a_paused_deployment,
    a_foreground_delete,
    an_orphaning_delete,
    a_replica_set_that_adopts_and_releases,
    a_replication_controller_scaled_down,
    an_autoscaler_above_too_few,
    an_autoscaler_below_too_many,
    an_autoscaler_of_nothing,
    a_job,
]
