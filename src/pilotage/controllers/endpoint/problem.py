"""The reason why an endpoint cannot be brought to what its spec asks for."""

from dataclasses import dataclass

PROBLEM_RETRY_SECONDS = 300.0
"""Pause after a problem that only a change can solve: the change wakes the endpoint, as a rule."""


@dataclass(unsafe_hash=True)
class EndpointProblem(Exception):
    """A reason for the condition of an endpoint. An immediate retry does not help."""

    reason: str
    message: str
    retry_after: float = PROBLEM_RETRY_SECONDS
    """Seconds until it is reconciled again."""
    waits: bool = False
    """Nothing is wrong: it takes its time."""

    def __str__(self) -> str:
        return self.message
