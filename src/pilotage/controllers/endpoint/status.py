"""The status of an endpoint, from its state at the end of a reconcile. Pure."""

import datetime as dt
from collections.abc import Sequence
from typing import NamedTuple

from pilotage.api.endpoint import EndpointSpec
from pilotage.api.names import LABEL_ENDPOINT_UID, LABEL_JOB
from pilotage.catalogue.phase import Phase
from pilotage.controllers.endpoint.problem import EndpointProblem
from pilotage.controllers.endpoint.revisions import Revision, RevisionHistory
from pilotage.controllers.routing import Routed
from pilotage.kube import Json, Object
from pilotage.kube.wire import parse_time
from pilotage.runtime.conditions import clipped, find_condition, set_condition
from pilotage.serving import backend
from pilotage.serving.parts import Readiness
from pilotage.serving.placements.host import HOST_SILENT
from pilotage.serving.workload import NOT_OBSERVED
from pilotage.traffic.routers import ROUTERS, UrlRequest

DELETING = "Deleting"
ATTACHED = tuple(str(each) for each in Phase if each < Phase.DRAIN)
"""Phases of a Teardown in which requests may still arrive."""
RUNNING = tuple(str(each) for each in Phase if each < Phase.STOP)
"""Phases of a Teardown in which all replicas still run."""
SCALING = "Scaling"
"""Reason of `Progressing` while an endpoint gets more replicas, or fewer."""
START_MAX = dt.timedelta(hours=1)
"""Time after which a replica that is still missing counts as missing: the longest that a server has to start."""

CONFLICT_ADVICE = (
    "Clients that use such a name do not reach this endpoint. Choose a name and a host that no other route has, or "
    "wait until they are free. status.url reaches this endpoint."
)


class Situation(NamedTuple):
    """State of an endpoint at the end of a reconcile."""

    wanted: Revision | None = None
    serving: Revision | None = None
    wanted_ready: Readiness | None = None
    serving_ready: Readiness | None = None
    routed: Routed | None = None
    """None where there is no route, or it was not observed."""
    problem: EndpointProblem | None = None
    waiting_for: str = ""
    replacing: int = 0
    """Number of unfinished Teardowns of former parts."""
    gateway_url: str = ""
    """URL of Pilotage's own gateway, for clients."""
    served: bool = False
    """Whether a revision serves, or has served."""
    scaling: bool = False
    """Whether replicas are missing because the endpoint was scaled."""

    @property
    def failure(self) -> EndpointProblem | None:
        """The reason why waiting does not bring the endpoint to what its spec asks for."""
        if self.problem is not None and not self.problem.waits:
            return self.problem
        ready = self.wanted_ready
        return EndpointProblem(ready.reason, ready.message) if ready is not None and ready.failed else None

    @property
    def recreates(self) -> bool:
        """Whether the revision that served is torn down before the wanted one is made."""
        wanted, serving = self.wanted, self.serving
        if wanted is None or serving is None or wanted.number == serving.number:
            return False
        return wanted.subject.spec.strategy.type == "Recreate"

    @property
    def lacks_replicas(self) -> bool:
        """Whether replicas are missing that should be there."""
        ready = self.serving_ready
        missing = ready is not None and ready.desired > 0 and not ready.available
        return self.serving is not None and missing and not self.scaling and not self.recreates


def next_status(
    obj: Object,
    old: Json,
    spec: EndpointSpec,
    situation: Situation,
    history: RevisionHistory,
    ledger: Sequence[Json],
    now: dt.datetime,
) -> Json:
    """The whole status as it should be; `old` is the present one."""
    situation = situation._replace(scaling=_scales(old, situation.serving_ready, now))
    shown = situation.serving_ready or situation.wanted_ready
    serving, wanted = situation.serving, situation.wanted
    placed = serving or wanted
    conditions: list[Json] = list(old.get("conditions", []))
    for type_, holds, reason, message in _conditions(obj, situation):
        changed = set_condition(
            conditions, type_, status=holds, reason=reason, message=message, generation=obj.meta.generation, now=now
        )
        conditions = conditions if changed is None else changed
    if spec.route.kind == "None":
        conditions = [each for each in conditions if each["type"] != "RouteProgrammed"]
    ready, desired = (shown.ready, shown.desired) if shown else (0, 0)
    status: Json = {
        "phase": phase(situation),
        "observedGeneration": obj.meta.generation,
        "conditions": conditions,
        "url": url(spec, obj, serving, situation) if serving is not None else None,
        "revision": f"{obj.meta.name}-{serving.number}" if serving is not None else None,
        "routeKind": spec.route.kind,
        "placement": placed.subject.spec.placement.kind if placed is not None else spec.placement.kind,
        "replicas": {"ready": ready, "desired": desired},
        "ready": f"{ready}/{desired}",
        "selector": f"{LABEL_ENDPOINT_UID}={obj.meta.uid},!{LABEL_JOB}",
        "waitingFor": clipped(situation.waiting_for) or None,
        "ledger": list(ledger),
        **history.written(),
        "teardown": None,
    }
    return {name: value for name, value in status.items() if value is not None}


