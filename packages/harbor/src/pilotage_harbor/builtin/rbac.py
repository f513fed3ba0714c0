"""Roles and their bindings, as objects; who may do what is decided in `pilotage_harbor.access.rbac`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.field_errors import each_invalid, invalid, not_supported, required
from pilotage_harbor.apimachinery.metadata_rules import selector_problems
from pilotage_harbor.apimachinery.names import dns_subdomain, path_segment
from pilotage_harbor.builtin.base import Builtin, kind, named
from pilotage_harbor.builtin.cells import text
from pilotage_harbor.kinds import TableColumn
from pilotage_harbor.kinds.table import AGE, NAME, name

if TYPE_CHECKING:
    from collections.abc import Callable

    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.kinds import Json, Kind

_GROUP = "rbac.authorization.k8s.io"
_KINDS = ("ServiceAccount", "User", "Group")


class RoleStrategy(Builtin):
    """A Role, or a ClusterRole."""

    status = False
    create_on_update = True
    name_problems = named(path_segment)

    def __init__(self, go_type: str, *, namespaced: bool) -> None:
        self.go_type = go_type
        self._namespaced = namespaced

    def check(self, obj: Json) -> list[StatusCause]:
        """Its rules."""
        problems: list[StatusCause] = []
        for index, rule in enumerate(obj.get("rules") or ()):
            problems += self._rule(rule, f"rules[{index}]")
        if (aggregation := obj.get("aggregationRule")) is not None and not self._namespaced:
            field = "aggregationRule.clusterRoleSelectors"
            selectors = aggregation.get("clusterRoleSelectors") or []
            if not selectors:
                why = "at least one clusterRoleSelector required if aggregationRule is non-nil"
                problems.append(required(field, why))
            for index, each in enumerate(selectors):
                problems += selector_problems(each, f"{field}[{index}]")
        return problems

    def _rule(self, rule: Json, field: str) -> list[StatusCause]:
        problems = [] if rule.get("verbs") else [required(f"{field}.verbs", "verbs must contain at least one value")]
        if urls := rule.get("nonResourceURLs"):
            if self._namespaced:
                why = "namespaced rules cannot apply to non-resource URLs"
                problems.append(invalid(f"{field}.nonResourceURLs", urls, why))
            if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                why = "rules cannot apply to both regular resources and non-resource URLs"
                problems.append(invalid(f"{field}.nonResourceURLs", urls, why))
            return problems
        if not rule.get("apiGroups"):
            problems.append(required(f"{field}.apiGroups", "resource rules must supply at least one api group"))
        if not rule.get("resources"):
            problems.append(required(f"{field}.resources", "resource rules must supply at least one resource"))
        return problems


class RoleBindingStrategy(Builtin):
    """A RoleBinding, or a ClusterRoleBinding: the role never changes."""

    status = False
    create_on_update = True
    name_problems = named(path_segment)

    def __init__(self, go_type: str, *, namespaced: bool) -> None:
        self.go_type = go_type
        self._namespaced = namespaced

    def fill(self, obj: Json) -> None:
        """Defaults."""
        role = obj["roleRef"]
        if not role.get("apiGroup"):
            role["apiGroup"] = _GROUP
        for subject in obj.get("subjects", ()):
            if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
                subject["apiGroup"] = _GROUP

    def check(self, obj: Json) -> list[StatusCause]:
        """The role and the subjects."""
        role = obj["roleRef"]
        problems: list[StatusCause] = []
        if role["apiGroup"] != _GROUP:
            problems.append(not_supported("roleRef.apiGroup", role["apiGroup"], (_GROUP,)))
        supported = ("Role", "ClusterRole") if self._namespaced else ("ClusterRole",)
        if role.get("kind", "") not in supported:
            problems.append(not_supported("roleRef.kind", role.get("kind", ""), supported))
        if role.get("name"):
            problems += each_invalid("roleRef.name", role["name"], path_segment(role["name"]))
        else:
            problems.append(required("roleRef.name"))
        for index, subject in enumerate(obj.get("subjects", ())):
            problems += self._subject(subject, f"subjects[{index}]")
        return problems

    def _subject(self, subject: Json, field: str) -> list[StatusCause]:
        found, group = subject.get("name"), subject.get("apiGroup", "")
        problems = [] if found else [required(f"{field}.name")]
        match subject.get("kind", ""):
            case "ServiceAccount":
                if found:
                    problems += each_invalid(f"{field}.name", found, dns_subdomain(found))
                if group:
                    problems.append(not_supported(f"{field}.apiGroup", group, ("",)))
                if not self._namespaced and not subject.get("namespace"):
                    problems.append(required(f"{field}.namespace"))
            case "User" | "Group":
                if group != _GROUP:
                    problems.append(not_supported(f"{field}.apiGroup", group, (_GROUP,)))
            case other:
                problems.append(not_supported(f"{field}.kind", other, _KINDS))
        return problems

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """The role stays."""
        problems = self.check(obj)
        role = obj["roleRef"]
        if role != old["roleRef"]:
            shown = {"APIGroup": role["apiGroup"], "Kind": role.get("kind", ""), "Name": role.get("name", "")}
            problems.append(invalid("roleRef", shown, "cannot change roleRef"))
        return problems


def _subjects(*kinds_: str) -> Callable[[Json], str]:
    def cell(obj: Json) -> str:
        found = [each for each in obj.get("subjects", ()) if each.get("kind") in kinds_]
        names = [f"{e.get('namespace', '')}/{e['name']}" if e["kind"] == "ServiceAccount" else e["name"] for e in found]
        return ", ".join(names)

    return cell


_BINDING = (
    NAME,
    text("Role", lambda obj: f"{obj['roleRef'].get('kind', '')}/{obj['roleRef'].get('name', '')}"),
    AGE,
    text("Users", _subjects("User"), wide=True),
    text("Groups", _subjects("Group"), wide=True),
    text("ServiceAccounts", _subjects("ServiceAccount"), wide=True),
)
_ROLE = (
    TableColumn("Name", "string", name, "name"),
    TableColumn("Created At", "date", lambda obj, _: obj["metadata"].get("creationTimestamp")),
)


def kinds() -> list[Kind]:
    """The kinds of this family."""
    api = f"{_GROUP}/v1"
    return [
        kind(api, "roles", "Role", RoleStrategy("rbac.Role", namespaced=True), _ROLE),
        kind(
            api,
            "clusterroles",
            "ClusterRole",
            RoleStrategy("rbac.ClusterRole", namespaced=False),
            _ROLE,
            namespaced=False,
        ),
        kind(api, "rolebindings", "RoleBinding", RoleBindingStrategy("rbac.RoleBinding", namespaced=True), _BINDING),
        kind(
            api,
            "clusterrolebindings",
            "ClusterRoleBinding",
            RoleBindingStrategy("rbac.ClusterRoleBinding", namespaced=False),
            _BINDING,
            namespaced=False,
        ),
    ]
