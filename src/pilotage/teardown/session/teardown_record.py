"""A teardown that the operator executes, as its record tells it: shown like one that is executed here. Pure."""

import datetime as dt
from typing import Any

import msgspec

from pilotage.api.endpoint_status import LedgerEntry, StoredEndpoint, Waiting
from pilotage.api.names import CACHE_SUFFIX, ENDPOINTS, TEARDOWN_DONE
from pilotage.api.teardown import StoredTeardown
from pilotage.catalogue.phase import Phase
from pilotage.catalogue.registry import phase_of
from pilotage.kube import GroupKind, Object, Resource
from pilotage.kube.wire import format_time
from pilotage.teardown.engine.decision import Cause, Decision, Observation, Wait
from pilotage.teardown.engine.receipt import Receipt
from pilotage.teardown.planning.ledger import Disposition, Entry, Ledger, Policy
from pilotage.teardown.snapshot.fields import dig, moment, text, texts
from pilotage.teardown.snapshot.world import State

_CLAIM = "PersistentVolumeClaim"
_UNDER_WAY = ("Deleted", "Vanished")


def left_by(record: Object) -> Object:
    """An endpoint that is gone, as the record of its teardown knows it."""
    spec = record.to_dict()["spec"]
    target = spec["target"]
    return Object.from_dict(
        {
            "apiVersion": target["apiVersion"],
            "kind": target["kind"],
            "metadata": {name: target[name] for name in ("namespace", "name", "uid")},
            "spec": {"deletion": spec.get("deletion", {})},
            "status": {"ledger": spec.get("parts", [])},
        }
    )


def planned(endpoint: StoredEndpoint, now: dt.datetime, *, gone: bool = False) -> Ledger:
    """The ledger of an endpoint: what goes with it and what stays, by its status.

    `gone`: the endpoint itself is not there any more.
    """
    meta = endpoint.metadata
    keep = frozenset(texts(endpoint.spec, "deletion", "keep"))
    itself = Entry(
        resource=ENDPOINTS,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        phase=Phase.RELEASE,
        disposition=Disposition.DELETE,
        reason="named",
    )
    parts = [_entry(endpoint, each, keep, gone=gone) for each in endpoint.status.ledger]
    parts.sort(key=lambda entry: entry.phase)
    drain = dig(endpoint.spec, "deletion", "drainSeconds")
    return Ledger(
        targets=(str(itself),),
        started=format_time(now),
        policy=Policy(drain_seconds=float(drain) if isinstance(drain, int) else 0.0),
        entries=tuple(parts) if gone else (*parts, itself),
    )


def is_of_deletion(record: StoredTeardown, uid: str) -> bool:
    """Whether it is the record of the teardown of a whole endpoint, and not of one of its revisions."""
    return text(record.spec, "target", "uid") == uid and text(record.spec, "reason") in _UNDER_WAY


class RecordedTeardown:
    """A teardown as its record tells it: an `ObservedTeardown`."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.problem = ""
        self._gone: set[str] = set()

    def update(self, record: StoredTeardown, now: dt.datetime) -> Decision:
        """Take in the record as it is now. An object that it does not call gone counts as there."""
        status = record.status
        ledger: Any = status.ledger or dig(status.receipt, "ledger")
        if ledger:
            self.ledger = msgspec.convert(ledger, Ledger)
        phase = _phase(status.phase)
        waits = tuple(_wait(wait, self.ledger, phase, now) for wait in status.waits)
        waiting = {wait.entry.uid for wait in waits}
        self._gone = {
            entry.uid
            for entry in self.ledger.going
            if phase is Phase.PROVE or (entry.phase < phase and entry.uid not in waiting)
        }
        return Decision(phase, (), waits)

    def last_seen(self, entry: Entry) -> Observation:
        """Gone, or not known to be."""
        return Observation(State.GONE if entry.uid in self._gone else State.PRESENT)


def receipt_of(record: StoredTeardown) -> Receipt:
    """The receipt of a finished teardown. Raises ValueError where it has none, or not one of ours."""
    return msgspec.convert(record.status.receipt, Receipt)


def _entry(endpoint: StoredEndpoint, part: LedgerEntry, keep: frozenset[str], *, gone: bool) -> Entry:
    group, _, version = part.api_version.rpartition("/")
    stays = part.kind == _CLAIM and ("Volumes" in keep or ("ModelCache" in keep and part.name.endswith(CACHE_SUFFIX)))
    whose = f"revision {part.revision}" if part.revision is not None else "all revisions"
    made = f"left by servingendpoint/{endpoint.metadata.name}" if gone else f"made for {whose}"
    return Entry(
        resource=Resource(group, version, part.resource, part.kind),
        namespace=endpoint.metadata.namespace,
        name=part.name,
        uid=part.uid,
        phase=phase_of(GroupKind(group, part.kind)),
        disposition=Disposition.KEEP if stays else Disposition.DELETE,
        reason="kept: spec.deletion" if stays else made,
    )


def _phase(word: str | None) -> Phase:
    if word == TEARDOWN_DONE:
        return Phase.PROVE
    return Phase.__members__.get((word or "").upper(), Phase.CORDON)


def _wait(wait: Waiting, ledger: Ledger, phase: Phase, now: dt.datetime) -> Wait:
    entry = next((each for each in ledger.entries if str(each) == wait.object), None)
    cause = next((each for each in Cause if each.value == wait.cause), Cause.REFUSED)
    since, until = moment(wait.since) or now, moment(wait.until) or now
    return Wait(entry or _unlisted(wait.object, phase), cause, "the operator waits", wait.text, since, until)


def _unlisted(words: str, phase: Phase) -> Entry:
    """Entry for an object that is waited for and is not in the ledger."""
    name, _, namespace = words.partition(" -n ")
    kind, _, name = name.partition("/")
    return Entry(
        resource=Resource("", "", "", kind),
        namespace=namespace,
        name=name,
        uid="",
        phase=phase,
        disposition=Disposition.DELETE,
        reason="named by the operator",
    )
