"""llama.cpp: `llama-server` with one GGUF file.

After SIGTERM with a request under way it closes its port and hangs, and so does the client (measured). So it gets the
signal when it has no request, or when the time for them is over.
"""

from __future__ import annotations

from pilotage.serving.runtimes.contract import EVERYWHERE, Job, Runtime, Server, arguments
from pilotage.serving.stopping import is_asked
from pilotage.serving.weights import literal

_IMAGE = "ghcr.io/ggml-org/llama.cpp:server-b10108"
_IMAGE_CUDA = "ghcr.io/ggml-org/llama.cpp:server-cuda-b10108"


def _server(job: Job) -> Server:
    runtime = job.spec.runtime
    # Both have to be there and 0: no answer is not an idle server.
    idle = (
        f"curl -s -m 2 http://127.0.0.1:{job.port}/metrics"
        " | grep -cE '^llamacpp:requests_(processing|deferred) 0$' | grep -qx 2"
    )
    options = [
        ("--model", literal(job.weights.path)),
        ("--alias", literal(job.model)),
        ("--host", EVERYWHERE),
        ("--port", str(job.port)),
        ("--metrics",),
    ]
    return Server(
        image=runtime.image or (_IMAGE_CUDA if job.gpus else _IMAGE),
        command=runtime.command,
        args=arguments(options, runtime.args),
        stop=is_asked(job.drain_seconds, idle),
        health=runtime.health_path or "/health",
        metrics="/metrics",
        in_flight=RUNTIME.in_flight,
    )


RUNTIME = Runtime(
    "llama.cpp",
    port=8080,
    server=_server,
    loads_repositories=False,
    single_file=True,
    in_flight="llamacpp:requests_processing",
)
