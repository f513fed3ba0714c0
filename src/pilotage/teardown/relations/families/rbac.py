"""Bindings: the role, and the accounts that get it. Users and groups are no objects."""

from __future__ import annotations

from pilotage.teardown.relations.families.kinds import SERVICE_ACCOUNT
from pilotage.teardown.relations.rows import Kind, Named, Reference, Relation, Row, When

_GROUP = "rbac.authorization.k8s.io"
_CLUSTER_ROLE = Kind(_GROUP, "ClusterRole", namespaced=False)
_ROLE = Kind(_GROUP, "Role")
_ACCOUNT = Named((SERVICE_ACCOUNT,), namespace="namespace")
_IS_ACCOUNT = When("kind", ("ServiceAccount",))

ROWS = (
    Row(_GROUP, "RoleBinding", Relation.TARGETS, "roleRef", Named((_ROLE,)), When("kind", ("Role",))),
    Row(_GROUP, "RoleBinding", Relation.TARGETS, "roleRef", Named((_CLUSTER_ROLE,)), When("kind", ("ClusterRole",))),
    Row(_GROUP, "RoleBinding", Relation.TARGETS, "subjects[]", _ACCOUNT, _IS_ACCOUNT),
    Row(_GROUP, "ClusterRoleBinding", Relation.TARGETS, "roleRef", Reference(group="apiGroup", default=_CLUSTER_ROLE)),
    Row(_GROUP, "ClusterRoleBinding", Relation.TARGETS, "subjects[]", _ACCOUNT, _IS_ACCOUNT),
)
