"""Why nobody answers behind a Service: it is not there, it has no endpoints, what it selects does not run.

Webhooks and aggregated APIs both stand behind one.
"""

from collections.abc import Iterator
from shlex import quote

from pilotage.catalogue.names import SERVICE_NAME
from pilotage.teardown.diagnosis.remedies import LOOK, REPAIR, Remedy, look_at, place
from pilotage.teardown.diagnosis.why.codes import CauseCode
from pilotage.teardown.diagnosis.why.model import StuckCause
from pilotage.teardown.snapshot.fields import condition, counted, entries, labels_at, number, selects_plainly, text
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
