"""The two servers that a case can run on, and the connections to them."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
from msgspec.structs import replace
from multidict import CIMultiDict
from yarl import URL

from controlplane import Cluster, assets
from pilotage.kube import ClusterConfig, load_config
from tests.contract.kit import Answer

if TYPE_CHECKING:
    from tests.contract.hooks import HookServer
    from tests.contract.kubectl import Kubectl

CONTROLLERS = (
    "garbage-collector-controller",
    "namespace-controller",
    "clusterrole-aggregation-controller",
    "persistentvolumeclaim-protection-controller",
    "persistentvolume-protection-controller",
    "volumeattributesclass-protection-controller",
    "resourcequota-controller",
    "serviceaccount-controller",
)
"""Controllers of kube-controller-manager whose work is harbor's own; the last because clusters are waited for by it."""

START_SECONDS_MAX = 60.0
PARALLEL = 24


@dataclass(frozen=True, slots=True)
class Place:
    """A server that runs, and a folder for kubectl's cache of what it serves."""

    name: str
    kubeconfig: Path
    cache: Path


@contextlib.contextmanager
def kubernetes() -> Iterator[Place]:
    """A kube-apiserver of our own with those controllers that harbor has, too, and no others."""
    with Cluster(
        components=("kube-controller-manager",),
        flags={"kube-controller-manager": [f"--controllers={','.join(CONTROLLERS)}", "--concurrent-gc-syncs=20"]},
        cores=1,
    ) as cluster:
        yield Place("kubernetes", cluster.kubeconfig, cluster.folder / "kubectl")


@contextlib.contextmanager
def harbor() -> Iterator[Place]:
    """`pilotage harbor` as a process of its own, on a folder that is removed with it."""
    with tempfile.TemporaryDirectory(prefix="contract-") as folder:
        data = Path(folder, "data")
        log = Path(folder, "log")
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "pilotage", "harbor", "--data", str(data)],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )
        try:
            _wait_until_ready(process, data / "kubeconfig", log)
            yield Place("harbor", data / "kubeconfig", Path(folder, "kubectl"))
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if keep := os.environ.get("CONTRACT_LOG"):
                Path(keep).write_bytes(log.read_bytes())


def _wait_until_ready(process: subprocess.Popen[bytes], kubeconfig: Path, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    # The path is printed once requests are answered; the file alone may be there a moment before.
    while str(kubeconfig) not in log.read_text(errors="replace"):
        if process.poll() is not None:
            raise RuntimeError(f"harbor ended with exit code {process.returncode}:\n{log.read_text()}")
        if time.monotonic() > deadline:
            raise RuntimeError(f"harbor does not answer after {START_SECONDS_MAX:.0f} s:\n{log.read_text()}")
        time.sleep(0.01)


@dataclass(frozen=True, slots=True)
class Opened:
    """A watch's head, and where its lines come from."""

    status: int
    headers: Mapping[str, str]
    stream: aiohttp.StreamReader


class Connected:
    """HTTP connections to a place. Requests are sent as they are given: aiohttp adds nothing of its own."""

    def __init__(self, place: Place, config: ClusterConfig, session: aiohttp.ClientSession) -> None:
        self.place = place
        self.config = config
        self.hooks: HookServer
        self.kubectl: Kubectl
        """Both are set by the runner of the cases."""
        self._session = session
        self._admin = config.tls.ssl_context()
        self._nobody = replace(config.tls, client_cert=None, client_key=None).ssl_context()

    @classmethod
    @contextlib.asynccontextmanager
    async def to(cls, place: Place) -> AsyncIterator[Connected]:
        """Connect, for the time of the block."""
        config = load_config(kubeconfig=str(place.kubeconfig))
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=60)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=True) as session:
            yield cls(place, config, session)
            await asyncio.sleep(0)

    async def request(
        self, method: str, target: str, body: bytes | None, headers: Mapping[str, str], *, anonymous: bool = False
    ) -> Answer:
        """Send one request and read the whole answer."""
        async with self._session.request(
            method,
            URL(self.config.server + target, encoded=True),
            data=None if body is None else io.BytesIO(body),  # aiohttp warns of large bytes
            headers=await self._proven(headers, anonymous=anonymous),
            ssl=self._nobody if anonymous else self._admin,
            allow_redirects=False,
            skip_auto_headers=("Content-Type", "Accept", "Accept-Encoding", "User-Agent"),
        ) as response:
            content = await response.read()
            return Answer(response.status, _plain(response.headers), _decoded(content), content)

    @contextlib.asynccontextmanager
    async def stream(self, target: str, headers: Mapping[str, str]) -> AsyncIterator[Opened]:
        """Open a watch."""
        async with self._session.get(
            URL(self.config.server + target, encoded=True),
            headers=await self._proven(headers, anonymous=False),
            ssl=self._admin,
            timeout=aiohttp.ClientTimeout(total=None),
            skip_auto_headers=("Accept-Encoding",),
        ) as response:
            yield Opened(response.status, _plain(response.headers), response.content)

    async def _proven(self, headers: Mapping[str, str], *, anonymous: bool) -> CIMultiDict[str]:
        proven = CIMultiDict[str]()
        if not anonymous:
            proven.extend(await self.config.credentials.headers())
        for name, value in headers.items():
            for line in value.split("\n"):
                proven.add(name, line)
        return proven


def kubectl_binary() -> Path:
    """The real kubectl; NoControlPlane where there is none."""
    return assets.require(os.environ, {"kubectl"})["kubectl"]


def _plain(headers: Mapping[str, str]) -> dict[str, str]:
    names = {name.lower() for name in headers}
    return {name: "\n".join(headers.getall(name)) for name in names}  # type: ignore[attr-defined]


def _decoded(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return content.decode(errors="replace")
