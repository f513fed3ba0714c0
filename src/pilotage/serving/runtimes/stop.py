"""Ways to stop a server in a pod so that its requests can finish.

Kubernetes withdraws the address of a pod and stops its containers at the same time, and proxies learn of the first a
moment later. So a container keeps serving for `WITHDRAW_SECONDS`. What follows depends on the server: one that finishes
its requests after SIGTERM gets the signal at once; any other gets it when its requests are finished. The grace period
covers both and a margin. Kubernetes kills what is left then.
"""

from collections.abc import Sequence

from pilotage.serving.runtimes.contract import METRICS_PATH, StopPolicy

WITHDRAW_SECONDS = 5
"""Time for proxies to stop sending to an address that was withdrawn."""


def after_sigterm(drain_seconds: int, at_most: int | None = None) -> StopPolicy:
    """Stop of a server that accepts no new requests after SIGTERM and finishes those that it has.

    `at_most`: it gives them no more than this many seconds, so it gets SIGTERM that much later.
    """
    after = drain_seconds if at_most is None else min(drain_seconds, at_most)
    before = WITHDRAW_SECONDS + drain_seconds - after
    return StopPolicy({"sleep": {"seconds": before}}, before, after)


def after_sleep(drain_seconds: int) -> StopPolicy:
    """Stop of a server that drops its requests on SIGTERM and does not tell whether it has any."""
    seconds = WITHDRAW_SECONDS + drain_seconds
    return StopPolicy({"sleep": {"seconds": seconds}}, seconds, 0)


def once_idle(drain_seconds: int, port: int, metrics: Sequence[str]) -> StopPolicy:
    """Stop of a server that drops its requests on SIGTERM, and whose metrics count them.

    The hook waits until all `metrics` are 0, or for the whole time: a metric that is missing, or no answer, does not
    mean idle. The image needs a shell, curl and grep.
    """
    idle = (
        f"curl -s -m 2 http://127.0.0.1:{port}{METRICS_PATH}"
        f" | grep -cE '^({'|'.join(metrics)}) 0$' | grep -qx {len(metrics)}"
    )
    script = (
        f"sleep {WITHDRAW_SECONDS}; end=$(($(date +%s)+{drain_seconds})); "
        f'until {idle}; do [ "$(date +%s)" -lt "$end" ] || break; sleep 1; done'
    )
    # The last request for metrics may start just before the end and take 2 seconds.
    return StopPolicy({"exec": {"command": ["sh", "-c", script]}}, WITHDRAW_SECONDS + drain_seconds + 3, 0)
