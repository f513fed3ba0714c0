"""The real kubectl: create, apply, patch, edit, label, delete with each cascade, wait, scale, drain."""

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
    with_pod,
    with_service_account,
)

theme = Theme("kubectl")


def file(*objects: Any) -> str:
    """Objects as one file."""
    return "\n---\n".join(json.dumps(each) for each in objects)


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
    await kind.established()  # before that kubectl may meet conditions that are null, and give up
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
    """Patches such as `kubectl edit` sends."""
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
