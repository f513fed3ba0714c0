"""Reasons why pods do not start. A Deployment tells only that they do not, after its deadline; the pods tell why."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pilotage.kube import Object
from pilotage.kube.wire import Json
from pilotage.serving.parts import Readiness

_HOPELESS = {"InvalidImageName", "ErrImageNeverPull", "ImagePullBackOff", "CreateContainerConfigError"}
"""Waiting reasons of a container that only a change ends: of its image, a Secret, a variable."""
_RESTARTS_MAX = 5
"""A container that has exited this often is taken to keep exiting."""
_CHARS_MAX = 400


class PodProblem(NamedTuple):
    """A problem of one pod."""

    reason: str
    message: str
    failed: bool
    """Whether waiting does not help."""


def explained(found: Readiness, pods: Iterable[Object]) -> Readiness:
    """The readiness with the worst problem of the pods, if it is not available. The pods have to be whole objects."""
    if found.available:
        return found
    problems = sorted((each for pod in pods for each in _problems(pod)), key=lambda each: not each.failed)
    if not problems:
        return found
    worst = problems[0]
    return found._replace(
        reason=worst.reason, message=f"{found.message} {worst.message}", failed=found.failed or worst.failed
    )


def _problems(pod: Object) -> Iterator[PodProblem]:
    status: Json = pod.get("status", default=None) or {}
    where = f"pod/{pod.meta.name}"
    for each in status.get("conditions") or ():
        if each.get("type") == "PodScheduled" and each.get("status") == "False":
            yield PodProblem(each.get("reason") or "Unschedulable", f"{where}: {each.get('message', '')}", failed=False)
    for each in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        name = f"{where}, container {each.get('name')}"
        waiting: Json = (each.get("state") or {}).get("waiting") or {}
        ended: Json = (each.get("lastState") or {}).get("terminated") or {}
        if waiting.get("reason") in _HOPELESS:
            yield PodProblem(waiting["reason"], f"{name}: {_end(waiting)}", failed=True)
        elif ended and not each.get("ready"):
            restarts = each.get("restartCount", 0)
            said = f"{name} has exited {restarts} times, last with code {ended.get('exitCode')}: {_end(ended)}"
            yield PodProblem("ContainerEnds", said, failed=restarts >= _RESTARTS_MAX)


def _end(state: Json) -> str:
    """The last of what it said: that is where errors are."""
    said = (state.get("message") or state.get("reason") or "").strip()
    return said if len(said) <= _CHARS_MAX else f"…{said[-_CHARS_MAX:]}"
