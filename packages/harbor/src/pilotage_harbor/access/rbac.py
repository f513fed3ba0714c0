"""The RBAC authorizer: Roles and ClusterRoles, as they are bound, compiled into an answer that takes microseconds.

What the objects say is read again only when their version has changed. Until then each user has, per namespace, the
list of the rules that apply to it, and per verb and resource the part of that list that can allow it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pilotage_harbor.access.attributes import AccessAttributes, refusal
from pilotage_harbor.apimachinery.users import MASTERS
from pilotage_harbor.schema.gotext import quote as quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from pilotage_harbor.apimachinery.users import UserInfo
    from pilotage_harbor.kinds import Json, View

GROUP = "rbac.authorization.k8s.io"
ROLES = f"roles.{GROUP}"
CLUSTER_ROLES = f"clusterroles.{GROUP}"
ROLE_BINDINGS = f"rolebindings.{GROUP}"
CLUSTER_ROLE_BINDINGS = f"clusterrolebindings.{GROUP}"
STORAGES = (ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS)
"""Storages with the rules of RBAC. A change in any of them makes a new version."""

_CACHED_MAX = 20_000


class AuthorizationDecision(NamedTuple):
    """Whether it is allowed, and kube-apiserver's words on why, or why not; often there are none."""

    allowed: bool
    reason: str = ""


_ALLOWED = AuthorizationDecision(True)
_REFUSED = AuthorizationDecision(False)


class _Grant(NamedTuple):
    """One rule as it applies to a user: through which binding, and what it says."""

    source: str
    rule: Json


class _Scope:
    """The rules of one user in one namespace (or in none), and what was found out about them."""

    __slots__ = ("found", "grants", "problem")

    def __init__(self, grants: list[_Grant], problems: list[str]) -> None:
        self.grants = grants
        self.found: dict[tuple[str, str, str], tuple[tuple[frozenset[str] | None, AuthorizationDecision], ...]] = {}
        unique = list(dict.fromkeys(problems))
        words = f"[{', '.join(unique)}]" if len(unique) > 1 else "".join(unique)
        self.problem = AuthorizationDecision(False, f"RBAC: {words}") if words else _REFUSED

    def resource(self, wanted: AccessAttributes) -> AuthorizationDecision:
        combined = f"{wanted.resource}/{wanted.subresource}" if wanted.subresource else wanted.resource
        key = (wanted.verb, wanted.group, combined)
        candidates = self.found.get(key)
        if candidates is None:
            if len(self.found) > _CACHED_MAX:
                self.found.clear()
            candidates = self.found[key] = tuple(self._candidates(wanted, combined))
        for names, decision in candidates:
            if names is None or wanted.name in names:
                return decision
        return self.problem

    def path(self, verb: str, path: str) -> AuthorizationDecision:
        for source, rule in self.grants:
            if _has(rule.get("verbs"), verb) and any(_url_covers(u, path) for u in rule.get("nonResourceURLs") or ()):
                return _allowed_by(source)
        return self.problem

    def _candidates(
        self, wanted: AccessAttributes, combined: str
    ) -> Iterator[tuple[frozenset[str] | None, AuthorizationDecision]]:
        """The rules that allow it for some name, up to the first that allows it for all."""
        for source, rule in self.grants:
            if (
                _has(rule.get("verbs"), wanted.verb)
                and _has(rule.get("apiGroups"), wanted.group)
                and _has_resource(rule.get("resources") or (), combined, wanted.subresource)
            ):
                names = frozenset(rule.get("resourceNames") or ()) or None
                yield names, _allowed_by(source)
                if names is None:
                    return


