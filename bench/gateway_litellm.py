"""LiteLLM's proxy, from the package index, in an environment of its own: it is no dependency of ours."""

import contextlib
import http.client
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from bench.progress import say

VERSION = "1.106.2"
START_SECONDS_MAX = 120.0
OK = 200
_CONFIG = """
model_list:
  - model_name: chat
    litellm_params: {{model: openai/chat, api_base: "http://127.0.0.1:{upstream}/v1", api_key: none}}
litellm_settings: {{telemetry: false, num_retries: 0}}
general_settings: {{dangerously_permit_weak_or_unset_master_key: true}}
"""


def environment() -> Path:
    """Folder of the environment; it is made, which takes a minute or two, where it is not there."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pilotage" / f"litellm-{VERSION}"
    done = base / "installed"
    if not done.exists():
        say(f"gateway: LiteLLM {VERSION} is installed into {base}")
        subprocess.run([sys.executable, "-m", "venv", str(base)], check=True)
        subprocess.run([base / "bin" / "pip", "install", "--quiet", f"litellm[proxy]=={VERSION}"], check=True)
        done.touch()
    return base


@contextlib.contextmanager
def litellm_proxy(port: int, upstream: int) -> Iterator[psutil.Process]:
    """The proxy with one worker, which leads the model chat to a server, and keeps connections to it.

    It asks for no key, as the gateway does not: its setting for local use, on loopback.
    """
    program = environment() / "bin" / "litellm"
    with tempfile.TemporaryDirectory(prefix="pilotage-bench-") as folder:
        config = Path(folder) / "config.yaml"
        config.write_text(_CONFIG.format(upstream=upstream))
        env = {
            "PATH": os.environ["PATH"],
            "HOME": folder,
            "LITELLM_LOG": "ERROR",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }
        process = subprocess.Popen(
            [program, "--config", config, "--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"],
            env=env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _wait(port)
            yield psutil.Process(process.pid)
        finally:
            process.terminate()
            process.wait()


def _wait(port: int) -> None:
    until = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < until:
        with contextlib.suppress(OSError, http.client.HTTPException):
            asked = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
            asked.request("GET", "/health/liveliness")
            if asked.getresponse().status == OK:
                return
        time.sleep(0.2)
    raise RuntimeError("LiteLLM does not answer")
