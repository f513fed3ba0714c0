"""status and scale: what each write may change, and what kinds do not have them."""

from __future__ import annotations

from tests.contract.case import Theme
from tests.contract.kit import Kit
from tests.contract.objects import (
    CM,
    DEPLOYMENTS,
    FREE,
    INT,
    Kind,
    cm,
    deployment,
    job,
    obj,
    props,
    stateful_set,
    with_pod,
)

theme = Theme("sub")


@theme.case()
async def status_write_leaves_the_spec(kit: Kit) -> None:
    made = await kit.quiet.create(DEPLOYMENTS, deployment("a"))
    body = made.body
    body["spec"]["replicas"] = 9
    body["metadata"]["labels"] = {"x": "y"}
    body["metadata"]["annotations"] = {"x": "y"}
    body["status"] = {"replicas": 2, "observedGeneration": 1}
    await kit.put(DEPLOYMENTS, "a", body, "status")


@theme.case()
async def object_write_leaves_the_status(kit: Kit) -> None:
    await kit.quiet.create(DEPLOYMENTS, deployment("a"))
    await kit.patch(DEPLOYMENTS, "a", {"status": {"replicas": 5}, "spec": {"replicas": 2}})


@theme.case()
async def status_of_a_create_is_dropped(kit: Kit) -> None:
    await kit.create(DEPLOYMENTS, deployment("a") | {"status": {"replicas": 5}})


@theme.case()
async def status_is_validated(kit: Kit) -> None:
    await kit.quiet.create(DEPLOYMENTS, deployment("a"))
    await kit.patch(DEPLOYMENTS, "a", {"status": {"replicas": -1, "readyReplicas": 3}}, "status")


@theme.case()
async def status_with_an_old_version(kit: Kit) -> None:
    made = await kit.quiet.create(DEPLOYMENTS, deployment("a"))
    await kit.quiet.patch(DEPLOYMENTS, "a", {"spec": {"replicas": 2}})
    await kit.put(DEPLOYMENTS, "a", made.body | {"status": {"replicas": 1}}, "status")


@theme.case()
async def status_get(kit: Kit) -> None:
    await kit.quiet.create(DEPLOYMENTS, deployment("a"))
    await kit.picking(lambda b: [b["kind"], b["status"]]).get(DEPLOYMENTS, "a", "status")


