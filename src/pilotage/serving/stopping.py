"""How a server is stopped so that requests can finish.

Kubernetes withdraws a pod's address and stops the pod at the same time, and proxies hear of the first a moment later.
So a pod that stops first goes on serving for `WITHDRAW_SECONDS`. What comes then depends on the server: one that
finishes its requests after SIGTERM gets that signal at once, one that does not is kept from it until they are finished.
The grace period covers both and a margin; what is left then is killed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pilotage.kube.wire import Json

WITHDRAW_SECONDS = 5
"""Until proxies have stopped sending to an address that was withdrawn."""
MARGIN_SECONDS = 15
"""For a server to end after its last request. SGLang looks every 5 seconds whether one is left."""


class Stop(NamedTuple):
    """How one server is stopped."""

    pre_stop: Json
    """The hook that runs before SIGTERM."""
    pre_stop_seconds: int
    """How long that takes at most."""
    after_seconds: int
    """How long the server may go on after SIGTERM."""

    @property
    def grace_seconds(self) -> int:
        """When what is left is killed, from the beginning of the hook."""
        return self.pre_stop_seconds + self.after_seconds + MARGIN_SECONDS


def finishes_by_itself(drain_seconds: int, at_most: int | None = None) -> Stop:
    """For a server that takes no new requests after SIGTERM and finishes those that it has.

    `at_most`: it gives them no more than this many seconds, so that it gets SIGTERM that much later.
    """
    after = drain_seconds if at_most is None else min(drain_seconds, at_most)
    before = WITHDRAW_SECONDS + drain_seconds - after
    return Stop({"sleep": {"seconds": before}}, before, after)


def is_waited_for(drain_seconds: int) -> Stop:
    """For a server that drops its requests on SIGTERM, and of which nobody can ask whether it has any."""
    seconds = WITHDRAW_SECONDS + drain_seconds
    return Stop({"sleep": {"seconds": seconds}}, seconds, 0)


def is_asked(drain_seconds: int, idle: str) -> Stop:
    """For a server that is no good after SIGTERM, and can be asked.

    `idle` is a shell command that succeeds once the server has no request. Where it cannot be run, or gets no
    answer, the whole time passes.
    """
    script = (
        f"sleep {WITHDRAW_SECONDS}; end=$(($(date +%s)+{drain_seconds})); "
        f'until {idle}; do [ "$(date +%s)" -lt "$end" ] || break; sleep 1; done'
    )
    # The last question may have been asked just before the end.
    return Stop({"exec": {"command": ["sh", "-c", script]}}, WITHDRAW_SECONDS + drain_seconds + 3, 0)
