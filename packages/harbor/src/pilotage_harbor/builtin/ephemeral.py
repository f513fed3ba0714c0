"""Ephemeral containers: a subresource of Pods by which containers are added to one that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.field_errors import duplicate, forbidden, not_found
from pilotage_harbor.builtin.base import restore
from pilotage_harbor.builtin.container_rules import common_problems
from pilotage_harbor.builtin.pods import PodStrategy
from pilotage_harbor.builtin.volume_rules import volume_problems

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.kinds import Json, View

_FIELD = "spec.ephemeralContainers"
_MIRROR = "kubernetes.io/config.mirror"
_NOT_THERE = "cannot be set for an Ephemeral Container"
_FORBIDDEN = (
    "ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", "livenessProbe", "readinessProbe",
    "startupProbe", "lifecycle",
)  # fmt: skip


class EphemeralContainersStrategy(PodStrategy):
    """A Pod of which only the ephemeral containers change, and of those none that is there."""

    def prepare_update(self, obj: Json, old: Json, view: View) -> None:
        """Keep all else."""
        added = obj["spec"].get("ephemeralContainers")
        obj["spec"] = {name: value for name, value in old["spec"].items() if name != "ephemeralContainers"}
        if added:
            obj["spec"]["ephemeralContainers"] = added
        restore(obj, old, "status")
        for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "finalizers"):
            restore(obj["metadata"], old["metadata"], name)
        restore(obj["metadata"], old["metadata"], "ownerReferences")
        self.count(obj, old)

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """The new containers, and that the others are as they were."""
        if _MIRROR in (old["metadata"].get("annotations") or {}):
            return [forbidden("", "static pods do not support ephemeral containers")]
        problems = self._check_spec(obj) + ephemeral_problems(obj["spec"])
        now = {each["name"]: each for each in obj["spec"].get("ephemeralContainers") or ()}
        for before in old["spec"].get("ephemeralContainers") or ():
            name = before["name"]
            if name not in now:
                problems.append(forbidden(_FIELD, f'existing ephemeral containers "{name}" may not be removed\n'))
            elif now[name] != before:
                problems.append(forbidden(_FIELD, f'existing ephemeral containers "{name}" may not be changed\n'))
        return problems


def ephemeral_problems(spec: Json) -> list[StatusCause]:
    """Problems of the ephemeral containers of a pod."""
    problems: list[StatusCause] = []
    volumes, _ = volume_problems(spec.get("volumes", []), "spec.volumes")
    lasting = {each["name"] for name in ("containers", "initContainers") for each in spec.get(name) or ()}
    names = set(lasting)
    for index, container in enumerate(spec.get("ephemeralContainers") or ()):
        here = f"{_FIELD}[{index}]"
        problems += common_problems(container, volumes, here)
        if container["name"] in names:
            problems.append(duplicate(f"{here}.name", container["name"]))
        names.add(container["name"])
        target = container.get("targetContainerName")
        if target and target not in lasting:
            problems.append(not_found(f"{here}.targetContainerName", target))
        problems += [forbidden(f"{here}.{name}", _NOT_THERE) for name in _FORBIDDEN if container.get(name)]
        for place, mount in enumerate(container.get("volumeMounts") or ()):
            for name in ("subPath", "subPathExpr"):
                if mount.get(name):
                    problems.append(forbidden(f"{here}.volumeMounts[{place}].{name}", _NOT_THERE))
    return problems
