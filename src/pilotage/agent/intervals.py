"""Intervals and time-outs of the agent. They need not be set; tests shorten some of them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Intervals:
    """All in seconds."""

    start_probe: float = 0.05
    """Interval between two probes of a server that starts; it grows to `start_probe_max`."""
    start_probe_max: float = 1.0
    probe: float = 5.0
    """Interval between two probes of a healthy server."""
    probe_again: float = 1.0
    """Interval after a probe that failed."""
    failure_threshold: int = 2
    """Probes that fail in a row before the server is withdrawn."""
    unhealthy: float = 60.0
    """A server that has been unhealthy for this long is restarted."""
    steady: float = 60.0
    """Time of being healthy after which earlier failures no longer count."""
    restart_backoff: tuple[float, float] = (1.0, 300.0)
    """Pause after a failed start: the first one, which doubles, and the longest."""
    permanent_failure: float = 300.0
    """Interval of retries of what fails until a person changes something."""
    memory: float = 15.0
    """Interval between two checks for free memory."""
    service: float = 5.0
    """Interval between two checks whether the Service exists, or a name is free."""
    drain_poll: float = 0.2
    idle: float = 1.0
    """A withdrawn server has to be without requests for this long: proxies need time to notice the withdrawal."""
    grace: float = 2.0
    """Time between SIGTERM and SIGKILL."""
    stop_backoff: tuple[float, float] = (0.5, 30.0)
    """Pause between two attempts at a stop that failed: the first one, which doubles, and the longest."""
    pressure: float = 5.0
    host: float = 10.0
    """Interval between two updates of the Host's status."""
    shutdown: float = 15.0
    """Time for a shutdown to unregister servers that have stopped, while the API does not answer."""
