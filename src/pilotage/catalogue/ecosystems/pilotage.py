"""Pilotage's own kinds."""

from pilotage.api.names import (
    ENDPOINT_FINALIZER,
    ENDPOINTS,
    EXPERIMENT_FINALIZER,
    EXPERIMENTS,
    GATEWAY_ROUTES,
    GROUP,
    HOST_FINALIZER,
    HOSTS,
    MODEL_FINALIZER,
    MODELS,
    PROCESS_FINALIZER,
    PROCESSES,
    TEARDOWN_FINALIZER,
)
from pilotage.catalogue.kind import Ecosystem, KnownFinalizer, KnownKind
from pilotage.catalogue.phase import Phase
from pilotage.catalogue.relation import ByName, Relation, TargetKind, defines, mounts, needs, routes_to, selects
from pilotage.catalogue.shared import A_SECRET, A_SERVICE, ANYTHING, SERVICE, usage_fields

_BACKEND = ByName((SERVICE,), name="service")


def _of_operator(patterns: tuple[str, ...], does: str, leaks: str) -> KnownFinalizer:
    """Finalizers that the operator removes."""
    return KnownFinalizer(
        patterns,
        "Pilotage operator",
        does,
        leaks,
        ("pilotage-operator", "pilotage"),
        ("pilotage", "pilotage-system"),
        (("app.kubernetes.io/name", "pilotage"),),
        ("pilotage-operator",),
    )


ECOSYSTEM = Ecosystem(
    "Pilotage",
    (
        KnownKind(
            GROUP,
            ENDPOINTS.kind,
            relations=(
                mounts("spec.model.name", ByName((TargetKind(GROUP, MODELS.kind),))),
                # Its parts have no owner: what it has written down of them is all that ties them to it.
                defines("status.ledger[]", ANYTHING),
            ),
            takes_down=frozenset({Relation.DEFINES}),
        ),
        KnownKind(
            GROUP,
            EXPERIMENTS.kind,
            relations=(needs("spec.endpoint", ByName((TargetKind(GROUP, ENDPOINTS.kind),))),),
        ),
        KnownKind(GROUP, HOSTS.kind, takes_down=frozenset({Relation.NEEDS})),
        KnownKind(GROUP, MODELS.kind, relations=(mounts("spec.secretRef", A_SECRET),)),
        KnownKind(
            GROUP,
            GATEWAY_ROUTES.kind,
            relations=(
                routes_to("spec.backends[]", _BACKEND, note="weight"),
                routes_to("spec.branches[].backends[]", _BACKEND, note="weight"),
                routes_to("spec.copies[]", _BACKEND, note="percent"),
                routes_to("spec.revisions[]", _BACKEND),
            ),
            phase=Phase.DETACH,
            route_status=("status.observedGeneration",),
            serves=True,
        ),
        KnownKind(
            GROUP,
            PROCESSES.kind,
            relations=(
                needs("spec.host", ByName((TargetKind(GROUP, HOSTS.kind, namespaced=False),))),
                # As a Service and a pod: routes to it go first, then the process, then the Service.
                selects("spec.service", A_SERVICE, back=True),
                mounts("spec.model.secret", A_SECRET),
            ),
            phase=Phase.STOP,
            serves=True,
        ),
        KnownKind(GROUP, "Usage", relations=usage_fields(across=True)),
        KnownKind(GROUP, "ClusterUsage", relations=usage_fields(across=True, user_across=True)),
    ),
    (
        KnownFinalizer(
            (TEARDOWN_FINALIZER,),
            "an unfinished pilotage delete",
            "takes down the parts of the object, in order",
            "nothing, if its parts are gone; those that are left then go in any order, or stay.",
        ),
        KnownFinalizer(
            (PROCESS_FINALIZER,),
            "the agent of its Host",
            "stops the server, proves that nothing of it runs, and takes its address out of the cluster",
            "the server, if its machine is up: it keeps running with its port and its memory, unmanaged.",
        ),
        _of_operator(
            (ENDPOINT_FINALIZER,),
            "takes the parts of the endpoint down in order, and proves that they are gone",
            "the endpoint's parts, unless an operator starts again: they have no owner reference, so nothing else "
            "collects them. `pilotage leaks` finds them.",
        ),
        _of_operator(
            (EXPERIMENT_FINALIZER,),
            "takes the variants out of the route and down in order, and proves that they are gone",
            "nothing, while its endpoint's controller runs: variants without an Experiment leave all the same.",
        ),
        _of_operator(
            (MODEL_FINALIZER,),
            "waits until no endpoint uses the Model, and removes its files from the cache",
            "the fetched files, in the cache of the operator, until an operator starts again there; endpoints that use "
            "the Model fail at their next revision.",
        ),
        _of_operator(
            (HOST_FINALIZER,),
            "removes the processes of the Host and their addresses, then its Lease",
            "the HostProcesses that were placed on it and their EndpointSlices, which may still route requests; its "
            "servers run on until an agent starts on that machine.",
        ),
        _of_operator(
            ("*.pilotage.dev/*", "pilotage.dev/*"),
            "takes everything down in order, and proves it",
            "whatever the object stands for: nothing takes it down any more. `pilotage leaks` finds some of it.",
        ),
    ),
    defined=True,
)
