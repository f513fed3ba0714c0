"""Cost of a watch event: a backlog of events over a real watch connection, decoded as each client does."""

from dataclasses import replace

from bench.figures import PILOTAGE, Goal, Section
from bench.peers import CLIENTS
from bench.processes import measure
from bench.run import Run

GOAL_MICROSECONDS = 25.0


def run(run: Run) -> Section:
    """Every object of the stock as one event."""
    job = run.stock.of(run.size.objects)
    costs = measure(CLIENTS, "watch", job, rounds=run.size.rounds)
    costs_cached = measure([PILOTAGE], "watch", replace(job, variant="informer"), rounds=run.size.rounds)
    per_event = {client: cost.cpu_seconds / job.objects * 1e6 for client, cost in costs.items()}
    cached = {client: cost.cpu_seconds / job.objects * 1e6 for client, cost in costs_cached.items()}
    section = Section("watch", f"Watch: {job.objects:,} Deployments of {job.object_bytes:,} bytes, as events")
    section.add("CPU per event", "µs", per_event)
    section.add("CPU per event, into the cache of an informer", "µs", cached)
    section.goals.append(Goal("CPU per event of a watch", per_event[PILOTAGE], GOAL_MICROSECONDS, "µs"))
    return section
