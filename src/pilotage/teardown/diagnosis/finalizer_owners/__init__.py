"""The owner of a finalizer: the controller that would remove it, what it does first, and whether it runs.

Finalizers that are widely used stand in the catalogue. Of others, traces are read: who wrote it (managedFields), whose
API group its domain is, which workload serves that group's webhooks, who holds a Lease of that name. Nothing here does
I/O: what was not gathered is asked for through the world.
"""

from pilotage.teardown.diagnosis.finalizer_owners.liveness import Liveness
from pilotage.teardown.diagnosis.finalizer_owners.recognise import (
    FinalizerOwner,
    FinalizerOwners,
    abandoned,
    finalizer_owner,
)

__all__ = ["FinalizerOwner", "FinalizerOwners", "Liveness", "abandoned", "finalizer_owner"]
