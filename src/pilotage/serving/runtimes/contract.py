"""What a runtime says about its server. A runtime is one file here, with a `RUNTIME`, and a line in the registry."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pilotage.serving.runtimes.allowed import Allowed

if TYPE_CHECKING:
    from collections.abc import Callable

    from pilotage.api.endpoint import EndpointSpec
    from pilotage.kube.wire import Json
    from pilotage.serving.stopping import Stop
    from pilotage.serving.weights import Weights


class Job(NamedTuple):
    """What is to be served."""

    spec: EndpointSpec
    model: str
    """As clients call it."""
    weights: Weights
    port: int

    @property
    def gpus(self) -> int:
        """How many GPUs of NVIDIA it gets."""
        asked = str(self.spec.resources.limits.get("nvidia.com/gpu", "0"))
        return int(asked) if asked.isdecimal() else 0

    @property
    def drain_seconds(self) -> int:
        """How long requests may take to finish."""
        return self.spec.deletion.drain_seconds


@dataclass(frozen=True, slots=True)
class Server:
    """A program that serves: what is run, and how others see its state."""

    image: str
    command: list[str]
    """Empty for the image's own."""
    args: list[str]
    stop: Stop
    health: str
    """The path that answers 200 when it can serve; empty: that it can be connected to has to be enough."""
    metrics: str = ""
    """The path of its metrics, in the format of Prometheus."""
    in_flight: str = ""
    """The metric that counts requests under way."""
    env: list[Json] = field(default_factory=list)
    start_seconds: int = 1800
    """How long it may take until it can serve, from its start."""
    shared_memory: bool = False
    """Whether its processes talk to each other through /dev/shm, of which a container has 64 MiB."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """A kind of server."""

    name: str
    port: int
    server: Callable[[Job], Server]
    loads_repositories: bool
    """Whether it loads a repository of a hub by itself."""
    single_file: bool
    """Whether its weights are one file."""
    in_flight: str = ""
    """As `Server.in_flight`."""
    allowed: Allowed = field(default_factory=Allowed)
    """Arguments and variables that a Host takes unless its owner allows everything; none where there is no table."""


EVERYWHERE = "0.0.0.0"  # noqa: S104 - in a pod, whose address the Service has


def arguments(preset: list[tuple[str, ...]], given: list[str]) -> list[str]:
    """The preset's options, without those that the user gives, and then the user's.

    Some programs take the last of two; others refuse to start.
    """
    own = {argument.partition("=")[0] for argument in given}
    kept = [word for option in preset if option[0] not in own for word in option]
    return [*kept, *given]
