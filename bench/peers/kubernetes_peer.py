"""kubernetes, the official client."""

from typing import Any

from kubernetes import client, config
from kubernetes import watch as watches

from bench.meter import Meter
from bench.peers import FROM_THE_START, WARM_UP, Job, change, let_the_server_lead


def lists(job: Job, meter: Meter) -> None:
    api = _connect(job)
    api.list_namespaced_deployment(job.namespace, limit=WARM_UP)
    with meter:
        cache = {each.metadata.name: each for each in api.list_namespaced_deployment(job.namespace).items}
    assert len(cache) == job.objects


def watch(job: Job, meter: Meter) -> None:
    api = _connect(job)
    _follow(api, job, WARM_UP)
    with meter:
        _follow(api, job, job.objects)


def patch(job: Job, meter: Meter) -> None:
    api = _connect(job)
    for number in range(-WARM_UP, 0):
        _patch(api, job, number)
    with meter:
        for number in range(job.patches):
            _patch(api, job, number)


def _connect(job: Job) -> Any:  # noqa: ANN401
    config.load_kube_config(job.kubeconfig)
    return client.AppsV1Api()


def _follow(api: Any, job: Job, events: int) -> None:  # noqa: ANN401
    follower = watches.Watch()
    stream = follower.stream(
        api.list_namespaced_deployment, job.namespace, resource_version=FROM_THE_START, timeout_seconds=300
    )
    for number, event in enumerate(stream, 1):
        assert event["object"].metadata.name
        let_the_server_lead(number)
        if number == events:
            follower.stop()
            return
    raise RuntimeError("the watch ended too early")


def _patch(api: Any, job: Job, number: int) -> None:  # noqa: ANN401
    api.patch_namespaced_deployment(
        job.name(number), job.namespace, change(number), _content_type="application/merge-patch+json"
    )
