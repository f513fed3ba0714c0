"""Text Generation Inference. It answers to any model name, and after SIGTERM gives its requests 90 seconds at most."""

from __future__ import annotations

from pilotage.serving.runtimes.allowed import COUNT, NAME, NUMBER, Allowed, options
from pilotage.serving.runtimes.contract import EVERYWHERE, Job, Runtime, Server, arguments
from pilotage.serving.stopping import finishes_by_itself
from pilotage.serving.weights import literal

_IMAGE = "ghcr.io/huggingface/text-generation-inference:3.3.5"
_DRAINS_SECONDS_MAX = 90


def _server(job: Job) -> Server:
    runtime = job.spec.runtime
    options: list[tuple[str, ...]] = [
        ("--model-id", literal(job.weights.path)),
        # Else it takes the pod's name, from HOSTNAME.
        ("--hostname", EVERYWHERE),
        ("--port", str(job.port)),
    ]
    if job.weights.hub_revision:
        options.append(("--revision", literal(job.weights.hub_revision)))
    return Server(
        image=runtime.image or _IMAGE,
        command=runtime.command,
        args=arguments(options, runtime.args),
        stop=finishes_by_itself(job.drain_seconds, at_most=_DRAINS_SECONDS_MAX),
        health=runtime.health_path or "/health",
        metrics="/metrics",
        in_flight=RUNTIME.in_flight,
        start_seconds=3600,
        shared_memory=True,
    )


RUNTIME = Runtime(
    "tgi",
    port=8080,
    server=_server,
    loads_repositories=True,
    single_file=False,
    in_flight="tgi_batch_current_size",
    allowed=Allowed(
        options(
            {
                "--max-input-tokens --max-input-length --max-total-tokens --max-batch-size": NUMBER,
                "--max-batch-prefill-tokens --max-batch-total-tokens --max-waiting-tokens": NUMBER,
                "--max-concurrent-requests --max-client-batch-size --max-best-of --max-stop-sequences": NUMBER,
                "--waiting-served-ratio --cuda-memory-fraction": NUMBER,
                "--num-shard": COUNT,
                "--dtype --kv-cache-dtype --quantize --revision": NAME,
            }
        ),
        {"OMP_NUM_THREADS": COUNT},
    ),
)
