"""Discovery: groups, versions, resources, both ways of asking; health and version; OpenAPI."""

from __future__ import annotations

from typing import Any

from tests.contract.case import Theme
from tests.contract.kit import Kit
from tests.contract.objects import INT, Kind, props

theme = Theme("discover")

GROUPS = (
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "scheduling.k8s.io",
)

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def resources(*names: str) -> Any:
    """Entries of a resource list with these names, and their subresources."""

    def pick(body: Any) -> Any:
        found = [each for each in body["resources"] if each["name"].split("/")[0] in names]
        return body | {"resources": sorted(found, key=lambda each: str(each["name"]))}

    return pick


def lists(name: str, path: str, *names: str) -> None:
    async def run(kit: Kit) -> None:
        await kit.picking(resources(*names)).send("GET", path)

    theme.add(name, run)


lists(
    "core",
    "/api/v1",
    "configmaps",
    "endpoints",
    "events",
    "namespaces",
    "nodes",
    "persistentvolumeclaims",
    "pods",
    "secrets",
    "serviceaccounts",
    "services",
)
lists("apps", "/apis/apps/v1", "deployments", "replicasets", "statefulsets")
lists("batch", "/apis/batch/v1", "jobs")
lists("autoscaling v2", "/apis/autoscaling/v2", "horizontalpodautoscalers")
lists("policy", "/apis/policy/v1", "poddisruptionbudgets")
lists("networking", "/apis/networking.k8s.io/v1", "ingresses", "ipaddresses", "servicecidrs")
lists(
    "storage",
    "/apis/storage.k8s.io/v1",
    "csidrivers",
    "csinodes",
    "csistoragecapacities",
    "storageclasses",
    "volumeattachments",
    "volumeattributesclasses",
)
lists(
    "devices",
    "/apis/resource.k8s.io/v1",
    "deviceclasses",
    "resourceclaims",
    "resourceclaimtemplates",
    "resourceslices",
)
lists("coordination", "/apis/coordination.k8s.io/v1", "leases")
lists("endpoint slices", "/apis/discovery.k8s.io/v1", "endpointslices")
lists("events", "/apis/events.k8s.io/v1", "events")
lists("rbac", "/apis/rbac.authorization.k8s.io/v1", "roles", "rolebindings", "clusterroles", "clusterrolebindings")
lists("scheduling", "/apis/scheduling.k8s.io/v1", "priorityclasses")
lists(
    "admission",
    "/apis/admissionregistration.k8s.io/v1",
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
)
lists("definitions", "/apis/apiextensions.k8s.io/v1", "customresourcedefinitions")
lists("api services", "/apis/apiregistration.k8s.io/v1", "apiservices")
lists(
    "authorization",
    "/apis/authorization.k8s.io/v1",
    "selfsubjectaccessreviews",
    "subjectaccessreviews",
    "localsubjectaccessreviews",
    "selfsubjectrulesreviews",
)
lists("authentication", "/apis/authentication.k8s.io/v1", "tokenreviews", "selfsubjectreviews")

theme.asks("core versions", "GET", "/api")
theme.asks("group unknown", "GET", "/apis/nonsense.example.com/v1")
theme.asks("group", "GET", "/apis/apps")
theme.asks("ready", "GET", "/readyz")
theme.asks("alive", "GET", "/livez")
theme.asks("healthy", "GET", "/healthz")


@theme.case()
async def groups(kit: Kit) -> None:
    def pick(body: Any) -> Any:
        return {
            "kind": body["kind"],
            "apiVersion": body["apiVersion"],
            "groups": sorted(g["name"] for g in body["groups"] if g["name"] in GROUPS),
        }

    await kit.picking(pick).send("GET", "/apis")


@theme.case()
async def preferred_versions(kit: Kit) -> None:
    wanted = ("apps", "batch", "autoscaling", "policy", "rbac.authorization.k8s.io", "apiextensions.k8s.io")
    await kit.picking(lambda b: {g["name"]: g["preferredVersion"] for g in b["groups"] if g["name"] in wanted}).send(
        "GET", "/apis"
    )


@theme.case()
async def aggregated(kit: Kit) -> None:
    def pick(body: Any) -> Any:
        apps = next(item for item in body["items"] if item["metadata"]["name"] == "apps")
        version = apps["versions"][0]
        wanted = ("deployments", "replicasets", "statefulsets")
        return [
            body["kind"],
            body["apiVersion"],
            version["version"],
            version["freshness"],
            sorted((r for r in version["resources"] if r["resource"] in wanted), key=lambda r: str(r["resource"])),
        ]

    await kit.picking(pick).accepting(AGGREGATED).send("GET", "/apis")