@theme.case()
async def status_of_a_kind_without(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    await kit.get(CM, "a", "status")
    await kit.patch(CM, "a", {"status": {}}, "status")


@theme.case()
async def status_post_and_delete(kit: Kit) -> None:
    await kit.quiet.create(DEPLOYMENTS, deployment("a"))
    await kit.send("POST", kit.path(DEPLOYMENTS, "a", "status"), deployment("a"))
    await kit.send("DELETE", kit.path(DEPLOYMENTS, "a", "status"))


@theme.case()
async def status_of_what_is_absent(kit: Kit) -> None:
    await kit.put(DEPLOYMENTS, "a", deployment("a"), "status")
    await kit.patch(DEPLOYMENTS, "a", {"status": {"replicas": 1}}, "status")


@theme.case()
async def pod_status(kit: Kit) -> None:
    await with_pod(kit, "p")
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2001-02-03T04:05:06Z"}
    await kit.patch("pods", "p", {"status": {"phase": "Running", "podIP": "10.9.0.1", "conditions": [ready]}}, "status")
    await kit.strategic("pods", "p", {"status": {"conditions": [{"type": "Custom", "status": "False"}]}}, "status")


@theme.case()
async def unknown_subresource(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    await kit.get(CM, "a", "nonsense")
    await kit.put(CM, "a", cm("a"), "nonsense")


@theme.case()
async def scale_get(kit: Kit) -> None:
    await kit.quiet.create(DEPLOYMENTS, deployment("a", replicas=3))
    await kit.get(DEPLOYMENTS, "a", "scale")


@theme.case()
async def scale_put(kit: Kit) -> None:
    await kit.quiet.create(DEPLOYMENTS, deployment("a"))
    made = await kit.get(DEPLOYMENTS, "a", "scale")
    body = made.body
    body["spec"]["replicas"] = 4
    await kit.put(DEPLOYMENTS, "a", body, "scale")
    await kit.picking(lambda b: [b["spec"]["replicas"], b["metadata"]["generation"]]).get(DEPLOYMENTS, "a")
    await kit.put(DEPLOYMENTS, "a", body, "scale")


@theme.case()
async def scale_patch(kit: Kit) -> None:
    await kit.quiet.create(DEPLOYMENTS, deployment("a"))
    await kit.patch(DEPLOYMENTS, "a", {"spec": {"replicas": 0}}, "scale")
    await kit.json_patch(DEPLOYMENTS, "a", [{"op": "replace", "path": "/spec/replicas", "value": 2}], "scale")
    await kit.strategic(DEPLOYMENTS, "a", {"spec": {"replicas": 3}}, "scale")
    await kit.patch(DEPLOYMENTS, "a", {"status": {"replicas": 9}}, "scale")


@theme.case()
async def scale_below_zero(kit: Kit) -> None:
    await kit.quiet.create(DEPLOYMENTS, deployment("a"))
    await kit.patch(DEPLOYMENTS, "a", {"spec": {"replicas": -1}}, "scale")


@theme.case()
async def scale_of_wrong_kind(kit: Kit) -> None:
    await kit.quiet.create(DEPLOYMENTS, deployment("a"))
    await kit.put(DEPLOYMENTS, "a", deployment("a"), "scale")


@theme.case()
async def scale_of_absent(kit: Kit) -> None:
    await kit.get(DEPLOYMENTS, "a", "scale")
    await kit.patch(DEPLOYMENTS, "a", {"spec": {"replicas": 1}}, "scale")


@theme.case()
async def scale_without_a_version(kit: Kit) -> None:
    await kit.quiet.create(DEPLOYMENTS, deployment("a"))
    await kit.put(DEPLOYMENTS, "a", obj("autoscaling/v1", "Scale", "a", spec={"replicas": 3}), "scale")
    await kit.put(DEPLOYMENTS, "a", obj("autoscaling/v1", "Scale", "b", spec={"replicas": 3}), "scale")


@theme.case()
async def scale_of_stateful_and_replica_sets(kit: Kit) -> None:
    await kit.quiet.create("apps/v1/statefulsets", stateful_set("a"))
    await kit.patch("apps/v1/statefulsets", "a", {"spec": {"replicas": 2}}, "scale")
    spec = deployment("b")["spec"]
    await kit.quiet.create("apps/v1/replicasets", obj("apps/v1", "ReplicaSet", "b", spec=spec))
    await kit.patch("apps/v1/replicasets", "b", {"spec": {"replicas": 2}}, "scale")


@theme.case()
async def scale_of_a_kind_without(kit: Kit) -> None:
    await kit.quiet.create("batch/v1/jobs", job("a"))
    await kit.get("batch/v1/jobs", "a", "scale")


SCALE = {
    "status": {},
    "scale": {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    },
}


@theme.case()
async def custom_status(kit: Kit) -> None:
    kind = await Kind(kit, props(n=INT), subresources={"status": {}}).served()
    await kit.create(kind.resource, kind.object("a", {"n": 1}, status={"x": 1}))
    await kit.patch(kind.resource, "a", {"spec": {"n": 2}, "status": {"x": 2}}, "status")
    await kit.patch(kind.resource, "a", {"spec": {"n": 3}, "status": {"x": 3}})
    await kit.patch(kind.resource, "a", {"metadata": {"labels": {"l": "1"}}})
    await kit.patch(kind.resource, "a", {"metadata": {"labels": {"l": "2"}, "annotations": {"a": "1"}}}, "status")
    await kit.get(kind.resource, "a", "status")


@theme.case()
async def custom_without_status(kit: Kit) -> None:
    """The status is then a field like any other, and every change of the object counts."""
    kind = await Kind(kit, props(n=INT)).served()
    await kit.create(kind.resource, kind.object("a", {"n": 1}, status={"x": 1}))
    await kit.patch(kind.resource, "a", {"status": {"x": 2}})
    await kit.patch(kind.resource, "a", {"metadata": {"labels": {"l": "1"}}})
    await kit.patch(kind.resource, "a", {"status": {"x": 2}}, "status")


@theme.case()
async def custom_scale(kit: Kit) -> None:
    kind = await Kind(kit, props(replicas=INT), subresources=SCALE).served()
    await kit.quiet.create(kind.resource, kind.object("a", {"replicas": 2}))
    await kit.quiet.patch(kind.resource, "a", {"status": {"replicas": 1, "selector": "x=y"}}, "status")
    made = await kit.get(kind.resource, "a", "scale")
    await kit.patch(kind.resource, "a", {"spec": {"replicas": 5}}, "scale")
    body = made.body
    body["spec"]["replicas"] = 6
    await kit.put(kind.resource, "a", body, "scale")
    await kit.patch(kind.resource, "a", {"spec": {"replicas": -1}}, "scale")
    await kit.get(kind.resource, "a")


@theme.case()
async def custom_scale_without_replicas(kit: Kit) -> None:
    kind = await Kind(kit, FREE, subresources=SCALE).served()
    await kit.quiet.create(kind.resource, kind.object("a", {}))
    await kit.get(kind.resource, "a", "scale")
    await kit.patch(kind.resource, "a", {"spec": {"replicas": 5}}, "scale")
    await kit.create(kind.resource, kind.object("b", {"replicas": "many"}))


@theme.case()
async def log_of_a_pod_without_a_node(kit: Kit) -> None:
    await with_pod(kit, "p")
    await kit.get("pods", "p", "log")
    await kit.get("pods", "q", "log")


@theme.case()
async def binding_of_a_pod(kit: Kit) -> None:
    await with_pod(kit, "p")
    binding = obj("v1", "Binding", "p", target={"kind": "Node", "name": "far"})
    await kit.create("pods", binding, "p", "binding")
    await kit.picking(lambda b: [b["spec"]["nodeName"], b["status"].get("conditions")]).get("pods", "p")
    await kit.create("pods", binding, "p", "binding")


@theme.case()
async def ephemeral_containers(kit: Kit) -> None:
    await with_pod(kit, "p")
    patch = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "example.com/d:1"}]}}
    await kit.picking(lambda b: b["spec"]["ephemeralContainers"] if "spec" in b else b).strategic(
        "pods", "p", patch, "ephemeralcontainers"
    )
    await kit.strategic("pods", "p", {"spec": {"ephemeralContainers": [{"name": "other", "image": "example.com/d:1"}]}})


