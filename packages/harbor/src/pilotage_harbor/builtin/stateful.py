"""StatefulSets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.field_errors import forbidden, invalid, nonnegative, not_supported
from pilotage_harbor.apimachinery.names import dns_label
from pilotage_harbor.builtin.base import Builtin, named, path
from pilotage_harbor.builtin.pod_defaults import fill_template
from pilotage_harbor.builtin.volumes import claim_spec_problems
from pilotage_harbor.builtin.workload_rules import (
    as_number,
    over_100_percent,
    percent_problems,
    replica_status_problems,
    selected_template_problems,
)

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.kinds import Json, View


class StatefulSetStrategy(Builtin):
    """A StatefulSet."""

    go_type = "apps.StatefulSet"
    counts = ("spec",)
    name_problems = named(dns_label)
    _CHANGEABLE = (
        "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
    )  # fmt: skip

    def fill(self, obj: Json) -> None:
        """Defaults."""
        spec = obj["spec"]
        spec.setdefault("podManagementPolicy", "OrderedReady")
        update = spec["updateStrategy"]
        if "type" not in update:
            update["type"] = "RollingUpdate"
            update.setdefault("rollingUpdate", {})
        if update["type"] == "RollingUpdate" and (rolling := update.get("rollingUpdate")) is not None:
            rolling.setdefault("partition", 0)
        retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
        retention.setdefault("whenDeleted", "Retain")
        retention.setdefault("whenScaled", "Retain")
        spec.setdefault("replicas", 1)
        spec.setdefault("revisionHistoryLimit", 10)
        fill_template(spec["template"])
        for claim in spec.get("volumeClaimTemplates", ()):
            claim.setdefault("apiVersion", "v1")
            claim.setdefault("kind", "PersistentVolumeClaim")
            claim["spec"].setdefault("volumeMode", "Filesystem")
            claim["status"].setdefault("phase", "Pending")

    def prepare_create(self, obj: Json, view: View) -> None:
        """Drop maxUnavailable, which is not yet served by default."""
        super().prepare_create(obj, view)
        (obj["spec"]["updateStrategy"].get("rollingUpdate") or {}).pop("maxUnavailable", None)

    def prepare_update(self, obj: Json, old: Json, view: View) -> None:
        """Likewise."""
        (obj["spec"]["updateStrategy"].get("rollingUpdate") or {}).pop("maxUnavailable", None)
        super().prepare_update(obj, old, view)

    def check(self, obj: Json) -> list[StatusCause]:
        """A new one: claims and the name of the service, too."""
        return self._check(obj, new=True)

    def _check(self, obj: Json, *, new: bool) -> list[StatusCause]:
        spec = obj["spec"]
        problems: list[StatusCause] = []
        policy = spec["podManagementPolicy"]
        if policy not in ("OrderedReady", "Parallel"):
            problems.append(invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))
        problems += self._update_strategy(spec["updateStrategy"])
        for name in ("whenDeleted", "whenScaled"):
            value = spec["persistentVolumeClaimRetentionPolicy"][name]
            if value not in ("Retain", "Delete"):
                field = f"spec.persistentVolumeClaimRetentionPolicy.{name}"
                problems.append(not_supported(field, value, ("Retain", "Delete")))
        if new:
            for index, claim in enumerate(spec.get("volumeClaimTemplates", ())):
                problems += claim_spec_problems(claim["spec"], f"spec.volumeClaimTemplates[{index}].spec")
        problems += nonnegative("spec.replicas", spec["replicas"])
        problems += nonnegative("spec.minReadySeconds", spec.get("minReadySeconds"))
        problems += nonnegative("spec.ordinals.start", path(spec, "ordinals", "start"))
        if new and spec.get("serviceName"):
            problems += [
                invalid("spec.serviceName", spec["serviceName"], why) for why in dns_label(spec["serviceName"])
            ]
        return problems + selected_template_problems(self._with_claims(spec), "statefulset", "StatefulSet")

    def _with_claims(self, spec: Json) -> Json:
        """The spec with a volume for each claim, which its containers may mount."""
        template, claims = spec["template"], spec.get("volumeClaimTemplates", ())
        pod = {name: value for name, value in template["spec"].items() if name not in ("subdomain", "hostname")}
        if claims:
            names = [claim["metadata"].get("name", "") for claim in claims]
            volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in names]
            pod["volumes"] = volumes + [each for each in pod.get("volumes", ()) if each["name"] not in names]
        return spec | {"template": template | {"spec": pod}}

    def _update_strategy(self, update: Json) -> list[StatusCause]:
        field, rolling = "spec.updateStrategy", update.get("rollingUpdate")
        if update["type"] == "OnDelete":
            if rolling is None:
                return []
            shown = {"Partition": rolling.get("partition", 0), "MaxUnavailable": rolling.get("maxUnavailable")}
            return [invalid(f"{field}.rollingUpdate", shown, "only allowed for updateStrategy 'RollingUpdate'")]
        if update["type"] != "RollingUpdate":
            shown = {"Type": update["type"], "RollingUpdate": rolling}
            return [invalid(field, shown, "must be 'RollingUpdate' or 'OnDelete'")]
        if rolling is None:
            return []
        problems = nonnegative(f"{field}.rollingUpdate.partition", rolling.get("partition"))
        if (most := rolling.get("maxUnavailable")) is not None:
            here = f"{field}.rollingUpdate.maxUnavailable"
            problems += percent_problems(most, here)
            if not as_number(most):
                problems.append(invalid(here, most, "cannot be 0"))
            problems += over_100_percent(most, here)
        return problems

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """Refuse changes of all but a few fields."""
        problems = self._check(obj, new=False)
        new, was = ({k: v for k, v in each["spec"].items() if k not in self._CHANGEABLE} for each in (obj, old))
        if new != was:
            names = "'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit'"
            why = (
                f"updates to statefulset spec for fields other than {names},"
                " 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
            )
            problems.append(forbidden("spec", why))
        return problems

    def validate_status_update(self, obj: Json, old: Json, view: View) -> list[StatusCause]:
        """Its counts."""
        counts = ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
        more = ("observedGeneration", "collisionCount")
        return replica_status_problems(obj, counts + more, counts[1:], "status.readyReplicas")
