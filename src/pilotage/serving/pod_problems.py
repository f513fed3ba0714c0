"""Reasons why pods do not start. A Deployment tells only that they do not, after its deadline; the pods tell why."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pilotage.kube import Object
from pilotage.kube.wire import Json
from pilotage.serving.parts import Readiness

_HOPELESS = {"InvalidImageName", "ErrImageNeverPull", "ImagePullBackOff", "CreateContainerConfigError"}
"""Waiting reasons of a container that only a change ends: of its image, a Secret, a variable."""
_SAME = {"ErrImagePull": "ImagePullBackOff"}
"""Waiting reasons between which the kubelet goes to and fro: at each attempt, and while it waits for the next one."""
_RESTARTS_MAX = 5
"""A container that has exited this often is taken to keep exiting."""
_CHARS_MAX = 400
_UNSAID = re.compile(r"[.,]? *(no new claims to deallocate|preemption: ).*", re.DOTALL)
"""End of a scheduler's message: nothing could be evicted either. The shortage itself comes first."""


class PodProblem(NamedTuple):
    """A problem of one pod."""

    reason: str
    message: str
    where: str
    """The pod, and its container."""
    failed: bool
    """Whether waiting does not help."""


def explained(found: Readiness, pods: Iterable[Object]) -> Readiness:
    """The readiness with the worst problem of the pods, if it is not available. The pods have to be whole objects."""
    if found.available:
        return found
    problems = sorted((each for pod in pods for each in problems_of(pod)), key=lambda each: not each.failed)
    if not problems:
        return found
    worst = problems[0]
    counted = found.message.rstrip(".")
    return found._replace(
        reason=worst.reason,
        message=f"{worst.message.rstrip('. ')} ({worst.where}; {counted}).",
        failed=found.failed or worst.failed,
        troubled=True,
    )


def problems_of(pod: Object) -> Iterator[PodProblem]:
    """The problems of a pod, which has to be a whole object."""
    status: Json = pod.get("status", default=None) or {}
    where = f"pod/{pod.meta.name}"
    for each in status.get("conditions") or ():
        if each.get("type") == "PodScheduled" and each.get("status") == "False":
            said = _UNSAID.sub("", each.get("message") or "no node was found")
            yield PodProblem(each.get("reason") or "Unschedulable", said, where, failed=False)
    for each in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        name = f"{where}, container {each.get('name')}"
        waiting: Json = (each.get("state") or {}).get("waiting") or {}
        ended: Json = (each.get("lastState") or {}).get("terminated") or {}
        reason = _SAME.get(waiting.get("reason", ""), waiting.get("reason", ""))
        if reason in _HOPELESS:
            yield PodProblem(reason, last_words(waiting), name, failed=True)
        elif ended and not each.get("ready"):
            restarts = each.get("restartCount", 0)
            times = "once" if restarts <= 1 else f"{restarts} times"
            said = f"exited {times}, last with code {ended.get('exitCode')}: {last_words(ended)}"
            yield PodProblem("CrashLoopBackOff", said, name, failed=restarts >= _RESTARTS_MAX)


def last_words(state: Json) -> str:
    """The last of what a container said: that is where errors are."""
    said = (state.get("message") or state.get("reason") or "").strip()
    return said if len(said) <= _CHARS_MAX else f"…{said[-_CHARS_MAX:]}"
