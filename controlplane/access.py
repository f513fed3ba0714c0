"""Operations that tests may perform on any cluster, be it ours or the user's own."""

import contextlib
import json
import secrets
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
Json = dict[str, Any]

POLL_SECONDS = 0.05
POLL_SECONDS_MAX = 0.2


class ApiError(Exception):
    """The API server refused; `reason` is the one of its Status, such as NotFound."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason


class KubectlError(Exception):
    """kubectl ended with an error; the message is what it said."""


class Access(ABC):
    """A cluster that others may see, too: everything that a test creates belongs in a namespace of its own."""

    kubeconfig: Path
    """The administrator's way in."""

    @abstractmethod
    def request(self, method: str, path: str, body: object = None) -> Json:
        """Send one request as administrator and return the decoded answer. Raises `ApiError`."""

    @abstractmethod
    def kubectl(self, *args: str, input: str | None = None) -> str:  # noqa: A002 (as in subprocess.run)
        """Run kubectl as administrator and return what it printed. Raises `KubectlError`."""

    @contextlib.contextmanager
    def namespace(self, prefix: str = "test", *, for_pods: bool = True) -> Iterator[str]:
        """A namespace of its own, ready for pods unless `for_pods` is false; deleted at the end."""
        name = f"{prefix[:50].rstrip('-')}-{secrets.token_hex(4)}"
        self.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        try:
            if for_pods:
                self.wait_for_service_account(name)
            yield name
        finally:
            self._delete_namespace(name)

    def find(self, path: str) -> Json | None:
        """The object at a path, or None where there is none."""
        try:
            return self.request("GET", path)
        except ApiError as error:
            if error.reason == "NotFound":
                return None
            raise

    def wait_for_service_account(self, namespace: str) -> None:
        """Wait until pods can be created in a namespace."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
        wait_for(f"ServiceAccount default in {namespace}", lambda: self.find(path))

    @abstractmethod
    def _delete_namespace(self, name: str) -> None: ...


def wait_for(what: str, condition: Callable[[], T | None], timeout: float = 60) -> T:
    """Ask again and again until the answer is true, and return it. Raises `TimeoutError`, which names `what`."""
    deadline, pause = time.monotonic() + timeout, POLL_SECONDS
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {timeout:.0f} s still no {what}")
        time.sleep(pause)
        pause = min(POLL_SECONDS_MAX, pause * 1.1)  # frequent requests would slow down the server that is waited for
    return answer


def run_kubectl(binary: Path, env: dict[str, str], args: tuple[str, ...], stdin: str | None) -> str:
    """Run kubectl and return its output. Raises `KubectlError`."""
    argv = [str(binary), *args]
    env = {**env, "GOGC": "off"}  # it is gone before its garbage matters
    done = subprocess.run(argv, env=env, input=stdin or "", capture_output=True, text=True, check=False)
    if done.returncode:
        raise KubectlError(f"kubectl {' '.join(args)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def status_error(status: str | bytes, fallback: str) -> ApiError:
    """The error that a Status object from the API server describes."""
    try:
        decoded = json.loads(status)
        return ApiError(decoded.get("reason") or fallback, decoded.get("message", ""))
    except (ValueError, AttributeError):
        return ApiError(fallback, str(status))
