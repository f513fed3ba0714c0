"""Protection against escalation: no user grants permissions that they lack, by a role or a binding.

Whoever may `escalate` a role may write anything into it; whoever may `bind` it may bind it to anybody. Everybody else
must hold each of the rules, in the place where they would apply.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from pilotage_harbor.access.attributes import AccessAttributes
from pilotage_harbor.access.rbac import GROUP
from pilotage_harbor.apimachinery import errors
from pilotage_harbor.apimachinery.users import MASTERS
from pilotage_harbor.schema.gotext import quote as quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pilotage_harbor.access.rbac import Authorizer
    from pilotage_harbor.apimachinery.users import UserInfo
    from pilotage_harbor.kinds import Json

_EVERYTHING: list[Json] = [
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    {"nonResourceURLs": ["*"], "verbs": ["*"]},
]
_MISSING_MAX = 1000
_SHOWN_CHARACTERS_MAX = 64 * 1024
"""A refusal names no more than this: a small role can be a product of millions of permissions."""
_HOUSEKEEPING = ("ownerReferences", "finalizers", "managedFields", "selfLink")


def check_escalation(
    authorizer: Authorizer, user: UserInfo, plural: str, obj: Json, old: Json | None, *, named: str = ""
) -> None:
    """Check a Role, a ClusterRole or a binding before it is created (`old` is None) or updated.

    `plural` says which of the four it is, `named` is the name in the request's path. Raises the refusal of
    kube-apiserver; other kinds pass.
    """
    if plural not in ("roles", "clusterroles", "rolebindings", "clusterrolebindings") or MASTERS in user.groups:
        return
    namespace = (obj["metadata"].get("namespace") or "") if plural in ("roles", "rolebindings") else ""
    if plural.endswith("roles"):
        wanted = AccessAttributes("escalate", GROUP, plural, namespace=namespace, name=named)
        if not authorizer.decide(user, wanted).allowed and not _only_housekeeping(obj, old):
            _check_role(authorizer, user, plural, namespace, obj, old)
    elif not _only_housekeeping(obj, old):
        _check_binding(authorizer, user, plural, namespace, obj)


def _check_role(
    authorizer: Authorizer, user: UserInfo, plural: str, namespace: str, obj: Json, old: Json | None
) -> None:
    held, problem = authorizer.rules(user, namespace)
    name = obj["metadata"].get("name") or ""
    _confirm(user, plural, name, held, obj.get("rules") or [], problem)
    if plural == "clusterroles" and (_aggregates(obj) or _aggregates(old)) and _missing(held, _EVERYTHING):
        raise errors.forbidden(GROUP, plural, name, "must have cluster-admin privileges to use the aggregationRule")


def _check_binding(authorizer: Authorizer, user: UserInfo, plural: str, namespace: str, obj: Json) -> None:
    reference = obj.get("roleRef") or {}
    kind, role = reference.get("kind") or "", reference.get("name") or ""
    if kind not in ("Role", "ClusterRole"):
        raise errors.StatusError(500, "", f"unsupported role reference kind: {quoted(kind)}")
    roles = f"{kind.lower()}s"
    wanted = AccessAttributes("bind", reference.get("apiGroup") or "", roles, namespace=namespace, name=role)
    if authorizer.decide(user, wanted).allowed:
        return
    rules = authorizer.role_rules(kind, namespace, role)
    if rules is None:
        raise errors.not_found(GROUP, plural, role)  # under the name of the binding's kind: so says kube-apiserver
    held, problem = authorizer.rules(user, namespace)
    _confirm(user, plural, obj["metadata"].get("name") or "", held, rules, problem)


def _confirm(user: UserInfo, plural: str, name: str, held: list[Json], rules: list[Json], problem: str) -> None:
    missing = _missing(held, rules)
    if not missing:
        return
    groups = " ".join(map(quoted, user.groups))
    words = (
        f"user {quoted(user.name)} (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:"
        f"\n{_shown(missing)}"
    )
    if problem:
        words += f"; resolution errors: [{problem}]"
    raise errors.forbidden(GROUP, plural, name, words)


class _Held:
    """A rule that a user has, made to be asked often. Two are the same only if they are one."""

    __slots__ = ("groups", "names", "resources", "urls", "verbs")

    def __init__(self, rule: Json) -> None:
        self.groups = frozenset(rule.get("apiGroups") or ())
        self.resources = frozenset(rule.get("resources") or ())
        self.names = frozenset(rule.get("resourceNames") or ())
        self.urls: list[str] = rule.get("nonResourceURLs") or []
        self.verbs = frozenset(rule.get("verbs") or ())

    def has_group(self, group: str) -> bool:
        return not self.groups.isdisjoint((group, "*"))

    def has_resource(self, resource: str) -> bool:
        _, slash, subresource = resource.partition("/")
        return not self.resources.isdisjoint((resource, "*", f"*/{subresource}" if slash else "*"))

    def has_name(self, name: str) -> bool:
        return not self.names or name in self.names

    def has_url(self, url: str) -> bool:
        return any(url == each or (each.endswith("*") and url.startswith(each.rstrip("*"))) for each in self.urls)


_Stage: TypeAlias = "tuple[Iterable[str], Callable[[_Held, str], bool]]"
"""Values, and how to ask whether a rule has one."""


def _missing(held: Iterable[Json], wanted: Iterable[Json]) -> list[Json]:
    """The wanted rules that the held ones do not cover, as rules of one resource (and one name), or of one path.

    There may be more if it is more than `_MISSING_MAX`.
    """
    own = tuple(_Held(rule) for rule in held)
    unnamed = tuple(each for each in own if not each.names)
    found: list[Json] = []
    for rule in wanted:
        verbs = rule.get("verbs") or []
        groups = (rule.get("apiGroups") or (), _Held.has_group)
        resources = (rule.get("resources") or (), _Held.has_resource)
        names = (rule.get("resourceNames") or (), _Held.has_name)
        able, stages = (own, (groups, resources, names)) if names[0] else (unnamed, (groups, resources))
        for (group, resource, *name), lacking in _uncovered(able, stages, verbs):
            named = {"resourceNames": name} if name else {}
            found.append({"apiGroups": [group], "resources": [resource], **named, "verbs": lacking})
        # A rule that names resources covers a path only if it is free of names: so does kube-apiserver compare them.
        urls = (rule.get("nonResourceURLs") or (), _Held.has_url)
        paths = ((url, verb) for (url,), lacking in _uncovered(unnamed, (urls,), verbs) for verb in lacking)
        found += [{"nonResourceURLs": [url], "verbs": [verb]} for url, verb in islice(paths, _MISSING_MAX + 1)]
        if len(found) > _MISSING_MAX:
            break
    return found


def _uncovered(
    held: tuple[_Held, ...], stages: Sequence[_Stage], verbs: list[str]
) -> list[tuple[list[str], list[str]]]:
    """Values, one of each stage, with the verbs that none of the rules for these values has.

    Values that the same rules have are covered alike, and looked at once: the rest of their product is not made.
    """
    if not stages:
        had: set[str] = set().union(*(own.verbs for own in held))
        lacking = [] if "*" in had else [verb for verb in verbs if verb not in had]
        return [([], lacking)] if lacking else []
    values, has = stages[0]
    known: dict[tuple[_Held, ...], list[tuple[list[str], list[str]]]] = {}
    found: list[tuple[list[str], list[str]]] = []
    for value in dict.fromkeys(values):
        own = tuple(each for each in held if has(each, value))
        if own not in known:
            known[own] = _uncovered(own, stages[1:], verbs)
        found += [([value, *others], lacking) for others, lacking in known[own]]
        if len(found) > _MISSING_MAX:
            break
    return found


def _together(parts: Iterable[Json]) -> list[Json]:
    """Parts of several rules that differ in their verbs alone become one."""
    merged: dict[tuple[str, ...], Json] = {}
    others: list[Json] = []
    for part in parts:
        if "nonResourceURLs" in part:
            others.append(part)
            continue
        key = (*part["apiGroups"], *part["resources"], *part.get("resourceNames", ()))
        merged.setdefault(key, {**part, "verbs": []})["verbs"].extend(part["verbs"])
    return others + list(merged.values())


def _shown(missing: list[Json]) -> str:
    """Lines of text, as many as one would read."""
    lines: set[str] = set()
    size = 0
    for rule in _together(missing[:_MISSING_MAX]):
        line = _described(rule)
        lines.add(line)
        size += len(line)
        if size > _SHOWN_CHARACTERS_MAX:
            break
    text = "\n".join(sorted(lines))
    if len(missing) > _MISSING_MAX or len(text) > _SHOWN_CHARACTERS_MAX:
        text = f"{text[:_SHOWN_CHARACTERS_MAX]}\n... and more"
    return text


_FIELDS = {
    "apiGroups": "APIGroups",
    "resources": "Resources",
    "nonResourceURLs": "NonResourceURLs",
    "resourceNames": "ResourceNames",
    "verbs": "Verbs",
}


def _described(rule: Json) -> str:
    parts = [f"{shown}:[{' '.join(map(quoted, rule[name]))}]" for name, shown in _FIELDS.items() if rule.get(name)]
    return "{" + ", ".join(parts) + "}"


def _aggregates(role: Json | None) -> bool:
    return bool(role and (role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _only_housekeeping(obj: Json, old: Json | None) -> bool:
    """Whether an update changes nothing but what the garbage collector needs to change."""
    return old is not None and _without_housekeeping(obj) == _without_housekeeping(old)


def _without_housekeeping(obj: Json) -> Json:
    meta = {name: value for name, value in obj["metadata"].items() if name not in _HOUSEKEEPING}
    return {**obj, "metadata": meta}
