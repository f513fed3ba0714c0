"""Keys and certificates of one control plane: new for each, on disk only inside its run folder."""

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
PublicKey = ec.EllipticCurvePublicKey | rsa.RSAPublicKey

LIFETIME = datetime.timedelta(days=7)
SERVER_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
SERVER_ADDRESSES = ("127.0.0.1", "10.0.0.1")


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its key, as two PEM files."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority that signs into one folder."""

    pair: KeyPair
    _certificate: x509.Certificate
    _key: PrivateKey

    @classmethod
    def create(cls, folder: Path, name: str) -> Self:
        """Make a new authority, written to `name`.crt and `name`.key in the folder."""
        # The API server checks a client's certificate at each request, and RSA is the fastest to verify.
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        subject = _name(f"pilotage-{name}")
        certificate = (
            _builder(subject, subject, key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        pair = KeyPair(folder / f"{name}.crt", folder / f"{name}.key")
        _write(pair, certificate, key)
        return cls(pair, certificate, key)

    def server(self, folder: Path, name: str) -> KeyPair:
        """A serving certificate for this machine's loopback and for the names of the API server inside a cluster."""
        names: list[x509.GeneralName] = [x509.DNSName(each) for each in SERVER_NAMES]
        names += [x509.IPAddress(ipaddress.ip_address(each)) for each in SERVER_ADDRESSES]
        pair = KeyPair(folder / f"{name}.crt", folder / f"{name}.key")
        self._sign(pair, _name(name), ExtendedKeyUsageOID.SERVER_AUTH, names)
        return pair

    def client(self, pair: KeyPair, user: str, groups: Sequence[str]) -> None:
        """Write a client certificate: its common name is the user, its organizations are the groups."""
        self._sign(pair, _name(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH)

    def _sign(
        self, pair: KeyPair, subject: x509.Name, usage: x509.ObjectIdentifier, names: Sequence[x509.GeneralName] = ()
    ) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = (
            _builder(subject, self._certificate.subject, key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(issuer_key, critical=False)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        _write(pair, builder.sign(self._key, hashes.SHA256()), key)


def write_signing_keys(folder: Path, name: str) -> KeyPair:
    """The key that signs service-account tokens, and its public half in the place of a certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    pair = KeyPair(folder / f"{name}.pub", folder / f"{name}.key")
    pair.certificate.write_bytes(public)
    write_private(pair.key, _pem(key))
    return pair


def write_private(path: Path, content: bytes) -> None:
    """Write a file that no other user can read, from its first moment on."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600, exist_ok=False)
    path.write_bytes(content)


def _name(common_name: str, organizations: Sequence[str] = ()) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(subject: x509.Name, issuer: x509.Name, public_key: PublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(key: PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write(pair: KeyPair, certificate: x509.Certificate, key: PrivateKey) -> None:
    pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    write_private(pair.key, _pem(key))
