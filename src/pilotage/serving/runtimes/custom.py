"""A server of the user's own: an image or, on a Host, a command.

It finds the weights, the name of the model and its port in the environment (``MODEL_PATH``, ``MODEL_NAME``, ``PORT``),
and can have them in its arguments, as ``$(MODEL_PATH)``. Like any program in Kubernetes, it should finish its requests
after SIGTERM.
"""

from pilotage.serving.runtimes.contract import HostLaunch, PodLaunch, ServerContainer, ServingRuntime
from pilotage.serving.runtimes.llama_cpp import context_tokens
from pilotage.serving.runtimes.stop import after_sigterm


def _in_pod(launch: PodLaunch) -> ServerContainer:
    return ServerContainer(
        image=launch.runtime.image or "",
        command=launch.runtime.command,
        args=launch.runtime.args,
        stop=after_sigterm(launch.drain_seconds),
        env=[
            {"name": "MODEL_PATH", "value": launch.model},
            {"name": "MODEL_NAME", "value": launch.alias},
            {"name": "PORT", "value": str(launch.port)},
        ],
    )


def _on_host(launch: HostLaunch) -> list[str]:
    return [*launch.runtime.command, *launch.runtime.args]


RUNTIME = ServingRuntime(
    name="custom",
    custom=True,
    port=8080,
    in_pod=_in_pod,
    on_host=_on_host,
    health="",
    lists_models=False,
    reads_open_files=True,
    context=context_tokens,  # most commands of users start some build of llama-server
)