class Authorizer:
    """Decides by the objects in `view`; `version` gives a number that is another one when they have changed."""

    def __init__(self, view: View, version: Callable[[], int]) -> None:
        self._view = view
        self._version = version
        self._seen = version() - 1
        self._scopes: dict[tuple[str, tuple[str, ...], str], _Scope] = {}
        self._bound_roles = BoundRoles((), (), (), ())

    def decide(self, user: UserInfo, wanted: AccessAttributes) -> AuthorizationDecision:
        """Whether this user may do that."""
        if MASTERS in user.groups:
            return _ALLOWED
        scope = self._scope(user, wanted.namespace)
        return scope.path(wanted.verb, wanted.path) if wanted.path else scope.resource(wanted)

    def check(self, user: UserInfo, wanted: AccessAttributes) -> None:
        """Nothing if this user may do that; else the 403 of kube-apiserver is raised."""
        if MASTERS not in user.groups:
            allowed, reason = self.decide(user, wanted)
            if not allowed:
                raise refusal(user, wanted, reason)

    def rules(self, user: UserInfo, namespace: str) -> tuple[list[Json], str]:
        """All rules of a user in a namespace (those of the cluster included), and what is wrong with its bindings."""
        scope = self._scope(user, namespace)
        return [rule for _, rule in scope.grants], scope.problem.reason.removeprefix("RBAC: ")

    def role_rules(self, kind: str, namespace: str, name: str) -> list[Json] | None:
        """The rules of a ClusterRole, or of a Role in a namespace; None if there is no such role."""
        self._refresh()
        return self._bound_roles.role(kind, namespace, name)

    def _refresh(self) -> None:
        version = self._version()
        if version != self._seen:
            self._bound_roles = BoundRoles(*(self._view.objects(storage) for storage in STORAGES))
            self._scopes.clear()
            self._seen = version

    def _scope(self, user: UserInfo, namespace: str) -> _Scope:
        if self._version() != self._seen:
            self._refresh()
        key = (user.name, user.groups, namespace)
        scope = self._scopes.get(key)
        if scope is None:
            if len(self._scopes) > _CACHED_MAX:
                self._scopes.clear()
            scope = self._scopes[key] = _Scope(*self._bound_roles.grants(user, namespace))
        return scope


class BoundRoles:
    """All roles and bindings at one moment."""

    def __init__(
        self,
        roles: Iterable[Json],
        cluster_roles: Iterable[Json],
        role_bindings: Iterable[Json],
        cluster_role_bindings: Iterable[Json],
    ) -> None:
        self._roles: dict[tuple[str, str], list[Json]] = {}
        for role in roles:
            self._roles[role["metadata"]["namespace"], role["metadata"]["name"]] = role.get("rules") or []
        self._cluster_roles = effective_rules(list(cluster_roles))
        self._cluster_bindings = list(cluster_role_bindings)
        self._bindings: dict[str, list[Json]] = {}
        for binding in role_bindings:
            self._bindings.setdefault(binding["metadata"]["namespace"], []).append(binding)

    def role(self, kind: str, namespace: str, name: str) -> list[Json] | None:
        """The rules that a reference leads to, or None."""
        return self._cluster_roles.get(name) if kind == "ClusterRole" else self._roles.get((namespace, name))

    def grants(self, user: UserInfo, namespace: str) -> tuple[list[_Grant], list[str]]:
        """The rules of a user in a namespace, those of the cluster first; and which roles were not found."""
        grants: list[_Grant] = []
        problems: list[str] = []
        bound = [("ClusterRoleBinding", "", binding) for binding in self._cluster_bindings]
        if namespace:
            bound += [("RoleBinding", namespace, binding) for binding in self._bindings.get(namespace, ())]
        for what, where, binding in bound:
            subject = next((each for each in binding.get("subjects") or () if _is(user, each, where)), None)
            if subject is None:
                continue
            kind, name = binding["roleRef"]["kind"], binding["roleRef"]["name"]
            rules = self.role(kind, where, name)
            if rules is None:
                problems.append(f"{kind.lower()}.{GROUP} {quoted(name)} not found")
                continue
            own = binding["metadata"]["name"] + (f"/{where}" if where else "")
            source = f"{what} {quoted(own)} of {kind} {quoted(name)} to {_described(subject, where)}"
            grants += [_Grant(source, rule) for rule in rules]
        return grants, problems


