"""GET of one object, in the form that the client asks for; and the options of all that read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery import errors
from pilotage_harbor.apimachinery.calls import ServerResponse, answer
from pilotage_harbor.core.objects import as_bytes, as_metadata, from_entry
from pilotage_harbor.kinds.table import table
from pilotage_harbor.verbs.yaml_output import as_yaml

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.calls import Call
    from pilotage_harbor.core import Core
    from pilotage_harbor.kinds import Kind
    from pilotage_harbor.storage.store import StoredObject, VersionedStore
    from pilotage_harbor.verbs.negotiation import Form

YAML = {"Content-Type": "application/yaml"}
_UINT64_MAX = 2**64 - 1
_DIGITS_MAX = 1000


async def get(core: Core, kind: Kind, call: Call, namespace: str, name: str, form: Form) -> ServerResponse:
    """One object; 404 if there is none."""
    check_version_options(call, watch=False)
    entry = core.store.get(kind.storage, namespace, name)
    if entry is None:
        raise errors.not_found(kind.group, kind.plural, name)
    return await shown(core, kind, entry, call, form)


async def shown(
    core: Core, kind: Kind, entry: StoredObject, call: Call, form: Form, status: int = 200
) -> ServerResponse:
    """The answer that shows one stored object."""
    if form.shape == "table":
        return answer(table(kind, [from_entry(kind, entry)], core.now(), included(call), form.version), status)
    if form.yaml:
        text = await core.offload(call.user, len(entry.raw), lambda: as_yaml(from_entry(kind, entry)))
        return ServerResponse(status, text, YAML)
    if form.shape == "metadata":
        return ServerResponse(status, as_metadata(entry, form.version))
    return ServerResponse(status, as_bytes(kind, entry))


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
    """Go's message about a text that is no unsigned number of 64 bits; empty for one that is, and for no text."""
    if not text:
        return ""
    if not (text.isascii() and text.isdigit()):
        return "invalid syntax"
    # Python refuses to convert texts that are much longer; with so many zeros in front, it is nobody's version.
    return "value out of range" if len(text) > _DIGITS_MAX or int(text) > _UINT64_MAX else ""


def _version_problems(call: Call, version: str, match: str, *, watch: bool) -> list[errors.StatusCause]:
    def forbidden(words: str) -> errors.StatusCause:
        return errors.StatusCause("resourceVersionMatch", "FieldValueForbidden", f"Forbidden: {words}")

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
            problems.append(errors.StatusCause("resourceVersionMatch", "FieldValueNotSupported", words))
        if match == "Exact" and version == "0":
            words = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            problems.append(forbidden(words))
    if initial:
        words = "Forbidden: sendInitialEvents is forbidden for list"
        problems.append(errors.StatusCause("sendInitialEvents", "FieldValueForbidden", words))
    return problems


def check_not_too_new(store: VersionedStore, version: int) -> None:
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


def included(call: Call) -> str:
    """Part of the object that each row of a table includes."""
    include = call.option("includeObject")
    if include not in ("", "None", "Metadata", "Object"):
        why = "must be 'Metadata', 'Object', 'None', or empty"
        words = f'Unable to convert to Table as requested: includeObject: Invalid value: "{include}": {why}'
        raise errors.bad_request(words)
    return include or "Metadata"
