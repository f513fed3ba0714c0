"""A network of its own (`field.ground`) with our gateway in it: an API server refuses loopback addresses, and others
must lead nowhere else. The way out is one to the API server, which the ground has held open since before it left.
"""

import contextlib
import sys
from collections.abc import Callable
from typing import Self

import psutil
import yaml

from controlplane import Cluster
from controlplane.processes import Supervisor, tail
from field.edge import ENVOY_PORT, Edge
from pilotage.operator.install import Values, manifests
from tests.operator.installing import PLURALS

ACCOUNT = "pilotage-gateway"


class Enclave(Edge):
    """Network, servers and clients of `Edge`; ``pilotage gateway`` takes the place of the rest."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._supervisor = Supervisor()
        self.folder = self._supervisor.folder
        self._ports = [int(cluster.url.rpartition(":")[2])]

    def start(self) -> Self:
        """The network alone. Raises `FieldError` and `NoNetwork`."""
        try:
            self._start_ground()
        except BaseException:
            self.stop()
            raise
        return self

    def start_gateway(self, token: str) -> None:
        """Start the command with the token. It listens where the clients of `load` expect an Envoy."""
        config = yaml.safe_load(self._cluster.kubeconfig.read_text())
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{self._ask(do='relay')['port']}"
        config["users"] = [{"name": ACCOUNT, "user": {"token": token}}]
        config["contexts"][0]["context"]["user"] = ACCOUNT
        kubeconfig = self.folder / "gateway.kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(config))
        argv = [sys.executable, "-m", "pilotage", "gateway", "--kubeconfig", str(kubeconfig)]
        argv += ["--run", str(self.folder / "run"), "--listen", f"127.0.0.1:{ENVOY_PORT}"]
        self._ask(do="envoy", argv=argv, log=str(self._supervisor.log("gateway")))

    def envoy(self) -> psutil.Process:
        """The one of the gateway."""
        return self._child(lambda each: "--drain-time-s" in each.cmdline() and each.cwd() == self._run)

    def control(self) -> psutil.Process:
        """The control plane of the gateway."""
        return self._child(lambda each: any(self._run in word and "{" in word for word in each.cmdline()))

    @property
    def _run(self) -> str:
        return str(self.folder / "run")

    def _child(self, is_it: Callable[[psutil.Process], bool]) -> psutil.Process:
        for each in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if is_it(each):
                    return each
        raise AssertionError(tail(self._supervisor.log("gateway")))


def install_account(cluster: Cluster, namespace: str) -> tuple[list[str], str]:
    """The gateway's service account with its role, as they are installed, and nothing else.

    Returns the paths of what belongs to no namespace, which is the caller's to delete, and a token.
    """
    made = []
    for obj in manifests(Values(namespace=namespace)):
        meta = obj["metadata"]
        if meta["name"] != ACCOUNT:
            continue
        if "namespace" not in meta:  # those for the whole cluster get names of their own
            meta["name"] += f"-{namespace}"
            if "roleRef" in obj:
                obj["roleRef"]["name"] = meta["name"]
        path = PLURALS[obj["kind"]].path(meta.get("namespace", ""))
        cluster.request("POST", path, obj)
        made += [] if "namespace" in meta else [f"{path}/{meta['name']}"]
    path = PLURALS["ServiceAccount"].path(namespace, ACCOUNT)
    wish = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token: str = cluster.request("POST", f"{path}/token", wish)["status"]["token"]
    return made, token
