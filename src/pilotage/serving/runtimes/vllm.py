"""vLLM. From 0.18 on it finishes its requests after SIGTERM when it is told for how long; before, it drops them."""

from __future__ import annotations

import re

from pilotage.serving.runtimes.allowed import COUNT, NAME, NUMBER, SWITCH, Allowed, options
from pilotage.serving.runtimes.contract import EVERYWHERE, Job, Runtime, Server, arguments
from pilotage.serving.stopping import finishes_by_itself, is_waited_for
from pilotage.serving.weights import literal

_IMAGE = "vllm/vllm-openai:v0.32.0"
_TAG = re.compile(r":v?0\.([0-9]+)\.[0-9]+[^/]*$")
_DRAINS_FROM = 18


def _server(job: Job) -> Server:
    runtime = job.spec.runtime
    image = runtime.image or _IMAGE
    tag = _TAG.search(image)
    drains = tag is None or int(tag[1]) >= _DRAINS_FROM
    options: list[tuple[str, ...]] = [
        ("--served-model-name", literal(job.model)),
        ("--host", EVERYWHERE),
        ("--port", str(job.port)),
    ]
    if drains:
        options.append(("--shutdown-timeout", str(job.drain_seconds)))
    if job.weights.hub_revision:
        options.append(("--revision", literal(job.weights.hub_revision)))
    if job.gpus > 1:
        options.append(("--tensor-parallel-size", str(job.gpus)))
    return Server(
        image=image,
        command=runtime.command or ["vllm", "serve"],
        args=[literal(job.weights.path), *arguments(options, runtime.args)],
        stop=finishes_by_itself(job.drain_seconds) if drains else is_waited_for(job.drain_seconds),
        health=runtime.health_path or "/health",
        metrics="/metrics",
        in_flight=RUNTIME.in_flight,
        start_seconds=3600,
        shared_memory=True,
    )


RUNTIME = Runtime(
    "vllm",
    port=8000,
    server=_server,
    loads_repositories=True,
    single_file=False,
    in_flight="vllm:num_requests_running",
    allowed=Allowed(
        options(
            {
                "--max-model-len --max-num-seqs --max-num-batched-tokens --max-logprobs --block-size": NUMBER,
                "--gpu-memory-utilization --swap-space --cpu-offload-gb --seed": NUMBER,
                "-tp --tensor-parallel-size -pp --pipeline-parallel-size": COUNT,
                "--dtype --kv-cache-dtype": NAME,
                "-q --quantization": NAME,
                "--revision --tokenizer-revision": NAME,
                "--task --runner --convert": NAME,
                "--enforce-eager": SWITCH,
                "--enable-prefix-caching --no-enable-prefix-caching": SWITCH,
                "--enable-chunked-prefill --no-enable-chunked-prefill": SWITCH,
                "--enable-auto-tool-choice": SWITCH,
                "--tool-call-parser --reasoning-parser": NAME,
                "--shutdown-timeout": NUMBER,
            }
        ),
        {"OMP_NUM_THREADS": COUNT, "VLLM_LOGGING_LEVEL": NAME, "VLLM_ATTENTION_BACKEND": NAME},
    ),
)
