"""Objects that cases send."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.contract.kit import Kit

Json = dict[str, Any]

CM = "configmaps"
PODS = "pods"
DEPLOYMENTS = "apps/v1/deployments"
CRDS = "/apiextensions.k8s.io/v1/customresourcedefinitions"
LEASES = "coordination.k8s.io/v1/leases"


def obj(api_version: str, kind: str, name: str, *, meta: Json | None = None, **fields: Any) -> Json:
    """Any object. `meta` adds to its metadata."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **(meta or {})}, **fields}


def cm(name: str, data: dict[str, str] | None = None, **meta: Any) -> Json:
    """A ConfigMap."""
    return obj("v1", "ConfigMap", name, meta=meta, data=data or {"k": "v"})


def secret(name: str, data: dict[str, str], **fields: Any) -> Json:
    """A Secret."""
    return obj("v1", "Secret", name, data=data, **fields)


def container(**fields: Any) -> Json:
    """A container that says no more than it must."""
    return {"name": "main", "image": "example.com/app:1", **fields}


def pod(name: str, *, meta: Json | None = None, **spec: Any) -> Json:
    """A Pod. No token is mounted, since that would give it a volume with a random name."""
    spec = {"automountServiceAccountToken": False, "containers": [container()], **spec}
    return obj("v1", "Pod", name, meta=meta, spec=spec)


def template(app: str, **spec: Any) -> Json:
    """The template of a workload's pods."""
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": [container()], **spec}}


def deployment(name: str, *, meta: Json | None = None, **spec: Any) -> Json:
    """A Deployment."""
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template(name), **spec}
    return obj("apps/v1", "Deployment", name, meta=meta, spec=spec)


def stateful_set(name: str, **spec: Any) -> Json:
    """A StatefulSet."""
    spec = {"serviceName": name, "selector": {"matchLabels": {"app": name}}, "template": template(name), **spec}
    return obj("apps/v1", "StatefulSet", name, spec=spec)


def job(name: str, **spec: Any) -> Json:
    """A Job."""
    pods = {"spec": {"containers": [container()], "restartPolicy": "Never"}}
    return obj("batch/v1", "Job", name, spec={"template": pods, **spec})


def service(name: str, **spec: Any) -> Json:
    """A Service."""
    return obj("v1", "Service", name, spec={"ports": [{"port": 80}], "selector": {"app": name}, **spec})


def lease(name: str, **spec: Any) -> Json:
    """A Lease."""
    return obj("coordination.k8s.io/v1", "Lease", name, spec=spec)


def owner(of: Json, **fields: Any) -> Json:
    """A reference to an object as the server returned it."""
    meta = of["metadata"]
    return {"apiVersion": of["apiVersion"], "kind": of["kind"], "name": meta["name"], "uid": meta["uid"], **fields}


async def with_service_account(kit: Kit) -> None:
    """Wait for the ServiceAccount that pods need; its controller may not have reached this namespace yet."""
    await kit.probing.create("serviceaccounts", obj("v1", "ServiceAccount", "default"))


async def with_pod(kit: Kit, name: str = "p", *, meta: Json | None = None, **spec: Any) -> Json:
    """A Pod that is there, made without a note."""
    await with_service_account(kit)
    answer = await kit.quiet.create(PODS, pod(name, meta=meta, **spec))
    assert answer.status == 201, answer
    made: Json = answer.body
    return made


class Kind:
    """A kind of a case's own, by a CustomResourceDefinition in a group that has the case's name."""

    def __init__(
        self,
        kit: Kit,
        schema: Json | None = None,
        *,
        plural: str = "things",
        kind: str = "Thing",
        scope: str = "Namespaced",
        versions: list[Json] | None = None,
        names: Json | None = None,
        spec: Json | None = None,
        **version: Any,
    ) -> None:
        """`schema` is the one of its spec (None: unknown fields are kept); `version` adds to its one version v1."""
        self.kit = kit
        self.group = f"{kit.ns[:50].rstrip('-')}.example.com"
        self.plural, self.kind = plural, kind
        root: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        if schema is not None:
            root = {"type": "object", "properties": {"spec": schema, "status": FREE}}
        only = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": root}, **version}
        self.definition = obj(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            f"{plural}.{self.group}",
            spec={
                "group": self.group,
                "scope": scope,
                "names": {"plural": plural, "kind": kind, "singular": kind.lower(), **(names or {})},
                "versions": versions or [only],
                **(spec or {}),
            },
        )
        self.name = self.definition["metadata"]["name"]
        self.resource = self.at("v1", scope)

    def at(self, version: str, scope: str = "Namespaced") -> str:
        """The resource in one of its versions."""
        return f"{'' if scope == 'Namespaced' else '/'}{self.group}/{version}/{self.plural}"

    def object(
        self, name: str, spec: Any = None, *, version: str = "v1", meta: Json | None = None, **more: Any
    ) -> Json:
        """An object of this kind."""
        fields = more if spec is None else {"spec": spec, **more}
        return obj(f"{self.group}/{version}", self.kind, name, meta=meta, **fields)

    async def served(self, *versions: str) -> Kind:
        """Create the definition without a note, and wait until objects of it can be listed."""
        made = await self.kit.quiet.create(CRDS, self.definition)
        assert made.status == 201, made.body
        await self.established()
        for version in versions or (self.definition["spec"]["versions"][0]["name"],):
            await self.listed(version)
        return self

    async def established(self) -> None:
        """Wait until the server says that it serves the kind. Its list may answer before, and fail after that."""

        async def is_so() -> bool:
            status = (await self.kit.quiet.get(CRDS, self.name)).body.get("status", {})
            return any(c["type"] == "Established" and c["status"] == "True" for c in status.get("conditions") or ())

        await self.kit.until(f"{self.name} is established", is_so)

    async def listed(self, version: str, status: int = 200) -> None:
        """Wait until a list of a version answers so."""
        path = f"/apis/{self.group}/{version}/{self.plural}"

        async def answers() -> bool:
            return (await self.kit.quiet.send("GET", path)).status == status

        await self.kit.until(f"list of {self.name} {version} answers {status}", answers)


FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
"""A schema that keeps everything."""


def props(**properties: Json) -> Json:
    """The schema of an object with these properties."""
    return {"type": "object", "properties": properties}


INT = {"type": "integer"}
STRING = {"type": "string"}
