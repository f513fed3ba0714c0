"""Argo Rollouts' released controller beside a control plane. It watches all namespaces.

It routes by Istio's VirtualService, which it writes without any Istio there: the kind is enough. Its other routers that
know experiments are plugins, which it fetches as programs when it starts, or belong to a cloud.
"""

import os
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Self

from controlplane.layout import free_ports
from controlplane.processes import Supervisor, tail
from field.modules import FieldError
from field.tools import Say, tool

NAME = "argo-rollouts"
START_SECONDS_MAX = 30.0
POLL_SECONDS = 0.05
ISTIO_KINDS = ("virtualservices.networking.istio.io", "destinationrules.networking.istio.io")
"""Kinds among `field.crds("istio")` that it writes and watches."""


class ArgoRollouts:
    """One controller. Start it when `field.crds("argo-rollouts")` and its `ISTIO_KINDS` are served."""

    def __init__(self, kubeconfig: Path, say: Say) -> None:
        """Raises `FieldError` where it is unavailable."""
        self._program = tool(NAME, say)
        self._kubeconfig = kubeconfig
        self._supervisor = Supervisor()
        self._metrics, self._health = free_ports(2)

    def start(self) -> Self:
        """Start it, and wait until it says that it is healthy. Raises `FieldError`."""
        flags = [f"--kubeconfig={self._kubeconfig}", "--leader-elect=false"]
        flags += [f"--metricsPort={self._metrics}", f"--healthzPort={self._health}"]
        env = {"PATH": os.environ.get("PATH", ""), "HOME": str(self._supervisor.folder)}
        self._supervisor.start(NAME, [str(self._program), *flags], env=env)
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self._is_healthy():
            code = self._supervisor.exit_code(NAME)
            if code is not None or time.monotonic() > deadline:
                raise FieldError(f"Argo Rollouts did not start (exit code {code}); its log ends:\n{self.log_end()}")
            time.sleep(POLL_SECONDS)
        return self

    def stop(self) -> None:
        """End it, and remove all that it had here."""
        self._supervisor.close()

    def log_end(self) -> str:
        """The last lines of its log."""
        return tail(self._supervisor.log(NAME))

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

    def _is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._health}/healthz", timeout=1.0) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False
