"""What it costs to list objects and to keep them, and whether that stays the same per object with their number."""

from collections import defaultdict

from bench.figures import PILOTAGE, Section
from bench.peers import CLIENTS
from bench.processes import Cost, measure
from bench.progress import say
from bench.run import Run

CPU_SECONDS_MAX = 60.0
"""A client that would need longer for a list is not measured with so many objects."""


def run(run: Run) -> Section:
    """Pilotage keeps what it listed in an informer's store; the others in a dict of the objects they return."""
    section = Section("list", "List: Deployments of 2.7 KB, cached")
    largest = dict.fromkeys(CLIENTS, (0, 0.0))  # of each client: objects, and CPU seconds per object
    for objects in run.size.growth:
        costs: dict[str, Cost] = {}
        for client in CLIENTS:
            seconds = largest[client][1] * objects
            if client != PILOTAGE and seconds > CPU_SECONDS_MAX:
                section.notes.append(f"{client} is left out at {objects:,}: it would take about {seconds:.0f} s of CPU")
                continue
            say(f"list: {client}, {objects:,} objects")
            costs[client] = measure(client, "lists", run.stock.of(objects))
            largest[client] = objects, costs[client].cpu_seconds / objects
        measures: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        for client, cost in costs.items():
            measures["CPU per object", "µs"][client] = cost.cpu_seconds / objects * 1e6
            measures["RSS per cached object", "KiB"][client] = cost.rss_bytes / objects / 1024
            measures["peak RSS per object", "KiB"][client] = cost.peak_bytes / objects / 1024
        for (measured, unit), values in measures.items():
            section.add(f"{objects:,} objects: {measured}", unit, values)
    return section
