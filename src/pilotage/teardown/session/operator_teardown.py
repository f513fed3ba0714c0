"""Endpoints that their operator takes down: asked for here, followed by the record that the operator keeps."""

import contextlib
import datetime as dt
import enum
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from pilotage.api.endpoint_status import StoredEndpoint
from pilotage.api.names import ENDPOINTS, LABEL_ENDPOINT_UID, TEARDOWN_DONE, TEARDOWNS
from pilotage.api.teardown import StoredTeardown
from pilotage.kube import Absent, ApiError, Foreign, Object, Propagation
from pilotage.kube.wire import format_time
from pilotage.runtime.clock import SteadyClock, utc_now
from pilotage.runtime.live_objects import LiveObjects
from pilotage.teardown.engine.decision import Decision, Wait
from pilotage.teardown.engine.receipt import Receipt, ReceiptError, save
from pilotage.teardown.planning.arguments import TargetError
from pilotage.teardown.planning.ledger import Ledger, Policy
from pilotage.teardown.session import Session
from pilotage.teardown.session.execution import TeardownObserver
from pilotage.teardown.session.operator_lease import OperatorPresence
from pilotage.teardown.session.preparation import Prepared
from pilotage.teardown.session.reading import cluster_uid
from pilotage.teardown.session.receipt_files import new_receipt
from pilotage.teardown.session.teardown_record import RecordedTeardown, is_of_deletion, planned, receipt_of
from pilotage.teardown.snapshot.world import Name, World

TICK_SECONDS = 0.5
NO_RECORD_SECONDS = 10.0
"""An endpoint that has been gone for this long without a record will get none."""


class EndpointEnd(enum.Enum):
    """The end of the teardown of an endpoint, as far as it was followed."""

    PROVEN = "proven"
    """Its parts are proven gone, and it is gone itself."""
    NOTHING_MADE = "nothing made"
    """It is gone, and nothing had been made for it."""
    NO_RECORD = "no record"
    """It is gone, and nothing says what became of its parts."""
    ITSELF_LEFT = "itself left"
    """Its parts are proven gone, and it is still there."""
    LEFT = "left"
    """The time is over."""


class EndpointResult(NamedTuple):
    """The end of the teardown of one endpoint."""

    end: EndpointEnd
    endpoint: Object
    record: str
    """The name of its Teardown; empty if there is none."""
    record_namespace: str
    left: int
    """Objects that are not known to be gone."""
    total: int
    blockers: tuple[Wait, ...]
    receipt: Receipt | None = None
    path: Path | None = None
    """The file of the receipt."""
    unsaved: str = ""
    """Why the receipt could not be written."""


class OperatorTeardown:
    """Endpoints that an operator takes down. `start` it, then `follow` each of its `teardowns`."""

    def __init__(
        self,
        session: Session,
        operator: OperatorPresence,
        found: list[Object],
        absent: list[Name],
        timeout: float,
        *,
        gone: list[Object] | None = None,
    ) -> None:
        """`gone`: endpoints that are not there any more, and whose teardown is not finished."""
        now = utc_now()
        self._session = session
        self._timeout = timeout
        self._clock = SteadyClock()
        self.teardowns = [
            EndpointTeardown(session, operator, obj, planned(StoredEndpoint.of(obj), now), self._clock) for obj in found
        ]
        self.teardowns += (
            EndpointTeardown(session, operator, obj, planned(StoredEndpoint.of(obj), now, gone=True), self._clock)
            for obj in gone or ()
        )
        self.has_leftovers = bool(gone)
        """Whether some of them are not there any more: then only their records say what is left."""
        ledger = _together((each.observed.ledger for each in self.teardowns), now)
        self.prepared = Prepared(World(now, live=False), ledger, [], absent)

    async def start(self) -> None:
        """Delete the endpoints. Raises ApiError, before anything is done, if their records may not be read."""
        deadline = self._clock.now() + dt.timedelta(seconds=self._timeout)
        for namespace in {each.endpoint.meta.namespace for each in self.teardowns}:
            await self._session.client.list(TEARDOWNS, namespace, metadata_only=True)
        for each in self.teardowns:
            await each.ask(deadline)


class EndpointTeardown:
    """The teardown of one endpoint; `observed` is its state, for who shows it."""

    def __init__(
        self, session: Session, operator: OperatorPresence, endpoint: Object, ledger: Ledger, clock: SteadyClock
    ) -> None:
        self.endpoint = endpoint
        self.observed = RecordedTeardown(ledger)
        self._session = session
        self._client = session.client
        self._operator = operator
        self._planned = ledger
        self._clock = clock
        self._deadline = clock.now()

    async def ask(self, deadline: dt.datetime) -> None:
        """Delete the endpoint. One that is being deleted already is asked again: that does no harm."""
        self._deadline = deadline
        obj = self.endpoint
        with contextlib.suppress(Absent, Foreign):
            await self._client.delete(ENDPOINTS, obj.key, uid=obj.meta.uid, propagation=Propagation.BACKGROUND)

    async def follow(self, observer: TeardownObserver, *, receipt: Path | None = None) -> EndpointResult:
        """Follow it until it has ended, or the time is up. Cancelled, it leaves the rest to the operator.

        `receipt`: the file for the receipt; by default one in the folder of receipts, named after the endpoint.
        """
        record, decision, gone = await self._watch(observer)
        result = self._result(record, decision, gone=gone)
        if result.end is not EndpointEnd.PROVEN:
            return result
        assert record is not None
        return await self._saved(result, record, receipt or new_receipt(self._planned))

    async def _watch(self, observer: TeardownObserver) -> tuple[StoredTeardown | None, Decision | None, bool]:
        """The record and the decision in it at the end, and whether the endpoint itself is gone."""
        decision, gone_since = None, None
        async with contextlib.AsyncExitStack() as stack:
            places = await self._places(stack)
            while True:
                now = self._clock.now()
                record = self._newest(places)
                self.observed.problem = places[0].problem
                if record is not None:
                    decision = self.observed.update(record, now)
                    observer.decision(decision, now)
                finished = record is not None and record.status.phase == TEARDOWN_DONE
                gone = (finished or record is None) and await self._is_gone()
                gone_since = (gone_since or now) if gone else None
                late = gone_since is not None and (now - gone_since).total_seconds() >= NO_RECORD_SECONDS
                if gone and (finished or (record is None and (late or not self._has_parts))):
                    return record, decision, True
                if now >= self._deadline:
                    return record, decision, gone
                await places[0].changed(min(TICK_SECONDS, (self._deadline - now).total_seconds()))

    async def _places(self, stack: contextlib.AsyncExitStack) -> list[LiveObjects]:
        """Namespaces that may hold the record: the endpoint's, or the operator's if that namespace is being deleted."""
        labels = f"{LABEL_ENDPOINT_UID}={self.endpoint.meta.uid}"
        here, there = self.endpoint.meta.namespace, self._operator.namespace
        places = [await stack.enter_async_context(LiveObjects(self._client, TEARDOWNS, here, labels=labels))]
        if there not in ("", here):
            with contextlib.suppress(ApiError):  # a user who may not read there does without
                live = LiveObjects(self._client, TEARDOWNS, there, labels=labels)
                places.append(await stack.enter_async_context(live))
        return places

    def _newest(self, places: list[LiveObjects]) -> StoredTeardown | None:
        """The record that counts: one that is under way before one that has ended, and then the newest."""
        records = [StoredTeardown.of(obj) for place in places for obj in place.objects.values()]
        return max(
            (record for record in records if is_of_deletion(record, self.endpoint.meta.uid)),
            key=lambda each: (each.status.phase != TEARDOWN_DONE, each.metadata.creation_timestamp),
            default=None,
        )

    async def _is_gone(self) -> bool:
        """Whether a fresh read shows that the endpoint is gone. One that cannot be read is not."""
        try:
            found = await self._client.get(ENDPOINTS, self.endpoint.key, metadata_only=True)
        except Absent:
            return True
        except ApiError:
            return False
        return found.meta.uid != self.endpoint.meta.uid

    @property
    def _has_parts(self) -> bool:
        return bool(self.endpoint.get("status", "ledger"))

    def _result(self, record: StoredTeardown | None, decision: Decision | None, *, gone: bool) -> EndpointResult:
        total = len(self.observed.ledger.going)
        finished = record is not None and record.status.phase == TEARDOWN_DONE
        if gone and record is None:
            end = EndpointEnd.NO_RECORD if self._has_parts else EndpointEnd.NOTHING_MADE
        elif finished:
            end = EndpointEnd.PROVEN if gone else EndpointEnd.ITSELF_LEFT
        else:
            end = EndpointEnd.LEFT
        left = record.status.left if record is not None else None
        return EndpointResult(
            end=end,
            endpoint=self.endpoint,
            record=record.metadata.name if record is not None else "",
            record_namespace=record.metadata.namespace if record is not None else "",
            left=total if left is None else left,
            total=total,
            blockers=decision.blockers if decision is not None else (),
        )

    async def _saved(self, result: EndpointResult, record: StoredTeardown, path: Path) -> EndpointResult:
        """The result of a complete one, with its receipt, which is written to a file."""
        try:
            receipt = receipt_of(record)
        except ValueError as error:
            raise TargetError(
                f"teardown/{record.metadata.name} has ended, but its receipt cannot be read ({error})."
            ) from error
        proof = f"{self.endpoint.ref} (uid {self.endpoint.meta.uid}) is gone as well, read at {format_time(utc_now())}"
        receipt = msgspec.structs.replace(
            receipt,
            server=receipt.server or self._session.server,
            cluster=receipt.cluster or await cluster_uid(self._session),
            notes=(*receipt.notes, proof),
        )
        unsaved = ""
        try:
            save(receipt, path)
        except ReceiptError as error:
            unsaved = str(error)
        return result._replace(receipt=receipt, path=path, unsaved=unsaved)


def _together(ledgers: Iterable[Ledger], now: dt.datetime) -> Ledger:
    """One plan for all of them."""
    all_ = list(ledgers)
    return Ledger(
        targets=tuple(target for ledger in all_ for target in ledger.targets),
        started=format_time(now),
        policy=Policy(),
        entries=tuple(entry for ledger in all_ for entry in ledger.entries),
    )