@theme.case()
async def aggregated_core(kit: Kit) -> None:
    def pick(body: Any) -> Any:
        (group,) = body["items"]
        (version,) = group["versions"]
        wanted = ("pods", "configmaps", "namespaces")
        return [
            group["metadata"].get("name"),
            version["version"],
            sorted((r for r in version["resources"] if r["resource"] in wanted), key=lambda r: str(r["resource"])),
        ]

    await kit.picking(pick).accepting(AGGREGATED).send("GET", "/api")


@theme.case()
async def aggregated_or_plain(kit: Kit) -> None:
    accept = f"{AGGREGATED},application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
    await kit.picking(lambda b: b["kind"]).accepting(accept).send("GET", "/apis")
    await kit.picking(lambda b: b["kind"]).accepting("application/json").send("GET", "/apis")


@theme.case()
async def server_version(kit: Kit) -> None:
    await kit.picking(lambda b: [b["major"], b["minor"], sorted(b)]).send("GET", "/version")


@theme.case()
async def root(kit: Kit) -> None:
    wanted = ("/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/version", "/readyz", "/openapi/v3")
    await kit.picking(lambda b: [path for path in b["paths"] if path in wanted]).send("GET", "/")


@theme.case()
async def custom_group(kit: Kit) -> None:
    names = {"shortNames": ["tx"], "categories": ["all"]}
    scale = {"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}}
    kind = await Kind(kit, props(n=INT), names=names, subresources=scale).served()

    async def found() -> bool:
        answer = await kit.quiet.send("GET", f"/apis/{kind.group}/v1")
        listed = await kit.quiet.send("GET", "/apis")
        return answer.status == 200 and any(g["name"] == kind.group for g in listed.body["groups"])

    await kit.until("the group is found", found)
    await kit.picking(resources("things")).send("GET", f"/apis/{kind.group}/v1")
    await kit.send("GET", f"/apis/{kind.group}")


@theme.case()
async def custom_versions_in_order(kit: Kit) -> None:
    schema = {"openAPIV3Schema": {"type": "object"}}
    order = ("v1alpha1", "v2", "v1", "v10beta2", "foo", "v1beta1", "v11")
    versions = [{"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in order]
    kind = await Kind(kit, versions=versions).served("v1")

    async def found() -> bool:
        answer = await kit.quiet.send("GET", f"/apis/{kind.group}")
        return answer.status == 200 and len(answer.body["versions"]) == len(order)

    await kit.until("all versions are found", found)
    await kit.send("GET", f"/apis/{kind.group}")


@theme.case()
async def openapi_v3(kit: Kit) -> None:
    wanted = ("api/v1", "apis/apps/v1", "apis/batch/v1", "apis/policy/v1", "version")
    await kit.picking(lambda b: sorted(path for path in b["paths"] if path in wanted)).send("GET", "/openapi/v3")


@theme.case()
async def openapi_v3_of_apps(kit: Kit) -> None:
    def pick(body: Any) -> Any:
        schemas = body["components"]["schemas"]
        spec = schemas["io.k8s.api.apps.v1.DeploymentSpec"]
        kinds = schemas["io.k8s.api.apps.v1.Deployment"]["x-kubernetes-group-version-kind"]
        return [
            body["openapi"],
            kinds,
            sorted(spec["properties"]),
            spec["required"],
            {n: spec["properties"][n].get("type") for n in ("replicas", "paused")},
        ]

    await kit.picking(pick).send("GET", "/openapi/v3/apis/apps/v1")


@theme.case()
async def openapi_v3_of_a_custom_group(kit: Kit) -> None:
    kind = await Kind(kit, props(n={"type": "integer", "description": "how many"})).served()
    path = f"/openapi/v3/apis/{kind.group}/v1"

    async def there() -> bool:
        return (await kit.quiet.send("GET", path)).status == 200

    await kit.until("its schema is published", there)

    def pick(body: Any) -> Any:
        (schema,) = [
            s
            for s in body["components"]["schemas"].values()
            if any(g["kind"] == "Thing" for g in s.get("x-kubernetes-group-version-kind", ()))
        ]
        return [schema["x-kubernetes-group-version-kind"], schema["properties"]["spec"], sorted(schema["properties"])]

    await kit.picking(pick).send("GET", path)


@theme.case()
async def openapi_v3_of_an_unknown_group(kit: Kit) -> None:
    await kit.send("GET", "/openapi/v3/apis/nonsense.example.com/v1")
