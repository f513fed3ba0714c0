"""The real kubectl: what people type, what they see."""

from __future__ import annotations

import json
from typing import Any

from tests.contract.case import Theme
from tests.contract.cases.deleting import HOLD
from tests.contract.kit import Kit
from tests.contract.kubectl import kubectl
from tests.contract.objects import (
    CM,
    DEPLOYMENTS,
    INT,
    LEASES,
    Kind,
    cm,
    container,
    deployment,
    lease,
    obj,
    owner,
    props,
    secret,
    service,
    with_pod,
    with_service_account,
)

theme = Theme("kubectl")


def file(*objects: Any) -> str:
    """Objects as one file."""
    return "\n---\n".join(json.dumps(each) for each in objects)


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
async def create(kit: Kit) -> None:
    await kubectl(kit, "create", "configmap", "a", "--from-literal=n=1")
    await kubectl(kit, "create", "configmap", "a", "--from-literal=n=1")
    await kubectl(kit, "create", "secret", "generic", "s", "--from-literal=p=word")
    await kubectl(kit, "create", "deployment", "d", "--image=example.com/app:1", "--replicas=2")
    await kubectl(kit, "create", "-f", "-", stdin=file(cm("b"), cm("c")))
    await kubectl(kit, "create", "serviceaccount", "robot")
    await kubectl(kit, "create", "configmap", "x", "--dry-run=server")


@theme.case()
async def create_invalid(kit: Kit) -> None:
    await kubectl(kit, "create", "-f", "-", stdin=file(deployment("a", replicas=-1)))
    await kubectl(kit, "create", "-f", "-", stdin=file(cm("a") | {"nonsense": 1}))
    await kubectl(kit, "create", "-f", "-", "--validate=warn", stdin=file(cm("a") | {"nonsense": 1}))
    await kubectl(kit, "create", "-f", "-", stdin=file(obj("nonsense.example.com/v1", "Nonsense", "a")))
    await kubectl(kit, "create", "-f", "-", stdin="{")


@theme.case()
async def apply(kit: Kit) -> None:
    await kubectl(kit, "apply", "-f", "-", stdin=file(cm("a", {"n": "1"})))
    await kubectl(kit, "apply", "-f", "-", stdin=file(cm("a", {"n": "1"})))
    await kubectl(kit, "apply", "-f", "-", stdin=file(cm("a", {"m": "2"})))
    await kubectl(kit, "get", "cm", "a", "-o", "jsonpath={.data}")
    await kubectl(kit, "diff", "-f", "-", stdin=file(cm("a", {"m": "2"})))


