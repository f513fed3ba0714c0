"""Names that several programs agree on: our resources, labels and finalizers."""

from pilotage.kube import Resource

GROUP = "pilotage.dev"
VERSION = "v1alpha1"

MODELS = Resource(GROUP, VERSION, "models", "Model")
ENDPOINTS = Resource(GROUP, VERSION, "servingendpoints", "ServingEndpoint")
TEARDOWNS = Resource(GROUP, VERSION, "teardowns", "Teardown")

LABEL_MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGED_BY = "pilotage"
"""The value of `LABEL_MANAGED_BY` on everything that an endpoint is made of."""
LABEL_ENDPOINT = "pilotage.dev/endpoint"
"""The endpoint's name, for people; a name that is too long for a label is cut."""
LABEL_ENDPOINT_UID = "pilotage.dev/endpoint-uid"
"""Whose part it is. This decides, not a name."""
LABEL_REVISION = "pilotage.dev/revision"
"""The number of the revision that it belongs to; what belongs to all of them (the route, the cache) has none."""

LABEL_KEPT = "pilotage.dev/kept"
"""On what an endpoint left on purpose: the endpoint's name. A new one of that name takes it up again."""

ENDPOINT_FINALIZER = "pilotage.dev/endpoint"
MODEL_FINALIZER = "pilotage.dev/model"
