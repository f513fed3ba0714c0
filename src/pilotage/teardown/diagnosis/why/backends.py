"""Why nobody answers: behind a Service, as webhooks and aggregated APIs are, or on a node, whose kubelet must confirm.

Apart from the families: whoever predicts what will stand in the way asks this as well, and needs no more of them.
"""

from collections.abc import Iterator
from shlex import quote

from pilotage.catalogue.names import SERVICE_NAME
from pilotage.kube import Json
from pilotage.teardown.diagnosis.remedies import LOOK, REPAIR, Remedy, look_at, place
from pilotage.teardown.diagnosis.why.codes import CauseCode
from pilotage.teardown.diagnosis.why.model import StuckCause
from pilotage.teardown.snapshot.fields import (
    condition,
    counted,
    entries,
    labels_at,
    number,
    selects_plainly,
    since,
    text,
)
from pilotage.teardown.snapshot.world import Item, Name, World

_WORKLOADS = (("apps", "Deployment"), ("apps", "StatefulSet"), ("apps", "DaemonSet"))


def behind(world: World, service: Name) -> StuckCause | None:
    """Failure behind this Service, as a chain; None where none is visible."""
    item = world.find("", "Service", service.namespace, service.name)
    if item is None:
        if world.problem("", "Service", service.namespace):
            return None
        return _service_missing(world, service)
    body = world.body(item)
    if body is None or text(body, "spec", "type") == "ExternalName" or has_endpoints(world, item) is not False:
        return None
    selector = labels_at(body, "spec", "selector")
    workloads = list(_selected(world, service.namespace, selector))
    because = tuple(cause for workload in workloads if (cause := not_running(world, workload)))
    evidence = [f"no EndpointSlice of service/{service.name} has a ready address"]
    if selector and not workloads and not _pods(world, service.namespace, selector):
        evidence.append("no pod, Deployment, StatefulSet or DaemonSet matches its selector")
    return StuckCause(
        CauseCode.SERVICE_WITHOUT_ENDPOINTS,
        item,
        "has no ready endpoints: nothing answers there",
        tuple(evidence),
        because=because,
        remedies=() if because else (_look(service, "Find out why the Service has no endpoints"),),
    )


def has_endpoints(world: World, service: Item) -> bool | None:
    """Whether an endpoint of this Service is ready; None where that cannot be seen."""
    namespace = service.meta.namespace
    if world.problem("discovery.k8s.io", "EndpointSlice", namespace):
        return None
    known = True
    for piece in world.of("discovery.k8s.io", "EndpointSlice", namespace):
        if piece.meta.labels.get(SERVICE_NAME) != service.meta.name:
            continue
        body = world.body(piece)
        known = known and body is not None
        for endpoint in entries(body, "endpoints"):
            conditions = endpoint.get("conditions")
            if not isinstance(conditions, dict) or conditions.get("ready") is not False:
                return True
    return False if known else None


def not_running(world: World, workload: Item) -> StuckCause | None:
    """Why a workload has nobody who could answer; None where it has, or that cannot be seen."""
    body = world.body(workload)
    if body is None:
        return None
    daemons = workload.resource.kind == "DaemonSet"
    wanted = (
        number(body, "status", "desiredNumberScheduled") if daemons else number(body, "spec", "replicas", default=1)
    )
    if number(body, "status", "numberAvailable" if daemons else "availableReplicas"):
        return None
    evidence = []
    failing = condition(body, "Available") or condition(body, "Progressing")
    if text(failing, "message"):
        evidence.append(text(failing, "message"))
    pods = _pods(world, workload.meta.namespace, labels_at(body, "spec", "selector", "matchLabels"))
    evidence += [f"{pod}: {trouble}" for pod in pods[:3] if (trouble := _pod_trouble(world, pod))]
    mends = "It answers again, and what waits goes on by itself. Nothing leaks."
    if wanted == 0:
        said = "is scaled to 0: nothing of it runs"
        command = f"kubectl scale {place(workload)} --replicas=1"
        remedy = Remedy("Scale it up again", command, mends, REPAIR, workload)
    else:
        said = f"is NOT RUNNING: 0 of {counted(wanted, 'replica')} available"
        remedy = look_at(workload, f"Bring {workload} back", mends)
    return StuckCause(
        CauseCode.WORKLOAD_NOT_RUNNING,
        workload,
        said,
        tuple(evidence),
        remedies=(remedy,),
        since=text(failing, "lastTransitionTime"),
    )


