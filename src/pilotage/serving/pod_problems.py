"""Why pods do not start. A Deployment says no more than that, and only when its deadline is over; the pods know."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pilotage.kube import Object
    from pilotage.kube.wire import Json
    from pilotage.serving.parts import Readiness

_HOPELESS = {"InvalidImageName", "ErrImageNeverPull", "ImagePullBackOff", "CreateContainerConfigError"}
"""What a container waits for that somebody has to change: its image, a Secret, a variable."""
_RESTARTS_MAX = 5
"""Who has ended so often at the start will do so again."""
_CHARS_MAX = 400


class PodProblem(NamedTuple):
    """What is wrong with one pod."""

    reason: str
    message: str
    failed: bool
    """It will not get better by waiting."""


def explained(found: Readiness, pods: Iterable[Object]) -> Readiness:
    """The same, with what the pods of the revision say, where it is not available. They have to be known in full."""
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
            said = f"{name} has ended {restarts} times, with {ended.get('exitCode')} at last: {_end(ended)}"
            yield PodProblem("ContainerEnds", said, failed=restarts >= _RESTARTS_MAX)


def _end(state: Json) -> str:
    """The last of what it said: that is where errors are."""
    said = (state.get("message") or state.get("reason") or "").strip()
    return said if len(said) <= _CHARS_MAX else f"…{said[-_CHARS_MAX:]}"
