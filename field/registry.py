"""A real container registry on loopback, with its contents in memory: the one that Docker and most others run."""

import hashlib
import json
import os
import socket
import time
import urllib.request
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import urljoin

import yaml

from controlplane.layout import free_ports
from controlplane.processes import Supervisor, tail
from field.modules import FieldError
from field.tools import Say, tool

START_SECONDS_MAX = 30.0
POLL_SECONDS = 0.02
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
FILE = "application/vnd.oci.image.layer.v1.tar"
"""Media type that oras gives any file, which need not be a tar."""
TITLE = "org.opencontainers.image.title"


class ContainerRegistry:
    """One registry, over plain http."""

    def __init__(self, say: Say, *, auth: Mapping[str, Any] | None = None, push_authorization: str = "") -> None:
        """`auth` is that section of its configuration. Raises `FieldError` where it is unavailable."""
        self._program = tool("registry", say)
        self._authorization = push_authorization
        self._supervisor = Supervisor()
        (self.port,) = free_ports(1)
        self.host = f"127.0.0.1:{self.port}"
        config: dict[str, Any] = {
            "version": "0.1",
            "log": {"level": "error", "accesslog": {"disabled": True}},
            "storage": {"inmemory": {}},
            "http": {"addr": self.host},
            "auth": auth,
        }
        (self._supervisor.folder / "config.yml").write_text(yaml.safe_dump(config))

    def __enter__(self) -> Self:
        folder = self._supervisor.folder
        env = {"PATH": os.environ.get("PATH", ""), "HOME": str(folder), "OTEL_TRACES_EXPORTER": "none"}
        self._supervisor.start("registry", [str(self._program), "serve", str(folder / "config.yml")], env=env)
        deadline = time.monotonic() + START_SECONDS_MAX
        while not self._accepts():
            code = self._supervisor.exit_code("registry")
            if code is not None or time.monotonic() > deadline:
                log = tail(self._supervisor.log("registry"))
                self._supervisor.close()
                raise FieldError(f"the registry did not start (exit code {code}); its log ends:\n{log}")
            time.sleep(POLL_SECONDS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._supervisor.close()

    def push(
        self,
        repository: str,
        tag: str,
        files: Mapping[str, bytes],
        *,
        media_types: Sequence[str] = (FILE,),
    ) -> str:
        """Push files as the layers of one artifact, as `oras push` does, and return its digest.

        A name that is empty leaves the layer without one. There is a media type for each file, or one for all.
        """
        kinds = [*media_types] * (len(files) if len(media_types) == 1 else 1)
        layers = []
        for (name, content), kind in zip(files.items(), kinds, strict=True):
            layers.append(self._blob(repository, content, kind))
            if name:
                layers[-1]["annotations"] = {TITLE: name}
        config = self._blob(repository, b"{}", "application/vnd.oci.empty.v1+json")
        body = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers}
        return self.put_manifest(repository, tag, body)

    def put_manifest(self, repository: str, tag: str, body: Mapping[str, Any]) -> str:
        """Push a manifest or an index, and return its digest."""
        raw = json.dumps(body).encode()
        self._request("PUT", f"/v2/{repository}/manifests/{tag}", raw, {"Content-Type": body["mediaType"]})
        return f"sha256:{hashlib.sha256(raw).hexdigest()}"

    def _blob(self, repository: str, content: bytes, media_type: str) -> dict[str, Any]:
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        place = self._request("POST", f"/v2/{repository}/blobs/uploads/")
        mark = "&" if "?" in place else "?"
        self._request("PUT", f"{place}{mark}digest={digest}", content, {"Content-Type": "application/octet-stream"})
        return {"mediaType": media_type, "digest": digest, "size": len(content)}

    def _request(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> str:
        """Send a request, and return where it says to go on."""
        root = f"http://{self.host}"
        request = urllib.request.Request(urljoin(root, path), data=body, method=method, headers=dict(headers or {}))  # noqa: S310
        if self._authorization:
            request.add_header("Authorization", self._authorization)
        with urllib.request.urlopen(request) as answer:  # noqa: S310 - on loopback
            return str(answer.headers.get("Location", ""))

    def _accepts(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0
