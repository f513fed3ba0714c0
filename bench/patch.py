"""Cost of a merge patch to its sender, one after another and many at a time."""

from dataclasses import replace

from bench.figures import Section
from bench.peers import CLIENTS
from bench.processes import measure
from bench.run import Run

CONCURRENCY = 32
ASYNC_CLIENTS = tuple(client for client in CLIENTS if client != "kubernetes")


def run(run: Run) -> Section:
    """Annotations of the stock's objects, in turn. The official client has no way to send many at a time."""
    patches = run.size.patches
    section = Section("patch", f"PATCH: {patches:,} merge patches of an annotation")
    job = replace(run.stock.of(run.size.objects), patches=patches)
    one_by_one = measure(CLIENTS, "patch", job, rounds=run.size.rounds)
    at_once = measure(ASYNC_CLIENTS, "patch", replace(job, concurrency=CONCURRENCY), rounds=run.size.rounds)
    for how, costs in (("one by one", one_by_one), (f"{CONCURRENCY} at once", at_once)):
        per_request = {client: cost.cpu_seconds / patches * 1e6 for client, cost in costs.items()}
        section.add(f"CPU per request, {how}", "µs", per_request)
    return section
