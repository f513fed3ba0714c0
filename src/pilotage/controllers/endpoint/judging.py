"""The Job that judges the candidate in a step of a rollout: its manifest, and its answer. Pure.

- Its pod is no server: its label for the revision is another one, so that no Service, Deployment or count has it.
- Exit code 0 passes, 1 is worse. Everything else holds the rollout: a program that crashed, or was evicted, or could
  not be started has judged nothing.
- A Job is never changed. Deleted while its step lasts, it is created anew.
"""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from pilotage.api.base import seconds_of
from pilotage.api.endpoint import EndpointSpec
from pilotage.api.names import GATEWAY_ROUTES, LABEL_REVISION
from pilotage.api.strategy import CanaryJob
from pilotage.controllers.endpoint.canary import ALL_STEPS, StepAnswer
from pilotage.controllers.endpoint.problem import EndpointProblem
from pilotage.controllers.endpoint.revisions import Revision, RevisionHistory
from pilotage.kube import Json, Object
from pilotage.kube.wire import parse_time
from pilotage.serving.manifests import manifest
from pilotage.serving.parts import DesiredObject, labels
from pilotage.serving.pod_problems import last_words, problems_of
from pilotage.serving.resources import JOBS
from pilotage.traffic.routers import ROUTERS

CONTAINER = "evaluation"
WORSE_CODE = 1
STARTS_SECONDS = 10.0
"""Age of a Job from which on its pod is asked why it does not run."""
POD_SECONDS = 15.0
"""Pause between two such questions."""
GRACE_SECONDS = 60.0
"""Time after its deadline within which the Job controller has to end a Job."""
WAY_OUT = "Promote the step, abort the rollout, or delete the Job: then it is created anew."


class JobResult(NamedTuple):
    """Result of a look at the Job of a step."""

    answer: StepAnswer | None = None
    """None: it has not ended."""
    again: float | None = None
    """Seconds until the next look, if nothing wakes the controller before."""


class StepJob(NamedTuple):
    """The Job of the step that a rollout is in."""

    number: int
    spec: CanaryJob
    candidate: Revision
    serving: Revision

    @property
    def name(self) -> str:
        """Its name."""
        return f"{self.candidate.name}-step{self.number}"

    @property
    def pod_label(self) -> str:
        """The label of its pod, in the place of that of a revision."""
        return f"{self.candidate.number}-step{self.number}"

    def manifest(self, gateway_url: str) -> DesiredObject:
        """The Job. `gateway_url`: URL of Pilotage's own gateway; empty: it is not known."""
        endpoint = self.candidate.subject
        spec = {
            "backoffLimit": 0,
            "activeDeadlineSeconds": max(1, seconds_of(self.spec.at_most)),
            "template": {
                "metadata": {"labels": labels(endpoint) | {LABEL_REVISION: self.pod_label}},
                "spec": {
                    "containers": [self._container(gateway_url)],
                    "restartPolicy": "Never",
                    "automountServiceAccountToken": False,
                    "enableServiceLinks": False,
                    "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
                },
            },
        }
        return manifest(JOBS, endpoint, self.name, self.candidate.number, spec)

    def _container(self, gateway_url: str) -> Json:
        sides = {"CANDIDATE_URL": self.candidate, "SERVING_URL": self.serving}
        env = {name: _url(each, gateway_url) for name, each in sides.items()}
        env |= {each.name: each.value for each in self.spec.env}  # one of the user's replaces one of ours
        optional = {"command": self.spec.command, "args": self.spec.args}
        return {
            "name": CONTAINER,
            "image": self.spec.image,
            **{name: value for name, value in optional.items() if value},
            "env": [{"name": name, "value": value} for name, value in env.items()],
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "securityContext": {"allowPrivilegeEscalation": False},
        }


def step_job(history: RevisionHistory, spec: EndpointSpec) -> StepJob | None:
    """The Job of the step that the rollout is in; None: that is another step, or there is no rollout."""
    state, canary = history.under_way, spec.strategy.canary
    if state is None or canary is None or not 0 < state.step <= len(canary.steps):
        return None
    job, candidate, serving = canary.steps[state.step - 1].job, history.wanted, history.serving
    if job is None or state.phase not in ("Judging", "Held") or state.passed == ALL_STEPS:
        return None
    return StepJob(state.step, job, candidate, serving) if candidate is not None and serving is not None else None


