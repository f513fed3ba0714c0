"""The clients, each doing the same: `python -m bench.peers CLIENT TASK JOB` measures one of them and prints JSON.

A client is a module with three functions, `lists`, `watch` and `patch`. Each makes a client in its library's usual way,
does a little of the work to warm up, and then the job inside ``with meter``.
"""

import time
from dataclasses import dataclass
from typing import Any

CLIENTS = ("pilotage", "kubernetes", "kubernetes_asyncio", "lightkube")

WARM_UP = 5

FROM_THE_START = "0"
"""A watch from this resourceVersion begins with an event for each object that there is."""


@dataclass(frozen=True, slots=True)
class Job:
    """Task of a client, on objects that the stock has created."""

    kubeconfig: str
    namespace: str
    objects: int
    object_bytes: int
    """Size of the JSON of one object."""
    variant: str = ""
    patches: int = 0
    concurrency: int = 1

    def describe(self) -> str:
        """Short description that tells it from others."""
        return f"{self.objects:,} objects" + (f", {self.concurrency} at once" if self.concurrency > 1 else "")

    def name(self, number: int) -> str:
        """The name of an object; they are used again and again."""
        return object_name(number % self.objects)


def object_name(number: int) -> str:
    """Name of an object of the stock, by number."""
    return f"model-{number:06d}"


def let_the_server_lead(event: int) -> None:
    """Look away now and then, at the event with this number, so that events wait for the client and not it for them.

    The server shares the machine. A client that is quicker would be measured by how often it has to wait.
    """
    if event % 500 == 1:
        time.sleep(0.1)


def change(number: int) -> dict[str, Any]:
    """A merge patch of the size that controllers send."""
    return {"metadata": {"annotations": {"bench.pilotage.dev/seen": f"revision-{number}"}}}
