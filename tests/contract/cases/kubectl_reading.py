"""The real kubectl: what people type, what they see. Here: get, describe, explain, api-resources, auth."""

from __future__ import annotations

from tests.contract.case import Theme
from tests.contract.cases.discovering import AGGREGATED
from tests.contract.kit import Kit
from tests.contract.kubectl import kubectl
from tests.contract.objects import (
    CM,
    DEPLOYMENTS,
    INT,
    LEASES,
    Kind,
    cm,
    deployment,
    lease,
    obj,
    props,
    secret,
    service,
    with_pod,
)

theme = Theme("kubectl")


@theme.case()
async def get(kit: Kit) -> None:
    await kit.quiet.create(LEASES, lease("a", holderIdentity="me"))
    await kit.quiet.create(LEASES, lease("b"))
    await kubectl(kit, "get", "leases")
    await kubectl(kit, "get", "lease", "a", "--no-headers")
    await kubectl(kit, "get", "leases", "-o", "name")
    await kubectl(kit, "get", "lease", "none")
    await kubectl(kit, "get", "leases", "-l", "x=y")


@theme.case()
async def get_wide(kit: Kit) -> None:
    await with_pod(kit, "p", nodeName="far")
    await kit.quiet.create(DEPLOYMENTS, deployment("d", replicas=2))
    await kit.quiet.create("services", service("s", clusterIP="None"))
    for kind in ("pods", "deployments", "services"):
        await kubectl(kit, "get", kind, "-o", "wide")
    await kubectl(kit, "get", "deployments,services")


