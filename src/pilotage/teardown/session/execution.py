"""A prepared teardown, executed by this process: a receipt before the first act, progress, a receipt at the end."""

import datetime as dt
import random
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from pilotage.kube.wire import format_time
from pilotage.runtime.clock import utc_now
from pilotage.teardown.diagnosis.remedies import spelled, strip_command
from pilotage.teardown.engine.decision import Cause, Decision, Observation, Wait
from pilotage.teardown.engine.executor import watching
from pilotage.teardown.engine.progress import Outcome, Step
from pilotage.teardown.engine.receipt import Receipt, ReceiptError, begin, conclude, save
from pilotage.teardown.planning.ledger import Entry, Ledger
from pilotage.teardown.session import Session
from pilotage.teardown.session.preparation import Prepared
from pilotage.teardown.session.reading import cluster_uid
from pilotage.teardown.session.receipt_files import new_receipt
from pilotage.teardown.session.request import RequestProblem, RequestRefused

ADVICE_MAX = 20


class TeardownObserver(Protocol):
    """A front end, as told of the progress of a teardown."""

    def step(self, step: Step) -> None:
        """Report a step."""

    def decision(self, decision: Decision, now: dt.datetime) -> None:
        """The acts and waits of this moment."""


class ObservedTeardown(Protocol):
    """A teardown to show: one that this process executes, or one that the operator does."""

    @property
    def ledger(self) -> Ledger:
        """The objects that go and stay, with those found on the way."""

    @property
    def problem(self) -> str:
        """Why the API server does not answer at the moment; empty if it does."""

    def last_seen(self, entry: Entry) -> Observation:
        """The last observation of an object."""


class Advice(NamedTuple):
    """A step that a person can take: a sentence, and the command that it ends in."""

    text: str
    command: str


class TeardownResult(NamedTuple):
    """The end of an execution."""

    receipt: Receipt
    path: Path
    """The file of the receipt."""
    complete: bool
    """Whether everything in the ledger is proven gone. A kind that could not be searched makes a receipt incomplete."""
    stopped: bool
    """Whether it ended because it was told to."""
    resource_version: str
    """The version that the proof was read at, if it was one for all."""
    gone: int
    """Objects that were last seen to be gone, proven or not."""
    held: tuple[Entry, ...]
    """Owners that still have our finalizer, because parts of them are left."""
    blockers: tuple[Wait, ...]
    advice: tuple[Advice, ...]
    """Commands for finalizers that nobody removes."""
    unsaved: str
    """Why the receipt could not be written in the end; the file is then as it was at the start."""


class Execution:
    """One run of a teardown. `run` it once; `stop` it at any time: requests under way are finished, none is begun."""

    def __init__(self, session: Session, prepared: Prepared, *, receipt: Path | None = None) -> None:
        """`receipt`: its file; by default one in the folder of receipts, named after the first target."""
        started = format_time(utc_now())  # the plan may have been read for long
        ledger = msgspec.structs.replace(prepared.ledger, started=started)
        self.path = receipt or new_receipt(ledger)
        self._session = session
        self._world = prepared.world
        self._cluster = ""
        self._observer: TeardownObserver | None = None
        self._executor = watching(
            session.client,
            ledger,
            rng=random.Random(),  # noqa: S311 - it spreads retries
            world=prepared.world,
            on_step=self._tell_step,
            on_decision=self._tell_decision,
            on_ledger=self._save_grown,
        )

    @property
    def ledger(self) -> Ledger:
        """Ledger with the newcomers."""
        return self._executor.ledger

    @property
    def problem(self) -> str:
        """Why the API server does not answer at the moment; empty if it does."""
        return self._executor.problem

    @property
    def ended(self) -> bool:
        """Whether nothing more is sent."""
        return self._executor.ended

    def last_seen(self, entry: Entry) -> Observation:
        """The last observation of an object."""
        return self._executor.observations.get(entry.uid)

    def stop(self) -> None:
        """End soon: no new action is begun."""
        self._executor.stop()

    async def run(self, observer: TeardownObserver | None = None) -> TeardownResult:
        """Run until all is proven gone, the time is up, or `stop`. TargetError if no receipt can be written: nothing
        was done then. Cancelled, it leaves a receipt to resume from.
        """
        self._observer = observer
        self._cluster = await cluster_uid(self._session, self._world)
        try:
            self._save_grown(self.ledger)
        except ReceiptError as error:
            raise RequestRefused(RequestProblem.RECEIPT_UNWRITABLE, error) from error
        return self._result(await self._executor.run())

    def _result(self, outcome: Outcome) -> TeardownResult:
        receipt = conclude(outcome, self._session.server, utc_now(), self._cluster)
        unsaved = ""
        try:
            save(receipt, self.path)
        except ReceiptError as error:
            unsaved = str(error)
        going = outcome.ledger.going
        return TeardownResult(
            receipt=receipt,
            path=self.path,
            complete=outcome.complete,
            stopped=self._executor.stopped,
            resource_version=outcome.proof.resource_version if outcome.proof is not None else "",
            gone=sum(self.last_seen(entry).state in ("gone", "foreign") for entry in going),
            held=tuple(entry for entry in going if self._executor.is_held(entry)),
            blockers=outcome.decision.blockers,
            advice=tuple(self._advice(outcome.decision)[:ADVICE_MAX]),
            unsaved=unsaved,
        )

    def _advice(self, decision: Decision) -> list[Advice]:
        """Commands for finalizers that nobody removes: we remove none but our own."""
        lines = []
        for wait in decision.blockers:
            entry = wait.entry
            for finalizer in self.last_seen(entry).finalizers if wait.cause is Cause.FINALIZER else ():
                if finalizer in entry.abandoned:
                    who = entry.finalizer_owner or "its controller"
                    command = strip_command(spelled(entry.resource, entry.full_name), finalizer)
                    lines.append(Advice(f"Bring {who} back, or let go of {entry} without it:", command))
        return lines

    def _tell_step(self, step: Step) -> None:
        if self._observer is not None:
            self._observer.step(step)

    def _tell_decision(self, decision: Decision) -> None:
        if self._observer is not None:
            self._observer.decision(decision, utc_now())

    def _save_grown(self, ledger: Ledger) -> None:
        save(begin(ledger, self._session.server, self._cluster), self.path)
