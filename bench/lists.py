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
    section = Section("list", f"List: Deployments of {run.stock.of(run.size.growth[0]).object_bytes:,} bytes, cached")
    per_object = dict.fromkeys(CLIENTS, 0.0)
    for objects in run.size.growth:
        costs = {}
        for client in CLIENTS:
            expected = per_object[client] * objects
            if client != PILOTAGE and expected > CPU_SECONDS_MAX:
                section.notes.append(
                    f"{client} is left out at {objects:,}: it would take about {expected:.0f} s of CPU"
                )
                continue
            costs[client] = _best(run, client, objects)
            per_object[client] = costs[client].cpu_seconds / objects
        _add(section, objects, costs)
    return section


def _best(run: Run, client: str, objects: int) -> Cost:
    job = run.stock.of(objects)
    # What is largest is measured once: it takes long, and is long enough for the noise to even out.
    repeat = run.size.repeat if objects <= run.size.objects else 1
    say(f"list: {client}, {objects:,} objects")
    return min((measure(client, "lists", job) for _ in range(repeat)), key=lambda cost: cost.cpu_seconds)


def _add(section: Section, objects: int, costs: dict[str, Cost]) -> None:
    def add(measure: str, unit: str, values: dict[str, float]) -> None:
        section.add(
            f"{objects:,} objects: {measure}", unit, {client: value / objects for client, value in values.items()}
        )

    add("CPU per object", "µs", {client: cost.cpu_seconds * 1e6 for client, cost in costs.items()})
    add("RSS per cached object", "KiB", {client: cost.rss_bytes / 1024 for client, cost in costs.items()})
    add("peak RSS per object", "KiB", {client: cost.peak_bytes / 1024 for client, cost in costs.items()})
