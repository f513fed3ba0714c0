"""Our own kinds (`pilotage.dev/v1alpha1`): what a user writes, what the controllers answer, and their CRDs.

The types are pydantic models; `crds` makes CustomResourceDefinitions of them. They take a third of a second to import,
so they are imported when first used: the command line needs the names alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from pilotage.kinds.names import (
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

if TYPE_CHECKING:
    from pilotage.kinds.endpoint import Endpoint, EndpointSpec, EndpointStatus
    from pilotage.kinds.gateway import GatewayRoute
    from pilotage.kinds.host import Host, HostProcess, HostServices
    from pilotage.kinds.model import Model, ModelSpec, ModelStatus
    from pilotage.kinds.teardown import Teardown, TeardownSpec, TeardownStatus

_LATER = {
    "Endpoint": "pilotage.kinds.endpoint",
    "EndpointSpec": "pilotage.kinds.endpoint",
    "EndpointStatus": "pilotage.kinds.endpoint",
    "GatewayRoute": "pilotage.kinds.gateway",
    "Host": "pilotage.kinds.host",
    "HostProcess": "pilotage.kinds.host",
    "HostServices": "pilotage.kinds.host",
    "Model": "pilotage.kinds.model",
    "ModelSpec": "pilotage.kinds.model",
    "ModelStatus": "pilotage.kinds.model",
    "Teardown": "pilotage.kinds.teardown",
    "TeardownSpec": "pilotage.kinds.teardown",
    "TeardownStatus": "pilotage.kinds.teardown",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)


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
    "Endpoint",
    "EndpointSpec",
    "EndpointStatus",
    "GatewayRoute",
    "Host",
    "HostProcess",
    "HostServices",
    "Model",
    "ModelSpec",
    "ModelStatus",
    "Teardown",
    "TeardownSpec",
    "TeardownStatus",
]
