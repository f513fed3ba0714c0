"""Cost of an object to an operator from its creation to its end, for the same operator on Pilotage and on kopf.

The operator is a process of its own, whose CPU is read from outside; the driver and the API server do not count. What
it asked of the API server is in the audit log, under a user of its own.
"""

from bench.driver import CRD
from bench.figures import PILOTAGE, Goal, Section
from bench.lives import Phase, live
from bench.operators import GROUP, PLURAL, VERSION
from bench.run import Run
from controlplane import ApiError, Cluster
from controlplane.access import wait_for

KOPF = "kopf"
WAITS = 5
KOPF_SHARE_MAX = 1 / 5


def run(run: Run) -> Section:
    """Plain lives, and lives whose creation waits for something outside."""
    run.cluster.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
    wait_for("API of the Widgets", lambda: _is_served(run.cluster))
    widgets = run.size.lifecycle
    plain = {name: live(run.cluster, name, widgets, polls=0) for name in (PILOTAGE, KOPF)}
    waiting = {name: live(run.cluster, name, widgets, polls=WAITS) for name in (PILOTAGE, KOPF)}
    section = Section("lifecycle", f"Life of {widgets:,} objects of a CRD: finalizer, status, update, delete")

    def cpu(what: str, phases: dict[str, Phase]) -> None:
        values = {name: phase.cpu_seconds / widgets * 1e3 for name, phase in phases.items()}
        section.add(f"CPU per object: {what}", "ms", values)

    total = {name: lives.total for name, lives in plain.items()}
    cpu("create (finalizer, status)", {name: lives.create for name, lives in plain.items()})
    cpu("update (status)", {name: lives.update for name, lives in plain.items()})
    cpu("delete (finalizer)", {name: lives.delete for name, lives in plain.items()})
    cpu("all three", total)
    section.add("API writes per object", "", {name: phase.writes / widgets for name, phase in total.items()})
    section.add("API reads per object", "", {name: phase.reads / widgets for name, phase in total.items()})
    section.add("time until all were done", "s", {name: phase.wall_seconds for name, phase in total.items()})
    section.add("RSS with all objects", "MiB", {name: lives.rss_bytes / 2**20 for name, lives in plain.items()})
    cpu(f"create with {WAITS} waits", {name: lives.create for name, lives in waiting.items()})
    extra = {name: waiting[name].create.writes - plain[name].create.writes for name in plain}
    writes_per_wait = {name: writes / widgets / WAITS for name, writes in extra.items()}
    section.add("API writes per wait", "", writes_per_wait)
    share = total[PILOTAGE].cpu_seconds / total[KOPF].cpu_seconds
    section.goals.append(Goal("CPU of all three, as a share of kopf's", share, KOPF_SHARE_MAX, ""))
    section.goals.append(Goal("API writes per wait", writes_per_wait[PILOTAGE], 0.0, ""))
    return section


def _is_served(cluster: Cluster) -> bool:
    try:
        cluster.request("GET", f"/apis/{GROUP}/{VERSION}/{PLURAL}")
    except ApiError:  # at first it is not found, then it asks for patience
        return False
    return True
