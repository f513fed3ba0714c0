"""The parameters with which a binding evaluates its policy: objects by name or by labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.kube.selectors import LabelSelector
from pilotage_harbor.core.objects import from_entry

if TYPE_CHECKING:
    from pilotage_harbor.core import Core
    from pilotage_harbor.kinds import Json, Kind


class Unconfigured(Exception):
    """The parameters that a policy needs cannot be determined: its failure policy decides."""


def kind_of(core: Core, param_kind: Json) -> Kind:
    """The kind that a policy takes its parameters from."""
    api_version, name = param_kind.get("apiVersion") or "", param_kind.get("kind") or ""
    kind = core.registry.of(api_version, name)
    if kind is None:
        group, _, version = api_version.rpartition("/")
        raise Unconfigured(f"failed to find resource referenced by paramKind: '{group}/{version}, Kind={name}'")
    return kind


def params_of(core: Core, kind: Kind | None, ref: Json | None, namespace: str) -> list[Json | None]:
    """The parameters, each of which is evaluated; a None is evaluated without any. Empty: nothing is.

    `namespace` is the request's, where the reference names none.
    """
    if kind is None or ref is None:
        return [None]
    own = ref.get("namespace") or ""
    if kind.namespaced and not (own or namespace):
        raise Unconfigured("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
    if own and not kind.namespaced:
        raise Unconfigured("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
    where = (own or namespace) if kind.namespaced else ""
    if ref.get("name"):
        entry = core.store.get(kind.storage, where, ref["name"])
        entries = [entry] if entry is not None else []
    else:
        selector = LabelSelector.from_object(ref.get("selector") or {})
        entries = [each for each in core.store.entries(kind.storage, where) if selector.matches(each.labels)]
    if not entries and ref.get("parameterNotFoundAction") == "Deny":
        raise Unconfigured("no params found for policy binding with `Deny` parameterNotFoundAction")
    return [from_entry(kind, entry) for entry in entries]
