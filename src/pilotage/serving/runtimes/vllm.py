"""vLLM. From 0.18 on it finishes its requests after SIGTERM when it is told for how long; before, it drops them."""

import re

from pilotage.serving.runtimes.allowed import COUNT, NAME, NUMBER, SWITCH, Allowed, options
from pilotage.serving.runtimes.contract import HostLaunch, Launch, Option, PodLaunch, ServerContainer, ServingRuntime
from pilotage.serving.runtimes.stop import after_sigterm, after_sleep

_IMAGE = "vllm/vllm-openai:v0.32.0"
_TAG = re.compile(r":v?0\.([0-9]+)\.[0-9]+[^/]*$")
_DRAINS_FROM = 18


def _options(launch: Launch) -> list[Option]:
    return [
        ("--served-model-name", launch.alias, *launch.other_names),
        ("--host", launch.host),
        ("--port", str(launch.port)),
    ]


def _in_pod(launch: PodLaunch) -> ServerContainer:
    image = launch.runtime.image or _IMAGE
    tag = _TAG.search(image)
    drains = tag is None or int(tag[1]) >= _DRAINS_FROM
    preset = [
        *_options(launch),
        ("--shutdown-timeout", str(launch.drain_seconds) if drains else ""),
        ("--revision", launch.hub_revision),
        ("--tensor-parallel-size", str(launch.gpus) if launch.gpus > 1 else ""),
    ]
    return ServerContainer(
        image=image,
        command=launch.runtime.command or ["vllm", "serve"],
        args=[launch.model, *launch.arguments(*preset)],
        stop=after_sigterm(launch.drain_seconds) if drains else after_sleep(launch.drain_seconds),
        start_seconds=3600,
        shared_memory=True,
    )


def _on_host(launch: HostLaunch) -> list[str]:
    command = launch.runtime.command or [launch.program, "serve"]
    return [*command, launch.model, *launch.arguments(*_options(launch))]


RUNTIME = ServingRuntime(
    name="vllm",
    port=8000,
    in_pod=_in_pod,
    on_host=_on_host,
    keep_alive_seconds=5,  # of uvicorn
    answers_any_name=False,
    request_metrics=("vllm:num_requests_running", "vllm:num_requests_waiting"),
    program="vllm",
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