@theme.case()
async def get_yaml(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a", {"text": "one\ntwo\n", "n": "1"}, labels={"x": "y"}))
    await kubectl(kit, "get", "configmap", "a", "-o", "yaml")
    await kubectl(kit, "get", "cm", "a", "-o", "yaml", "--show-managed-fields")


@theme.case()
async def get_json_and_paths(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a", {"n": "1"}))
    await kubectl(kit, "get", "cm", "a", "-o", "json")
    await kubectl(kit, "get", "cm", "a", "-o", "jsonpath={.data.n}")
    await kubectl(kit, "get", "cm", "a", "-o", "custom-columns=NAME:.metadata.name,N:.data.n")
    await kubectl(
        kit,
        "get",
        "cm",
        "-o",
        "go-template={{range .items}}{{.metadata.name}} {{end}}",
        "--field-selector",
        "metadata.name=a",
    )


@theme.case()
async def get_labels_and_order(kit: Kit) -> None:
    for name, n in (("a", "3"), ("b", "1"), ("c", "2")):
        await kit.quiet.create(CM, cm(name, labels={"n": n, "own": "yes"}))
    await kubectl(kit, "get", "cm", "-l", "own", "--show-labels")
    await kubectl(kit, "get", "cm", "-l", "own", "-L", "n", "--sort-by", ".metadata.labels.n")
    await kubectl(kit, "get", "cm", "-l", "n in (1,2)", "--chunk-size=1", "-o", "name")


@theme.case()
async def get_raw(kit: Kit) -> None:
    await kubectl(kit, "get", "--raw", f"/api/v1/namespaces/{kit.ns}/secrets")
    await kubectl(kit, "get", "--raw", "/nonsense")


@theme.case()
async def get_unknown(kit: Kit) -> None:
    await kubectl(kit, "get", "nonsenses")
    await kubectl(kit, "get", "cm/a", "secret/b")
    await kubectl(kit, "get", "pods", "--field-selector", "spec.nonsense=1")


@theme.case()
async def get_all(kit: Kit) -> None:
    await kit.quiet.create(DEPLOYMENTS, deployment("d"))
    await kit.quiet.create("services", service("s", clusterIP="None"))
    await kubectl(kit, "get", "deploy,svc,rs,sts,jobs,hpa")


@theme.case()
async def describe(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a", {"n": "1"}, labels={"x": "y"}, annotations={"note": "words"}))
    await kubectl(kit, "describe", "cm", "a")
    await kit.quiet.create("secrets", secret("s", {"k": "dg=="}))
    await kubectl(kit, "describe", "secret", "s")
    await kubectl(kit, "describe", "cm", "none")


@theme.case()
async def describe_deployment(kit: Kit) -> None:
    await kit.quiet.create(DEPLOYMENTS, deployment("d", replicas=2))
    await kubectl(kit, "describe", "deployment", "d")


@theme.case()
async def describe_pod_with_events(kit: Kit) -> None:
    made = await with_pod(kit, "p", nodeName="far")
    about = {"kind": "Pod", "name": "p", "namespace": kit.ns, "uid": made["metadata"]["uid"], "apiVersion": "v1"}
    event = obj(
        "v1",
        "Event",
        "e",
        involvedObject=about,
        reason="Tested",
        message="words",
        type="Normal",
        source={"component": "contract"},
        lastTimestamp="2001-02-03T04:05:06Z",
        firstTimestamp="2001-02-03T04:05:06Z",
        count=1,
    )
    await kit.quiet.create("events", event)
    await kubectl(kit, "describe", "pod", "p")


@theme.case()
async def describe_custom(kit: Kit) -> None:
    kind = await Kind(kit, props(n=INT)).served()
    await kit.quiet.create(kind.resource, kind.object("a", {"n": 1}))
    await kubectl(kit, "describe", f"things.{kind.group}", "a")


@theme.case()
async def describe_service_and_namespace(kit: Kit) -> None:
    await kit.quiet.create("services", service("s", clusterIP="None"))
    await kubectl(kit, "describe", "service", "s")
    await kubectl(kit, "describe", "namespace", kit.ns)


@theme.case()
async def explain(kit: Kit) -> None:
    """Only what is there counts here, and not the words of the descriptions."""
    for path in ("deployment", "deployment.spec.replicas", "pod.spec.nonsense", "nonsense"):
        ran = await kubectl(kit, "explain", path, shown=False)
        fields = [
            line.split("\t")[0].strip() for line in ran.out.splitlines() if line.startswith("  ") and "\t" in line
        ]
        heads = [
            line.split() for line in ran.out.splitlines() if line.startswith(("KIND:", "VERSION:", "GROUP:", "FIELD:"))
        ]
        kit.note(path, [ran.code, heads, fields, ran.err])


@theme.case()
async def explain_custom(kit: Kit) -> None:
    kind = await Kind(kit, props(n={"type": "integer", "description": "How many there are."})).served()

    async def published() -> bool:
        index = await kit.quiet.send("GET", "/openapi/v3")
        groups = (await kit.quiet.accepting(AGGREGATED).send("GET", "/apis")).body["items"]
        found = any(group["metadata"]["name"] == kind.group for group in groups)
        return found and f"apis/{kind.group}/v1" in index.body["paths"]

    await kit.until("its kind and its schema are published, each at its own time", published)
    # With the shared cache, it would not discover new kinds.
    own = {"KUBECACHEDIR": str(kit.server.place.cache / "explain-custom")}
    await kubectl(kit, "explain", "things.spec.n", f"--api-version={kind.group}/v1", env=own)


@theme.case(alone=True)
async def api_resources(kit: Kit) -> None:
    wanted = (
        "configmaps",
        "deployments.apps",
        "pods",
        "leases.coordination.k8s.io",
        "customresourcedefinitions.apiextensions.k8s.io",
        "jobs.batch",
        "ingresses.networking.k8s.io",
        "namespaces",
        "events.events.k8s.io",
    )
    ran = await kubectl(kit, "api-resources", "-o", "name", shown=False)
    kit.note("names", [ran.code, sorted(line for line in ran.out.splitlines() if line in wanted)])
    ran = await kubectl(kit, "api-resources", "-o", "wide", "--api-group=apps", shown=False)
    rows = [line.split() for line in ran.out.splitlines()]
    kit.note("apps", [row for row in rows if row[0] in ("NAME", "deployments", "replicasets", "statefulsets")])
    ran = await kubectl(kit, "api-resources", "--namespaced=false", "-o", "name", shown=False)
    kit.note(
        "cluster",
        sorted(
            line
            for line in ran.out.splitlines()
            if line in ("namespaces", "nodes", "clusterroles.rbac.authorization.k8s.io", "pods")
        ),
    )
    ran = await kubectl(kit, "api-versions", shown=False)
    kit.note(
        "versions",
        sorted(
            line
            for line in ran.out.splitlines()
            if line in ("v1", "apps/v1", "batch/v1", "autoscaling/v2", "policy/v1", "events.k8s.io/v1")
        ),
    )


@theme.case()
async def can_i(kit: Kit) -> None:
    await kubectl(kit, "auth", "can-i", "create", "pods")
    await kubectl(kit, "auth", "can-i", "create", "pods", "--as=bob")
    await kubectl(kit, "auth", "can-i", "delete", "nonsenses")
    await kubectl(kit, "create", "role", "reader", "--verb=get,list", "--resource=configmaps,deployments.apps")
    await kubectl(kit, "create", "rolebinding", "reader", "--role=reader", "--user=carol")

    async def counts() -> bool:
        return (await kit.as_user("carol").quiet.list(CM)).status == 200

    await kit.until("carol may read", counts)
    await kubectl(kit, "auth", "can-i", "list", "deployments.apps", "--as=carol")
    await kubectl(kit, "auth", "can-i", "list", "secrets", "--as=carol")
    await kubectl(kit, "--as=carol", "get", "secrets")
    await kubectl(kit, "--as=carol", "auth", "can-i", "--list", "--no-headers", shown=False)
    await kubectl(kit, "auth", "whoami", "--as=carol", "--as-group=crew")


@theme.case()
async def events(kit: Kit) -> None:
    about = {"kind": "Pod", "name": "p", "namespace": kit.ns, "apiVersion": "v1"}
    await kit.quiet.create(
        "events",
        obj(
            "v1",
            "Event",
            "e",
            involvedObject=about,
            reason="Tested",
            message="words",
            type="Warning",
            lastTimestamp="2001-02-03T04:05:06Z",
        ),
    )
    await kubectl(kit, "events")
    await kubectl(kit, "get", "events")
    await kubectl(kit, "events", "--for", "pod/q")