def _url(revision: Revision, gateway_url: str) -> str:
    """URL of one revision: its path of the gateway, where pods reach that; else its Service."""
    subject, backend = revision.subject, revision.backend
    router = ROUTERS.get(subject.spec.route.kind)
    has_path = router is not None and router.resource == GATEWAY_ROUTES and backend.service == revision.name
    if has_path and gateway_url and not _is_loopback(gateway_url):
        return f"{gateway_url.rstrip('/')}/endpoints/{subject.namespace}/{subject.name}@{revision.number}/v1"
    return f"http://{backend.service}.{subject.namespace}.svc:{backend.port}/v1"


def _is_loopback(url: str) -> bool:
    """Whether a URL leads each pod to itself."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# The answer


def not_made(number: int, problem: EndpointProblem) -> JobResult:
    """The result while the Job cannot be created."""
    if problem.waits:
        return JobResult(None, problem.retry_after)
    return JobResult(StepAnswer(number, "Held", f"The Job cannot be created: {problem.message}"), problem.retry_after)


def needs_pods(job: Object, now: dt.datetime) -> bool:
    """Whether its pods have to be listed for an answer."""
    if _condition(job, "Failed") is not None:
        return True
    return _condition(job, "Complete") is None and not _runs(job) and _age(job, now) >= STARTS_SECONDS


def judged(number: int, job: Object, pods: Sequence[Object], now: dt.datetime) -> JobResult:
    """The result of a look at a Job and, where `needs_pods` says so, its pods."""
    name = f"job/{job.meta.name}"
    mine = [pod for pod in pods if any(owner.uid == job.meta.uid for owner in pod.meta.owner_references)]
    if _condition(job, "Complete") is not None:
        return JobResult(StepAnswer(number, "Passed", f"{name} succeeded."))
    if (failed := _condition(job, "Failed")) is not None:
        result, why = _failed(failed, mine)
        text = f"{name}: {why}" if result == "Worse" else f"{name} gives no answer: {why}. {WAY_OUT}"
        return JobResult(StepAnswer(number, result, text))
    left = float(job.get("spec", "activeDeadlineSeconds", default=0)) + GRACE_SECONDS - _age(job, now)
    if left <= 0:
        text = f"{name} is over its time, and has not been ended: does kube-controller-manager run? {WAY_OUT}"
        return JobResult(StepAnswer(number, "Held", text), POD_SECONDS)
    hopeless = [each for pod in mine for each in problems_of(pod) if each.failed]
    if hopeless:
        text = f"{name} cannot start: {hopeless[0].message.rstrip('. ')} ({hopeless[0].where}). {WAY_OUT}"
        return JobResult(StepAnswer(number, "Held", text), POD_SECONDS)
    return JobResult(None, left if _runs(job) else POD_SECONDS)


def _failed(condition: Json, pods: Sequence[Object]) -> tuple[str, str]:
    """The result of a Job that has failed, and why. Only an exit of its own accord tells something."""
    if condition.get("reason") == "DeadlineExceeded":
        return "Held", "it was over its time"
    for pod in pods:
        if interrupted := _interrupted(pod):
            return "Held", f"pod/{pod.meta.name} was interrupted ({interrupted})"
        if (ended := _ended(pod)) is not None:
            code, said = ended.get("exitCode"), last_words(ended)
            return "Worse" if code == WORSE_CODE else "Held", f"exit code {code}{f', {said}' if said else ''}"
    said = condition.get("message") or condition.get("reason") or "it failed"
    return "Held", f"{said.rstrip('. ')}, and its exit code is not known"


def _interrupted(pod: Object) -> str:
    """The reason why a pod did not end by itself; empty: it may have."""
    if pod.meta.terminating:
        return "deleted"
    conditions = pod.get("status", "conditions", default=None) or ()
    found = (each for each in conditions if each.get("type") == "DisruptionTarget" and each.get("status") == "True")
    return next((each.get("message") or each.get("reason") or "evicted" for each in found), "")


def _ended(pod: Object) -> Json | None:
    """The end of the container."""
    for each in pod.get("status", "containerStatuses", default=None) or ():
        if each.get("name") == CONTAINER:
            ended: Json | None = (each.get("state") or {}).get("terminated")
            return ended
    return None


def _condition(job: Object, type_: str) -> Json | None:
    for each in job.get("status", "conditions", default=None) or ():
        if each.get("type") == type_ and each.get("status") == "True":
            found: Json = each
            return found
    return None


def _runs(job: Object) -> bool:
    return bool(job.get("status", "ready", default=0))


def _age(job: Object, now: dt.datetime) -> float:
    return (now - parse_time(job.meta.creation_timestamp)).total_seconds()
