"""Crossplane: usages, composite and managed resources of any group, packages.

Composite resources, claims and managed resources are kinds that users and providers define. They are known by their
discovery category; only those are read in full, and only where they are served.
"""

from __future__ import annotations

from pilotage.teardown.relations.families.kinds import A_SECRET_ANYWHERE, ANYTHING
from pilotage.teardown.relations.families.usages import usage_rows
from pilotage.teardown.relations.rows import OWN_GROUP, Kind, Named, Reference, Relation, Row

_PROTECTION = "protection.crossplane.io"
_EXTENSIONS = "apiextensions.crossplane.io"
_PACKAGES = "pkg.crossplane.io"
_COMPOSITE, _CLAIM, _MANAGED = "composite", "claim", "managed"
_COMPOSITION = Named((Kind(_EXTENSIONS, "Composition", namespaced=False),))
_COMPOSED = Reference(namespace="namespace")
_PROVIDER_CONFIG = Reference(group="", default=Kind(OWN_GROUP, "ProviderConfig", namespaced=False))
_RUNTIME = Named((Kind(_PACKAGES, "DeploymentRuntimeConfig", namespaced=False),))


def _any(category: str, relation: Relation, field: str, target: Named | Reference, *, back: bool = False) -> Row:
    return Row("*", "*", relation, field, target, category=category, back=back)


ROWS = (
    *usage_rows(_PROTECTION, "Usage", across=True),
    *usage_rows(_PROTECTION, "ClusterUsage"),
    *usage_rows(_EXTENSIONS, "Usage"),
    # The first of each pair is of Crossplane 1, the second of 2.
    _any(_COMPOSITE, Relation.TARGETS, "spec.resourceRefs[]", _COMPOSED),
    _any(_COMPOSITE, Relation.TARGETS, "spec.crossplane.resourceRefs[]", _COMPOSED),
    _any(_COMPOSITE, Relation.NEEDS, "spec.compositionRef", _COMPOSITION),
    _any(_COMPOSITE, Relation.NEEDS, "spec.crossplane.compositionRef", _COMPOSITION),
    _any(_COMPOSITE, Relation.CLAIMS, "spec.claimRef", _COMPOSED, back=True),
    _any(_CLAIM, Relation.CLAIMS, "spec.resourceRef", ANYTHING),
    _any(_MANAGED, Relation.NEEDS, "spec.providerConfigRef", _PROVIDER_CONFIG),
    _any(_MANAGED, Relation.TARGETS, "spec.writeConnectionSecretToRef", A_SECRET_ANYWHERE),
    Row(
        "*",
        "ProviderConfigUsage",
        Relation.PROTECTS,
        "providerConfigRef",
        Reference(group="", default=Kind(OWN_GROUP, "ProviderConfig", namespaced=False)),
    ),
    Row("*", "ProviderConfigUsage", Relation.TARGETS, "resourceRef", ANYTHING),
    Row(
        _EXTENSIONS,
        "Composition",
        Relation.NEEDS,
        "spec.pipeline[].functionRef",
        Named((Kind(_PACKAGES, "Function", namespaced=False),)),
    ),
    *(
        Row(_PACKAGES, kind, Relation.NEEDS, "spec.runtimeConfigRef", _RUNTIME)
        for kind in ("Function", "FunctionRevision", "Provider", "ProviderRevision")
    ),
)
