"""The owner of a finalizer, as far as it is known."""

import enum

import msgspec

from pilotage.teardown.snapshot.world import Item


class Liveness(enum.StrEnum):
    """Whether a controller runs. Only evidence decides: no trace of one is not a proof that it is dead."""

    ALIVE = "alive"
    DEAD = "dead"
    UNKNOWN = "unknown"


class FinalizerOwner(msgspec.Struct, frozen=True):
    """The controller that has to remove a finalizer, and whether it can."""

    finalizer: str
    who: str
    """Name for people: ``KServe controller``. Empty where nothing at all is known."""
    workload: Item | None
    """The workload that runs it in this cluster, if it was found."""
    lease: Item | None
    """The Lease it holds, or held."""
    alive: Liveness
    evidence: tuple[str, ...]
    """Evidence for `alive`, in sentences."""
    leaks: str
    """Leftovers if the finalizer is removed by hand."""
    builtin: bool
    """Whether it is a part of Kubernetes itself."""
    does: str = ""
    """Its work before it removes the finalizer; empty where that is not known."""
    guessed: bool = False
    """Whether the workload was found by likeness of names alone."""
    trouble: str = ""
    """Why it does not run, in a few words, where it does not: ``0 of 1 replicas available``."""
