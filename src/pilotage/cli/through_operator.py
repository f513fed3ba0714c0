"""``pilotage delete`` of endpoints: the operator takes them down, and this shows how, as if it were done here."""

from __future__ import annotations

import contextlib
import datetime as dt
import sys
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pilotage.api.endpoint_status import StoredEndpoint
from pilotage.api.names import ENDPOINTS, LABEL_ENDPOINT_UID, TEARDOWN_DONE, TEARDOWNS
from pilotage.api.teardown import StoredTeardown
from pilotage.cli.endpoints import decode
from pilotage.cli.errors import BadTarget
from pilotage.cli.output.progress import print_event, renderer
from pilotage.cli.output.teardown import BLOCKERS_MAX, TeardownProgress, describe, receipt_lines, wait_to_json
from pilotage.cli.output.text import say
from pilotage.cli.signals import INTERRUPTED, Interrupted, interruptible
from pilotage.cli.teardown_record import Recorded, is_of_deletion, planned, receipt_of
from pilotage.kube import Absent, ApiError, Foreign, Propagation
from pilotage.kube.wire import format_time
from pilotage.runtime.clock import SteadyClock, utc_now
from pilotage.runtime.lazy_logger import silenced
from pilotage.runtime.live_objects import LiveObjects
from pilotage.teardown.engine.receipt import ReceiptError, save
from pilotage.teardown.planning.ledger import Ledger
from pilotage.teardown.planning.policy import Policy
from pilotage.teardown.session.execution import default_receipt
from pilotage.teardown.session.preparation import Prepared
from pilotage.teardown.session.reading import cluster_uid
from pilotage.teardown.snapshot.world import Name, World

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pilotage.kube import Object
    from pilotage.teardown.engine.decision import Decision
    from pilotage.teardown.session import Session
    from pilotage.teardown.session.operator_lease import Operator

TICK_SECONDS = 0.5
NO_RECORD_SECONDS = 10.0
"""An endpoint that is gone for so long without a record will get none."""
HINT = "Ctrl-C leaves it to the operator"


class _Ended(NamedTuple):
    """How the teardown of one endpoint ended."""

    record: StoredTeardown | None
    decision: Decision | None
    gone: bool
    """Whether the endpoint itself is gone."""


