"""Folder of a Go module on this machine; fetched when it is not there yet."""

import functools
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

FETCH_SECONDS_MAX = 300


class FieldError(Exception):
    """A program of others is unavailable; the message is one line with the reason, and what to do."""


class NoGo(FieldError):
    """There is no Go here, with which all of it is fetched."""


@functools.cache
def module_dir(name: str, version: str, expected_sum: str = "") -> Path:
    """The folder of a module, such as ``github.com/kserve/kserve`` at ``v0.15.0``. Not ours to write to.

    What is in Go's cache is there without a network. Raises `NoGo`, and `FieldError` where it cannot be fetched or is
    not what `expected_sum` says.
    """
    go = shutil.which("go")
    if go is None:
        raise NoGo(f"no Go to read {name} {version} with: install Go 1.24 or newer")
    done = subprocess.run(
        [go, "mod", "download", "-json", f"{name}@{version}"],
        cwd=tempfile.gettempdir(),  # in a folder of a module, Go would read that module first
        env={**os.environ, "GOWORK": "off"},
        capture_output=True,
        text=True,
        check=False,
        timeout=FETCH_SECONDS_MAX,
    )
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = {"Error": done.stderr}
    if done.returncode or "Dir" not in answer:
        why = " ".join(str(answer.get("Error") or done.stderr).split())
        raise FieldError(f"Go could not fetch {name}@{version}: {why}")
    if expected_sum and answer.get("Sum") != expected_sum:
        raise FieldError(f"{name}@{version} is not what it was: {answer.get('Sum')}, and {expected_sum} was expected")
    return Path(answer["Dir"])
