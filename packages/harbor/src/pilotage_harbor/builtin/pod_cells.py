"""The columns of Pods: what `kubectl get pods` says about one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pilotage_harbor.builtin.cells import at, text
from pilotage_harbor.kinds import TableColumn
from pilotage_harbor.kinds.table import AGE, NAME, since

if TYPE_CHECKING:
    from pilotage_harbor.kinds import Json


class Summary(NamedTuple):
    """Summary of the statuses of all containers of a Pod."""

    ready: int
    total: int
    reason: str
    restarts: int
    last_restart: str


def summary(pod: Json) -> Summary:
    """Ready containers of how many, the one word for its state, and how often it was restarted."""
    spec, status = pod["spec"], pod.get("status", {})
    reason = status.get("reason") or status.get("phase", "")
    conditions = {each.get("type"): each for each in status.get("conditions", ())}
    if conditions.get("PodScheduled", {}).get("reason") == "SchedulingGated":
        reason = "SchedulingGated"
    sidecars = {each["name"] for each in spec.get("initContainers", ()) if each.get("restartPolicy") == "Always"}
    total = len(spec.get("containers") or ()) + len(sidecars)
    ready, init_reason, restarts, last = _init(status, spec, sidecars)
    initialized = conditions.get("Initialized", {}).get("status") == "True"
    if init_reason is None or initialized:
        own = [each for each in status.get("initContainerStatuses", ()) if each.get("name") in sidecars]
        restarts, last = sum(each.get("restartCount", 0) for each in own), _last_restart(own)
        running, reason = _running(status, init_reason or reason, conditions)
        ready += running
        containers = status.get("containerStatuses", ())
        restarts += sum(each.get("restartCount", 0) for each in containers)
        last = max(last, _last_restart(containers))
    else:
        reason = init_reason
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            reason = "Unknown"
        elif status.get("phase") not in ("Succeeded", "Failed"):
            reason = "Terminating"
    return Summary(ready, total, reason, restarts, last)


def _init(status: Json, spec: Json, sidecars: set[str]) -> tuple[int, str | None, int, str]:
    """Init containers: the ready ones, why they hold the pod up (None if they do not), restarts and the last one."""
    ready, restarts = 0, 0
    seen: list[Json] = []
    for index, each in enumerate(status.get("initContainerStatuses", ())):
        seen.append(each)
        restarts += each.get("restartCount", 0)
        state = each.get("state", {})
        ended, waiting = state.get("terminated"), state.get("waiting")
        if ended is not None and not ended.get("exitCode"):
            continue
        if each.get("name") in sidecars and each.get("started"):
            ready += bool(each.get("ready"))
            continue
        if ended is not None:
            return ready, f"Init:{_ended(ended)}", restarts, _last_restart(seen)
        if waiting and waiting.get("reason") and waiting["reason"] != "PodInitializing":
            return ready, f"Init:{waiting['reason']}", restarts, _last_restart(seen)
        return ready, f"Init:{index}/{len(spec.get('initContainers', ()))}", restarts, _last_restart(seen)
    return ready, None, restarts, _last_restart(seen)


def _running(status: Json, reason: str, conditions: dict[Any, Json]) -> tuple[int, str]:
    ready, error = 0, ""
    for each in reversed(status.get("containerStatuses", ())):
        state = each.get("state", {})
        ended, waiting = state.get("terminated"), state.get("waiting")
        if waiting is not None and waiting.get("reason"):
            reason = waiting["reason"]
        elif ended is not None:
            reason = _ended(ended)
            if ended.get("exitCode"):
                error = reason
        elif each.get("ready") and state.get("running") is not None:
            ready += 1
    if reason == "Completed":
        if ready and conditions.get("Ready", {}).get("status") == "True":
            reason = "Running"
        elif error:
            reason = error
        elif ready:
            reason = "NotReady"
    return ready, reason


def _ended(ended: Json) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _last_restart(statuses: Any) -> str:  # noqa: ANN401 - JSON
    times = [(each.get("lastState", {}).get("terminated") or {}).get("finishedAt") or "" for each in statuses]
    return max(times, default="")


def _restarts(pod: Json, now: float) -> str:
    found = summary(pod)
    if found.restarts and found.last_restart:
        return f"{found.restarts} ({since(found.last_restart, now)} ago)"
    return str(found.restarts)


def _ready(pod: Json) -> str:
    found = summary(pod)
    return f"{found.ready}/{found.total}"


def _ip(pod: Json) -> str:
    addresses = pod.get("status", {}).get("podIPs") or [{}]
    return addresses[0].get("ip") or "<none>"


def _gates(pod: Json) -> str:
    gates = pod["spec"].get("readinessGates")
    if not gates:
        return "<none>"
    true = {each["type"] for each in pod.get("status", {}).get("conditions", ()) if each.get("status") == "True"}
    return f"{sum(gate['conditionType'] in true for gate in gates)}/{len(gates)}"


POD_COLUMNS = (
    NAME,
    text("Ready", _ready),
    text("Status", lambda pod: summary(pod).reason),
    TableColumn("Restarts", "string", _restarts),
    AGE,
    text("IP", _ip, wide=True),
    text("Node", at("spec", "nodeName", default="<none>"), wide=True),
    text("Nominated Node", at("status", "nominatedNodeName", default="<none>"), wide=True),
    text("Readiness Gates", _gates, wide=True),
)
