"""The built-in rows, one module for each family of kinds. A new family is a new module and a line in `FAMILIES`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.teardown.relations.families import (
    admission,
    apiregistration,
    apps,
    argo_rollouts,
    autoscaling,
    batch,
    cert_manager,
    contour,
    core,
    crossplane,
    gateway_api,
    istio,
    keda,
    knative,
    kserve,
    networking,
    own,
    policy,
    prometheus,
    rbac,
    storage,
)
from pilotage.teardown.relations.families.pods import TEMPLATES

if TYPE_CHECKING:
    from pilotage.teardown.relations.rows import Row

__all__ = ["BUILT_IN", "FAMILIES", "TEMPLATES"]

FAMILIES: dict[str, tuple[Row, ...]] = {
    "core": core.ROWS,
    "apps": apps.ROWS,
    "batch": batch.ROWS,
    "autoscaling": autoscaling.ROWS,
    "networking": networking.ROWS,
    "policy": policy.ROWS,
    "rbac": rbac.ROWS,
    "admission": admission.ROWS,
    "apiregistration": apiregistration.ROWS,
    "storage": storage.ROWS,
    "Gateway API": gateway_api.ROWS,
    "Contour": contour.ROWS,
    "KServe": kserve.ROWS,
    "Knative": knative.ROWS,
    "KEDA": keda.ROWS,
    "Argo Rollouts": argo_rollouts.ROWS,
    "Istio": istio.ROWS,
    "Crossplane": crossplane.ROWS,
    "Prometheus operator": prometheus.ROWS,
    "cert-manager": cert_manager.ROWS,
    "Pilotage": own.ROWS,
}

BUILT_IN: tuple[Row, ...] = tuple(row for rows in FAMILIES.values() for row in rows)
