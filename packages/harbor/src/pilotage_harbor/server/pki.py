"""The certificates of one API server: an authority of its own, and what it signs. Elliptic curves, no passwords.

`cryptography` takes longer to import than the rest of harbor, so this module is imported only where something is made.
"""

from __future__ import annotations

import datetime
import ipaddress
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_ADDRESSES = ("127.0.0.1", "::1", "10.0.0.1")
_Dates = tuple[datetime.datetime, datetime.datetime]
_ALWAYS: _Dates = (
    datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC),
    datetime.datetime(9999, 12, 31, 23, 59, 59, tzinfo=datetime.UTC),
)
"""Validity of an authority and its server, whose keys lie in one folder: a date would only refuse machines with a wrong
clock. The end is the one that RFC 5280 gives to certificates without one."""
_CLIENT_DAYS = 3650
_SKEW = datetime.timedelta(hours=1)


class Pair(NamedTuple):
    """A certificate and its key, both as PEM."""

    certificate: bytes
    key: bytes


def make_authority() -> Pair:
    """A new authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("harbor-ca")
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    built = (
        _builder(name, name, key, _ALWAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return _pair(built.sign(key, hashes.SHA256()), key)


def make_server_certificate(authority: Pair) -> Pair:
    """Create a certificate for this machine's own addresses, and for the names that programs in a cluster use."""
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in _NAMES]
    names += [x509.IPAddress(ipaddress.ip_address(address)) for address in _ADDRESSES]
    return _signed(authority, _name("harbor"), ExtendedKeyUsageOID.SERVER_AUTH, x509.SubjectAlternativeName(names))


def make_client_certificate(authority: Pair, user: str, groups: tuple[str, ...] = ()) -> Pair:
    """Create a certificate for a user of that name, in these groups."""
    now = datetime.datetime.now(datetime.UTC)
    dates = (now - _SKEW, now + datetime.timedelta(days=_CLIENT_DAYS))
    return _signed(authority, _name(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH, None, dates)


def _signed(
    authority: Pair,
    subject: x509.Name,
    usage: x509.ObjectIdentifier,
    names: x509.SubjectAlternativeName | None,
    dates: _Dates = _ALWAYS,
) -> Pair:
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    issuer_key = serialization.load_pem_private_key(authority.key, None)
    assert isinstance(issuer_key, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    built = (
        _builder(subject, issuer.subject, key, dates)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()),
            critical=False,
        )
    )
    if names is not None:
        built = built.add_extension(names, critical=False)
    return _pair(built.sign(issuer_key, hashes.SHA256()), key)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, dates: _Dates
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(dates[0])
        .not_valid_after(dates[1])
    )


def _name(common: str, organizations: tuple[str, ...] = ()) -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    return Pair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )
