"""Chunks of a list: the state of a collection that is read, and the continue token of its next chunk."""

from __future__ import annotations

import base64
import binascii
import string
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pilotage_harbor.apimachinery import errors
from pilotage_harbor.apimachinery.calls import integer
from pilotage_harbor.apimachinery.go_json import go_words
from pilotage_harbor.verbs.reads import check_not_too_new

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.calls import Call
    from pilotage_harbor.storage.store import VersionedStore

_TOO_OLD = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list."  # noqa: E501 - kube-apiserver's words
_BASE64 = frozenset(string.ascii_letters + string.digits + "-_")


class _Token(msgspec.Struct):
    """Content of a continue token: a version and the last key. Version -1: the most recent one."""

    v: str = ""
    rv: int = 0
    start: str = ""


_token = msgspec.json.Decoder(_Token)


class Range(NamedTuple):
    """Version of the collection that is read: 0 is the present."""

    version: int
    after: str = ""


def range_of(store: VersionedStore, call: Call) -> Range:
    """Range that a request asks for; raises 400, or 504 for a version that has not been reached."""
    token = call.option("continue")
    version = int(call.option("resourceVersion") or 0)
    if token:
        if version:
            raise errors.bad_request("specifying resource version is not allowed when using continue")
        decoded = _decode_token_untrusted(token)
        return Range(max(decoded.rv, 0), decoded.start)
    if not version:
        return Range(0)
    check_not_too_new(store, version)
    limited = bool(integer(call, "limit"))
    exact = call.option("resourceVersionMatch") == "Exact" or (limited and not call.option("resourceVersionMatch"))
    return Range(version if exact else 0)


def expired(call: Call) -> errors.StatusError:
    """410, with a token for those who go on all the same."""
    token = call.option("continue")
    if not token:
        return errors.expired("The resourceVersion for the provided list is too old.")
    error = errors.expired(_TOO_OLD)
    error.metadata = {"continue": encode_token(-1, _decode_token_untrusted(token).start)}
    return error


def encode_token(version: int, after: str) -> str:
    """Value of `continue`."""
    token = msgspec.json.encode(_Token("meta.k8s.io/v1", version, after + "\0"))
    return base64.urlsafe_b64encode(token).rstrip(b"=").decode()


def _decode_token_untrusted(text: str) -> _Token:
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        at = next((at for at, each in enumerate(text) if each not in _BASE64), len(text))
        raise _bad_token(f"illegal base64 data at input byte {at}") from None
    if "=" in text:
        raise _bad_token(f"illegal base64 data at input byte {text.index('=')}")
    try:
        token = _token.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _bad_token(go_words(raw)) from None
    if token.v != "meta.k8s.io/v1":
        raise _bad_token(f"server does not recognize this encoded version {token.v}")
    if token.rv == 0:
        raise _bad_token("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not token.start:
        raise _bad_token("encoded start key empty (version meta.k8s.io/v1)")
    if "/../" in f"/{token.start}/":
        raise _bad_token(token.start)
    return _Token(token.v, token.rv, token.start.rstrip("\0"))


def _bad_token(why: str) -> errors.StatusError:
    return errors.bad_request(f"invalid continue token: continue key is not valid: {why}")
