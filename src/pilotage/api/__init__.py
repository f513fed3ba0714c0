"""Our own kinds (`pilotage.dev/v1alpha1`): the types of their specs and statuses, and the CRDs made from them.

The types are msgspec structs: constraints, defaults and descriptions stand in one place, clients and controllers decode
with them, and `crds` generates CustomResourceDefinitions from them. No I/O.

Here are the names of our resources, labels and finalizers. Types are imported from their modules: a command needs few.
"""

from pilotage.api.names import (
    ENDPOINT_FINALIZER,
    ENDPOINTS,
    GATEWAY_ROUTES,
    GROUP,
    HOST_FINALIZER,
    HOST_LEASES,
    HOST_SERVICES,
    HOSTS,
    LABEL_ENDPOINT,
    LABEL_ENDPOINT_UID,
    LABEL_HOST,
    LABEL_MANAGED_BY,
    LABEL_PROCESS_UID,
    LABEL_REVISION,
    MANAGED_BY,
    MODEL_FINALIZER,
    MODELS,
    PROCESS_FINALIZER,
    PROCESSES,
    TEARDOWNS,
    VERSION,
)

__all__ = [
    "ENDPOINTS",
    "ENDPOINT_FINALIZER",
    "GATEWAY_ROUTES",
    "GROUP",
    "HOSTS",
    "HOST_FINALIZER",
    "HOST_LEASES",
    "HOST_SERVICES",
    "LABEL_ENDPOINT",
    "LABEL_ENDPOINT_UID",
    "LABEL_HOST",
    "LABEL_MANAGED_BY",
    "LABEL_PROCESS_UID",
    "LABEL_REVISION",
    "MANAGED_BY",
    "MODELS",
    "MODEL_FINALIZER",
    "PROCESSES",
    "PROCESS_FINALIZER",
    "TEARDOWNS",
    "VERSION",
]
