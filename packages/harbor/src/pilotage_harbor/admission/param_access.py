"""Authors of a policy or a binding must be allowed to read its parameters: a message could show them to anybody."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.access.attributes import AccessAttributes
from pilotage_harbor.admission.policies import BINDINGS, POLICIES
from pilotage_harbor.apimachinery.field_errors import forbidden
from pilotage_harbor.apimachinery.users import MASTERS

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.apimachinery.users import UserInfo
    from pilotage_harbor.core import Core
    from pilotage_harbor.kinds import Json, Kind


def access_problems(core: Core, kind: Kind, user: UserInfo, obj: Json, old: Json | None) -> list[StatusCause]:
    """Problems of references to parameters that a user may not read, unless they were there before."""
    if kind.storage not in (POLICIES, BINDINGS) or MASTERS in user.groups:
        return []
    spec, before = obj["spec"], (old or {}).get("spec") or {}
    if kind.storage == POLICIES:
        param_kind = spec.get("paramKind")
        if param_kind is None or param_kind == before.get("paramKind"):
            return []
        return _kind_problems(core, user, param_kind)
    ref = spec.get("paramRef")
    if ref is None or (ref == before.get("paramRef") and spec["policyName"] == before.get("policyName")):
        return []
    return _ref_problems(core, user, spec["policyName"], ref)


def _kind_problems(core: Core, user: UserInfo, param_kind: Json) -> list[StatusCause]:
    group, resource = _resource(core, param_kind)
    if core.authorizer.decide(user, AccessAttributes("get", group, resource, namespace="*", name="*")).allowed:
        return []
    named = f"(kind={param_kind['kind']}, apiVersion={param_kind['apiVersion']})"
    why = f'user {_shown(user)} must have "get" permission on all objects of the referenced paramKind {named}'
    return [forbidden("spec.paramKind", why)]


def _ref_problems(core: Core, user: UserInfo, policy_name: str, ref: Json) -> list[StatusCause]:
    policy = core.get(POLICIES, "", policy_name)
    param_kind = policy["spec"].get("paramKind") if policy is not None else None
    group, resource = _resource(core, param_kind) if param_kind is not None else ("*", "*")
    name, namespace = ref.get("name") or "", ref.get("namespace") or ""
    verb = "get" if name else "list"
    if core.authorizer.decide(user, AccessAttributes(verb, group, resource, namespace=namespace, name=name)).allowed:
        return []
    why = f'user {_shown(user)} does not have "{verb}" permission'
    everything = "for all groups, versions and resources"
    if policy is None:
        why = f"unable to get policy {policy_name} to determine minimum required permissions and {why} {everything}"
    elif param_kind is not None and resource == "*":
        shown = f"&ParamKind{{APIVersion:{param_kind['apiVersion']},Kind:{param_kind['kind']},}}"
        why = f"unable to resolve paramKind {shown} to determine minimum required permissions and {why} {everything}"
    else:
        why = f"{why} on the object referenced by paramRef"
    return [forbidden("spec.paramRef", why)]


def _resource(core: Core, param_kind: Json) -> tuple[str, str]:
    """The group and plural of a kind; of one that is not served, every resource of its group."""
    kind = core.registry.of(param_kind["apiVersion"], param_kind["kind"])
    return (kind.group, kind.plural) if kind is not None else (param_kind["apiVersion"].rpartition("/")[0], "*")


def _shown(user: UserInfo) -> str:
    """A user as Go shows one."""
    extra = " ".join(f"{name}:[{' '.join(values)}]" for name, values in sorted(user.extra.items()))
    return f"&{{{user.name} {user.uid} [{' '.join(user.groups)}] map[{extra}]}}"
