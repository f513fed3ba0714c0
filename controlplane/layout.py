"""The files of one control plane: certificates, kubeconfigs, tokens. All are new, inside its run folder."""

import base64
import contextlib
import json
import random
import re
import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from controlplane import audit, certs

# Below the range from which systems take the ports of outgoing connections: nothing takes one while a server is down.
PORTS = range(20_000, 32_000)


@dataclass(frozen=True, slots=True)
class Ports:
    """Ports of the servers, all on 127.0.0.1."""

    api: int
    etcd: int
    etcd_peer: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Everything that the components read or write, by name."""

    folder: Path
    ports: Ports
    authority: certs.Authority
    front_proxy_ca: certs.KeyPair
    serving: certs.KeyPair
    service_accounts: certs.KeyPair
    tokens: Mapping[str, str]
    """Token of each user in `token_file`."""

    @classmethod
    def create(cls, folder: Path) -> Self:
        """Choose ports and write what the components read, but for the kubeconfigs, which `add_user` writes."""
        authority = certs.Authority.create(folder, "ca")
        layout = cls(
            folder=folder,
            ports=Ports(*free_ports(3)),
            authority=authority,
            front_proxy_ca=certs.Authority.create(folder, "front-proxy-ca").pair,
            serving=authority.server(folder, "kube-apiserver"),
            service_accounts=certs.write_signing_keys(folder, "service-accounts"),
            tokens={user: secrets.token_urlsafe(16) for user in ("tok-a", "tok-b")},
        )
        (folder / "users").mkdir()
        layout.audit_policy.write_text(audit.POLICY)
        lines = [f'{token},{user},{user},"system:masters"\n' for user, token in layout.tokens.items()]
        certs.write_private(layout.token_file, "".join(lines).encode())
        return layout

    @property
    def ca(self) -> certs.KeyPair:
        """Certificate authority of the API server and of its users."""
        return self.authority.pair

    @property
    def audit_log(self) -> Path:
        """Audit log of the API server: every request with its user."""
        return self.folder / "logs" / "audit.jsonl"

    @property
    def audit_policy(self) -> Path:
        """Audit policy: the requests that the audit log records."""
        return self.folder / "audit-policy.yaml"

    @property
    def token_file(self) -> Path:
        """The static tokens that the API server knows."""
        return self.folder / "tokens.csv"

    @property
    def api_url(self) -> str:
        """URL of the API server."""
        return f"https://127.0.0.1:{self.ports.api}"

    @property
    def etcd_url(self) -> str:
        """URL of etcd."""
        return f"http://127.0.0.1:{self.ports.etcd}"

    def kubeconfig(self, user: str) -> Path:
        """The kubeconfig of a user, once `add_user` has written it."""
        return self._user_file(user, "kubeconfig")

    def certificate(self, user: str) -> certs.KeyPair:
        """The client certificate of a user, once `add_user` has made it."""
        return certs.KeyPair(self._user_file(user, "crt"), self._user_file(user, "key"))

    def add_user(self, user: str, groups: Sequence[str] = ()) -> Path:
        """Make a client certificate and a kubeconfig that holds it; one that this user had is replaced."""
        pair = self.certificate(user)
        self.authority.client(pair, user, groups)
        cluster = {"server": self.api_url, "certificate-authority-data": _encoded(self.ca.certificate)}
        credentials = {"client-certificate-data": _encoded(pair.certificate), "client-key-data": _encoded(pair.key)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": user,
            "clusters": [{"name": "pilotage", "cluster": cluster}],
            "users": [{"name": user, "user": credentials}],
            "contexts": [{"name": user, "context": {"cluster": "pilotage", "user": user}}],
        }
        certs.write_private(self.kubeconfig(user), json.dumps(config, indent=2).encode())  # JSON is YAML as well
        return self.kubeconfig(user)

    def _user_file(self, user: str, suffix: str) -> Path:
        return self.folder / "users" / f"{re.sub(r'[^A-Za-z0-9.-]', '_', user)}.{suffix}"


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def free_ports(count: int) -> list[int]:
    """Ports on which no process listens right now."""
    ports: list[int] = []
    for port in random.sample(PORTS, len(PORTS)):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            ports.append(port)
        if len(ports) == count:
            break
    return ports
