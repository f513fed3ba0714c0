"""Crossplane: usages, composite and managed resources of any group, packages.

Composite resources, claims and managed resources are kinds that users and providers define. They are known by their
discovery category; only those are read in full, and only where they are served.
"""

import functools

from pilotage.catalogue.kind import Ecosystem, KnownFinalizer, KnownKind
from pilotage.catalogue.relation import OWN_GROUP, ByName, ByReference, TargetKind, claims, needs, protects, targets
from pilotage.catalogue.shared import A_SECRET_ANYWHERE, ANYTHING, usage_fields

_PROTECTION = "protection.crossplane.io"
_EXTENSIONS = "apiextensions.crossplane.io"
_PACKAGES = "pkg.crossplane.io"
_COMPOSITION = ByName((TargetKind(_EXTENSIONS, "Composition", namespaced=False),))
_COMPOSED = ByReference(namespace="namespace")
_PROVIDER_CONFIG = ByReference(group="", default=TargetKind(OWN_GROUP, "ProviderConfig", namespaced=False))
_RUNTIME = ByName((TargetKind(_PACKAGES, "DeploymentRuntimeConfig", namespaced=False),))
_SYSTEM = ("crossplane-system", "upbound-system")
_by_crossplane = functools.partial(
    KnownFinalizer,
    who="Crossplane",
    workloads=("crossplane",),
    namespaces=_SYSTEM,
    labels=(("app", "crossplane"),),
    leases=("crossplane-leader-election-core",),
)
_by_provider = functools.partial(
    KnownFinalizer,
    who="Crossplane provider",
    workloads=("provider-*", "upbound-provider-*", "crossplane-provider-*", "crossplane-contrib-provider-*"),
    namespaces=_SYSTEM,
)

ECOSYSTEM = Ecosystem(
    "Crossplane",
    (
        KnownKind(_PROTECTION, "Usage", relations=usage_fields(across=True)),
        KnownKind(_PROTECTION, "ClusterUsage", relations=usage_fields()),
        KnownKind(_EXTENSIONS, "Usage", relations=usage_fields()),
        KnownKind(
            "*",
            "*",
            category="composite",
            relations=(
                # The first of each pair is of Crossplane 1, the second of 2.
                targets("spec.resourceRefs[]", _COMPOSED),
                targets("spec.crossplane.resourceRefs[]", _COMPOSED),
                needs("spec.compositionRef", _COMPOSITION),
                needs("spec.crossplane.compositionRef", _COMPOSITION),
                claims("spec.claimRef", _COMPOSED, back=True),
            ),
        ),
        KnownKind("*", "*", category="claim", relations=(claims("spec.resourceRef", ANYTHING),)),
        KnownKind(
            "*",
            "*",
            category="managed",
            relations=(
                needs("spec.providerConfigRef", _PROVIDER_CONFIG),
                targets("spec.writeConnectionSecretToRef", A_SECRET_ANYWHERE),
            ),
        ),
        KnownKind(
            "*",
            "ProviderConfigUsage",
            relations=(protects("providerConfigRef", _PROVIDER_CONFIG), targets("resourceRef", ANYTHING)),
        ),
        KnownKind(
            _EXTENSIONS,
            "Composition",
            relations=(
                needs("spec.pipeline[].functionRef", ByName((TargetKind(_PACKAGES, "Function", namespaced=False),))),
            ),
        ),
        *(
            KnownKind(_PACKAGES, kind, relations=(needs("spec.runtimeConfigRef", _RUNTIME),))
            for kind in ("Function", "FunctionRevision", "Provider", "ProviderRevision")
        ),
    ),
    (
        _by_provider(
            ("finalizer.managedresource.crossplane.io",),
            does="deletes the external resource",
            leaks="the external resource: it stays with its provider, and is paid for.",
        ),
        _by_provider(
            ("in-use.crossplane.io",),
            does="waits until no managed resource uses the configuration",
            leaks="managed resources without the credentials to delete what they stand for.",
        ),
        _by_crossplane(
            (
                "composite.apiextensions.crossplane.io",
                "defined.apiextensions.crossplane.io",
                "offered.apiextensions.crossplane.io",
                "finalizer.apiextensions.crossplane.io",
            ),
            does="deletes what the object is composed of and waits until that is gone",
            leaks="composed resources, and with them what they stand for outside the cluster.",
        ),
        _by_crossplane(
            ("usage.apiextensions.crossplane.io",),
            does="waits until the resource that uses is gone, and takes its mark off the one that is used",
            leaks="the mark on the resource that is used; a delete that was refused is not replayed.",
        ),
        _by_crossplane(
            ("*.pkg.crossplane.io", "*.ops.crossplane.io"),
            does="uninstalls what the package brought",
            leaks="what the package installed: definitions, controllers and their permissions.",
        ),
    ),
)
