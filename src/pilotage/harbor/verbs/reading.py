"""GET: one object, or a list of them, in the form and at the version that the client asks for."""

from __future__ import annotations

import base64
import binascii
import string
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pilotage.harbor import errors
from pilotage.harbor.calls import Answer, answer, integer
from pilotage.harbor.store import Compacted
from pilotage.harbor.table import table
from pilotage.harbor.verbs.bodies import go_words
from pilotage.harbor.verbs.choosing import Choice
from pilotage.harbor.verbs.objects import as_bytes, as_item, as_metadata, from_entry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pilotage.harbor.calls import Call
    from pilotage.harbor.kinds import Kind
    from pilotage.harbor.store import Entry, Store
    from pilotage.harbor.verbs.accept import Form

_TOO_OLD = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list."  # noqa: E501 - kube-apiserver's words
_BASE64 = frozenset(string.ascii_letters + string.digits + "-_")
_UINT64_MAX = 2**64 - 1
_DIGITS_MAX = 1000
_DECODER = msgspec.json.Decoder()


class _Token(msgspec.Struct):
    """Where a list goes on: at a version, after a key. Version -1: at the most recent one."""

    v: str = ""
    rv: int = 0
    start: str = ""


_token = msgspec.json.Decoder(_Token)


class _Range(NamedTuple):
    """Which state of the collection is read: 0 is the present."""

    version: int
    after: str = ""


def get(store: Store, kind: Kind, call: Call, namespace: str, name: str, form: Form, now: float) -> Answer:
    """One object; 404 if there is none."""
    check_version_options(call, watch=False)
    entry = store.get(kind.storage, namespace, name)
    if entry is None:
        raise errors.not_found(kind.group, kind.plural, name)
    return shown(kind, entry, call, form, now)


def shown(kind: Kind, entry: Entry, call: Call, form: Form, now: float, status: int = 200) -> Answer:
    """The answer that shows one stored object."""
    if form.shape == "table":
        return answer(table(kind, [from_entry(kind, entry)], now, _include(call), form.version), status)
    if form.yaml:
        return _yaml(from_entry(kind, entry), status)
    if form.shape == "metadata":
        return Answer(status, as_metadata(entry, form.version))
    return Answer(status, as_bytes(kind, entry))


class Page(NamedTuple):
    """What a list, or a chunk of one, holds: the entries, and the metadata as JSON."""

    entries: list[Entry]
    meta: bytes


def list_(store: Store, kind: Kind, call: Call, namespace: str, form: Form, now: float) -> Answer:
    """A list, or a chunk of one."""
    return listed(kind, choose(store, kind, call, namespace), call, form, now)


def choose(store: Store, kind: Kind, call: Call, namespace: str) -> Page:
    """What a list holds."""
    choice = Choice(kind, call, namespace)
    check_version_options(call, watch=False, whole=True)
    integer(call, "timeoutSeconds")
    limit = integer(call, "limit") or 0
    at = _range(store, call)
    try:
        entries = (
            store.entries_at(kind.storage, at.version, namespace, at.after)
            if at.version
            else store.entries(kind.storage, namespace, at.after)
        )
    except Compacted:
        raise _expired(call) from None
    version = at.version or store.version
    chosen = [*_first(entries, choice, limit)] if limit > 0 else [entry for entry in entries if choice.includes(entry)]
    continue_, remaining = "", None
    if limit > 0 and len(chosen) == limit:
        last = f"{chosen[-1].namespace}/{chosen[-1].name}"
        left = [entry for entry in entries if choice.includes(entry)] if choice.selects else [*entries]
        if left:
            continue_ = _encode_token(version, last)
            remaining = None if choice.selects else len(left)
    return Page(chosen, _list_meta(kind, version, continue_, remaining))


def check_version_options(call: Call, *, watch: bool, whole: bool = False) -> None:
    """Refuse combinations of resourceVersion options that mean nothing (422), or versions that are no numbers (400)."""
    version, match = call.option("resourceVersion"), call.option("resourceVersionMatch")
    if why := _number_problem(version):
        words = f'resourceVersion: Invalid value: "{version}": strconv.ParseUint: parsing "{version}": {why}'
        if whole:
            raise errors.bad_request(f"invalid resource version: {words}")
        raise errors.StatusError(500, "", words)
    problems = _version_problems(call, version, match, watch=watch)
    if problems:
        raise errors.invalid("meta.k8s.io", "ListOptions", "", problems)


def _number_problem(text: str) -> str:
    """What Go says of a text that is no unsigned number of 64 bits; nothing of one that is, or of no text."""
    if not text:
        return ""
    if not (text.isascii() and text.isdigit()):
        return "invalid syntax"
    # Python refuses to convert texts that are much longer; with so many zeros in front, it is nobody's version.
    return "value out of range" if len(text) > _DIGITS_MAX or int(text) > _UINT64_MAX else ""


