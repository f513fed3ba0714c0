"""Whether an operator runs in the cluster: by the Lease that its leader renews."""

import asyncio
import datetime as dt
from typing import NamedTuple

from pilotage.kube import LEASES, ApiError, Client, Object
from pilotage.runtime.clock import utc_now
from pilotage.teardown.snapshot.fields import number, seconds_since, span, text

LEASE = "pilotage-operator"
LEASE_SECONDS_DEFAULT = 15
SLACK_SECONDS = 10
"""Clocks differ: a Lease is overdue only when it is late by more than this."""
SECOND_LOOK_SECONDS = 4.0
"""A leader renews every two seconds. One whose clock is wrong by more than the slack shows by that."""


class OperatorPresence(NamedTuple):
    """The operator of a cluster, as far as its Lease shows."""

    alive: bool | None
    """None: it could not be read."""
    namespace: str
    text: str
    """A clause for people: ``its Lease expired 3m ago``."""


async def find_operator(client: Client) -> OperatorPresence:
    """Read the Leases; a second time, a moment later, where the first read says that the operator is dead."""
    try:
        leases = await _leases(client)
        found = judge(leases, utc_now())
        if found.alive or not leases:
            return found
        await asyncio.sleep(SECOND_LOOK_SECONDS)
        again = await _leases(client)
    except ApiError as error:
        return OperatorPresence(None, "", f"whether one runs could not be read: {error.message}")
    renewed = [lease for lease in again if _held(lease) and _spec(lease) not in map(_spec, leases)]
    if renewed:
        return OperatorPresence(True, renewed[0].meta.namespace, "its Lease was renewed just now")
    return found


def judge(leases: list[Object], now: dt.datetime) -> OperatorPresence:
    """Presence by the Leases of its name, in any namespace."""
    if not leases:
        return OperatorPresence(False, "", f"there is no Lease {LEASE} in any namespace")
    ages = sorted((_age(lease, now), lease.meta.namespace) for lease in leases)
    late, namespace = ages[0]
    if late <= 0:
        return OperatorPresence(True, namespace, "its Lease is fresh")
    if late == float("inf"):
        return OperatorPresence(False, namespace, f"no process holds its Lease ({LEASE} -n {namespace})")
    return OperatorPresence(False, namespace, f"its Lease ({LEASE} -n {namespace}) expired {span(late)} ago")


def _age(lease: Object, now: dt.datetime) -> float:
    """Seconds by which it is late; negative if it is not, and infinite if it was never renewed."""
    body = lease.to_dict()
    renewed = seconds_since(now, text(body, "spec", "renewTime"))
    if renewed is None or not text(body, "spec", "holderIdentity"):
        return float("inf")
    return renewed - number(body, "spec", "leaseDurationSeconds", default=LEASE_SECONDS_DEFAULT) - SLACK_SECONDS


def _held(lease: Object) -> bool:
    return bool(lease.get("spec", "holderIdentity"))


def _spec(lease: Object) -> object:
    return lease.get("spec")


async def _leases(client: Client) -> list[Object]:
    return (await client.list(LEASES, fields=f"metadata.name={LEASE}")).items
