"""What the agent remembers of one HostProcess while it runs. An agent that starts anew does without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pilotage.agent.pace import backed_off
from pilotage.agent.process_status import Said, failed
from pilotage.runtime import monotonic

if TYPE_CHECKING:
    from pilotage.agent.launch.failures import Failure
    from pilotage.agent.launch.process import ExitWatcher
    from pilotage.agent.pace import Pace

START_FAILURES_MAX = 5
"""After so many starts that failed in a row it counts as failed. It is tried on."""


@dataclass(slots=True)
class Ward:
    """See the module. Times are the loop's."""

    restarts: int = 0
    failures: int = 0
    """Starts and runs that failed, since it was last healthy for a while."""
    problem: Failure | None = None
    ran: bool = False
    """Whether it was healthy before `problem`."""
    due: float = 0.0
    """It is not started before."""
    healthy_since: float | None = None
    bad: int = 0
    """Checks that failed in a row."""
    bad_since: float | None = None
    look: float = 0.0
    """How long the last pause between two looks was, while it starts."""
    ending_since: float | None = None
    """Since when it is known to end, though not how."""
    log_from: int = 0
    log_due: float = 0.0
    """A log that could not be put aside is not tried again before; 0 if it could be."""
    ear: ExitWatcher | None = None
    ear_pid: int = 0
    just_ended: bool = False
    evicted: bool = False

    def fail(self, failure: Failure, pace: Pace, *, ran: bool) -> None:
        """It did not start, or has ended."""
        self.failures += 1
        self.restarts += ran
        self.problem, self.ran = failure, ran
        pause = pace.lasting if failure.lasting else backed_off(pace.backoff, self.failures)
        self.due = monotonic() + pause
        self.healthy_since = self.bad_since = None
        self.bad, self.look = 0, 0.0

    def is_well(self, pace: Pace) -> None:
        """It is healthy; if it has been so for a while, what was before is forgiven."""
        now = monotonic()
        self.bad, self.bad_since, self.problem = 0, None, None
        if self.healthy_since is None:
            self.healthy_since = now
        elif now - self.healthy_since >= pace.steady:
            self.failures = 0

    @property
    def said(self) -> Said | None:
        """What there is to say of its last failure, if that is not over."""
        if self.problem is None:
            return None
        for_good = self.problem.lasting or self.failures >= START_FAILURES_MAX
        return failed(self.problem, for_good=for_good, ran=self.ran)

    def deafen(self) -> None:
        """It is not listened to any more."""
        if self.ear is not None:
            self.ear.close()
        self.ear, self.ear_pid = None, 0
