"""Leader election on a Lease, by client-go's rules.

Who holds the Lease renews it; who does not waits until the holder's record has not changed for as long as the record
says, measured by the waiter's own clock (clocks of two machines are never compared). A holder that could not renew for
`renew_seconds` is no longer sure and stops, some seconds before anybody else may start. Whether it is still sure is a
comparison with the clock at the moment of each write, not a flag that a task sets: a process that was frozen for
a minute does not write when it wakes up.
"""

import asyncio
import math
import random
from collections.abc import Callable
from typing import NamedTuple

import structlog

from pilotage.kube import LEASES, Absent, ApiError, Client, Conflict, Object, ObjectKey
from pilotage.kube.wire import Json, format_micro_time
from pilotage.runtime.clock import monotonic, utc_now

_log = structlog.get_logger(__name__)

RELEASE_SECONDS_MAX = 5.0


class LeaseLost(Exception):
    """The Lease is not ours, or no longer surely. Nothing may be written."""


class Election(NamedTuple):
    """Lease, identity (no two processes may have the same), and client-go's three durations."""

    lease: ObjectKey
    identity: str
    lease_seconds: float = 15.0
    renew_seconds: float = 10.0
    retry_seconds: float = 2.0


class Leader:
    """One candidate for one Lease."""

    def __init__(self, client: Client, election: Election, rng: random.Random) -> None:
        if not election.lease_seconds > election.renew_seconds > election.retry_seconds >= 0:
            raise ValueError(f"{election}: a Lease must last longer than its renewal may take, and that than a retry")
        # Neither a limiter nor one hanging connection may cost us the Lease.
        self._client = client.urgent(election.renew_seconds / 2)
        self._election = election
        self._rng = rng
        self._record: Json = {}
        self._record_seen = 0.0
        self._ours: Json | None = None  # the Lease as our last write left it, so that a renewal is one request
        self._sure_until: float | None = None

    def check(self) -> None:
        """Raises LeaseLost unless the Lease is surely ours at this moment."""
        if self._sure_until is None or monotonic() >= self._sure_until:
            raise LeaseLost(f"the Lease {self._election.lease} is not held by {self._election.identity}")

    async def acquire(self, renewed_by: Callable[[str], None] = lambda _: None) -> None:
        """Wait until the Lease is ours. `renewed_by` is told of each renewal by another holder, and may raise."""
        while True:
            before = self._record
            if await self._try():
                break
            if (holder := self._renewing(before)) is not None:
                renewed_by(holder)
            await asyncio.sleep(self._election.retry_seconds * (1 + 0.2 * self._rng.random()))
        _log.info("became leader", lease=str(self._election.lease), identity=self._election.identity)

    async def keep(self) -> None:
        """Renew until that fails for too long; then raise LeaseLost."""
        while self._sure_until is not None:
            try:
                async with asyncio.timeout_at(self._sure_until):
                    await asyncio.sleep(self._election.retry_seconds)
                    if not await self._try() and self._record.get("holderIdentity") != self._election.identity:
                        break  # someone else has it: no use in trying on
            except TimeoutError:
                break
        self._sure_until = None
        _log.error("lost the lease", lease=str(self._election.lease), identity=self._election.identity)
        raise LeaseLost(f"the Lease {self._election.lease} could not be renewed")

    async def release(self) -> None:
        """Give the Lease up, so that the next candidate need not wait. Does nothing if it is not surely ours."""
        if self._sure_until is None or monotonic() >= self._sure_until:
            return
        self._sure_until = None
        try:
            async with asyncio.timeout(RELEASE_SECONDS_MAX):
                await self._give_up(self._ours)
        except (ApiError, TimeoutError) as error:
            _log.warning("could not release the lease; it will run out", error=str(error))

    async def _give_up(self, lease: Json | None) -> None:
        known = lease is not None
        lease = lease or (await self._client.get(LEASES, self._election.lease)).to_dict()
        if lease["spec"].get("holderIdentity") != self._election.identity:
            return
        now = format_micro_time(utc_now())
        freed = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now, "acquireTime": now}
        try:
            await self._client.replace(LEASES, lease | {"spec": lease["spec"] | freed})
        except Conflict:
            if not known:
                raise
            await self._give_up(None)  # a renewal whose answer we did not wait for has changed it

    async def _try(self) -> bool:
        """One attempt to take or renew the Lease. `_sure_until` counts from before it was sent."""
        started = monotonic()
        try:
            held = await self._take_or_renew()
        except ApiError as error:
            self._ours = None
            if isinstance(error, Conflict):
                return False  # someone else was quicker; look again at the next turn
            _log.warning("lease not reached", lease=str(self._election.lease), error=str(error))
            return False
        if held:
            self._sure_until = started + self._election.renew_seconds
        return held

    async def _take_or_renew(self) -> bool:
        key, me = self._election.lease, self._election.identity
        try:
            lease = self._ours or (await self._client.get(LEASES, key)).to_dict()
        except Absent:
            body = {"metadata": {"namespace": key.namespace, "name": key.name}, "spec": self._spec({})}
            self._written(await self._client.create(LEASES, body))
            return True
        spec = lease.setdefault("spec", {})
        if spec != self._record:
            self._record, self._record_seen = spec, monotonic()
        if spec.get("holderIdentity") not in (None, "", me) and not self._run_out(spec):
            return False
        self._written(await self._client.replace(LEASES, lease | {"spec": spec | self._spec(spec)}))
        return True

    def _renewing(self, before: Json) -> str | None:
        """The other holder that has renewed the Lease since the record `before`; None if none was seen to."""
        fields = ("holderIdentity", "renewTime")
        (was, earlier), (holder, now) = ([each.get(name) for name in fields] for each in (before, self._record))
        others = holder not in (None, "", self._election.identity)
        return holder if others and holder == was and now != earlier else None

    def _written(self, lease: Object) -> None:
        self._ours = lease.to_dict()
        self._record, self._record_seen = self._ours["spec"], monotonic()

    def _run_out(self, spec: Json) -> bool:
        seconds = float(spec.get("leaseDurationSeconds", self._election.lease_seconds))
        return monotonic() >= self._record_seen + seconds

    def _spec(self, old: Json) -> Json:
        now = format_micro_time(utc_now())
        renewed = old.get("holderIdentity") == self._election.identity
        return {
            "holderIdentity": self._election.identity,
            "leaseDurationSeconds": math.ceil(self._election.lease_seconds),
            "acquireTime": old.get("acquireTime", now) if renewed else now,
            "renewTime": now,
            "leaseTransitions": old.get("leaseTransitions", 0) + (0 if renewed or not old else 1),
        }
