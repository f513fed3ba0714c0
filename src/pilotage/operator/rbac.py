"""RBAC rules of the operator, each with its use. Nothing is allowed that has no use here.

Endpoints may be in any namespace, so most of it is a ClusterRole. Two powers are not given at all, because they reach
far: reading Secrets of others, and speaking to pods through the API server. There is a ClusterRole for each, which is
bound in the namespaces where it is wanted, and nowhere by default. So it is with placing on Hosts, for people: whoever
may do that decides what a machine runs, within what its owner allows.
"""

from pilotage.api.rbac_rules import MAKE, READ, RbacRule
from pilotage.controllers.seals import SECRET_NAME
from pilotage.traffic.ingress_nginx import INGRESS_CLASSES
from pilotage.traffic.routers import ROUTE_RESOURCES

__all__ = [
    "AT_HOME",
    "AT_HOSTS",
    "EDIT",
    "EVERYWHERE",
    "PLACE_ON_HOSTS",
    "READ_ENVOYS",
    "READ_SECRETS",
    "VIEW",
    "RbacRule",
]

EVERYWHERE = (
    RbacRule("pilotage.dev", ("servingendpoints",), (*READ, "patch"), "to see what is wanted; their finalizers"),
    RbacRule(
        "pilotage.dev",
        ("experiments",),
        ("list", "watch", "patch", "delete"),
        "to see what is compared; their finalizers; they go when their time is over",
    ),
    RbacRule("pilotage.dev", ("models",), ("list", "watch", "patch"), "as above"),
    RbacRule("pilotage.dev", ("hosts",), (*READ, "patch", "use"), "to place processes on them; their finalizers"),
    RbacRule(
        "pilotage.dev", ("hostservices",), ("get", "create", "patch"), "the Services that agents give addresses to"
    ),
    RbacRule("pilotage.dev", ("hostprocesses",), MAKE, "placement.kind Host; where each of them runs"),
    RbacRule(
        "pilotage.dev",
        (
            "servingendpoints/status",
            "experiments/status",
            "models/status",
            "teardowns/status",
            "hosts/status",
            "hostprocesses/status",
        ),
        ("patch",),
        "to say what is",
    ),
    RbacRule(
        "pilotage.dev", ("teardowns",), (*READ, "create", "delete"), "the records; they go when their time is over"
    ),
    RbacRule("apps", ("deployments",), MAKE, "what serves"),
    RbacRule("apps", ("replicasets",), (*READ, "delete"), "to prove that it is gone, and to push what lingers"),
    RbacRule("", ("pods",), (*READ, "delete"), "as above"),
    RbacRule("", ("services", "persistentvolumeclaims"), MAKE, "how it is reached, and where weights are kept"),
    RbacRule(
        "discovery.k8s.io",
        ("endpointslices",),
        (*READ, "patch", "delete"),
        "to see who is reached; to take the addresses of a lost Host out of traffic",
    ),
    RbacRule("autoscaling", ("horizontalpodautoscalers",), MAKE, "spec.autoscaling"),
    RbacRule("batch", ("jobs",), MAKE, "steps of a rollout that are Jobs"),
    RbacRule("keda.sh", ("scaledobjects",), MAKE, "spec.autoscaling, where there is KEDA"),
    *(RbacRule(each.group, (each.plural,), MAKE, f"routes of kind {each.kind}") for each in ROUTE_RESOURCES),
    RbacRule(
        INGRESS_CLASSES.group, (INGRESS_CLASSES.plural,), ("get",), "to tell whether an Ingress can have a canary"
    ),
    RbacRule("policy", ("poddisruptionbudgets",), ("get", "list"), "to name those that select what is gone"),
    RbacRule("serving.kserve.io", ("inferenceservices",), MAKE, "placement.kind KServe"),
    RbacRule(
        "",
        ("namespaces",),
        ("get",),
        "to see at the start that its own is there; the identity of the cluster, for receipts",
    ),
    RbacRule("apiextensions.k8s.io", ("customresourcedefinitions",), ("get",), "to tell a kind that is gone"),
    RbacRule("events.k8s.io", ("events",), ("create", "patch"), "to tell people what happens"),
)
"""Rules in all namespaces."""

AT_HOME = (
    RbacRule("coordination.k8s.io", ("leases",), ("get", "create", "update"), "leader election"),
    RbacRule("", ("secrets",), ("get",), "the key that it seals parts with, and no other Secret", (SECRET_NAME,)),
    RbacRule("", ("secrets",), ("create",), "the same, when it starts for the first time"),
)
"""Rules in its own namespace."""

AT_HOSTS = (
    RbacRule(
        "coordination.k8s.io", ("leases",), (*READ, "delete"), "to see whether agents live; those of deleted Hosts"
    ),
)
"""Rules in the namespace of agents."""

READ_SECRETS = (RbacRule("", ("secrets",), ("get",), "the credentials of Models, where the operator fetches them"),)
READ_ENVOYS = (RbacRule("", ("pods/proxy",), ("get",), "the admin interface of Envoys"),)
"""Bound by an administrator, in chosen namespaces."""

VIEW = (
    RbacRule(
        "pilotage.dev",
        (
            "servingendpoints",
            "experiments",
            "models",
            "teardowns",
            "hosts",
            "hostprocesses",
            "hostservices",
            "gatewayroutes",
        ),
        READ,
        "for people who may look",
    ),
)
EDIT = (
    RbacRule(
        "pilotage.dev",
        ("servingendpoints", "experiments", "models"),
        ("create", "update", "patch", "delete"),
        "for those who deploy",
    ),
    RbacRule("pilotage.dev", ("servingendpoints/scale",), ("get", "update", "patch"), "`kubectl scale`"),
)
PLACE_ON_HOSTS = (RbacRule("pilotage.dev", ("hosts",), ("use",), "to place endpoints on Hosts"),)
"""Rules that are not part of `EDIT`: bound where an administrator wants it."""
