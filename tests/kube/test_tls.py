"""TLS settings, in handshakes with a real server."""

import asyncio
import datetime
import os
import pty
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pilotage.kube.config import ConfigError, TlsSettings


class Pair(NamedTuple):
    """A certificate and its key, as PEM and as objects."""

    cert: bytes
    key: bytes
    certificate: x509.Certificate
    private_key: ec.EllipticCurvePrivateKey


def issue(name: str, issuer: Pair | None = None) -> Pair:
    """A certificate for a host or a person, signed by `issuer`, or a CA."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start.replace(year=2100))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    )
    certificate = builder.sign(issuer.private_key if issuer else key, hashes.SHA256())
    return Pair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        certificate,
        key,
    )


@pytest.fixture(scope="module")
def ca() -> Pair:
    return issue("ca")


@pytest.fixture(scope="module")
def client(ca: Pair) -> Pair:
    return issue("jane", ca)


@pytest.fixture
def server_context(ca: Pair, tmp_path: Path) -> Iterator[ssl.SSLContext]:
    """Context of a server called `api.test` that requests a client certificate, but accepts any client."""
    pair = issue("api.test", ca)
    (tmp_path / "server.pem").write_bytes(pair.cert + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    context.load_verify_locations(cadata=ca.cert.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    yield context
    (tmp_path / "server.pem").unlink()


async def peer_seen_by(server_context: ssl.SSLContext, settings: TlsSettings, name: str = "api.test") -> str:
    """Shake hands; the common name the server saw, or nothing."""
    seen: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        subject = (writer.get_extra_info("peercert") or {}).get("subject", ())
        seen.set_result(dict(pair for part in subject for pair in part).get("commonName", ""))
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=server_context)
    async with server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=settings.ssl_context(), server_hostname=settings.server_name or name
        )
        await reader.read()
        writer.close()
        await writer.wait_closed()
        return await seen


async def test_our_ca_is_trusted_and_our_certificate_shown(
    server_context: ssl.SSLContext, ca: Pair, client: Pair
) -> None:
    settings = TlsSettings(ca_data=ca.cert, client_cert=client.cert, client_key=client.key)
    assert await peer_seen_by(server_context, settings) == "jane"
    other = issue("joe", ca)
    assert await peer_seen_by(server_context, settings.with_certificate(other.cert, other.key)) == "joe"
    assert await peer_seen_by(server_context, TlsSettings(ca_data=ca.cert)) == ""


async def test_text_around_the_certificates_does_no_harm(server_context: ssl.SSLContext, ca: Pair) -> None:
    bundle = "# Prüfstelle\n".encode() + issue("another").cert + b"# ours\n" + ca.cert.replace(b"\n", b"\r\n")
    assert await peer_seen_by(server_context, TlsSettings(ca_data=bundle)) == ""


async def test_a_stranger_is_not_trusted_unless_told_so(server_context: ssl.SSLContext, ca: Pair) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        await peer_seen_by(server_context, TlsSettings(ca_data=issue("another").cert))
    with pytest.raises(ssl.SSLCertVerificationError):
        await peer_seen_by(server_context, TlsSettings())
    with pytest.raises(ssl.SSLCertVerificationError, match="IP address mismatch"):
        await peer_seen_by(server_context, TlsSettings(ca_data=ca.cert), "10.0.0.1")
    assert await peer_seen_by(server_context, TlsSettings(ca_data=ca.cert, server_name="api.test"), "10.0.0.1") == ""
    assert await peer_seen_by(server_context, TlsSettings(insecure=True), "10.0.0.1") == ""


def test_a_ca_that_kubectl_takes_is_not_refused_for_its_form() -> None:
    assert not TlsSettings().ssl_context().verify_flags & ssl.VERIFY_X509_STRICT


def test_the_key_leaves_no_file_and_no_descriptor(
    client: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    settings = TlsSettings(insecure=True, client_cert=client.cert, client_key=client.key)
    before = sorted(Path("/proc/self/fd").iterdir())
    settings.ssl_context()
    assert sorted(Path("/proc/self/fd").iterdir()) == before
    monkeypatch.delattr("os.memfd_create")  # as on a platform that has none
    settings.ssl_context()
    assert sorted(Path("/proc/self/fd").iterdir()) == before
    assert not list(tmp_path.iterdir())


ENCRYPTED = ec.generate_private_key(ec.SECP256R1()).private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"pass")
)


ON_A_TERMINAL = """
import fcntl, sys, termios
from pilotage.kube.tls import TlsSettings
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
with open(sys.argv[1], "rb") as cert, open(sys.argv[2], "rb") as key:
    TlsSettings(client_cert=cert.read(), client_key=key.read()).ssl_context()
"""


def test_nobody_is_asked_for_the_password_of_a_key(client: Pair, tmp_path: Path) -> None:
    (tmp_path / "cert").write_bytes(client.cert)
    (tmp_path / "key").write_bytes(ENCRYPTED)
    person, terminal = pty.openpty()
    try:
        ended = subprocess.run(
            [sys.executable, "-c", ON_A_TERMINAL, tmp_path / "cert", tmp_path / "key"],
            stdin=terminal,
            stderr=subprocess.PIPE,
            start_new_session=True,
            check=False,
            timeout=30,
        )
    finally:
        os.close(person)
        os.close(terminal)
    assert b"not a usable pair of certificate and key" in ended.stderr


@pytest.mark.parametrize(
    ("ca_data", "want"),
    [
        (b"nothing", "^here: holds no PEM certificate. Put the cluster's CA there.$"),
        (
            b"-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n",
            r"^here: not a usable certificate \(.+\). Put the cluster's CA there.$",
        ),
    ],
)
def test_a_ca_that_is_none(ca_data: bytes, want: str) -> None:
    with pytest.raises(ConfigError, match=want):
        TlsSettings(ca_data=ca_data, ca_origin="here").ssl_context()


@pytest.mark.parametrize(
    "key", [b"", b"not PEM", issue("other").key, ENCRYPTED], ids=["none", "text", "another's", "encrypted"]
)
def test_a_key_that_does_not_fit(client: Pair, key: bytes) -> None:
    with pytest.raises(
        ConfigError, match=r"^there: not a usable pair of certificate and key \(.+\)\. Both must be PEM"
    ) as raised:
        TlsSettings(client_cert=client.cert, client_key=key, client_origin="there").ssl_context()
    assert "/proc" not in str(raised.value)
    assert "/tmp" not in str(raised.value)
