"""Our own kinds (`pilotage.dev/v1alpha1`): what a user writes, what the controllers answer, and their CRDs.

The types are pydantic models; `crds` makes CustomResourceDefinitions of them. They take a third of a second to import,
so they are imported when first used: the command line needs the names alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from pilotage.api.endpoint import Endpoint, EndpointSpec, EndpointStatus
    from pilotage.api.gateway import GatewayRoute
    from pilotage.api.host import Host, HostProcess, HostServices
    from pilotage.api.model import Model, ModelSpec, ModelStatus
    from pilotage.api.teardown import Teardown, TeardownSpec, TeardownStatus

_LATER = {
    "Endpoint": "pilotage.api.endpoint",
    "EndpointSpec": "pilotage.api.endpoint",
    "EndpointStatus": "pilotage.api.endpoint",
    "GatewayRoute": "pilotage.api.gateway",
    "Host": "pilotage.api.host",
    "HostProcess": "pilotage.api.host",
    "HostServices": "pilotage.api.host",
    "Model": "pilotage.api.model",
    "ModelSpec": "pilotage.api.model",
    "ModelStatus": "pilotage.api.model",
    "Teardown": "pilotage.api.teardown",
    "TeardownSpec": "pilotage.api.teardown",
    "TeardownStatus": "pilotage.api.teardown",
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
