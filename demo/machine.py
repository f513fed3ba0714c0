"""One machine under a person's hands: a folder, the commands that are typed, and what is asked of the gateway."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class UnexpectedEnd(Exception):
    """A command did not end as it should have."""


class Machine:
    """One folder, and what a person types."""

    def __init__(self, folder: Path, show: Callable[[str], None]) -> None:
        self.folder = folder
        self.show = show
        self.data = folder / "data"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        own = str(Path(sys.executable).parent)
        self.env = {
            **os.environ,
            "PATH": f"{own}{os.pathsep}{os.environ.get('PATH', '')}",
            "KUBECONFIG": str(self.data / "harbor" / "kubeconfig"),
            "PILOTAGE_DATA": str(self.data),
        }

    def run(self, command: str, *, expected: tuple[int, ...] = (0,)) -> str:
        """Type a command: it is shown, and what it says; UnexpectedEnd for a code that is not expected."""
        self.show(f"$ {command}")
        words = [sys.executable, "-m", *shlex.split(command)]
        said = []
        with subprocess.Popen(
            words, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                said.append(line)
                self.show(f"  {line.rstrip()}")
        if process.returncode not in expected:
            raise UnexpectedEnd(f"{command}: ended with {process.returncode}\n{''.join(said)}")
        return "".join(said)

    def ask(self, model: str) -> str:
        """Ask as any client of the OpenAI API would."""
        message = {"role": "user", "content": "Who are you?"}
        body = {"model": model, "messages": [message], "max_tokens": 64}
        request = urllib.request.Request(
            f"{self.url}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            return str(json.load(response)["choices"][0]["message"]["content"]).strip()

    def answers(self, model: str) -> bool:
        """Whether it can be asked."""
        try:
            return bool(self.ask(model))
        except OSError:
            return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