@theme.case()
async def token_of_a_service_account(kit: Kit) -> None:
    await kit.quiet.create("serviceaccounts", obj("v1", "ServiceAccount", "robot"))
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    answer = await kit.picking(lambda b: [b["kind"], b["spec"].get("expirationSeconds"), sorted(b["status"])]).create(
        "serviceaccounts", body, "robot", "token"
    )
    token = answer.body["status"]["token"]
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}

    def who(body: dict) -> object:  # type: ignore[type-arg]
        status = body["status"]
        return [status["authenticated"], status["user"]["username"], sorted(status["user"]["groups"])]

    await kit.picking(who).create("/authentication.k8s.io/v1/tokenreviews", review)
    await kit.anonymous(token).get(CM, "x")


@theme.case()
async def streams_of_a_pod_without_a_node(kit: Kit) -> None:
    await with_pod(kit, "p")
    for sub, query in (("exec", {"command": "ls"}), ("attach", {"stdout": "true"}), ("portforward", {"ports": "80"})):
        await kit.create("pods", None, "p", sub, **query)
        await kit.get("pods", "p", sub, **query)
        await kit.create("pods", None, "none", sub, **query)


@theme.case()
async def streams_need_a_right(kit: Kit) -> None:
    """A user without the right learns only that, whether the pod exists or not."""
    await with_pod(kit, "p")
    nobody = kit.as_user("nobody")
    for sub in ("exec", "attach", "portforward", "proxy", "log"):
        await nobody.get("pods", "p", sub)
        await nobody.create("pods", None, "none", sub)
    await nobody.get("services", "s", "proxy/a/b")
    await nobody.get("/nodes", "n", "proxy/stats")


@theme.case()
async def proxy_to_what_is_absent(kit: Kit) -> None:
    await kit.get("pods", "none", "proxy/a")
    await kit.get("services", "none:80", "proxy/a")
    await kit.get("/nodes", "sub-no-node", "proxy/stats")
