"""SGLang. After SIGTERM it finishes its requests, for as long as they take, and answers health checks with 503.

It has no executable of its own: it is a module of some Python, which on a Host only the command can name.
"""

from pilotage.serving.runtimes.contract import HostLaunch, Launch, Option, PodLaunch, ServerContainer, ServingRuntime
from pilotage.serving.runtimes.stop import after_sigterm

_IMAGE = "lmsysorg/sglang:v0.5.23"


def _options(launch: Launch) -> list[Option]:
    return [
        ("--model-path", launch.model),
        ("--served-model-name", launch.alias),
        ("--host", launch.host),
        ("--port", str(launch.port)),
        ("--enable-metrics",),
    ]


def _in_pod(launch: PodLaunch) -> ServerContainer:
    gpus = str(launch.gpus) if launch.gpus > 1 else ""
    return ServerContainer(
        image=launch.runtime.image or _IMAGE,
        command=launch.runtime.command or ["python3", "-m", "sglang.launch_server"],
        args=launch.arguments(*_options(launch), ("--revision", launch.hub_revision), ("--tensor-parallel-size", gpus)),
        stop=after_sigterm(launch.drain_seconds),
        start_seconds=3600,
        shared_memory=True,
    )


def _on_host(launch: HostLaunch) -> list[str]:
    return [*launch.runtime.command, *launch.arguments(*_options(launch))]


RUNTIME = ServingRuntime(
    name="sglang",
    port=30000,
    in_pod=_in_pod,
    on_host=_on_host,
    keep_alive_seconds=5,  # of uvicorn
    request_metrics=("sglang:num_running_reqs", "sglang:num_queue_reqs"),
)
