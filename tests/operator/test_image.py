"""Installation: the wheels that `make wheels` builds, and the image that `make image` makes of one of them.

The commands of the Containerfile are executed in a folder. `make image-test` builds the image itself: see
`whole_installation`.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pilotage import __version__
from pilotage.api.names import ENDPOINTS
from pilotage.kube import Client, ObjectKey, load_config
from tests.api.objects import endpoint, install
from tests.harbor.server.test_run import harbor
from tests.support.waiting import until

ROOT = Path(__file__).parents[2]
SOURCES = ("Makefile", "Containerfile", ".dockerignore", "pyproject.toml", "README.md", "LICENSE")
SECONDS_MAX = 60
ENDPOINT = {"model": {"source": "hf://a/b/c.gguf"}, "deletion": {"drainSeconds": 0}}


def do(*command, **options):
    """Run a command; what it says is shown if it fails."""
    words = [str(each) for each in command]
    ended = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    assert ended.returncode == 0, f"{' '.join(words)}: {ended.returncode}\n{ended.stdout}"
    return ended.stdout


def make(checkout, target, **variables):
    """Run `make`, with the Python of this environment."""
    given = [f"{name}={value}" for name, value in {"PYTHON": sys.executable, **variables}.items()]
    return do("make", "-o", ".venv/build", target, *given, cwd=checkout)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of this repository after `make wheels`."""
    copy = tmp_path_factory.mktemp("checkout")
    for each in SOURCES:
        shutil.copy(ROOT / each, copy)
    for each in ("src", "packages", "requirements"):
        shutil.copytree(ROOT / each, copy / each, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    make(copy, "wheels")
    return copy


def run_lines(containerfile):
    """The commands of its RUN lines."""
    lines = containerfile.read_text().splitlines()
    return [line.removeprefix("RUN ") for line in lines if line.startswith("RUN ")]


@contextlib.contextmanager
def running(*command, **options):
    """A process and all that it starts, until the end of the context."""
    with subprocess.Popen([str(each) for each in command], start_new_session=True, **options) as process:
        try:
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(SECONDS_MAX)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


async def reconciled(kubeconfig, namespace, phase=None):
    """Create an endpoint, and wait until the operator has brought it to `phase`, or to any."""
    async with Client.connect(load_config(kubeconfig=str(kubeconfig))) as client:
        await install(client)
        await client.create(ENDPOINTS, endpoint("chat", ENDPOINT), namespace=namespace)
        key = ObjectKey(namespace, "chat")

        def reached(obj):
            found = obj and obj.get("status", "phase", default="")
            return found == phase if phase else found

        await until(client, ENDPOINTS, key, reached, SECONDS_MAX)


@pytest.mark.timeout(600)  # it downloads
def test_the_commands_of_the_containerfile_install_an_operator_that_runs(checkout, tmp_path):
    outside = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    context = tmp_path / "build"
    context.mkdir()
    for each in (checkout / "requirements" / "image.txt", *(checkout / "dist").glob("pilotage-*.whl")):
        shutil.copy(each, context)
    for line in run_lines(checkout / "Containerfile"):
        do("sh", "-ec", line.replace("/opt/pilotage", str(tmp_path / "image")), cwd=context)
    pilotage = tmp_path / "image" / "bin" / "pilotage"
    assert do(pilotage, "--version", env=outside) == f"pilotage, version {__version__}\n"
    do(pilotage.with_name("python"), "-c", "import obstore", env=outside)  # pods fetch from buckets with this image
    with (
        harbor(tmp_path / "data", "--memory") as (_, _, kubeconfig),
        running(pilotage, "operator", "--kubeconfig", kubeconfig, "--metrics-address", "", env={"HOME": str(tmp_path)}),
    ):
        asyncio.run(reconciled(kubeconfig, "default"))
