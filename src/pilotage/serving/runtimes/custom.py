"""A server of the user's own: an image, and as much else as it needs.

It finds the weights, the name of the model and its port in the environment (``MODEL_PATH``, ``MODEL_NAME``, ``PORT``),
and can have them in its arguments, as ``$(MODEL_PATH)``. Like any program in Kubernetes, it should finish its requests
after SIGTERM.
"""

from __future__ import annotations

from pilotage.serving.runtimes.contract import Job, Runtime, Server
from pilotage.serving.stopping import finishes_by_itself
from pilotage.serving.weights import literal


def _server(job: Job) -> Server:
    runtime = job.spec.runtime
    return Server(
        image=runtime.image or "",
        command=runtime.command,
        args=runtime.args,
        stop=finishes_by_itself(job.drain_seconds),
        health=runtime.health_path or "",
        env=[
            {"name": "MODEL_PATH", "value": literal(job.weights.path)},
            {"name": "MODEL_NAME", "value": literal(job.model)},
            {"name": "PORT", "value": str(job.port)},
        ],
    )


RUNTIME = Runtime("custom", port=8080, server=_server, loads_repositories=True, single_file=False)
