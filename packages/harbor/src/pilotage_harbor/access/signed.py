"""Signed tokens: JSON Web Tokens, as kube-apiserver gives them to ServiceAccounts. Pure functions.

They are signed with HMAC-SHA256 (HS256): only the server that issues a token verifies it, so there is no public key to
hand out, and `cryptography`, which takes longer to import than the rest of harbor, is not needed. The header is fixed.
A token with any other one is refused, so that nobody can choose the algorithm.
"""

from __future__ import annotations

import base64
import binascii
import hmac

KEY_BYTES = 32
TOKEN_BYTES_MAX = 16 * 1024
_HEADER = b"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"
"""{"alg":"HS256","typ":"JWT"} in base64url."""


def sign(claims: bytes, key: bytes) -> str:
    """A token that holds these claims (JSON)."""
    signed = _HEADER + b"." + _encode(claims)
    return (signed + b"." + _encode(_signature(signed, key))).decode()


def read(token: str, key: bytes) -> bytes | None:
    """The claims of a token that was signed with this key; None for anything else."""
    if len(token) > TOKEN_BYTES_MAX or not token.isascii():
        return None
    signed, _, signature = token.encode().rpartition(b".")
    header, _, claims = signed.partition(b".")
    if header != _HEADER or not hmac.compare_digest(signature, _encode(_signature(signed, key))):
        return None
    try:
        return base64.urlsafe_b64decode(claims + b"=" * (-len(claims) % 4))
    except binascii.Error:
        return None


def _signature(signed: bytes, key: bytes) -> bytes:
    return hmac.digest(key, signed, "sha256")


def _encode(raw: bytes) -> bytes:
    return base64.urlsafe_b64encode(raw).rstrip(b"=")
