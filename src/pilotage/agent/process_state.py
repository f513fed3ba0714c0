"""In-memory state of one HostProcess. An agent that is restarted does without it."""

from dataclasses import dataclass

from pilotage.agent.intervals import Intervals
from pilotage.agent.launch.failures import LaunchFailure
from pilotage.agent.launch.process import ExitWatcher
from pilotage.agent.process_status import DesiredStatus, failed
from pilotage.runtime.backoff import exponential
from pilotage.runtime.clock import monotonic

START_FAILURES_MAX = 5
"""Failed starts in a row after which the phase is Failed. It is still retried."""


@dataclass(slots=True)
class ProcessState:
    """Times are those of the loop's clock."""

    restarts: int = 0
    failures: int = 0
    """Starts and runs that failed since it was last healthy for a while."""
    problem: LaunchFailure | None = None
    ran: bool = False
    """Whether it was healthy before `problem`."""
    due: float = 0.0
    """The earliest time of the next start."""
    healthy_since: float | None = None
    failed_probes: int = 0
    """Probes that failed in a row."""
    unhealthy_since: float | None = None
    start_probe: float = 0.0
    """The last pause between two probes, while it starts."""
    ending_since: float | None = None
    """Time since which it is known to end, while its exit code is not known yet."""
    log_from: int = 0
    log_due: float = 0.0
    """The earliest time of the next attempt to rotate its log; 0 if the last one did not fail."""
    exit_watcher: ExitWatcher | None = None
    watched_pid: int = 0
    just_ended: bool = False
    evicted: bool = False

    def fail(self, failure: LaunchFailure, intervals: Intervals, *, ran: bool) -> None:
        """Record that it did not start, or has ended."""
        self.failures += 1
        self.restarts += ran
        self.problem, self.ran = failure, ran
        backoff = exponential(*intervals.restart_backoff, self.failures - 1)
        self.due = monotonic() + (intervals.permanent_failure if failure.permanent else backoff)
        self.healthy_since = self.unhealthy_since = None
        self.failed_probes, self.start_probe = 0, 0.0

    def healthy(self, intervals: Intervals) -> None:
        """Record that it is healthy; after a while its earlier failures no longer count."""
        now = monotonic()
        self.failed_probes, self.unhealthy_since, self.problem = 0, None, None
        if self.healthy_since is None:
            self.healthy_since = now
        elif now - self.healthy_since >= intervals.steady:
            self.failures = 0

    def stopped(self) -> None:
        """Record that nothing of it runs."""
        self.just_ended = False
        self.healthy_since = None
        self.stop_watching()

    @property
    def status(self) -> DesiredStatus | None:
        """The status by its last failure; None if that is over."""
        if self.problem is None:
            return None
        permanent = self.problem.permanent or self.failures >= START_FAILURES_MAX
        return failed(self.problem, permanent=permanent, ran=self.ran)

    @property
    def has_run(self) -> bool:
        """Whether it was healthy before: it was evicted since then, or has failed."""
        return self.evicted or (self.problem is not None and self.ran)

    def stop_watching(self) -> None:
        """Close the exit watcher."""
        if self.exit_watcher is not None:
            self.exit_watcher.close()
        self.exit_watcher, self.watched_pid = None, 0
