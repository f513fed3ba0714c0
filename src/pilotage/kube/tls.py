"""Trusted roots and the client certificate: PEM in memory, turned into an `ssl.SSLContext`."""

from __future__ import annotations

import contextlib
import os
import re
from typing import TYPE_CHECKING

import msgspec

from pilotage.kube.errors import ConfigError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

_PEM_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\s*", re.DOTALL)


class TlsSettings(msgspec.Struct, frozen=True):
    """TLS of a connection. `ca_data` of None means the roots of the system.

    `ca_origin` and `client_origin` name the file and the field that the PEM came from, for messages.
    """

    ca_data: bytes | None = None
    insecure: bool = False
    server_name: str | None = None
    client_cert: bytes | None = None
    client_key: bytes | None = None
    ca_origin: str = "certificate-authority"
    client_origin: str = "client-certificate"

    def with_certificate(self, cert: bytes, key: bytes) -> TlsSettings:
        """The same, but showing this client certificate (PEM)."""
        return msgspec.structs.replace(self, client_cert=cert, client_key=key)

    def ssl_context(self) -> ssl.SSLContext:
        """A client context for these settings; ConfigError where the PEM is no good."""
        import ssl

        ca = self._ca_text()
        try:
            # The roots of the system take a while to read: not where nobody is checked.
            context = (
                ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                if self.insecure and ca is None
                else ssl.create_default_context(cadata=ca)
            )
        except ssl.SSLError as error:
            raise ConfigError(
                f"{self.ca_origin}: not a usable certificate ({_reason(error)}). Put the cluster's CA there."
            ) from error
        # Python 3.13 turned on checks that the CAs of many clusters fail, and that kubectl does not make.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.client_cert is not None and self.client_key is not None:
            self._load_client_certificate(context, self.client_cert, self.client_key)
        return context

    def _ca_text(self) -> str | None:
        """Just the certificates: what stands between them may be in any encoding, and Python wants ASCII."""
        if self.ca_data is None:
            return None
        blocks = _PEM_CERTIFICATE.findall(self.ca_data)
        if not blocks:
            raise ConfigError(f"{self.ca_origin}: holds no PEM certificate. Put the cluster's CA there.")
        return b"".join(blocks).decode("ascii", "replace")

    def _load_client_certificate(self, context: ssl.SSLContext, cert: bytes, key: bytes) -> None:
        with _as_file(cert + b"\n" + key) as path:
            try:
                context.load_cert_chain(path, password=b"")  # without a password, OpenSSL would ask on the terminal
            except OSError as error:  # SSLError is one
                raise ConfigError(
                    f"{self.client_origin}: not a usable pair of certificate and key ({_reason(error)}). "
                    "Both must be PEM, belong together, and the key must not be encrypted."
                ) from error

    def __repr__(self) -> str:
        shown = {
            "ca_data": "…" if self.ca_data else None,
            "insecure": self.insecure,
            "server_name": self.server_name,
            "client_cert": "…" if self.client_cert else None,
            "client_key": "…" if self.client_key else None,
        }
        return f"TlsSettings({', '.join(f'{name}={value}' for name, value in shown.items())})"


def _reason(error: OSError) -> str:
    return getattr(error, "reason", None) or str(error)


@contextlib.contextmanager
def _as_file(secret: bytes) -> Iterator[str]:
    """A path that OpenSSL can read the secret from: memory where the platform has it, else a file only we can read."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("client-certificate")
        try:
            os.write(descriptor, secret)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
    else:
        import tempfile

        with tempfile.NamedTemporaryFile() as file:
            file.write(secret)
            file.flush()
            yield file.name