def _service_missing(world: World, service: Name) -> StuckCause:
    namespace = world.find("", "Namespace", "", service.namespace)
    gone = namespace is None and not world.problem("", "Namespace")
    return StuckCause(
        CauseCode.SERVICE_MISSING,
        service,
        "does not exist, so nothing answers there",
        (f"the namespace {service.namespace} does not exist either",) if gone else (),
        remedies=(_look(service, "Reinstall the program that the Service belongs to, if it is still needed"),),
    )


def _look(service: Name, title: str) -> Remedy:
    return Remedy(
        title,
        f"kubectl -n {quote(service.namespace)} get service,endpointslices,deployments,pods",
        "Once it answers, what waits goes on by itself. Nothing leaks.",
        LOOK,
        service,
    )


def _selected(world: World, namespace: str, selector: dict[str, str]) -> Iterator[Item]:
    """The workloads whose pods a Service selects."""
    for group, kind in _WORKLOADS:
        for workload in world.of(group, kind, namespace):
            template = labels_at(world.body(workload), "spec", "template", "metadata", "labels")
            if selects_plainly(selector, template):
                yield workload


def _pods(world: World, namespace: str, selector: dict[str, str]) -> list[Item]:
    return [pod for pod in world.of("", "Pod", namespace) if selects_plainly(selector, pod.meta.labels)]


def _pod_trouble(world: World, pod: Item) -> str:
    """Waiting reasons of its containers, in the kubelet's words."""
    body = world.body(pod)
    for status in entries(body, "status", "initContainerStatuses") + entries(body, "status", "containerStatuses"):
        if reason := text(status, "state", "waiting", "reason"):
            return ": ".join(filter(None, (reason, text(status, "state", "waiting", "message"))))
    scheduled = condition(body, "PodScheduled")
    return text(scheduled, "message") if scheduled.get("status") == "False" else ""


def lost_node(world: World, name: str) -> StuckCause | None:
    """Why nobody on this node can confirm anything; None where its kubelet is heard of, or nothing is known."""
    if not name:
        return None
    node = world.find("", "Node", "", name)
    if node is None:
        if world.problem("", "Node"):
            return None
        return StuckCause(
            CauseCode.NODE_GONE,
            Name("", "Node", "", name),
            "does not exist any more: no kubelet will ever confirm anything for it",
            (f"no Node {name} is there",),
        )
    ready = condition(world.body(node), "Ready")
    if text(ready, "status") != "Unknown":
        return None
    return _node_cause(world, node, ready, CauseCode.NODE_LOST, "is LOST: its kubelet has stopped reporting")


def unready_node(world: World, name: str) -> StuckCause | None:
    """A node whose kubelet reports, and says that it is not well: the container runtime may be down."""
    node = world.find("", "Node", "", name)
    ready = condition(world.body(node), "Ready") if node else {}
    if node is None or text(ready, "status") != "False":
        return None
    return _node_cause(world, node, ready, CauseCode.NODE_NOT_READY, "is NOT READY: its kubelet reports trouble")


def _node_cause(world: World, node: Item, ready: Json, code: CauseCode, said: str) -> StuckCause:
    words = ": ".join(filter(None, (text(ready, "reason"), text(ready, "message"))))
    changed = text(ready, "lastTransitionTime")
    evidence = [f"Ready is {text(ready, 'status')}{since(world, changed)} ({words})"]
    if heard := text(ready, "lastHeartbeatTime"):
        evidence.append(f"it last reported at {heard}")
    mend = look_at(node, f"Bring {node} back", "Its kubelet then stops the pods and confirms it. Nothing leaks.")
    return StuckCause(code, node, said, tuple(evidence), remedies=(mend,), since=changed)
