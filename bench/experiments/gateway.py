"""The stage with `pilotage gateway` in the place of Contour: one Envoy, whose feed can be held."""

import contextlib
import os
import shlex
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Self

import yaml

from bench.experiments import held_envoy
from bench.experiments.proxies import gateway_has_route
from bench.experiments.stage import Stage, install, served
from controlplane import Cluster
from controlplane.processes import Supervisor
from field.edge import ENVOY_PORT, Edge
from field.envoy import envoy
from pilotage.kube import Client
from pilotage.operator.crds import crds


class GatewayNetwork(Edge):
    """Network, servers and clients of `Edge`, with the gateway's command in it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._envoy = cluster, envoy()
        self._supervisor = Supervisor()
        self.folder = self._supervisor.folder
        self._run = self.folder / "run"
        self.admin = self._run / "admin.sock"
        self._ports = [int(cluster.url.rpartition(":")[2])]

    def start(self) -> Self:
        """Start the network and the gateway, and wait until its Envoy is live. Raises `FieldError` and `NoNetwork`."""
        try:
            self._start_ground()
            self._start_gateway()
        except BaseException:
            self.stop()
            raise
        return self

    def hold(self) -> None:
        """Hold back everything that the control plane of the gateway sends to its Envoy."""
        self._tell(signal.SIGUSR1)

    def release(self) -> None:
        """Envoy gets what was held back, and everything that follows."""
        self._tell(signal.SIGUSR2)

    def _tell(self, number: signal.Signals) -> None:
        os.kill(int((self._run / held_envoy.PID).read_text()), number)

    def _start_gateway(self) -> None:
        config = yaml.safe_load(self._cluster.kubeconfig.read_text())
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{self._ask(do='relay')['port']}"
        kubeconfig = self.folder / "gateway.kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(config))
        argv = [sys.executable, "-m", "pilotage", "gateway", "--kubeconfig", str(kubeconfig)]
        argv += ["--run", str(self._run), "--listen", f"127.0.0.1:{ENVOY_PORT}", "--envoy", str(self._program())]
        argv += ["--metrics-address", "", "--access-log", ""]
        self._ask(do="envoy", argv=argv, log=str(self._supervisor.log("envoy")))
        self._wait("envoy", lambda: self.admin.is_socket() and (self._run / held_envoy.PID).exists())

    def _program(self) -> Path:
        """The program that is started in the place of Envoy."""
        path = self.folder / "held-envoy"
        argv = [sys.executable, held_envoy.__file__, str(self._envoy)]
        path.write_text(f'#!/bin/sh\nexec {shlex.join(argv)} "$@"\n')
        path.chmod(0o700)
        return path


@contextlib.asynccontextmanager
async def gateway(cluster: Cluster, client: Client) -> AsyncIterator[Stage]:
    """`pilotage gateway`, and its Envoy."""
    install(cluster, crds())
    with GatewayNetwork(cluster) as network:
        async with served(cluster, client, (network,), gateway_has_route) as stage:
            yield stage
