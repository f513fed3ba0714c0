"""What the API server has to know before the parts start: our kinds, their roles, and a key for each of them.

Each part gets in as a service account that may do its own work and nothing else, with a token that ends by itself.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import yaml

from pilotage.api.names import HOST_LEASES
from pilotage.kube import KindNotServed, ObjectKey, Resource
from pilotage.operator.install import Values, manifests
from pilotage.system.folders import write_private
from pilotage.up.parts import AGENT

if TYPE_CHECKING:
    from pilotage.kube import Client, Json
    from pilotage.up.layout import Layout

_CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False)
_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
_TAKEN = {
    each.kind: each
    for each in (
        Resource("", "v1", "namespaces", "Namespace", False),
        _CRDS,
        _ACCOUNTS,
        Resource(_RBAC, "v1", "clusterroles", "ClusterRole", False),
        Resource(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", False),
        Resource(_RBAC, "v1", "roles", "Role"),
        Resource(_RBAC, "v1", "rolebindings", "RoleBinding"),
        Resource(_ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", False),
        Resource(_ADMISSION, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", False),
    )
}
"""Of what is installed on a cluster. The rest runs the operator in pods, which this machine does not do."""
SECONDS = 24 * 3600
"""How long a token is good for; a new one is there long before."""


async def install(client: Client, host: str) -> None:
    """Put our kinds, roles, policies and accounts there, or bring them up to date. Nobody's objects are touched.

    `host`: the name of the Host that this machine is, and so of its agent's account.
    """
    for body in manifests(Values()):
        resource = _TAKEN.get(body["kind"])
        if resource is not None:
            await client.apply(resource, body, force=True)
    await client.apply(_ACCOUNTS, {"metadata": {"namespace": HOST_LEASES, "name": host}}, force=True)
    for body in manifests(Values()):
        if body["kind"] == _CRDS.kind:
            await _served(client, body["spec"])


async def _served(client: Client, spec: Json) -> None:
    """Wait until objects of a kind can be asked for."""
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


async def give_access(client: Client, layout: Layout, part: str, host: str) -> bool:
    """Write a fresh token for a part, and its kubeconfig. Returns whether that leads elsewhere than the last one."""
    token = await client.token(_account(part, host), SECONDS)
    write_private(layout.token(part), token.encode())
    admin = yaml.safe_load(layout.kubeconfig.read_text(encoding="utf-8"))
    wanted = yaml.safe_dump(_kubeconfig(admin, part, str(layout.token(part)))).encode()
    path = layout.access(part)
    if path.exists() and path.read_bytes() == wanted:
        return False
    write_private(path, wanted)
    return True


def _account(part: str, host: str) -> ObjectKey:
    """The service account of a part: an agent's is called like its Host, others' are among what is installed."""
    if part == AGENT:
        return ObjectKey(HOST_LEASES, host)
    metadata = (each["metadata"] for each in manifests(Values()) if each["kind"] == _ACCOUNTS.kind)
    return next(ObjectKey(each["namespace"], each["name"]) for each in metadata if each["name"] == f"pilotage-{part}")


def _kubeconfig(admin: Json, part: str, token_file: str) -> Json:
    """The same server, another user."""
    cluster = admin["clusters"][0]
    context = {"cluster": cluster["name"], "user": part}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [cluster],
        "users": [{"name": part, "user": {"tokenFile": token_file}}],
        "contexts": [{"name": part, "context": context}],
        "current-context": part,
    }
