"""Text Generation Inference. It answers to any model name, and after SIGTERM gives its requests 90 seconds at most."""

from pilotage.serving.runtimes.allowed import COUNT, NAME, NUMBER, Allowed, options
from pilotage.serving.runtimes.contract import HostLaunch, Launch, Option, PodLaunch, ServerContainer, ServingRuntime
from pilotage.serving.runtimes.stop import after_sigterm

_IMAGE = "ghcr.io/huggingface/text-generation-inference:3.3.5"
_DRAINS_SECONDS_MAX = 90


def _options(launch: Launch) -> list[Option]:
    # Without --hostname it listens on the name in HOSTNAME, which is that of the pod.
    return [("--model-id", launch.model), ("--hostname", launch.host), ("--port", str(launch.port))]


def _in_pod(launch: PodLaunch) -> ServerContainer:
    return ServerContainer(
        image=launch.runtime.image or _IMAGE,
        command=launch.runtime.command,
        args=launch.arguments(*_options(launch), ("--revision", launch.hub_revision)),
        stop=after_sigterm(launch.drain_seconds, at_most=_DRAINS_SECONDS_MAX),
        start_seconds=3600,
        shared_memory=True,
    )


def _on_host(launch: HostLaunch) -> list[str]:
    return [*(launch.runtime.command or [launch.program]), *launch.arguments(*_options(launch))]


RUNTIME = ServingRuntime(
    name="tgi",
    port=8080,
    in_pod=_in_pod,
    on_host=_on_host,
    keep_alive_seconds=60,  # hyper itself closes none
    lists_models=False,
    request_metrics=("tgi_batch_current_size", "tgi_queue_size"),
    program="text-generation-launcher",
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