def effective_rules(cluster_roles: list[Json]) -> dict[str, list[Json]]:
    """The rules of each ClusterRole; those of an aggregated one are put together from the ones that it selects."""
    by_name = sorted(cluster_roles, key=lambda one: str(one["metadata"]["name"]))
    selected: dict[bytes, list[Json]] = {}
    return {role["metadata"]["name"]: _aggregated(role, by_name, selected) for role in cluster_roles}


def gathered_rules(role: Json, cluster_roles: Iterable[Json]) -> list[Json]:
    """Rules of an aggregated ClusterRole: those of all ClusterRoles that it selects."""
    others = [one for one in cluster_roles if one["metadata"]["name"] != role["metadata"]["name"]]
    others.sort(key=lambda one: str(one["metadata"]["name"]))
    rules: dict[bytes, Json] = {}
    for selector in _selectors(role):
        for one in others:
            if _selects(selector, one):
                for rule in one.get("rules") or ():
                    rules.setdefault(_encoded(rule), rule)
    return [*rules.values()]


def _aggregated(role: Json, by_name: list[Json], selected: dict[bytes, list[Json]]) -> list[Json]:
    """Depth first, so that rules come in the order of names. Each selector is followed once, so circles end.

    `selected` is what each selector was found to select.
    """
    if not _selectors(role):
        return role.get("rules") or []
    rules: dict[bytes, Json] = {}
    followed: set[bytes] = set()
    ahead = [role]
    while ahead:
        each = ahead.pop()
        selectors = _selectors(each)
        if not selectors:
            for rule in each.get("rules") or ():
                rules.setdefault(_encoded(rule), rule)
        found: list[Json] = []
        for selector in selectors:
            key = _encoded(selector)
            if key not in followed:
                followed.add(key)
                if key not in selected:
                    selected[key] = [one for one in by_name if _selects(selector, one)]
                found += selected[key]
        ahead += reversed(found)
    return [*rules.values()]


def _encoded(value: Json) -> bytes:
    return msgspec.json.encode(value, order="sorted")


def _selectors(role: Json) -> list[Json]:
    return (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or []


def _selects(selector: Json, role: Json) -> bool:
    labels = role["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    for each in selector.get("matchExpressions") or ():
        key, operator, values = each["key"], each["operator"], each.get("values") or ()
        met = {
            "In": labels.get(key) in values,
            "NotIn": labels.get(key) not in values,
            "Exists": key in labels,
            "DoesNotExist": key not in labels,
        }
        if not met.get(operator, False):
            return False
    return True


def _is(user: UserInfo, subject: Json, namespace: str) -> bool:
    kind, name = subject.get("kind"), subject.get("name")
    if kind == "User":
        return user.name == name
    if kind == "Group":
        return name in user.groups
    if kind == "ServiceAccount":
        home = subject.get("namespace") or namespace
        return bool(home) and user.name == f"system:serviceaccount:{home}:{name}"
    return False


def _described(subject: Json, namespace: str) -> str:
    name = subject["name"]
    if subject["kind"] == "ServiceAccount":
        name = f"{name}/{subject.get('namespace') or namespace}"
    return f"{subject['kind']} {quoted(name)}"


def _allowed_by(source: str) -> AuthorizationDecision:
    return AuthorizationDecision(True, f"RBAC: allowed by {source}")


def _has(allowed: Collection[str] | None, wanted: str) -> bool:
    return allowed is not None and (wanted in allowed or "*" in allowed)


def _has_resource(allowed: Collection[str], combined: str, subresource: str) -> bool:
    return "*" in allowed or combined in allowed or (bool(subresource) and f"*/{subresource}" in allowed)


def _url_covers(pattern: str, path: str) -> bool:
    return pattern == path or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))
