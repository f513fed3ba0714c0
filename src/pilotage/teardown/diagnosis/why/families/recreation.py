"""Names that come back: another object under the same name, and changes to one that is already going."""

from collections.abc import Iterator

from pilotage.kube import Json
from pilotage.teardown.diagnosis.remedies import LOOK, Remedy, place
from pilotage.teardown.diagnosis.why.codes import CauseCode
from pilotage.teardown.diagnosis.why.context import WhyContext
from pilotage.teardown.diagnosis.why.model import StuckCause
from pilotage.teardown.snapshot.fields import entries, mapping, moment, seconds_since, span, text
from pilotage.teardown.snapshot.world import Item


def causes(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    """Whether somebody else has its name by now, or wrote to it since its deletion was asked for."""
    now_there = context.world.find(*item.name)
    if now_there is not None and now_there.uid != item.uid and _is_newer(now_there, item):
        yield _recreated(context, item, now_there)
    if item.terminating:
        yield from _changed(context, item)


def _recreated(context: WhyContext, item: Item, now_there: Item) -> StuckCause:
    seconds = seconds_since(context.now, now_there.meta.creation_timestamp)
    when = f" {span(seconds)} ago" if seconds is not None else ""
    maker = next((text(each, "manager") for each in _managed(now_there) if text(each, "manager")), "")
    by = f', by "{maker}"' if maker else ""
    return StuckCause(
        CauseCode.RECREATED,
        now_there,
        f"is another object of the same name, made{when}{by}",
        (f"The one that was meant had uid {item.uid}; the one that is there has uid {now_there.uid}.",),
        remedies=(
            Remedy(
                "Find out who makes it again, before it is deleted again",
                f"kubectl get {place(now_there)} -o yaml --show-managed-fields",
                "Nothing changes.",
                LOOK,
                now_there,
            ),
        ),
        since=now_there.meta.creation_timestamp,
    )


def _changed(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    """Writers of its content since its delete: to apply a terminating object succeeds, and is lost."""
    deleted = context.deleted_at(item)
    for entry in _managed(item):
        written = moment(entry, "time")
        if deleted is None or written is None or written <= deleted:  # times of the API are whole seconds
            continue
        content = [name for name in mapping(entry, "fieldsV1") if name not in ("f:metadata", "f:status")]
        if text(entry, "subresource") or not content:
            continue
        after = span((written - deleted).total_seconds())
        yield StuckCause(
            CauseCode.CHANGED_WHILE_TERMINATING,
            item,
            f'"{text(entry, "manager")}" applied it again {after} after its deletion was asked for: '
            "the change goes with it",
            (f"managedFields: {text(entry, 'operation')} by {text(entry, 'manager')} at {text(entry, 'time')}.",),
            remedies=(
                Remedy(
                    "Wait until it is gone, then apply it again",
                    f"pilotage wait {place(item)}",
                    "What is being deleted cannot be brought back; the new one gets a uid of its own. Nothing leaks.",
                    LOOK,
                    item,
                ),
            ),
            since=text(entry, "time"),
        )


def _managed(item: Item) -> list[Json]:
    """Its managedFields, the oldest first; those without a time come first."""
    return sorted(entries(item.read(), "metadata", "managedFields"), key=lambda entry: text(entry, "time"))


def _is_newer(one: Item, other: Item) -> bool:
    made, before = moment(one.meta.creation_timestamp), moment(other.meta.creation_timestamp)
    return made is None or before is None or made >= before
