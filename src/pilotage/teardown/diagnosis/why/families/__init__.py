"""The families of causes: one file each, with a function or two, listed here.

A family gets an object, terminating or not, and yields the causes that it knows. Of an object that is not being
deleted it yields what a delete would run into (and what is worth knowing: a code in `codes.NOTES`). It does no I/O, has
no clock, and asks through the context; what it could not see it notes with `context.unread`. Where its cause is about
one finalizer of the object, it says so with ``context.claim(item, finalizer)``: `finalizers` is asked last, and speaks
for those that nobody claimed.

`namespaces`, `apis`, `owners` and `own_deletion` look further with ``context.causes_of(other)``: a dead APIService is
found as the cause of a namespace's discovery failure by ``causes_of`` that APIService.
"""

from collections.abc import Callable, Iterator

from pilotage.teardown.diagnosis.why.context import WhyContext
from pilotage.teardown.diagnosis.why.families import (
    apis,
    fighting,
    finalizers,
    jobs,
    namespaces,
    own_deletion,
    own_experiments,
    own_readiness,
    owners,
    permissions,
    pods,
    recreation,
    services,
    storage,
    usages,
    webhooks,
)
from pilotage.teardown.diagnosis.why.model import StuckCause
from pilotage.teardown.snapshot.world import Item

Family = Callable[[WhyContext, Item], Iterator[StuckCause]]

FAMILIES: tuple[Family, ...] = (
    recreation.causes,
    owners.causes,
    namespaces.causes,
    apis.causes,
    permissions.causes,
    webhooks.causes,
    usages.causes,
    apis.api_services,
    pods.causes,
    storage.causes,
    services.causes,
    jobs.causes,
    pods.guards,
    fighting.causes,
    own_readiness.causes,
    own_experiments.causes,
    own_deletion.causes,
    finalizers.causes,  # last: it speaks for the finalizers that nobody claimed
)
