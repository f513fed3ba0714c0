"""ServingEndpoints on kopf, with its objects made by kubernetes_asyncio: the same ones that Pilotage makes.

`python -m bench.operators.kopf_endpoints KUBECONFIG NAMESPACE`

It does what a good operator on kopf does: the Deployment's own events say when it is available, so that nothing is
polled, and what is deleted is waited for within the handler, which costs reads alone; to raise a TemporaryError each
time would cost a write, too. kopf has its defaults but for three: it posts no Events, has no peers, and keeps its
progress in annotations alone, since the schema of the status has no place for it.

It does less than Pilotage: no ledger, no record of the teardown, no proof, no corrections of what others change, one
revision, and no time for a router that says nothing.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import kopf
from kubernetes_asyncio import client, config

from bench.meter import end_with_parent
from bench.operators import FETCH_IMAGE
from pilotage.api.endpoint import EndpointSpec
from pilotage.api.names import ENDPOINTS, LABEL_ENDPOINT, LABEL_MANAGED_BY, MANAGED_BY
from pilotage.serving import backend, desired_objects
from pilotage.serving.parts import Capabilities, DesiredObject, EndpointRef, ResolvedModel, labels, revision_name
from pilotage.traffic.contract import Backend, Mix
from pilotage.traffic.routers import ROUTERS, RouteRequest

Json = dict[str, Any]
REVISION = 1
CAPABILITIES = Capabilities(fetch_image=FETCH_IMAGE)
WAIT_SECONDS = 1.0
GONE, THERE = 404, 409

kubeconfig, namespace = sys.argv[1:]
os.environ["KUBECONFIG"] = kubeconfig


class Api:
    """Clients of the kinds of an endpoint's parts."""

    def __init__(self) -> None:
        self.connection = client.ApiClient()
        self.apps = client.AppsV1Api(self.connection)
        self.core = client.CoreV1Api(self.connection)
        self.scaling = client.AutoscalingV2Api(self.connection)
        self.networking = client.NetworkingV1Api(self.connection)
        self.custom = client.CustomObjectsApi(self.connection)

    async def create(self, part: DesiredObject) -> None:
        """Make an object; one that is there was made by a former try."""
        create: dict[str, Callable[..., Awaitable[object]]] = {
            "PersistentVolumeClaim": self.core.create_namespaced_persistent_volume_claim,
            "Service": self.core.create_namespaced_service,
            "Deployment": self.apps.create_namespaced_deployment,
            "HorizontalPodAutoscaler": self.scaling.create_namespaced_horizontal_pod_autoscaler,
            "Ingress": self.networking.create_namespaced_ingress,
        }
        try:
            await create[part.resource.kind](namespace, part.body)
        except client.ApiException as error:
            if error.status != THERE:
                raise

    async def remove(self, kind: str, name: str) -> None:
        """Delete an object with all that belongs to it, and wait until it is gone."""
        delete, read, propagation = {
            "Ingress": (self.networking.delete_namespaced_ingress, self.networking.read_namespaced_ingress, None),
            "HorizontalPodAutoscaler": (
                self.scaling.delete_namespaced_horizontal_pod_autoscaler,
                self.scaling.read_namespaced_horizontal_pod_autoscaler,
                None,
            ),
            "Deployment": (
                self.apps.delete_namespaced_deployment,
                self.apps.read_namespaced_deployment,
                "Foreground",
            ),
            "Service": (self.core.delete_namespaced_service, self.core.read_namespaced_service, None),
        }[kind]
        try:
            await delete(name, namespace, **({"propagation_policy": propagation} if propagation else {}))
            while await read(name, namespace):  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(WAIT_SECONDS)
        except client.ApiException as error:
            if error.status != GONE:
                raise


def login(**kwargs: Any) -> Any:  # noqa: ANN401
    """Log in without a Kubernetes client library, which kopf would otherwise ask."""
    return kopf.login_with_kubeconfig(**kwargs)


async def start(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:  # noqa: ANN401
    settings.posting.enabled = False
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage()
    await config.load_kube_config(kubeconfig)
    memo.api = Api()


async def stop(memo: kopf.Memo, **_: Any) -> None:  # noqa: ANN401
    await memo.api.connection.close()


async def created(name: str, uid: str, spec: kopf.Spec, memo: kopf.Memo, **_: Any) -> None:  # noqa: ANN401
    subject = EndpointRef(namespace, name, uid, EndpointSpec.read(dict(spec)))
    model = ResolvedModel(name, subject.spec.model.source or "")
    for part in desired_objects(subject, REVISION, model, CAPABILITIES):
        await memo.api.create(part)


async def deployment_changed(
    type: str,  # noqa: A002 - so kopf calls it
    status: kopf.Status,
    meta: kopf.Meta,
    memo: kopf.Memo,
    **_: Any,  # noqa: ANN401
) -> None:
    """Move traffic to a Deployment as soon as it is available."""
    if type == "DELETED" or meta.deletion_timestamp or not status.get("availableReplicas") or memo.get("routed"):
        return
    memo.routed = True
    name = meta.labels[LABEL_ENDPOINT]
    custom = memo.api.custom
    kind = (ENDPOINTS.group, ENDPOINTS.version, namespace, ENDPOINTS.plural)
    endpoint = await custom.get_namespaced_custom_object(*kind, name)
    subject = EndpointRef(namespace, name, endpoint["metadata"]["uid"], EndpointSpec.read(endpoint["spec"]))
    route = subject.spec.route
    router = ROUTERS[route.kind]
    assert router.resource is not None
    target = Backend(*backend(subject, REVISION))
    body = router.manifest(RouteRequest(namespace, name, labels(subject), route, Mix((target,))))
    await memo.api.create(DesiredObject(router.resource, name, body, None))
    serving: Json = {
        "phase": "Serving",
        "url": f"http://{route.host}{route.path}v1",
        "replicas": {"ready": status["availableReplicas"], "desired": subject.spec.replicas},
    }
    await custom.patch_namespaced_custom_object_status(
        *kind, name, {"status": serving}, _content_type="application/merge-patch+json"
    )


async def deleted(name: str, spec: kopf.Spec, memo: kopf.Memo, **_: Any) -> None:  # noqa: ANN401
    """Delete the parts in order; kopf removes its finalizer by itself."""
    revision = revision_name(name, REVISION)
    await memo.api.remove("Ingress", name)
    if spec.get("autoscaling"):
        await memo.api.remove("HorizontalPodAutoscaler", revision)
    await memo.api.remove("Deployment", revision)
    await memo.api.remove("Service", revision)


kind = (ENDPOINTS.group, ENDPOINTS.version, ENDPOINTS.plural)
kopf.on.login()(login)
kopf.on.startup()(start)
kopf.on.cleanup()(stop)
kopf.on.create(*kind)(created)
kopf.on.delete(*kind)(deleted)
kopf.on.event("apps", "v1", "deployments", labels={LABEL_MANAGED_BY: MANAGED_BY})(deployment_changed)
logging.disable(logging.CRITICAL)  # the driver sees what fails; so logging costs nothing here
end_with_parent()
kopf.run(standalone=True, namespaces=[namespace])