def _version_problems(call: Call, version: str, match: str, *, watch: bool) -> list[errors.Cause]:
    def forbidden(words: str) -> errors.Cause:
        return errors.Cause("resourceVersionMatch", "FieldValueForbidden", f"Forbidden: {words}")

    initial = "sendInitialEvents" in call.query
    if watch:
        if initial and match != "NotOlderThan":
            return [forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")]
        if match and not initial:
            return [forbidden("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")]
        return []
    problems = []
    if match:
        if not version:
            problems.append(forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if call.option("continue"):
            problems.append(forbidden("resourceVersionMatch is forbidden when continue is provided"))
        if match not in ("Exact", "NotOlderThan"):
            words = f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""'
            problems.append(errors.Cause("resourceVersionMatch", "FieldValueNotSupported", words))
        if match == "Exact" and version == "0":
            words = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            problems.append(forbidden(words))
    if initial:
        words = "Forbidden: sendInitialEvents is forbidden for list"
        problems.append(errors.Cause("sendInitialEvents", "FieldValueForbidden", words))
    return problems


def check_not_too_new(store: Store, version: int) -> None:
    """A version that has not been reached: kube-apiserver waits a little and gives up; so would we, at once."""
    if version > store.version:
        words = f"Too large resource version: {version}, current: {store.version}"
        cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
        raise errors.StatusError(
            504,
            "Timeout",
            f"Timeout: {words}",
            details={"causes": [cause], "retryAfterSeconds": 1},
            headers={"Retry-After": "1"},
        )


def _range(store: Store, call: Call) -> _Range:
    token = call.option("continue")
    version = int(call.option("resourceVersion") or 0)
    if token:
        if version:
            raise errors.bad_request("specifying resource version is not allowed when using continue")
        decoded = _decode_token_untrusted(token)
        return _Range(max(decoded.rv, 0), decoded.start)
    if not version:
        return _Range(0)
    check_not_too_new(store, version)
    limited = bool(integer(call, "limit"))
    exact = call.option("resourceVersionMatch") == "Exact" or (limited and not call.option("resourceVersionMatch"))
    return _Range(version if exact else 0)


def _expired(call: Call) -> errors.StatusError:
    token = call.option("continue")
    if not token:
        return errors.expired("The resourceVersion for the provided list is too old.")
    error = errors.expired(_TOO_OLD)
    error.metadata = {"continue": _encode_token(-1, _decode_token_untrusted(token).start)}
    return error


def _first(entries: Iterator[Entry], choice: Choice, limit: int) -> Iterator[Entry]:
    """Up to `limit` of those chosen; the rest stays in the iterator."""
    for entry in entries:
        if choice.includes(entry):
            yield entry
            limit -= 1
            if not limit:
                return


def listed(kind: Kind, page: Page, call: Call, form: Form, now: float) -> Answer:
    """The answer that shows a list."""
    entries, meta = page
    if form.shape == "table":
        objects = (from_entry(kind, entry) for entry in entries)
        body = table(kind, objects, now, _include(call), form.version)
        body["metadata"] = _DECODER.decode(meta)
        return answer(body)
    if form.shape == "metadata":
        head = f'{{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/{form.version}","metadata":'.encode()
        items = [as_metadata(entry, form.version) for entry in entries]
    elif kind.custom:
        head = f'{{"apiVersion":"{kind.api_version}","kind":"{kind.list_kind}","metadata":'.encode()
        items = [as_bytes(kind, entry) for entry in entries]
    else:
        head = f'{{"kind":"{kind.list_kind}","apiVersion":"{kind.api_version}","metadata":'.encode()
        items = [as_item(kind, entry) for entry in entries]
    raw = b"".join((head, meta, b',"items":[', b",".join(items), b"]}"))
    return _yaml(_DECODER.decode(raw), 200) if form.yaml else Answer(200, raw)


def _yaml(body: object, status: int) -> Answer:
    import yaml

    text = yaml.dump(body, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=True, width=2**20)
    return Answer(status, text.encode(), {"Content-Type": "application/yaml"})


def _list_meta(kind: Kind, version: int, continue_: str, remaining: int | None) -> bytes:
    meta: dict[str, object] = {"resourceVersion": str(version)}
    if continue_ or kind.custom:
        meta["continue"] = continue_
    if remaining:
        meta["remainingItemCount"] = remaining
    return msgspec.json.encode(meta)


def _include(call: Call) -> str:
    include = call.option("includeObject")
    if include not in ("", "None", "Metadata", "Object"):
        why = "must be 'Metadata', 'Object', 'None', or empty"
        words = f'Unable to convert to Table as requested: includeObject: Invalid value: "{include}": {why}'
        raise errors.bad_request(words)
    return include or "Metadata"


def _encode_token(version: int, after: str) -> str:
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
