"""Contour and Envoy beside a control plane: a real data plane for tests, in a network of its own (`field.ground`)."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from controlplane.layout import free_ports
from controlplane.processes import Supervisor, tail
from field.envoy import envoy
from field.modules import FieldError
from field.tools import Say, tool

REPOSITORY = Path(__file__).parent.parent
START_SECONDS_MAX = 30.0
POLL_SECONDS = 0.02
LISTENER_PORT = 80
ENVOY_PORT = LISTENER_PORT + 8000
"""Port on which Contour lets Envoy listen for a Gateway's listener, inside of the network."""
OPTIONAL_KINDS = ("extensionservices", "tlsroutes", "grpcroutes", "tcproutes", "backendtlspolicies")
"""Kinds that Contour can do without; some of them are in the Gateway API's experimental channel only."""


class NoNetwork(FieldError):
    """A network namespace is not permitted here."""


class Edge:
    """One Contour, which watches one namespace and serves one Gateway in it, and one Envoy.

    Start it when the namespace and the CRDs are there. The GatewayClass and the Gateway are the caller's.
    """

    def __init__(self, kubeconfig: Path, namespace: str, gateway: str, say: Say, *, everywhere: bool = False) -> None:
        """`everywhere`: Contour watches all namespaces. Raises `FieldError` where Contour or Envoy is unavailable."""
        self._kubeconfig, self._namespace, self._gateway = kubeconfig, namespace, gateway
        self._everywhere = everywhere
        self._contour, self._envoy = tool("contour", say), envoy()
        self._supervisor = Supervisor()
        self.folder = self._supervisor.folder
        self.admin = self.folder / "admin.sock"
        """The unix socket of Envoy's admin interface."""
        self._ports = free_ports(5)

    def start(self) -> Self:
        """Start everything, and wait until Envoy is live. Raises `FieldError` and `NoNetwork`."""
        try:
            self._start_ground()
            self._start_contour()
            self._start_envoy()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End all of it."""
        if hasattr(self, "_channel"):
            self._lines.close()
            self._channel.close()
        self._supervisor.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def keep_logs(self) -> Path:
        """Keep the logs when everything else is removed; returns their folder."""
        self._supervisor.keep_logs()
        return self._supervisor.logs

    # Operations of tests.

    def backend(self, name: str) -> str:
        """Start a server that answers with its name; returns its address (the port is `field.ground.backends.PORT`)."""
        address: str = self._ask(do="backend", name=name)["address"]
        return address

    def stop_backend(self, name: str) -> None:
        """Kill it; what is under way to it is cut."""
        self._ask(do="stop-backend", name=name)

    def hold(self) -> None:
        """Hold back everything that Contour sends to Envoy."""
        self._ask(do="hold")

    def release(self) -> None:
        """Envoy gets what was held back, and everything that follows."""
        self._ask(do="release")

    def load(self, host: str, *, clients: int = 3, pause: float = 0.01, streams: int = 3, seconds: float = 0.5) -> None:
        """Begin to ask for a host: see `field.ground.load`."""
        options = {"clients": clients, "pause": pause, "streams": streams, "seconds": seconds}
        self._ask(do="load", host=host, port=ENVOY_PORT, **options)

    def mark(self, host: str) -> None:
        """Start a new count, in `after`, of the backends that answer requests from here on."""
        self._ask(do="mark", host=host)

    def report(self, host: str) -> dict[str, Any]:
        """Counts of the load so far."""
        return self._ask(do="report", host=host)

    def stop_load(self, host: str) -> dict[str, Any]:
        """End the load when all of its requests have, and say what it has seen."""
        return self._ask(do="stop-load", host=host)

    # How it is put together.

    def _start_ground(self) -> None:
        path = self.folder / "ground.sock"
        argv = [sys.executable, "-m", "field.ground", str(path), str(self._ports[0])]
        self._supervisor.start("ground", argv, env=os.environ, cwd=REPOSITORY)
        channel = socket.socket(socket.AF_UNIX)
        channel.settimeout(START_SECONDS_MAX)
        try:
            self._wait("ground", lambda: _connects(channel, path))
        except BaseException:
            channel.close()
            raise
        self._channel, self._lines = channel, channel.makefile("r")

    def _start_contour(self) -> None:
        config = self.folder / "contour.yaml"
        config.write_text(
            json.dumps({"gateway": {"gatewayRef": {"namespace": self._namespace, "name": self._gateway}}})
        )
        flags = [f"--kubeconfig={self._kubeconfig}", f"--config-path={config}", "--insecure"]
        flags += ["--disable-leader-election"]
        flags += [] if self._everywhere else [f"--watch-namespaces={self._namespace}"]
        flags += ["--envoy-http-access-log=/dev/null", "--envoy-https-access-log=/dev/null"]
        flags += [f"--disable-feature={each}" for each in OPTIONAL_KINDS]
        for name, port in zip(("xds", "http", "health", "debug-http", "stats"), self._ports, strict=True):
            flags += [f"--{name}-address=127.0.0.1", f"--{name}-port={port}"]
        self._supervisor.start("contour", [str(self._contour), "serve", *flags], env=_plain_environment(self.folder))
        self._wait("contour", lambda: _accepts(self._ports[0]))

    def _start_envoy(self) -> None:
        bootstrap = self.folder / "envoy.json"
        flags = [
            f"--admin-address={self.admin}",
            "--xds-address=127.0.0.1",
            f"--xds-port={self._ask(do='relay')['port']}",
        ]
        flags += [f"--resources-dir={self.folder / 'resources'}", "--dns-lookup-family=v4"]
        argv = [str(self._contour), "bootstrap", str(bootstrap), *flags]
        done = subprocess.run(argv, env=_plain_environment(self.folder), capture_output=True, text=True, check=False)
        if done.returncode:
            raise FieldError(f"contour bootstrap failed: {done.stderr}")
        argv = [
            str(self._envoy),
            "-c",
            str(bootstrap),
            "--service-cluster",
            "projectcontour",
            "--service-node",
            "envoy-1",
        ]
        argv += ["--concurrency", "1", "-l", "warning", "--disable-hot-restart"]
        self._ask(do="envoy", argv=argv, log=str(self._supervisor.log("envoy")))
        self._wait("envoy", self.admin.is_socket)

    def _ask(self, **command: object) -> dict[str, Any]:
        self._channel.sendall(json.dumps(command).encode() + b"\n")
        answer: dict[str, Any] = json.loads(self._lines.readline())
        if "error" in answer:
            raise FieldError(f"{command}: {answer['error']}")
        return answer

    def _wait(self, name: str, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_SECONDS_MAX
        while not condition():
            code = self._supervisor.exit_code(name) if name != "envoy" else None
            end = tail(self._supervisor.log(name))
            if code and "not permitted" in end:
                raise NoNetwork(end.splitlines()[-1])
            if code is not None or time.monotonic() > deadline:
                raise FieldError(f"{name} did not start (exit code {code}); its log ends:\n{end}")
            time.sleep(POLL_SECONDS)


class EnvoyBeside(Edge):
    """One more Envoy of the Contour of an `Edge`, in a network of its own: the feed of either can be held.

    Servers get the addresses that they have in the network of the first, if both are asked for the same, in one order.
    """

    def __init__(self, first: Edge) -> None:
        """Start it when the first runs; stop it before."""
        self._contour, self._envoy, self._ports = first._contour, first._envoy, first._ports
        self._supervisor = Supervisor()
        self.folder = self._supervisor.folder
        self.admin = self.folder / "admin.sock"

    def start(self) -> Self:
        """Start the network and the Envoy, and wait until it is live. Raises `FieldError` and `NoNetwork`."""
        try:
            self._start_ground()
            self._start_envoy()
        except BaseException:
            self.stop()
            raise
        return self


def _plain_environment(folder: Path) -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", ""), "HOME": str(folder)}


def _connects(channel: socket.socket, path: Path) -> bool:
    """Connect to a unix socket. One that is there refuses for a moment, until its process listens."""
    try:
        channel.connect(str(path))
    except (FileNotFoundError, ConnectionRefusedError):
        return False
    return True


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