def leaving_status(obj: Object, old: Json, record: str, teardown: Json, running: int, now: dt.datetime) -> Json:
    """The changes to the status of an endpoint that is being deleted: `teardown` is the status of its Teardown.

    `running`: number of its pods and processes that do not terminate yet.
    """
    waiting = clipped(teardown.get("waitingFor") or "")
    conditions: list[Json] = list(old.get("conditions", []))
    for type_, holds, reason, message in _leaving(conditions, teardown, waiting):
        changed = set_condition(
            conditions, type_, status=holds, reason=reason, message=message, generation=obj.meta.generation, now=now
        )
        conditions = conditions if changed is None else changed
    status: Json = {
        "phase": DELETING,
        "conditions": conditions,
        "waitingFor": waiting or None,
        "teardown": {
            "name": record,
            "phase": teardown.get("phase") or "",
            "left": teardown.get("left"),
            "waits": teardown.get("waits") or [],
        },
    }
    if teardown.get("phase") and teardown["phase"] not in RUNNING:
        ready = min(old.get("replicas", {}).get("ready", 0), running)
        status |= {"replicas": {"ready": ready, "desired": 0}, "ready": f"{ready}/0"}
    return status


def _leaving(conditions: Sequence[Json], teardown: Json, waiting: str) -> list[tuple[str, bool | None, str, str]]:
    """The conditions of an endpoint that is being deleted. Availability changes once its teardown has begun."""
    said = {each["type"]: each for each in teardown.get("conditions", [])}
    blocked = said.get("Blocked", {})
    stuck = blocked.get("status") == "True"
    step = teardown.get("phase") or ""
    draining = step in (str(Phase.DETACH), str(Phase.DRAIN))
    drained = "Drained" if step not in ("", *ATTACHED) else "NotBegun"
    found: list[tuple[str, bool | None, str, str]] = [
        ("Deleting", True, blocked["reason"] if stuck else "InOrder", waiting or "Parts are torn down in order."),
        ("Draining", draining, "RequestsEnd" if draining else drained, waiting if draining else ""),
        (
            "Degraded",
            stuck,
            "DeletionBlocked" if stuck else "AsExpected",
            blocked.get("message", "") if stuck else "",
        ),
        ("Progressing", False, "Deleting", "The endpoint is being deleted."),
    ]
    if not step:
        return found
    before = {each["type"]: each["status"] for each in conditions}
    attached = step in ATTACHED
    if not attached or before.get("Available") != "False":
        detaching = "The endpoint is being taken out of traffic."
        text = detaching if attached else "The endpoint is being deleted and receives no more requests."
        found.append(("Available", None if attached else False, "Deleting", text))
    if "RouteProgrammed" in before:
        text = "The route is being removed; requests may still arrive." if attached else "The route is removed."
        found.append(("RouteProgrammed", None if attached else False, "Detaching" if attached else "Detached", text))
    return found


def phase(situation: Situation) -> str:
    """The phase: one word for the conditions together."""
    wanted, serving, ready = situation.wanted, situation.serving, situation.serving_ready
    if serving is None:
        if situation.failure is not None:
            return "Failed"
        return "Pending" if wanted is None else "Redeploying" if situation.served else "Deploying"
    if situation.failure is not None:
        return "Degraded"
    if situation.recreates:
        return "Redeploying"
    if situation.lacks_replicas:
        return "Unknown" if ready is not None and ready.unknown else "Degraded"
    if wanted is not None and wanted.number != serving.number:
        return "Redeploying"
    if _conflict(situation):
        return "Degraded"
    if ready is not None and not ready.desired:
        return "ScaledToZero"
    return "Deploying" if ready is not None and not ready.ready else "Serving"


