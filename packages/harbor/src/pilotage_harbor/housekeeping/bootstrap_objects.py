"""The objects that every cluster has from its start: namespaces, services, roles and priorities.

It is made at each start where it is missing. Roles and bindings get back what they have lost, unless they say that they
are not to be updated; what was added to them stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.access.bootstrap import bootstrap_objects
from pilotage_harbor.apimachinery.errors import StatusError
from pilotage_harbor.apimachinery.users import LOOPBACK
from pilotage_harbor.housekeeping.client import Asker, path_of

if TYPE_CHECKING:
    from pilotage_harbor.core import Core
    from pilotage_harbor.housekeeping.client import Handle
    from pilotage_harbor.kinds import Json, Kind

NAMESPACES = ("kube-system", "kube-public", "kube-node-lease", "default")
AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
SERVICE_ADDRESS = "10.0.0.1"

_PRIORITIES = (
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        ("Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."),
    ),
)


class Beginnings:
    """Creates and repairs the bootstrap objects."""

    def __init__(self, core: Core, handle: Handle) -> None:
        self._core = core
        self._asker = Asker(handle, LOOPBACK, "kube-apiserver")

    async def make(self) -> None:
        """Make what is missing."""
        for name in NAMESPACES:
            await self._ensure({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for obj in bootstrap_objects():
            await self._reconcile(obj)
        for name, value, description in _PRIORITIES:
            await self._ensure(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": name},
                    "value": value,
                    "description": description,
                }
            )
        await self._ensure(_service())

    async def _ensure(self, obj: Json) -> None:
        kind = self._kind(obj)
        if self._stored(kind, obj) is None:
            await self._create(kind, obj)

    async def _reconcile(self, wanted: Json) -> None:
        kind = self._kind(wanted)
        current = self._stored(kind, wanted)
        if current is None:
            await self._create(kind, wanted)
            return
        if (current["metadata"].get("annotations") or {}).get(AUTOUPDATE) == "false":
            return
        name = wanted["metadata"]["name"]
        if current.get("roleRef") != wanted.get("roleRef"):  # it cannot be changed
            options = {"preconditions": {"uid": current["metadata"]["uid"]}}
            await self._asker.ask("DELETE", path_of(kind, "", name), options)
            await self._create(kind, wanted)
        elif _restore(current, wanted):
            await self._asker.ask("PUT", path_of(kind, "", name), current)

    async def _create(self, kind: Kind, obj: Json) -> None:
        try:
            await self._asker.ask("POST", path_of(kind, obj["metadata"].get("namespace", "")), obj)
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise

    def _kind(self, obj: Json) -> Kind:
        kind = self._core.registry.of(obj["apiVersion"], obj["kind"])
        assert kind is not None, f"{obj['kind']} is not served"
        return kind

    def _stored(self, kind: Kind, obj: Json) -> Json | None:
        meta = obj["metadata"]
        return self._core.get(kind.storage, meta.get("namespace", ""), meta["name"])


def _restore(current: Json, wanted: Json) -> bool:
    """Put back what is missing; whether anything was."""
    changed = False
    for field in ("labels", "annotations"):
        have = current["metadata"].setdefault(field, {})
        missing = {key: value for key, value in wanted["metadata"].get(field, {}).items() if key not in have}
        have.update(missing)
        changed = changed or bool(missing)
    if "aggregationRule" in wanted:
        selectors = current.setdefault("aggregationRule", {}).setdefault("clusterRoleSelectors", [])
        gone = [each for each in wanted["aggregationRule"]["clusterRoleSelectors"] if each not in selectors]
        selectors += gone
        return changed or bool(gone)
    for field in ("rules", "subjects"):
        if wanted.get(field):
            present = current.get(field) or []
            gone = [each for each in wanted[field] if not any(_covers(have, each) for have in present)]
            if gone:
                current[field] = [*present, *gone]
                changed = True
    return changed


def _covers(have: Json, wanted: Json) -> bool:
    """Whether a rule allows all that another one does; a subject covers just itself."""
    if have == wanted:
        return True
    if "verbs" not in wanted or bool(have.get("resourceNames")) or bool(wanted.get("resourceNames")):
        return False
    return all(
        set(wanted.get(field) or ()) <= set(have.get(field) or ()) or "*" in (have.get(field) or ())
        for field in ("verbs", "apiGroups", "resources", "nonResourceURLs")
    )


def _service() -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "clusterIP": SERVICE_ADDRESS,
            "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
            "sessionAffinity": "None",
            "type": "ClusterIP",
        },
    }
