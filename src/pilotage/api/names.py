"""Names that several programs agree on: our resources, labels and finalizers."""

from pilotage.kube import ObjectKey, Resource

GROUP = "pilotage.dev"
VERSION = "v1alpha1"

MODELS = Resource(GROUP, VERSION, "models", "Model")
ENDPOINTS = Resource(GROUP, VERSION, "servingendpoints", "ServingEndpoint")
EXPERIMENTS = Resource(GROUP, VERSION, "experiments", "Experiment")
TEARDOWNS = Resource(GROUP, VERSION, "teardowns", "Teardown")
HOSTS = Resource(GROUP, VERSION, "hosts", "Host", namespaced=False)
PROCESSES = Resource(GROUP, VERSION, "hostprocesses", "HostProcess")
HOST_SERVICES = Resource(GROUP, VERSION, "hostservices", "HostServices", namespaced=False)
GATEWAY_ROUTES = Resource(GROUP, VERSION, "gatewayroutes", "GatewayRoute")

TEARDOWN_DONE = "done"
"""Phase of a Teardown that has proven everything gone."""

CONFLICTED = "Conflicted"
"""The condition of a GatewayRoute that does not get all the names that it wants."""

LABEL_MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGED_BY = "pilotage"
"""The value of `LABEL_MANAGED_BY` on everything that an endpoint is made of."""
LABEL_ENDPOINT = "pilotage.dev/endpoint"
"""The endpoint's name, for people; a name that is too long for a label is cut."""
LABEL_ENDPOINT_UID = "pilotage.dev/endpoint-uid"
"""UID of the endpoint that it is a part of. Anybody can write it: `ANNOTATION_SEAL` is the proof."""
LABEL_KEEP_ALIVE = "pilotage.dev/keep-alive-seconds"
"""Seconds for which the servers of a Service keep a connection open that has no request. On a Service and, copied from
there, on its EndpointSlices. Without it the gateway uses no connection for a second request."""
LABEL_REVISION = "pilotage.dev/revision"
"""The number of the revision that it belongs to; what belongs to all of them (the route, the cache) has none."""
LABEL_JOB = "batch.kubernetes.io/job-name"
"""Label of the pods of Jobs: no server has it."""

ANNOTATION_SEAL = "pilotage.dev/seal"
"""Annotation of every part: the operator's proof that it made the part for the endpoint that the label names."""

ANNOTATION_CANARY_OF = "pilotage.dev/canary-of"
"""Annotation of a canary Ingress: the main Ingress, without which it is nothing."""

ANNOTATION_PROMOTE = "pilotage.dev/promote"
"""Annotation of an endpoint: ends a step of a rollout, by revision and step (`assistant-8/3`), or all (`…/all`)."""
ANNOTATION_ABORT = "pilotage.dev/abort"
"""Annotation of an endpoint: aborts the rollout of this revision (`assistant-8`)."""
ANNOTATION_HOLD = "pilotage.dev/hold"
"""Annotation of an endpoint: holds the rollout of this revision where it is, for as long as it is there."""
ANNOTATION_RETRY = "pilotage.dev/retry"
"""Annotation of an endpoint: allows that the spec of this aborted revision is tried again."""

LABEL_KEPT = "pilotage.dev/kept"
"""Label of objects that an endpoint left on purpose: the endpoint's name. A new one of that name adopts them."""

LABEL_HOST = "pilotage.dev/host"
"""Label of a HostProcess and of the EndpointSlice with its address: the Host that it runs on."""
LABEL_PROCESS_UID = "pilotage.dev/process-uid"
"""Label of an EndpointSlice: the HostProcess whose address it has. This decides, not a name."""

UP_MARKER = ObjectKey("pilotage-system", "pilotage-up")
"""ConfigMap on the API server of `pilotage up`: its `host` is the Host that the machine is. Administrators write it."""
HOST_LEASES = "pilotage-hosts"
"""The namespace of the service accounts of agents, and of the Leases by which they say that they live; an account and a
Lease are called like their Host."""
AGENTS_GROUP = f"system:serviceaccounts:{HOST_LEASES}"
"""The group of all agents' accounts."""
GRANTED = "granted"
"""The only HostServices object that counts."""

ENDPOINT_FINALIZER = "pilotage.dev/endpoint"
EXPERIMENT_FINALIZER = "pilotage.dev/experiment"
"""Finalizer of an Experiment: its variants leave the route, and are proven gone."""
MODEL_FINALIZER = "pilotage.dev/model"
HOST_FINALIZER = "pilotage.dev/host"
"""Finalizer of a Host: its HostProcesses and slices go first."""
TEARDOWN_FINALIZER = "pilotage.dev/teardown"
"""Finalizer of an owner whose parts a `pilotage delete` takes down one by one: it stays until they are gone."""
PROCESS_FINALIZER = "pilotage.dev/agent"
"""Finalizer of a HostProcess: its agent has to prove that nothing of it runs."""

CACHE_SUFFIX = "-cache"
"""The end of the name of a claim with the fetched weights of an endpoint."""
