"""The certificates, keys and tokens in the server's folder.

``ca.crt`` and ``ca.key``, ``server.crt`` and ``server.key``, ``accounts.key`` (it signs the tokens of ServiceAccounts),
``tokens.json`` (digests, not tokens) and ``kubeconfig``. All of it is for the owner alone, and nothing is believed that
somebody else could have put there. It is made when it is missing and stays as it is from then on, so that a client that
read the kubeconfig once still gets in after a restart. Certificates that are not valid now, because they were made
while the clock was wrong, are made anew.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
import ssl
import time
from typing import TYPE_CHECKING

from pilotage.private_files import make_private, read_private, write_private
from pilotage_harbor.access.signed import KEY_BYTES
from pilotage_harbor.access.tokens import Tokens, digest_of
from pilotage_harbor.apimachinery.users import AUTHENTICATED, MASTERS, UserInfo

if TYPE_CHECKING:
    from pathlib import Path

ADMIN = UserInfo("kubernetes-admin", groups=(MASTERS, AUTHENTICATED))
_FILES = ("ca.crt", "ca.key", "server.crt", "server.key")

_KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: pilotage
clusters:
- name: pilotage
  cluster:
    server: {server}
    certificate-authority-data: {authority}
users:
- name: pilotage-admin
  user:
    token: {token}
contexts:
- name: pilotage
  context:
    cluster: pilotage
    user: pilotage-admin
"""


class ServerCredentialsError(Exception):
    """The files in the folder cannot be used."""


class ServerCredentials:
    """Secrets of the folder, created if missing. Raises ServerCredentialsError, or NotPrivate if others have access."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        make_private(folder)
        if not self._has_certificates():
            self._make_certificates()
        self._key = self._known_key() or self._make_key()
        self.tokens = Tokens(key=self._key)
        self._load_tokens()
        self._admin_token = self._known_admin_token() or self._make_admin_token()

    @property
    def kubeconfig(self) -> Path:
        """Path of the administrator's kubeconfig."""
        return self._folder / "kubeconfig"

    def tls(self) -> ssl.SSLContext:
        """The TLS context of the server; clients may present a certificate of our authority."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.verify_mode = ssl.CERT_OPTIONAL
        context.set_alpn_protocols(["http/1.1"])
        context.num_tickets = 0  # our clients keep their connections
        try:
            context.load_cert_chain(self._folder / "server.crt", self._folder / "server.key")
            context.load_verify_locations(self._folder / "ca.crt")
        except (OSError, ssl.SSLError) as error:
            raise ServerCredentialsError(f"the certificates in {self._folder} cannot be read ({error})") from error
        return context

    def last_port(self) -> int | None:
        """Port of the previous run, from the kubeconfig; None if there is none."""
        try:
            found = re.search(r"^\s*server: https://[^:\s]+:(\d{1,5})$", self.kubeconfig.read_text(), re.MULTILINE)
        except (OSError, UnicodeDecodeError):
            return None
        return int(found[1]) if found is not None else None

    def write_kubeconfig(self, server: str) -> None:
        """Write the administrator's kubeconfig for this server, if it changes."""
        authority = base64.b64encode((self._folder / "ca.crt").read_bytes()).decode()
        text = _KUBECONFIG.format(server=server, authority=authority, token=self._admin_token)
        try:
            if self.kubeconfig.read_text() == text:
                return
        except (OSError, UnicodeDecodeError):
            pass
        write_private(self.kubeconfig, text.encode())

    def _has_certificates(self) -> bool:
        """Whether all files are there, and valid at this time: the authority's dates are those of all it signs."""
        try:
            for name in _FILES:
                read_private(self._folder / name)
        except FileNotFoundError:
            return False
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            context.load_verify_locations(self._folder / "ca.crt")
        except ssl.SSLError:
            return True  # not ours to replace: `tls` says what is wrong
        now = time.time()
        return all(
            ssl.cert_time_to_seconds(str(each["notBefore"])) <= now < ssl.cert_time_to_seconds(str(each["notAfter"]))
            for each in context.get_ca_certs()
        )

    def _make_certificates(self) -> None:
        from pilotage_harbor.server import pki

        authority = pki.make_authority()
        server = pki.make_server_certificate(authority)
        for name, content in zip(_FILES, (*authority, *server), strict=True):
            write_private(self._folder / name, content)

    def _known_key(self) -> bytes | None:
        path = self._folder / "accounts.key"
        try:
            key = read_private(path)
        except FileNotFoundError:
            return None
        if len(key) != KEY_BYTES:
            raise ServerCredentialsError(
                f"{path} is not the key of {KEY_BYTES} bytes that it should be. "
                "Remove it to get a new one; the tokens of ServiceAccounts end with it."
            )
        return key

    def _make_key(self) -> bytes:
        key = secrets.token_bytes(KEY_BYTES)
        write_private(self._folder / "accounts.key", key)
        return key

    def _load_tokens(self) -> None:
        try:
            for known in json.loads(read_private(self._folder / "tokens.json")):
                user = UserInfo(known["user"], known.get("uid", ""), tuple(known["groups"]))
                self.tokens.add(bytes.fromhex(known["sha256"]), user)
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ServerCredentialsError(
                f"{self._folder / 'tokens.json'} cannot be read ({error}). Remove it to get a new token."
            ) from error

    def _known_admin_token(self) -> str | None:
        """The one in the kubeconfig, if it is still valid."""
        try:
            found = re.search(r"^\s*token: (\S+)$", self.kubeconfig.read_text(), re.MULTILINE)
        except (OSError, UnicodeDecodeError):
            return None
        return found[1] if found is not None and self.tokens.user(found[1]) == ADMIN else None

    def _make_admin_token(self) -> str:
        token = secrets.token_urlsafe(32)
        digest = digest_of(token)
        known = [{"user": ADMIN.name, "groups": list(ADMIN.groups), "sha256": digest.hex()}]
        write_private(self._folder / "tokens.json", json.dumps(known, indent=1).encode())
        self.tokens = Tokens(key=self._key)
        self.tokens.add(digest, ADMIN)
        return token