def _conditions(obj: Object, situation: Situation) -> list[tuple[str, bool | None, str, str]]:
    return [_available(situation), _progressing(obj, situation), _degraded(situation), *_route(situation)]


def _available(situation: Situation) -> tuple[str, bool | None, str, str]:
    ready = situation.serving_ready
    if situation.serving is None or ready is None:
        return "Available", False, "NotServing", "No revision is serving yet."
    if situation.recreates:
        return "Available", False, "Recreating", "The former revision is torn down before the next one starts."
    if not ready.desired:
        return "Available", False, "ScaledToZero", "Scaled to zero replicas, as requested."
    if ready.ready and not ready.available:
        return "Available", True, "SomeReplicasReady", f"{ready.ready} of {ready.desired} replicas are ready."
    return "Available", None if ready.reason == HOST_SILENT else ready.available, ready.reason, ready.message


def _progressing(obj: Object, situation: Situation) -> tuple[str, bool | None, str, str]:
    wanted, serving, ready = situation.wanted, situation.serving, situation.wanted_ready
    if wanted is None:
        return "Progressing", False, "Waiting", situation.waiting_for or "No rollout is in progress."
    name = f"{obj.meta.name}-{wanted.number}"
    if situation.problem is not None and situation.problem.waits:
        return "Progressing", True, situation.problem.reason, situation.problem.message
    if ready is not None and ready.failed:
        return "Progressing", False, ready.reason, f"{ready.message} ({name})"
    if serving is not None and serving.number == wanted.number:
        if situation.scaling and ready is not None:
            return "Progressing", True, SCALING, ready.message
        if situation.replacing:
            return "Progressing", True, "Replacing", situation.waiting_for or "Former parts are being torn down."
        return "Progressing", False, "Arrived", f"{name} is rolled out."
    if situation.recreates:
        return "Progressing", True, "Recreating", situation.waiting_for
    reason = ready.reason if ready is not None and ready.troubled else "RevisionComing"
    return "Progressing", True, reason, situation.waiting_for or f"{name} is starting."


def _degraded(situation: Situation) -> tuple[str, bool | None, str, str]:
    if (failure := situation.failure) is not None:
        return "Degraded", True, failure.reason, f"{failure.message} {_still(situation)}".rstrip()
    serving = situation.serving_ready
    if situation.lacks_replicas and serving is not None:
        return "Degraded", True, serving.reason, serving.message
    if conflict := _conflict(situation):
        return "Degraded", True, "NameConflict", f"{conflict}. {CONFLICT_ADVICE}"
    return "Degraded", False, "AsExpected", ""


def _scales(old: Json, ready: Readiness | None, now: dt.datetime) -> bool:
    """Whether replicas are missing only because the endpoint was scaled, and the time for a start is not over.

    `old`: the status before. Nothing that has served may be missing.
    """
    if ready is None or ready.available or ready.failed or ready.unknown:
        return False
    if not ready.ready and old.get("phase") not in ("ScaledToZero", "Deploying"):
        return False
    if ready.reason == NOT_OBSERVED or old.get("replicas", {}).get("desired") != ready.desired:
        return True
    said = find_condition(old.get("conditions", []), "Progressing") or {}
    if said.get("reason") != SCALING or said.get("status") != "True":
        return False
    return now - parse_time(said["lastTransitionTime"]) < START_MAX


def _conflict(situation: Situation) -> str:
    return situation.routed.conflict if situation.routed is not None else ""


def _still(situation: Situation) -> str:
    if situation.serving is None or situation.recreates:
        return ""
    if situation.wanted is not None and situation.wanted.number == situation.serving.number:
        return ""
    return f"Revision {situation.serving.number} continues to serve."


def _route(situation: Situation) -> list[tuple[str, bool | None, str, str]]:
    routed = situation.routed
    if routed is None:
        return []
    if routed.done:
        reason = "ProvenByProxy" if routed.verified else "AcceptedUnverified"
        return [("RouteProgrammed", True, reason, routed.text)]
    return [("RouteProgrammed", False, routed.reason, routed.text)]


def url(spec: EndpointSpec, obj: Object, serving: Revision, situation: Situation) -> str | None:
    """Base URL for clients; None: unknown."""
    service, port = backend(serving.subject, serving.number)
    request = UrlRequest(
        obj.meta.namespace, obj.meta.name, spec.route, service, port, situation.gateway_url, bool(_conflict(situation))
    )
    router = ROUTERS.get(spec.route.kind)
    return router.url(request) if router is not None else None
