"""The objects of an installation, put on a server."""

from collections.abc import Iterable

from pilotage.kube import Client, Json, Resource

PLURALS = {
    "Namespace": Resource("", "v1", "namespaces", "Namespace", namespaced=False),
    "CustomResourceDefinition": Resource(
        "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
    ),
    "ServiceAccount": Resource("", "v1", "serviceaccounts", "ServiceAccount"),
    "ClusterRole": Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False),
    "ClusterRoleBinding": Resource(
        "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
    ),
    "Role": Resource("rbac.authorization.k8s.io", "v1", "roles", "Role"),
    "RoleBinding": Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding"),
    "Service": Resource("", "v1", "services", "Service"),
    "PodDisruptionBudget": Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
    "Deployment": Resource("apps", "v1", "deployments", "Deployment"),
    **{
        kind: Resource("admissionregistration.k8s.io", "v1", plural, kind, namespaced=False)
        for kind, plural in (
            ("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
            ("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
        )
    },
}


async def apply_all(client: Client, objects: Iterable[Json]) -> None:
    """Create them, in their order."""
    for obj in objects:
        await client.create(PLURALS[obj["kind"]], obj, namespace=obj["metadata"].get("namespace", ""))
