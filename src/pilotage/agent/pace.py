"""How often things are looked at, and how long they may take. Nobody has to set these; tests hurry some of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """All in seconds."""

    start_look: float = 0.05
    """Between two looks at a server that starts; it grows to `start_look_max`."""
    start_look_max: float = 1.0
    check: float = 5.0
    """Between two checks of a healthy server."""
    recheck: float = 1.0
    """After a check that failed."""
    failures: int = 2
    """So many checks have to fail in a row before the server is withdrawn."""
    sick: float = 60.0
    """A server that has been sick so long is started anew."""
    steady: float = 60.0
    """A server that was healthy so long has its earlier failures forgiven."""
    backoff: tuple[float, float] = (1.0, 300.0)
    """The first pause after a failed start, doubled each time, and the longest."""
    lasting: float = 300.0
    """Between two tries of what fails until somebody changes something."""
    memory: float = 15.0
    """Between two looks whether there is memory now."""
    service: float = 5.0
    """Between two looks whether the Service is there, or a name is free now."""
    drain_look: float = 0.2
    idle: float = 1.0
    """A withdrawn server has to be without requests so long: those who send them have to notice, too."""
    grace: float = 2.0
    """Between SIGTERM and SIGKILL."""
    retry: tuple[float, float] = (0.5, 30.0)
    """Between two attempts to take something down that could not be finished: the first and the longest."""
    pressure: float = 5.0
    host: float = 10.0
    """Between two looks at what the Host's status says."""
    leave: float = 15.0
    """How long a shutdown goes on trying to unregister what is stopped, when the API does not answer."""


def backed_off(bounds: tuple[float, float], failures: int) -> float:
    """The pause after so many failures in a row."""
    first, longest = bounds
    return min(longest, first * 2.0 ** min(max(0, failures - 1), 30))
