"""Our own kinds (`pilotage.dev/v1alpha1`): the types of their specs and statuses, and the CRDs made from them.

The types are msgspec structs: constraints, defaults and descriptions stand in one place, clients and controllers decode
with them, and `crds` generates CustomResourceDefinitions from them. No I/O.

`names` has our resources, labels and finalizers. Types are imported from their modules: a command needs few.
"""
