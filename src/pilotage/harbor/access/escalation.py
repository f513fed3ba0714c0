"""Nobody grants what he does not have: what is asked before a role is written, or a binding to one.

Whoever may `escalate` a role may write anything into it; whoever may `bind` it may bind it to anybody. Everybody else
must hold each of the rules, in the place where they would apply.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.harbor import errors
from pilotage.harbor.access.attributes import Attributes, quoted
from pilotage.harbor.access.rbac import GROUP
from pilotage.harbor.access.users import MASTERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pilotage.harbor.access.rbac import Authorizer
    from pilotage.harbor.access.users import User
    from pilotage.harbor.kinds import Json

_EVERYTHING: list[Json] = [
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    {"nonResourceURLs": ["*"], "verbs": ["*"]},
]
_HOUSEKEEPING = ("ownerReferences", "finalizers", "managedFields", "selfLink")


def check_escalation(
    authorizer: Authorizer, user: User, plural: str, obj: Json, old: Json | None, *, named: str = ""
) -> None:
    """To be called before a Role, ClusterRole or a binding is created (`old` is None) or updated.

    `plural` says which of the four it is, `named` is the name in the request's path. Raises the refusal of
    kube-apiserver; other kinds pass.
    """
    if plural not in ("roles", "clusterroles", "rolebindings", "clusterrolebindings") or MASTERS in user.groups:
        return
    namespace = (obj["metadata"].get("namespace") or "") if plural in ("roles", "rolebindings") else ""
    if plural.endswith("roles"):
        wanted = Attributes("escalate", GROUP, plural, namespace=namespace, name=named)
        if not authorizer.decide(user, wanted).allowed and not _only_housekeeping(obj, old):
            _check_role(authorizer, user, plural, namespace, obj, old)
    elif not _only_housekeeping(obj, old):
        _check_binding(authorizer, user, plural, namespace, obj)


def _check_role(authorizer: Authorizer, user: User, plural: str, namespace: str, obj: Json, old: Json | None) -> None:
    held, problem = authorizer.rules(user, namespace)
    name = obj["metadata"].get("name") or ""
    _confirm(user, plural, name, held, obj.get("rules") or [], problem)
    if plural == "clusterroles" and (_aggregates(obj) or _aggregates(old)) and _missing(held, _EVERYTHING):
        raise errors.forbidden(GROUP, plural, name, "must have cluster-admin privileges to use the aggregationRule")


def _check_binding(authorizer: Authorizer, user: User, plural: str, namespace: str, obj: Json) -> None:
    reference = obj.get("roleRef") or {}
    kind, role = reference.get("kind") or "", reference.get("name") or ""
    if kind not in ("Role", "ClusterRole"):
        raise errors.StatusError(500, "", f"unsupported role reference kind: {quoted(kind)}")
    roles = f"{kind.lower()}s"
    wanted = Attributes("bind", reference.get("apiGroup") or "", roles, namespace=namespace, name=role)
    if authorizer.decide(user, wanted).allowed:
        return
    rules = authorizer.role_rules(kind, namespace, role)
    if rules is None:
        raise errors.not_found(GROUP, plural, role)  # under the name of the binding's kind: so says kube-apiserver
    held, problem = authorizer.rules(user, namespace)
    _confirm(user, plural, obj["metadata"].get("name") or "", held, rules, problem)


def _confirm(user: User, plural: str, name: str, held: list[Json], rules: list[Json], problem: str) -> None:
    missing = _missing(held, rules)
    if not missing:
        return
    groups = " ".join(map(quoted, user.groups))
    lines = "\n".join(sorted({_described(rule) for rule in _together(missing)}))
    words = (
        f"user {quoted(user.name)} (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:"
        f"\n{lines}"
    )
    if problem:
        words += f"; resolution errors: [{problem}]"
    raise errors.forbidden(GROUP, plural, name, words)


def _missing(held: Sequence[Json], wanted: Iterable[Json]) -> list[Json]:
    """Of the wanted rules, taken apart, those that none of the held ones covers."""
    return [each for rule in wanted for each in _apart(rule) if not any(_covers(own, each) for own in held)]


def _apart(rule: Json) -> list[Json]:
    """A rule as many: each with one verb and one resource (and one name), or one path."""
    verbs = rule.get("verbs") or []
    names = rule.get("resourceNames") or []
    parts: list[Json] = []
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in verbs:
                part: Json = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                parts += [{**part, "resourceNames": [name]} for name in names] if names else [part]
    parts += [
        {"nonResourceURLs": [url], "verbs": [verb]} for url in rule.get("nonResourceURLs") or () for verb in verbs
    ]
    return parts


def _covers(own: Json, part: Json) -> bool:
    verb = part["verbs"][0]
    if not _in_or_all(own.get("verbs") or (), verb):
        return False
    if "nonResourceURLs" in part:
        url = part["nonResourceURLs"][0]
        # A rule that names resources covers a path only if it is free of names: so does kube-apiserver compare them.
        return not own.get("resourceNames") and any(
            url == each or (each.endswith("*") and url.startswith(each.rstrip("*")))
            for each in own.get("nonResourceURLs") or ()
        )
    names = own.get("resourceNames")
    if names and part.get("resourceNames", [None])[0] not in names:
        return False
    if not _in_or_all(own.get("apiGroups") or (), part["apiGroups"][0]):
        return False
    resource = part["resources"][0]
    resources = own.get("resources") or ()
    subresource = resource.partition("/")[2]
    return _in_or_all(resources, resource) or ("/" in resource and f"*/{subresource}" in resources)


def _in_or_all(allowed: Sequence[str], wanted: str) -> bool:
    return wanted in allowed or "*" in allowed


def _together(parts: Iterable[Json]) -> list[Json]:
    """Parts that differ in their verb alone become one again."""
    merged: dict[tuple[str, str, str | None], Json] = {}
    others: list[Json] = []
    for part in parts:
        if "nonResourceURLs" in part:
            others.append(part)
            continue
        name = part["resourceNames"][0] if "resourceNames" in part else None
        key = (part["apiGroups"][0], part["resources"][0], name)
        if key in merged:
            merged[key] = {**merged[key], "verbs": merged[key]["verbs"] + part["verbs"]}
        else:
            merged[key] = part
    return others + list(merged.values())


_SHOWN = {
    "apiGroups": "APIGroups",
    "resources": "Resources",
    "nonResourceURLs": "NonResourceURLs",
    "resourceNames": "ResourceNames",
    "verbs": "Verbs",
}


def _described(rule: Json) -> str:
    parts = [f"{shown}:[{' '.join(map(quoted, rule[name]))}]" for name, shown in _SHOWN.items() if rule.get(name)]
    return "{" + ", ".join(parts) + "}"


def _aggregates(role: Json | None) -> bool:
    return bool(role and (role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _only_housekeeping(obj: Json, old: Json | None) -> bool:
    """Whether an update changes nothing but what the garbage collector needs to change."""
    return old is not None and _without_housekeeping(obj) == _without_housekeeping(old)


def _without_housekeeping(obj: Json) -> Json:
    meta = {name: value for name, value in obj["metadata"].items() if name not in _HOUSEKEEPING}
    return {**obj, "metadata": meta}
