"""A server takes every manifest that there is and gives it back as we want it; a change in place is one write.

On the real API server and on harbor: this is what keeps a steady state from writing.
"""

from typing import Any

import pytest

from controlplane import Access
from controlplane.access import ApiError
from pilotage.kube import Client, Foreign, Object, ObjectKey, load_config, merge_patch
from pilotage.serving import desired_objects
from pilotage.serving.drift import apply_body, same
from pilotage.serving.manifests import digest
from pilotage.serving.parts import DesiredObject, EndpointRef
from pilotage.serving.placements.kserve import SCALING_FIELDS
from pilotage_sim.loop import virtual
from pilotage_sim.world import SimulatedWorld
from tests.api.objects import install as install_on
from tests.serving.cases import ALL, GGUF, cases, subject
from tests.teardown.staged import force_away, install, theirs

Json = dict[str, Any]
STRICTLY = "?dryRun=All&fieldValidation=Strict"


def every_part(namespace: str) -> dict[str, DesiredObject]:
    """One of each: many endpoints have the same Service."""
    parts = {
        digest(part.body): (f"{name}: {part.resource.kind}", part)
        for name, case in cases(namespace).items()
        for part in desired_objects(case.subject, 7, case.model, ALL)
    }
    return dict(parts.values())


def their_kinds() -> list[Json]:
    return [*theirs("kserve", "inferenceservices.serving.kserve.io"), *theirs("keda", "scaledobjects.keda.sh")]


def pod_template(part: DesiredObject) -> Json | None:
    """The pod of an InferenceService as a kind whose fields the server knows: of KServe's own it knows none."""
    if part.resource.kind != "InferenceService":
        return None
    pod = {name: value for name, value in part.body["spec"]["predictor"].items() if name not in SCALING_FIELDS}
    return {
        "metadata": {"name": "pod"},
        "template": {"metadata": {"annotations": pod.pop("annotations", {})}, "spec": pod},
    }


def test_the_api_server_takes_them_all_and_gives_them_back_as_wanted(cluster: Access, namespace: str):
    made = install(cluster, their_kinds())
    refused, otherwise = {}, []
    try:
        for name, part in every_part(namespace).items():
            try:
                answer = cluster.request("POST", part.resource.path(namespace) + STRICTLY, part.body)
                if (pod := pod_template(part)) is not None:
                    cluster.request("POST", f"/api/v1/namespaces/{namespace}/podtemplates{STRICTLY}", pod)
            except ApiError as error:
                refused[name] = str(error)
            else:
                otherwise += [name] if not same(part, Object.from_dict(answer)) else []
    finally:
        for path in made:
            force_away(cluster, path)
    assert refused == {}
    assert otherwise == []


@virtual
async def test_harbor_takes_them_all_and_gives_them_back_as_wanted():
    async with SimulatedWorld() as world:
        client = world.client("pilotage")
        await install_on(client, their_kinds())
        otherwise = [
            name
            for name, part in every_part("default").items()
            if not same(part, await client.create(part.resource, part.body, namespace="default", dry_run=True))
        ]
    assert otherwise == []


async def test_changes_in_place_on_the_api_server(cluster: Access, namespace: str):
    async with Client.connect(load_config(kubeconfig=str(cluster.kubeconfig)), name="pilotage") as client:
        await changes_in_place(client, namespace)


@virtual
async def test_changes_in_place_on_harbor():
    async with SimulatedWorld() as world:
        await changes_in_place(world.client("pilotage"), "default")


async def changes_in_place(client: Client, namespace: str) -> None:
    """An endpoint without replicas, so that no pods are made, through a life without a new revision."""

    def endpoint(**more: Any) -> EndpointRef:
        return subject({"cache": {"size": "1Gi"}, "replicas": 0, **more}, namespace=namespace)

    async def settle(wanted: EndpointRef) -> list[str]:
        """Write what has to be written, and say what that was. A second time, there is nothing."""
        written = []
        for part in desired_objects(wanted, 1, GGUF, ALL):
            key = ObjectKey(namespace, part.name)
            seen = await client.get(part.resource, key)
            if not same(part, seen):
                written.append(part.resource.kind)
                seen = await client.apply(part.resource, apply_body(part, seen), force=True)
            assert same(part, seen), part.resource.kind
        return written

    async def template() -> Json:
        [deployment] = [
            each for each in desired_objects(endpoint(), 1, GGUF, ALL) if each.resource.kind == "Deployment"
        ]
        found: Json = (await client.get(deployment.resource, ObjectKey(namespace, deployment.name))).get(
            "spec", "template"
        )
        return found

    parts = desired_objects(endpoint(), 1, GGUF, ALL)
    for part in parts:
        await client.create(part.resource, part.body, namespace=namespace)
    made_of = await template()
    assert await settle(endpoint()) == []

    assert await settle(endpoint(deletion={"drainSeconds": 90})) == [], "another drain time is for the next revision"

    # An autoscaler has the last word, as soon as there is one.
    scales = endpoint(autoscaling={"min": 1, "max": 3})
    [scaled] = [each for each in desired_objects(scales, 1, GGUF, ALL) if each.resource.kind == "Deployment"]
    key = ObjectKey(namespace, scaled.name)
    seen = await client.apply(scaled.resource, apply_body(scaled, await client.get(scaled.resource, key)), force=True)
    assert same(scaled, seen)
    assert seen.get("spec", "replicas") == 0
    assert await settle(endpoint()) == []

    await client.patch(scaled.resource, key, merge_patch({"spec": {"progressDeadlineSeconds": 7}}))
    assert await settle(endpoint()) == ["Deployment"], "somebody else changed it"
    assert await template() == made_of

    body = apply_body(scaled, seen)
    body["metadata"]["uid"] = "00000000-0000-4000-8000-000000000000"
    with pytest.raises(Foreign):
        await client.apply(scaled.resource, body, force=True)
