"""What it costs to list objects and to keep them, and whether that stays the same per object as their number grows."""

from bench.figures import PILOTAGE, Section
from bench.peers import CLIENTS
from bench.processes import Cost, measure
from bench.progress import say
from bench.run import Run

CPU_SECONDS_MAX = 60.0
"""A client that would need longer for one list is not measured with so many objects."""


def run(run: Run) -> Section:
    """Pilotage keeps what it listed in an informer's store; the others in a dict of the objects they return."""
    object_bytes = run.stock.of(run.size.growth[0]).object_bytes
    section = Section("list", f"List: Deployments of {object_bytes:,} bytes, cached")
    clients: Sequence[str] = CLIENTS
    for objects in run.size.growth:
        # What is largest is measured once: it takes long, and long enough for the noise to even out.
        rounds = run.size.rounds if objects <= run.size.objects else 1
        costs = measure(clients, "lists", run.stock.of(objects), rounds=rounds)
        _add(section, objects, costs)
        clients = _quick_enough(section, objects, costs, run.size.growth)
    return section


def _add(section: Section, objects: int, costs: dict[str, Cost]) -> None:
    def add(measure: str, unit: str, values: dict[str, float]) -> None:
        section.add(
            f"{objects:,} objects: {measure}", unit, {client: value / objects for client, value in values.items()}
        )

    add("CPU per object", "µs", {client: cost.cpu_seconds * 1e6 for client, cost in costs.items()})
    add("RSS per cached object", "KiB", {client: cost.rss_bytes / 1024 for client, cost in costs.items()})
    add("peak RSS per object", "KiB", {client: cost.peak_bytes / 1024 for client, cost in costs.items()})