class Operated:
    """Endpoints that an operator takes down."""

    def __init__(
        self,
        session: Session,
        operator: Operator,
        found: list[Object],
        absent: list[Name],
        timeout: float,
        *,
        gone: list[Object] | None = None,
    ) -> None:
        """`gone`: those that are not there any more, and whose teardown is not finished."""
        now = utc_now()
        gone = gone or []
        self._session = session
        self._client = session.client
        self._operator = operator
        self._timeout = timeout
        self._clock = SteadyClock()
        self._ledgers = {obj.meta.uid: planned(decode(obj, StoredEndpoint), now) for obj in found}
        self._ledgers |= {obj.meta.uid: planned(decode(obj, StoredEndpoint), now, gone=True) for obj in gone}
        self._found = [*found, *gone]
        self.prepared = Prepared(World(now, live=False), _together(self._ledgers.values(), now), [], absent)

    async def carry_out(self, receipt: Path | None, *, as_json: bool) -> int:
        """Ask for the deletion, and show how it goes; returns the exit code."""
        if receipt is not None and len(self._found) > 1:
            raise BadTarget("--receipt names one file, and each endpoint has a receipt of its own: name one endpoint.")
        deadline = self._clock.now() + dt.timedelta(seconds=self._timeout)
        for place in {obj.meta.namespace for obj in self._found}:
            await self._client.list(TEARDOWNS, place, metadata_only=True)  # who may not follow is told before it begins
        try:
            with interruptible(), silenced():
                for obj in self._found:
                    await self._ask(obj)
                return max([await self._see_off(obj, deadline, receipt, as_json=as_json) for obj in self._found])
        except Interrupted:
            names = " ".join(quote(f"servingendpoint/{obj.meta.name}") for obj in self._found)
            say(
                "Stopped looking; the operator goes on by itself. "
                f"Look again with: pilotage delete {names} -n {quote(self._found[0].meta.namespace)}",
                err=True,
            )
            return INTERRUPTED

    async def _ask(self, obj: Object) -> None:
        """The deletion itself. One that is being deleted is asked again: that does no harm."""
        with contextlib.suppress(Absent, Foreign):
            await self._client.delete(ENDPOINTS, obj.key, uid=obj.meta.uid, propagation=Propagation.BACKGROUND)

    async def _see_off(self, obj: Object, deadline: dt.datetime, path: Path | None, *, as_json: bool) -> int:
        ledger = self._ledgers[obj.meta.uid]
        recorded = Recorded(ledger)
        shown = TeardownProgress(recorded, renderer(sys.stdout, as_json=as_json, hint=HINT))
        ended = await self._follow(obj, recorded, shown, deadline)
        shown.close()
        if ended.record is not None and ended.record.status.phase == TEARDOWN_DONE and ended.gone:
            return await self._tell_done(obj, ended.record, path or default_receipt(ledger), as_json=as_json)
        return self._tell_left(obj, ended, recorded, as_json=as_json)

    async def _follow(self, obj: Object, recorded: Recorded, shown: TeardownProgress, deadline: dt.datetime) -> _Ended:
        decision, gone_since = None, None
        uid = obj.meta.uid
        async with contextlib.AsyncExitStack() as stack:
            places = await self._places(stack, obj)
            while True:
                now = self._clock.now()
                record = _newest(places, uid)
                recorded.problem = places[0].problem
                if record is not None:
                    decision = recorded.update(record, now)
                    shown.decision(decision, now)
                finished = record is not None and record.status.phase == TEARDOWN_DONE
                gone = (finished or record is None) and await self._is_gone(obj)
                gone_since = (gone_since or now) if gone else None
                late = gone_since is not None and (now - gone_since).total_seconds() >= NO_RECORD_SECONDS
                nothing_made = not obj.get("status", "ledger") and record is None
                if gone and (finished or nothing_made or (late and record is None)):
                    return _Ended(record, decision, gone=True)
                if now >= deadline:
                    return _Ended(record, decision, gone)
                await places[0].changed(min(TICK_SECONDS, (deadline - now).total_seconds()))

    async def _places(self, stack: contextlib.AsyncExitStack, obj: Object) -> list[LiveObjects]:
        """Where the record may be: beside the endpoint, or with the operator where that namespace itself goes."""
        labels = f"{LABEL_ENDPOINT_UID}={obj.meta.uid}"
        beside = LiveObjects(self._client, TEARDOWNS, obj.meta.namespace, labels=labels)
        places = [await stack.enter_async_context(beside)]
        if self._operator.namespace not in ("", obj.meta.namespace):
            with contextlib.suppress(ApiError):  # who may not look there does without
                there = LiveObjects(self._client, TEARDOWNS, self._operator.namespace, labels=labels)
                places.append(await stack.enter_async_context(there))
        return places

    async def _is_gone(self, obj: Object) -> bool:
        """By a fresh read. What cannot be read is not gone."""
        try:
            found = await self._client.get(ENDPOINTS, obj.key, metadata_only=True)
        except Absent:
            return True
        except ApiError:
            return False
        return found.meta.uid != obj.meta.uid

    async def _tell_done(self, obj: Object, record: StoredTeardown, path: Path, *, as_json: bool) -> int:
        """The end of a complete one: the receipt."""
        try:
            receipt = receipt_of(record)
        except ValueError as error:
            raise BadTarget(
                f"teardown/{record.metadata.name} has ended, but its receipt cannot be read ({error})."
            ) from error
        proof = f"{obj.ref} (uid {obj.meta.uid}) is gone as well, read at {format_time(utc_now())}"
        receipt = msgspec.structs.replace(
            receipt,
            server=receipt.server or self._session.server,
            cluster=receipt.cluster or await cluster_uid(self._session),
            notes=(*receipt.notes, proof),
        )
        try:
            save(receipt, path)
        except ReceiptError as error:
            say(f"Error: {error}. It is in the status of teardown/{record.metadata.name}, too.", err=True)
            return 1
        event = {"result": receipt.result, "gone": receipt.count("gone"), "kept": receipt.count("kept")}
        event |= {"notes": list(receipt.notes), "receipt": str(path)}
        _say(as_json, event, *receipt_lines(receipt, str(path)))
        return 0 if receipt.result == "complete" else 1

    def _tell_left(self, obj: Object, ended: _Ended, recorded: Recorded, *, as_json: bool) -> int:
        """The end of one that is not complete, or of which there is no record."""
        record, going = ended.record, recorded.ledger.going
        if ended.gone and record is None and not obj.get("status", "ledger"):
            _say(as_json, {"result": "complete", "gone": 1}, f"{obj.ref} is gone. Nothing had been made for it.")
            return 0
        left = record.status.left if record is not None and record.status.left is not None else len(going)
        waits = ended.decision.blockers if ended.decision is not None else ()
        if as_json:
            blockers = [wait_to_json(wait) for wait in waits]
            name = record.metadata.name if record is not None else None
            _say(True, {"result": "incomplete", "left": left, "blockers": blockers, "teardown": name})
            return 1
        now = utc_now()
        if ended.gone and record is None:
            lines = [f"{obj.ref} is gone, but there is no record of what was made for it. Look for what is left with:"]
            lines.append(f"  pilotage leaks -n {quote(obj.meta.namespace)}")
        elif record is not None and record.status.phase == TEARDOWN_DONE:
            lines = [
                f"Not finished: the parts of {obj.ref} are proven gone, but it is itself still there. Ask why with:"
            ]
            lines.append(f"  pilotage why {_named(obj)}")
        else:
            lines = [f"Not finished: {left} of {len(going)} are not known to be gone."]
            lines += (f"  {describe(wait, now)}" for wait in waits[:BLOCKERS_MAX])
            lines += [] if record is not None else ["  The operator has not begun."]
            lines.append("The operator goes on by itself. Look again with: " + _again(obj))
        say(*lines, err=True)
        return 1


def _together(ledgers: Iterable[Ledger], now: dt.datetime) -> Ledger:
    """One plan for all of them."""
    all_ = list(ledgers)
    return Ledger(
        targets=tuple(target for ledger in all_ for target in ledger.targets),
        started=format_time(now),
        policy=Policy(),
        entries=tuple(entry for ledger in all_ for entry in ledger.entries),
    )


def _newest(places: list[LiveObjects], uid: str) -> StoredTeardown | None:
    """The record that counts: one that is under way before one that has ended, and then the newest."""
    records = [decode(obj, StoredTeardown) for place in places for obj in place.objects.values()]
    mine = [record for record in records if is_of_deletion(record, uid)]
    return max(
        mine, key=lambda each: (each.status.phase != TEARDOWN_DONE, each.metadata.creation_timestamp), default=None
    )


def _say(as_json: bool, event: dict[str, object], *lines: str) -> None:
    if as_json:
        print_event(sys.stdout, {"event": "end"} | event)
    else:
        say(*lines)


def _again(obj: Object) -> str:
    return f"pilotage delete {_named(obj)}"


def _named(obj: Object) -> str:
    """An endpoint as a person types it."""
    return f"{quote(f'servingendpoint/{obj.meta.name}')} -n {quote(obj.meta.namespace)}"
