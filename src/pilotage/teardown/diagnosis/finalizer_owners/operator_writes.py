"""Writes of the Pilotage operator as a sign that it runs.

An operator can run without leader election, beside the Lease that a former one has left. Only the operator writes the
status of these kinds, and `managedFields` tells when.
"""

import datetime as dt
from typing import NamedTuple

from pilotage.api.names import ENDPOINTS, MODELS, TEARDOWNS
from pilotage.teardown.diagnosis.finalizer_owners.liveness import (
    LEASE_SECONDS_DEFAULT,
    SLACK_SECONDS,
    Judgement,
    Liveness,
)
from pilotage.teardown.diagnosis.finalizer_owners.traces import BY_HAND
from pilotage.teardown.snapshot.fields import entries, moment, number, span, text
from pilotage.teardown.snapshot.world import Item, World

RECENT_SECONDS = 60
"""Age of a write that shows that its writer still runs."""


class StatusWrite(NamedTuple):
    """A write of a status by the operator."""

    item: Item
    when: dt.datetime


def last_write(world: World) -> StatusWrite | None:
    """The last write of the operator that is seen."""
    found = [
        StatusWrite(item, when)
        for resource in (ENDPOINTS, TEARDOWNS, MODELS)
        for item in world.of(*resource.group_kind)
        for when in _status_writes(item)
    ]
    return max(found, key=lambda write: write.when, default=None)


def reconsider(world: World, judged: Judgement, lease: Item | None, write: StatusWrite | None) -> Judgement:
    """Liveness of the operator with its last write. A write after the Lease expired shows that the Lease tells nothing.

    A write before that tells nothing itself: its writer may have died with the Lease.
    """
    if judged.alive is Liveness.ALIVE or write is None:
        return judged
    age = (world.now - write.when).total_seconds()
    wrote = f"An operator wrote the status of {write.item} {span(age)} ago"
    held_until = _end_of(lease)
    if held_until is not None and write.when <= held_until:
        return judged
    if age <= RECENT_SECONDS:
        return Judgement(Liveness.ALIVE, "", (f"{wrote}.", *judged.evidence))
    if held_until is None:
        return judged
    return Judgement(
        Liveness.UNKNOWN, "", (f"{wrote}, after the Lease had ended: it runs without one.", *judged.evidence)
    )


def _status_writes(item: Item) -> list[dt.datetime]:
    found = (
        moment(entry, "time")
        for entry in entries(item.read(), "metadata", "managedFields")
        if text(entry, "subresource") == "status" and not BY_HAND.search(text(entry, "manager"))
    )
    return [when for when in found if when is not None]


def _end_of(lease: Item | None) -> dt.datetime | None:
    """The time until which the holder of a Lease may have run, or at which it gave the Lease up; None if not known."""
    body = lease.read() if lease is not None else {}
    renewed = moment(body, "spec", "renewTime")
    if renewed is None or not text(body, "spec", "holderIdentity"):
        return renewed
    duration = min(max(number(body, "spec", "leaseDurationSeconds", default=LEASE_SECONDS_DEFAULT), 0), 10**6)
    return renewed + dt.timedelta(seconds=duration + SLACK_SECONDS)
