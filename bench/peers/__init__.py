"""The clients, each doing the same: `python -m bench.peers CLIENT TASK JOB` measures one of them and prints JSON.

A client is a module with three functions, `lists`, `watch` and `patch`. Each makes a client in its library's usual way,
does a little of the work to warm up, and then the job inside ``with meter``.
"""

from dataclasses import dataclass
from typing import Any

CLIENTS = ("pilotage", "kubernetes", "kubernetes_asyncio", "lightkube")

WARM_UP = 5


@dataclass(frozen=True, slots=True)
class Job:
    """What a client is to do, with objects that the stock has made."""

    kubeconfig: str
    namespace: str
    objects: int
    resource_version: str
    """From before the objects were made: a watch from here delivers each of them as an event."""
    variant: str = ""
    repeat: int = 1
    concurrency: int = 1

    def name(self, number: int) -> str:
        """The name of an object; they are used again and again."""
        return object_name(number % self.objects)


def object_name(number: int) -> str:
    """How the stock names its objects."""
    return f"model-{number:06d}"


def change(number: int) -> dict[str, Any]:
    """A merge patch of the size that controllers send."""
    return {"metadata": {"annotations": {"bench.pilotage.dev/seen": f"revision-{number}"}}}
