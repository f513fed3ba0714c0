"""What a merge patch costs its sender, one after another and many at a time."""

from dataclasses import replace

from bench.figures import Section
from bench.peers import CLIENTS
from bench.processes import measure
from bench.progress import say
from bench.run import Run

CONCURRENCY = 32
ASYNC_CLIENTS = tuple(client for client in CLIENTS if client != "kubernetes")


def run(run: Run) -> Section:
    """Annotations of the stock's objects, in turn. The official client has no way to send many at a time."""
    patches = run.size.patches
    section = Section("patch", f"PATCH: {patches:,} merge patches of an annotation")
    for concurrency, clients, how in (
        (1, CLIENTS, "one by one"),
        (CONCURRENCY, ASYNC_CLIENTS, f"{CONCURRENCY} at once"),
    ):
        job = replace(run.stock.of(run.size.objects), patches=patches, concurrency=concurrency, repeat=run.size.repeat)
        values = {}
        for client in clients:
            say(f"patch: {client}, {how}")
            values[client] = measure(client, "patch", job).cpu_seconds / patches * 1e6
        section.add(f"CPU per request, {how}", "µs", values)
    return section
