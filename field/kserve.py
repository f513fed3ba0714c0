"""KServe's manager beside a control plane: a real controller of InferenceServices, in RawDeployment mode.

It watches all namespaces, and its only object in the cluster is a ConfigMap: no webhooks, no Istio, no Knative.
"""

import json
import os
import socket
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from controlplane.certs import Authority
from controlplane.layout import free_ports
from controlplane.processes import Supervisor, tail
from field.modules import FieldError
from field.tools import Say, tool

START_SECONDS_MAX = 30.0
POLL_SECONDS = 0.02
NAMESPACE = "kserve"
"""Namespace in which it reads its configuration."""
KINDS = tuple(
    f"{each}.serving.kserve.io"
    for each in ("inferenceservices", "servingruntimes", "clusterservingruntimes", "trainedmodels", "inferencegraphs")
)
"""All that it watches."""


def configuration() -> dict[str, Any]:
    """The ConfigMap without which it does not start."""
    ingress = {
        "ingressGateway": f"{NAMESPACE}/gateway",
        "ingressClassName": "none",
        "ingressDomain": "example.com",
        "disableIstioVirtualHost": True,
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "inferenceservice-config", "namespace": NAMESPACE},
        "data": {
            "deploy": json.dumps({"defaultDeploymentMode": "RawDeployment"}),
            "ingress": json.dumps(ingress),
        },
    }


class KServe:
    """One manager. Start it when its `KINDS` and its `configuration` are there."""

    def __init__(self, kubeconfig: Path, say: Say) -> None:
        """Raises `FieldError` where it is unavailable."""
        self._program = tool("kserve", say)
        self._kubeconfig = kubeconfig
        self._supervisor = Supervisor()
        self._metrics, self._health, self._webhooks = free_ports(3)
        folder = self._supervisor.folder
        certificates = folder / "k8s-webhook-server" / "serving-certs"
        certificates.mkdir(parents=True)
        Authority.create(folder, "ca").server(certificates, "tls")

    def start(self) -> Self:
        """Start it, also once more after `kill`. Raises `FieldError`."""
        flags = [f"--metrics-addr=127.0.0.1:{self._metrics}", f"--health-probe-addr=127.0.0.1:{self._health}"]
        flags += [f"--webhook-port={self._webhooks}"]
        folder = str(self._supervisor.folder)
        env = {"PATH": os.environ.get("PATH", ""), "HOME": folder, "TMPDIR": folder}
        env["KUBECONFIG"] = str(self._kubeconfig)
        self._supervisor.start("kserve", [str(self._program), *flags], env=env)
        deadline = time.monotonic() + START_SECONDS_MAX
        while not _accepts(self._webhooks):
            code = self._supervisor.exit_code("kserve")
            if code is not None or time.monotonic() > deadline:
                raise FieldError(f"KServe's manager did not start (exit code {code}); its log ends:\n{self.log_end()}")
            time.sleep(POLL_SECONDS)
        return self

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        self._supervisor.kill("kserve")

    def stop(self) -> None:
        """End it, and remove all that it had here."""
        self._supervisor.close()

    def log_end(self) -> str:
        """The last lines of what it said."""
        return tail(self._supervisor.log("kserve"))

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
