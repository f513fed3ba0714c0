"""A machine of its own for each test: everything of it lies in the test's folder and ends with the test."""

import contextlib
import subprocess
import sys

import pytest

from demo.machine import Machine
from demo.tiny_gguf import write


@contextlib.contextmanager
def made(folder):
    """A machine in a folder, with models, that ends with the context."""
    said = []
    folder = folder / "a-name-that-leaves-no-room-for-the-path-of-a-socket"
    folder.mkdir()
    machine = Machine(folder, said.append)
    write(folder / "v1.gguf", sentence="I am the first version.", endless=True)
    write(folder / "v2.gguf", sentence="I am the second one.", endless=True)
    try:
        yield machine
    finally:
        down = [sys.executable, "-m", "pilotage", "down", "--now", "--data", str(machine.data)]
        ended = subprocess.run(down, capture_output=True, text=True, check=False, timeout=60)
        assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.fixture
def machine(tmp_path):
    with made(tmp_path) as machine:
        yield machine
