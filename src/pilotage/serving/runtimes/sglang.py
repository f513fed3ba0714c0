"""SGLang. After SIGTERM it finishes its requests, for as long as they take, and says 503 to health checks."""

from __future__ import annotations

from pilotage.serving.runtimes.contract import EVERYWHERE, Job, Runtime, Server, arguments
from pilotage.serving.stopping import finishes_by_itself
from pilotage.serving.weights import literal

_IMAGE = "lmsysorg/sglang:v0.5.23"


def _server(job: Job) -> Server:
    runtime = job.spec.runtime
    options: list[tuple[str, ...]] = [
        ("--model-path", literal(job.weights.path)),
        ("--served-model-name", literal(job.model)),
        ("--host", EVERYWHERE),
        ("--port", str(job.port)),
        ("--enable-metrics",),
    ]
    if job.weights.hub_revision:
        options.append(("--revision", literal(job.weights.hub_revision)))
    if job.gpus > 1:
        options.append(("--tensor-parallel-size", str(job.gpus)))
    return Server(
        image=runtime.image or _IMAGE,
        command=runtime.command or ["python3", "-m", "sglang.launch_server"],
        args=arguments(options, runtime.args),
        stop=finishes_by_itself(job.drain_seconds),
        health=runtime.health_path or "/health",
        metrics="/metrics",
        in_flight=RUNTIME.in_flight,
        start_seconds=3600,
        shared_memory=True,
    )


RUNTIME = Runtime(
    "sglang",
    port=30000,
    server=_server,
    loads_repositories=True,
    single_file=False,
    in_flight="sglang:num_running_reqs",
)
