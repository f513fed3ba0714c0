"""What an event of a watch costs: a backlog of events over a real watch connection, decoded as each client does."""

from dataclasses import replace

from bench.figures import PILOTAGE, Goal, Section
from bench.peers import CLIENTS
from bench.processes import measure
from bench.progress import say
from bench.run import Run

GOAL_MICROSECONDS = 25.0


def run(run: Run) -> Section:
    """Every object of the stock as one event."""
    job = replace(run.stock.of(run.size.objects), repeat=run.size.repeat)
    per_event = {}
    for client in CLIENTS:
        say(f"watch: {client}")
        per_event[client] = measure(client, "watch", job).cpu_seconds / job.objects * 1e6
    say("watch: pilotage, through an informer")
    cached = measure(PILOTAGE, "watch", replace(job, variant="informer")).cpu_seconds / job.objects * 1e6
    section = Section("watch", f"Watch: {job.objects:,} Deployments of {job.object_bytes:,} bytes, as events")
    section.add("CPU per event", "µs", per_event)
    section.add("CPU per event, into the cache of an informer", "µs", {PILOTAGE: cached})
    section.goals.append(Goal("CPU per event of a watch", per_event[PILOTAGE], GOAL_MICROSECONDS, "µs"))
    return section
