"""Access of the components to the API server: our kinds, roles and accounts, and a token for each component.

Each component authenticates as a service account that may do its own work and nothing else, with a token that expires.
"""

import asyncio

import yaml

from pilotage.api.names import HOST_LEASES, UP_MARKER
from pilotage.kube import DEFINITIONS, NAMESPACES, Client, Json, KindNotServed, ObjectKey, Resource
from pilotage.kube.names import ACCOUNTS, CONFIGMAPS
from pilotage.operator.install import Values, manifests
from pilotage.private_files import write_private
from pilotage.up.components import AGENT
from pilotage.up.layout import Layout

_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
_INSTALLED = {
    each.kind: each
    for each in (
        NAMESPACES,
        DEFINITIONS,
        ACCOUNTS,
        Resource(_RBAC, "v1", "clusterroles", "ClusterRole", False),
        Resource(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", False),
        Resource(_RBAC, "v1", "roles", "Role"),
        Resource(_RBAC, "v1", "rolebindings", "RoleBinding"),
        Resource(_ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", False),
        Resource(_ADMISSION, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", False),
    )
}
"""Kinds that are taken from the manifests for a cluster. The rest runs the operator in pods."""
SECONDS = 24 * 3600
"""Lifetime of a token; it is replaced long before."""


async def install(client: Client, host: str) -> None:
    """Apply our kinds, roles, policies and accounts, and the mark of one machine. No other objects are touched.

    `host`: the name of the Host that this machine is, and so of its agent's account.
    """
    for body in manifests(Values()):
        resource = _INSTALLED.get(body["kind"])
        if resource is not None:
            await client.apply(resource, body, force=True)
    await client.apply(ACCOUNTS, {"metadata": {"namespace": HOST_LEASES, "name": host}}, force=True)
    mark = {"metadata": {"namespace": UP_MARKER.namespace, "name": UP_MARKER.name}, "data": {"host": host}}
    await client.apply(CONFIGMAPS, mark, force=True)
    for body in manifests(Values()):
        if body["kind"] == DEFINITIONS.kind:
            await _served(client, body["spec"])


async def _served(client: Client, spec: Json) -> None:
    """Wait until a kind is served."""
    names, version = spec["names"], spec["versions"][0]["name"]
    resource = Resource(spec["group"], version, names["plural"], names["kind"], spec["scope"] == "Namespaced")
    async with asyncio.timeout(30):
        while True:
            try:
                await client.list(resource, metadata_only=True)
            except KindNotServed:
                await asyncio.sleep(0.02)
            else:
                return


async def give_access(client: Client, layout: Layout, component: str, host: str) -> bool:
    """Write a new token for a component, and its kubeconfig. Returns whether the kubeconfig has changed."""
    token = await client.token(_account(component, host), SECONDS)
    write_private(layout.token(component), token.encode())
    admin = yaml.safe_load(layout.kubeconfig.read_text(encoding="utf-8"))
    wanted = yaml.safe_dump(_kubeconfig(admin, component, str(layout.token(component)))).encode()
    path = layout.access(component)
    if path.exists() and path.read_bytes() == wanted:
        return False
    write_private(path, wanted)
    return True


def _account(component: str, host: str) -> ObjectKey:
    """The service account of a component: an agent's has the name of its Host, the others are in the manifests."""
    if component == AGENT:
        return ObjectKey(HOST_LEASES, host)
    metadata = (each["metadata"] for each in manifests(Values()) if each["kind"] == ACCOUNTS.kind)
    return next(
        ObjectKey(each["namespace"], each["name"]) for each in metadata if each["name"] == f"pilotage-{component}"
    )


def _kubeconfig(admin: Json, component: str, token_file: str) -> Json:
    """The same server, another user."""
    cluster = admin["clusters"][0]
    context = {"cluster": cluster["name"], "user": component}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [cluster],
        "users": [{"name": component, "user": {"tokenFile": token_file}}],
        "contexts": [{"name": component, "context": context}],
        "current-context": component,
    }
