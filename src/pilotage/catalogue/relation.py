"""The relations between objects."""

from __future__ import annotations

import enum


class Relation(enum.StrEnum):
    """What the source does with the target."""

    OWNS = "owns"
    """By the target's ownerReferences, with the right uid and scope: the only relation the garbage collector knows."""
    SELECTS = "selects"
    """By labels: a Service its pods (and the workloads that make them), a PodMonitor its pods."""
    ROUTES_TO = "routes to"
    """Traffic goes from the source to the target."""
    SCALES = "scales"
    MOUNTS = "mounts"
    """Needs it to run: ConfigMaps, Secrets, volumes, ServiceAccounts of pods and pod templates."""
    PROTECTS = "protects"
    """Keeps the target from going: disruption budgets, Usages."""
    CLAIMS = "claims"
    """Holds it for itself: a PersistentVolumeClaim its volume."""
    TARGETS = "targets"
    """Is about it in another way: a binding its role, an admission webhook or an APIService its Service."""
    NEEDS = "needs"
    """Is nothing without it, but is not about it: a claim its StorageClass, a route its Gateway, a user its Usage."""
    DEFINES = "defines"
    """A CustomResourceDefinition its instances; a Namespace what is in it."""