@theme.case()
async def apply_to_what_was_created(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a", {"n": "1"}))
    await kubectl(kit, "apply", "-f", "-", stdin=file(cm("a", {"m": "2"})))
    await kubectl(kit, "get", "cm", "a", "-o", "jsonpath={.data}")


@theme.case()
async def apply_deployment(kit: Kit) -> None:
    await kubectl(kit, "apply", "-f", "-", stdin=file(deployment("d")))
    changed = deployment(
        "d",
        template={
            "metadata": {"labels": {"app": "d"}},
            "spec": {"containers": [container(image="example.com/app:2"), {"name": "side", "image": "i:1"}]},
        },
    )
    await kubectl(kit, "apply", "-f", "-", stdin=file(changed))
    await kubectl(
        kit, "get", "deploy", "d", "-o", "jsonpath={.spec.template.spec.containers[*].image} {.metadata.generation}"
    )
    immutable = deployment("d", selector={"matchLabels": {"app": "d", "more": "x"}})
    await kubectl(kit, "apply", "-f", "-", stdin=file(immutable))


@theme.case()
async def apply_custom(kit: Kit) -> None:
    kind = await Kind(kit, props(n=INT)).served()
    await kubectl(kit, "apply", "-f", "-", stdin=file(kind.object("a", {"n": 1})))
    await kubectl(kit, "apply", "-f", "-", stdin=file(kind.object("a", {"n": 2})))
    await kubectl(kit, "apply", "-f", "-", stdin=file(kind.object("a", {"n": "x"})))
    await kubectl(kit, "get", f"things.{kind.group}", "-o", "jsonpath={.items[*].spec.n}")
    await kubectl(kit, "get", f"things.{kind.group}")


@theme.case()
async def apply_definition_and_object(kit: Kit) -> None:
    kind = Kind(kit, props(n=INT))
    await kubectl(kit, "apply", "-f", "-", stdin=file(kind.definition))
    await kubectl(kit, "wait", "--for=condition=Established", f"crd/{kind.name}", "--timeout=30s")
    await kind.listed("v1")
    await kubectl(kit, "apply", "-f", "-", stdin=file(kind.object("a", {"n": 1})))
    await kubectl(kit, "delete", "crd", kind.name)


@theme.case()
async def apply_server_side(kit: Kit) -> None:
    await kubectl(kit, "apply", "--server-side", "--field-manager=alice", "-f", "-", stdin=file(cm("a", {"n": "1"})))
    await kubectl(kit, "apply", "--server-side", "--field-manager=bob", "-f", "-", stdin=file(cm("a", {"n": "2"})))
    await kubectl(
        kit,
        "apply",
        "--server-side",
        "--field-manager=bob",
        "--force-conflicts",
        "-f",
        "-",
        stdin=file(cm("a", {"n": "2"})),
    )
    await kubectl(kit, "apply", "--server-side", "--field-manager=alice", "-f", "-", stdin=file(cm("a", {"m": "1"})))
    await kubectl(kit, "get", "cm", "a", "-o", "jsonpath={.data}")


@theme.case()
async def apply_server_side_after_client_side(kit: Kit) -> None:
    await kubectl(kit, "apply", "-f", "-", stdin=file(cm("a", {"n": "1"})))
    await kubectl(kit, "apply", "--server-side", "-f", "-", stdin=file(cm("a", {"n": "2"})))
    await kubectl(kit, "get", "cm", "a", "-o", "jsonpath={.data} {.metadata.managedFields[*].manager}")


@theme.case()
async def apply_dry_run(kit: Kit) -> None:
    await kubectl(kit, "apply", "--dry-run=server", "-f", "-", stdin=file(cm("a")))
    await kubectl(kit, "apply", "--server-side", "--dry-run=server", "-f", "-", stdin=file(cm("a")))
    await kubectl(kit, "get", "cm", "a")


@theme.case()
async def apply_prune(kit: Kit) -> None:
    one, two = cm("one", labels={"set": "x"}), cm("two", labels={"set": "x"})
    await kubectl(kit, "apply", "-f", "-", stdin=file(one, two))
    await kubectl(
        kit, "apply", "--prune", "-l", "set=x", "--prune-allowlist=core/v1/ConfigMap", "-f", "-", stdin=file(one)
    )
    await kubectl(kit, "get", "cm", "-l", "set=x", "-o", "name")


@theme.case()
async def replace(kit: Kit) -> None:
    await kubectl(kit, "replace", "-f", "-", stdin=file(cm("a", {"n": "1"})))
    await kit.quiet.create(CM, cm("a", {"n": "1"}))
    await kubectl(kit, "replace", "-f", "-", stdin=file(cm("a", {"n": "2"})))
    await kubectl(kit, "replace", "--force", "-f", "-", stdin=file(cm("a", {"n": "3"})))
    await kubectl(kit, "get", "cm", "a", "-o", "jsonpath={.data}")


@theme.case()
async def patch(kit: Kit) -> None:
    """What `kubectl edit` sends is a patch like these."""
    await kit.quiet.create(CM, cm("a", {"n": "1"}))
    await kubectl(kit, "patch", "cm", "a", "-p", '{"data":{"n":"2"}}')
    await kubectl(kit, "patch", "cm", "a", "-p", '{"data":{"n":"2"}}')
    await kubectl(kit, "patch", "cm", "a", "--type=merge", "-p", '{"data":{"n":null,"m":"1"}}')
    await kubectl(kit, "patch", "cm", "a", "--type=json", "-p", '[{"op":"replace","path":"/data/m","value":"3"}]')
    await kubectl(kit, "patch", "cm", "a", "--type=json", "-p", '[{"op":"test","path":"/data/m","value":"9"}]')
    await kubectl(kit, "patch", "cm", "a", "--type=json", "-p", '[{"op":"remove","path":"/data/absent"}]')
    await kubectl(kit, "patch", "cm", "none", "-p", "{}")
    await kubectl(kit, "get", "cm", "a", "-o", "jsonpath={.data}")


@theme.case()
async def patch_subresource(kit: Kit) -> None:
    await kit.quiet.create(DEPLOYMENTS, deployment("d"))
    await kubectl(
        kit, "patch", "deploy", "d", "--subresource=status", "--type=merge", "-p", '{"status":{"replicas":2}}'
    )
    await kubectl(kit, "get", "deploy", "d", "--subresource=status", "-o", "jsonpath={.status.replicas}")
    await kubectl(kit, "patch", "deploy", "d", "--subresource=scale", "--type=merge", "-p", '{"spec":{"replicas":2}}')


@theme.case()
async def edit(kit: Kit) -> None:
    """The editor is sed."""
    await kit.quiet.create(CM, cm("a", {"n": "before"}))
    env = {"KUBE_EDITOR": "sed -i s/before/after/"}
    await kubectl(kit, "edit", "cm", "a", env=env)
    await kubectl(kit, "get", "cm", "a", "-o", "jsonpath={.data.n}")


@theme.case()
async def label(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a", labels={"x": "1"}))
    await kubectl(kit, "label", "cm", "a", "y=2")
    await kubectl(kit, "label", "cm", "a", "x=3")
    await kubectl(kit, "label", "cm", "a", "x=3", "--overwrite")
    await kubectl(kit, "label", "cm", "a", "y-")
    await kubectl(kit, "label", "cm", "a", "bad=a b")
    await kubectl(kit, "label", "cm", "a", "--list")
    await kubectl(kit, "label", "cm", "none", "y=2")


@theme.case()
async def annotate(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    await kubectl(kit, "annotate", "cm", "a", "note=some words")
    await kubectl(kit, "annotate", "cm", "a", "note=other words")
    await kubectl(kit, "annotate", "cm", "a", "note=other words", "--overwrite")
    await kubectl(kit, "annotate", "cm", "a", "note-")


async def family(kit: Kit) -> None:
    """An owner and its child."""
    made = await kit.quiet.create(CM, cm("owner"))
    body = lease("child")
    body["metadata"]["ownerReferences"] = [owner(made.body, blockOwnerDeletion=True)]
    await kit.quiet.create(LEASES, body)


@theme.case()
async def delete_background(kit: Kit) -> None:
    await family(kit)
    await kubectl(kit, "delete", "cm", "owner", "--cascade=background")
    await kit.until_gone(LEASES, "child")
    await kubectl(kit, "delete", "cm", "owner")


@theme.case()
async def delete_foreground(kit: Kit) -> None:
    await family(kit)
    await kubectl(kit, "delete", "cm", "owner", "--cascade=foreground")
    await kubectl(kit, "get", "cm/owner", "lease/child")


@theme.case()
async def delete_orphan(kit: Kit) -> None:
    await family(kit)
    await kubectl(kit, "delete", "cm", "owner", "--cascade=orphan")
    await kubectl(kit, "get", "lease", "child", "-o", "jsonpath={.metadata.ownerReferences}")


@theme.case()
async def delete_held(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a", finalizers=HOLD))
    await kubectl(kit, "delete", "cm", "a", "--timeout=1s")
    await kubectl(kit, "delete", "cm", "a", "--wait=false")
    await kubectl(kit, "patch", "cm", "a", "-p", '{"metadata":{"finalizers":null}}')
    await kubectl(kit, "get", "cm", "a")


@theme.case()
async def delete_many(kit: Kit) -> None:
    for name in "abc":
        await kit.quiet.create(
            LEASES, lease(name) | {"metadata": {"name": name, "labels": {"l": str(name == "a").lower()}}}
        )
    await kubectl(kit, "delete", "leases", "-l", "l=true")
    await kubectl(kit, "delete", "lease", "b", "none")
    await kubectl(kit, "delete", "lease", "none", "--ignore-not-found")
    await kubectl(kit, "delete", "leases", "--all")
    await kubectl(kit, "delete", "leases", "--all")
    await kubectl(kit, "delete", "-f", "-", stdin=file(cm("x")))


@theme.case()
async def delete_pod(kit: Kit) -> None:
    await with_pod(kit, "p", nodeName="far")
    await kubectl(kit, "delete", "pod", "p", "--wait=false", "--grace-period=5")
    await kubectl(kit, "get", "pod", "p")
    await kubectl(kit, "delete", "pod", "p", "--force", "--grace-period=0")
    await kubectl(kit, "get", "pod", "p")


@theme.case()
async def delete_namespace(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    await kubectl(kit, "delete", "namespace", kit.ns)
    await kubectl(kit, "get", "namespace", kit.ns)
    await kubectl(kit, "create", "configmap", "a")


@theme.case()
async def wait(kit: Kit) -> None:
    await kit.quiet.create(DEPLOYMENTS, deployment("d"))
    await kubectl(kit, "wait", "--for=condition=Available", "deploy/d", "--timeout=1s")
    condition = {
        "type": "Available",
        "status": "True",
        "lastTransitionTime": "2001-02-03T04:05:06Z",
        "lastUpdateTime": "2001-02-03T04:05:06Z",
    }
    await kit.quiet.patch(DEPLOYMENTS, "d", {"status": {"observedGeneration": 1, "conditions": [condition]}}, "status")
    await kubectl(kit, "wait", "--for=condition=Available", "deploy/d", "--timeout=5s")
    await kubectl(kit, "wait", "--for=jsonpath={.spec.replicas}=1", "deploy/d", "--timeout=5s")
    await kubectl(kit, "wait", "--for=delete", "deploy/none", "--timeout=5s")
    await kubectl(kit, "wait", "--for=delete", "deploy/d", "--timeout=1s")
    await kubectl(kit, "wait", "--for=create", "cm/never", "--timeout=1s")


@theme.case()
async def scale(kit: Kit) -> None:
    await kit.quiet.create(DEPLOYMENTS, deployment("d"))
    await kubectl(kit, "scale", "deploy/d", "--replicas=3")
    await kubectl(kit, "scale", "deploy/d", "--replicas=4", "--current-replicas=1")
    await kubectl(kit, "scale", "deploy/none", "--replicas=3")
    await kubectl(kit, "get", "deploy", "d")


@theme.case()
async def rollout(kit: Kit) -> None:
    await kit.quiet.create(DEPLOYMENTS, deployment("d"))
    await kubectl(kit, "rollout", "pause", "deploy/d")
    await kubectl(kit, "rollout", "pause", "deploy/d")
    await kubectl(kit, "rollout", "resume", "deploy/d")
    await kubectl(kit, "set", "image", "deploy/d", "main=example.com/app:9")
    await kubectl(kit, "set", "env", "deploy/d", "A=1")
    await kubectl(kit, "get", "deploy", "d", "-o", "wide")


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
        found = await kit.quiet.send("GET", f"/apis/{kind.group}/v1")
        return found.status == 200 and f"apis/{kind.group}/v1" in index.body["paths"]

    await kit.until("its schema is published", published)
    await kubectl(kit, "get", f"things.{kind.group}", shown=False)  # so that kubectl looks for new kinds
    await kubectl(kit, "explain", "things.spec.n", f"--api-version={kind.group}/v1")


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
async def run(kit: Kit) -> None:
    await with_service_account(kit)
    await kubectl(kit, "run", "p", "--image=example.com/app:1", "--restart=Never", "--labels=a=b", "--port=80")
    await kubectl(
        kit,
        "get",
        "pod",
        "p",
        "-o",
        "jsonpath={.spec.containers[0].ports} {.metadata.labels} {.status.phase} {.status.qosClass}",
    )


@theme.case()
async def expose_and_autoscale(kit: Kit) -> None:
    await kit.quiet.create(DEPLOYMENTS, deployment("d"))
    await kubectl(kit, "expose", "deploy", "d", "--port=80", "--cluster-ip=None")
    await kubectl(kit, "autoscale", "deploy", "d", "--max=5", "--cpu=50%")
    await kubectl(kit, "get", "svc,hpa")


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


@theme.case()
async def nodes(kit: Kit) -> None:
    await kit.quiet.create("/nodes", obj("v1", "Node", "kubectl-node"))
    await kubectl(kit, "cordon", "kubectl-node")
    await kubectl(kit, "get", "node", "kubectl-node", "-o", "jsonpath={.spec}")
    await kubectl(kit, "uncordon", "kubectl-node")
    await kubectl(kit, "taint", "node", "kubectl-node", "k=v:NoSchedule")
    await kubectl(kit, "delete", "node", "kubectl-node")


@theme.case()
async def drain(kit: Kit) -> None:
    await kit.quiet.create("/nodes", obj("v1", "Node", "kubectl-drained"))
    await kubectl(kit, "drain", "kubectl-drained", "--ignore-daemonsets", "--timeout=5s")
    await kit.quiet.delete("/nodes", "kubectl-drained")
