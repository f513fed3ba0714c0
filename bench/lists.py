"""Cost of listing objects and of keeping them, and whether it is constant per object as their number grows."""

from bench.figures import PILOTAGE, Section
from bench.peers import CLIENTS
from bench.processes import Cost, measure
from bench.run import Run

CPU_SECONDS_MAX = 60.0
"""Limit for one list: a client that would need longer is not measured with that number of objects."""


def run(run: Run) -> Section:
    """Pilotage keeps what it listed in an informer's store; the others in a dict of the objects they return."""
    object_bytes = run.stock.of(run.size.growth[0]).object_bytes
    section = Section("list", f"List: Deployments of {object_bytes:,} bytes, cached")
    cpu_seconds_per_object = dict.fromkeys(CLIENTS, 0.0)
    for objects in run.size.growth:
        expected = {client: seconds * objects for client, seconds in cpu_seconds_per_object.items()}
        slow = [client for client in CLIENTS if client != PILOTAGE and expected[client] > CPU_SECONDS_MAX]
        section.notes += [f"{objects:,}: {each} would take about {expected[each]:.0f} s of CPU" for each in slow]
        # The largest is measured once: it takes long, and long enough for the noise to even out.
        rounds = run.size.rounds if objects <= run.size.objects else 1
        clients = [client for client in CLIENTS if client not in slow]
        costs = measure(clients, "lists", run.stock.of(objects), rounds=rounds)
        _add(section, objects, costs)
        cpu_seconds_per_object |= {client: cost.cpu_seconds / objects for client, cost in costs.items()}
    return section


def _add(section: Section, objects: int, costs: dict[str, Cost]) -> None:
    def add(measure: str, unit: str, values: dict[str, float]) -> None:
        section.add(
            f"{objects:,} objects: {measure}", unit, {client: value / objects for client, value in values.items()}
        )

    add("CPU per object", "µs", {client: cost.cpu_seconds * 1e6 for client, cost in costs.items()})
    add("RSS per cached object", "KiB", {client: cost.rss_bytes / 1024 for client, cost in costs.items()})
    add("peak RSS per object", "KiB", {client: cost.peak_bytes / 1024 for client, cost in costs.items()})
