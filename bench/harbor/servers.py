"""The two servers, each started on one core, with an administrator's token and a measure of its memory."""

import contextlib
import os
import re
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import yaml

from controlplane import Cluster

SERVER_CORE = {0}
START_SECONDS_MAX = 60.0


@dataclass(frozen=True, slots=True)
class Server:
    """Address, credentials and processes of a server."""

    host: str
    port: int
    tls: ssl.SSLContext
    token: str
    start_seconds: float
    processes: list[psutil.Process]

    def rss_bytes(self) -> int:
        """Resident memory of all its processes together."""
        return sum(process.memory_info().rss for process in self.processes)


@contextlib.contextmanager
def harbor() -> Iterator[Server]:
    """`pilotage harbor` in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="pilotage-bench-") as folder:
        started = time.perf_counter()
        command = [sys.executable, "-m", "pilotage", "harbor", "--data", folder]
        with _on_server_core(), _running(command) as process:
            assert process.stdout is not None
            process.stdout.readline()
            seconds = time.perf_counter() - started
            config = yaml.safe_load((Path(folder) / "kubeconfig").read_text())
            cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
            tls = ssl.create_default_context(cadata=_pem(cluster["certificate-authority-data"]))
            url = urlsplit(cluster["server"])
            assert url.hostname is not None
            assert url.port is not None
            yield Server(url.hostname, url.port, tls, user["token"], seconds, [psutil.Process(process.pid)])


@contextlib.contextmanager
def kubernetes() -> Iterator[Server]:
    """etcd and kube-apiserver."""
    started = time.perf_counter()
    with _on_server_core(), Cluster(components=()) as cluster:
        seconds = time.perf_counter() - started
        url = urlsplit(cluster.url)
        assert url.hostname is not None
        assert url.port is not None
        processes = [
            process
            for process in psutil.process_iter(["cmdline"])
            if re.search("etcd|kube-apiserver", " ".join(process.info["cmdline"][:1] or []))
            and str(cluster.folder) in " ".join(process.info["cmdline"] or [])
        ]
        for process in processes:
            process.cpu_affinity([*SERVER_CORE])
        tls = ssl.create_default_context(cafile=str(cluster.ca_file))
        yield Server(url.hostname, url.port, tls, cluster.tokens["tok-a"], seconds, processes)


SERVERS: dict[str, Callable[[], contextlib.AbstractContextManager[Server]]] = {
    "pilotage": harbor,
    "kube-apiserver": kubernetes,
}


@contextlib.contextmanager
def _on_server_core() -> Iterator[None]:
    """Pin processes that start in this context to the server's core, and this process to the others."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, SERVER_CORE)
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


@contextlib.contextmanager
def _running(command: list[str]) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    os.sched_setaffinity(0, set(range(os.cpu_count() or 1)) - SERVER_CORE or SERVER_CORE)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(START_SECONDS_MAX)


def _pem(text: str) -> str:
    import base64

    return base64.b64decode(text).decode()
