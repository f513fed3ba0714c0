"""Events: core/v1, which is stored, and events.k8s.io/v1, which says the same in other words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.field_errors import each_invalid, immutable, invalid, required
from pilotage_harbor.apimachinery.names import dns_subdomain, qualified_name
from pilotage_harbor.builtin.base import Builtin, kind, path
from pilotage_harbor.kinds import TableColumn
from pilotage_harbor.kinds.table import name, since

if TYPE_CHECKING:
    from collections.abc import Callable

    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.kinds import Json, Kind

_NAMES = {
    "note": "message",
    "regarding": "involvedObject",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_BACK = {stored: new for new, stored in _NAMES.items()}
_REPORTER = ("reportingComponent", "reportingInstance")
"""Always there in the stored form, and only with a value in the other one."""
_FIELDS = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


def to_core(obj: Json) -> Json:
    """The stored form of an events.k8s.io/v1 Event."""
    stored = {_NAMES.get(key, key): value for key, value in obj.items()} | {"apiVersion": "v1"}
    return dict.fromkeys(_REPORTER, "") | stored


def from_core(obj: Json) -> Json:
    """The events.k8s.io/v1 form of a stored Event."""
    shown = {_BACK.get(key, key): value for key, value in obj.items() if value or key not in _REPORTER}
    return shown | {"apiVersion": "events.k8s.io/v1"}


class EventStrategy(Builtin):
    """A core/v1 Event. If it has an eventTime, it has to be a modern one."""

    go_type = "core.Event"
    status = False
    create_on_update = True
    qualified_finalizers = False
    reporting = "reportingComponent"

    def check(self, obj: Json) -> list[StatusCause]:
        """Problems of an Event: its object and its reporter."""
        return event_problems(obj, self.reporting)

    def fields(self, obj: Json) -> dict[str, str]:
        """Fields for field selectors."""
        about, source = obj.get("involvedObject") or {}, path(obj, "source", "component")
        found = {f"involvedObject.{field}": about.get(field, "") for field in _FIELDS}
        reporter = obj.get("reportingComponent", "")
        return found | {
            "reason": obj.get("reason", ""),
            "reportingComponent": reporter,
            "source": source or reporter,
            "type": obj.get("type", ""),
        }


class NewEventStrategy(EventStrategy):
    """An events.k8s.io/v1 Event: only its series may change."""

    go_type = "events.Event"
    qualified_finalizers = True
    reporting = "reportingController"

    def check(self, obj: Json) -> list[StatusCause]:
        """A new one."""
        stored = to_core(obj)
        problems = event_problems(stored, self.reporting)
        problems += self._series(stored)
        if not stored.get("eventTime"):
            problems.append(required("eventTime"))
        if stored.get("type") not in ("Normal", "Warning"):
            problems.append(invalid("type", "", f"has invalid value: {stored.get('type', '')}"))
        for field in ("firstTimestamp", "lastTimestamp", "count", "source"):
            if stored.get(field):
                problems.append(invalid(field, "", "needs to be unset"))
        return problems

    def _series(self, stored: Json) -> list[StatusCause]:
        series = stored.get("series")
        if series is None:
            return []
        problems: list[StatusCause] = []
        if series.get("count", 0) < 2:
            problems.append(invalid("series.count", "", "should be at least 2"))
        if not series.get("lastObservedTime"):
            problems.append(required("series.lastObservedTime"))
        return problems

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """All but the series stays."""
        new, was = to_core(obj), to_core(old)
        problems = event_problems(new, self.reporting)
        if new.get("series") != was.get("series"):
            problems += self._series(new)
        for field in (
            "involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "reason",
            "type", "eventTime", "action", "related", "reportingComponent", "reportingInstance",
        ):  # fmt: skip
            shown = "reportingController" if field == "reportingComponent" else field
            problems += immutable(shown, new.get(field), was.get(field))
        return problems

    def fields(self, obj: Json) -> dict[str, str]:
        """Field labels of the stored form, by the names that this one has for them."""
        stored = super().fields(to_core(obj))
        del stored["source"]  # not to be selected by in this version
        return {_newer(label): value for label, value in stored.items()}


def _newer(label: str) -> str:
    return label.replace("involvedObject.", "regarding.").replace("reportingComponent", "reportingController")


def event_problems(obj: Json, reporting: str) -> list[StatusCause]:
    """Problems of an Event in its stored form."""
    problems: list[StatusCause] = []
    namespace = obj["metadata"].get("namespace", "")
    about = (obj.get("involvedObject") or {}).get("namespace", "")
    wrong = invalid("involvedObject.namespace", about, "does not match event.namespace")
    if not obj.get("eventTime"):
        if namespace != about and not (not about and namespace in ("", "default")):
            problems.append(wrong)
    else:
        if not about and namespace not in ("default", "kube-system"):
            problems.append(wrong)
        controller = obj.get("reportingComponent", "")
        if not controller:
            problems.append(required(reporting))
        problems += each_invalid(reporting, controller, qualified_name(controller))
        problems += _texts(obj)
    return problems + each_invalid("namespace", namespace, dns_subdomain(namespace))


def _texts(obj: Json) -> list[StatusCause]:
    problems: list[StatusCause] = []
    for field in ("reportingInstance", "action", "reason"):
        if not obj.get(field):
            problems.append(required(field))
        if len(obj.get(field, "")) > 128:
            problems.append(invalid(field, "", "can have at most 128 characters"))
    if len(obj.get("message", "")) > 1024:
        problems.append(invalid("message", "", "can have at most 1024 characters"))
    return problems


def _first(obj: Json, now: float) -> str:
    return since(obj.get("firstTimestamp") or obj.get("eventTime"), now)


def _last(obj: Json, now: float) -> str:
    if series := obj.get("series"):
        return since(series.get("lastObservedTime"), now)
    return since(obj["lastTimestamp"], now) if obj.get("lastTimestamp") else _first(obj, now)


def _about(obj: Json, _now: float) -> str:
    about = obj.get("involvedObject") or {}
    lower: str = about.get("kind", "").lower()
    return f"{lower}/{about['name']}" if about.get("name") else lower


def _source(obj: Json, _now: float) -> str:
    source = obj.get("source") or {}
    component = source.get("component") or obj.get("reportingComponent", "")
    host = source.get("host") or obj.get("reportingInstance", "")
    return f"{component}, {host}" if host else component


def _count(obj: Json, _now: float) -> int:
    if series := obj.get("series"):
        return int(series.get("count", 0))
    return obj.get("count") or 1


def _field(key: str) -> Callable[[Json, float], str]:
    return lambda obj, _: obj.get(key, "").strip()


_COLUMNS = (
    TableColumn("Last Seen", "string", _last),
    TableColumn("Type", "string", _field("type")),
    TableColumn("Reason", "string", _field("reason")),
    TableColumn("Object", "string", _about),
    TableColumn("Subobject", "string", lambda obj, _: path(obj, "involvedObject", "fieldPath") or "", priority=1),
    TableColumn("Source", "string", _source, priority=1),
    TableColumn("Message", "string", _field("message")),
    TableColumn("First Seen", "string", _first, priority=1),
    TableColumn("Count", "string", _count, priority=1),
    TableColumn("Name", "string", name, "name", priority=1),
)


def _of_stored(column: TableColumn) -> TableColumn:
    return column._replace(cell=lambda obj, now: column.cell(to_core(obj), now))


def kinds() -> list[Kind]:
    """The kinds of this family."""
    selectable = " ".join(f"involvedObject.{field}" for field in _FIELDS) + " reason reportingComponent source type"
    newer = _newer(selectable).replace(" source", "")
    return [
        kind("v1", "events", "Event", EventStrategy(), _COLUMNS, short="ev", selectable=selectable),
        kind(
            "events.k8s.io/v1",
            "events",
            "Event",
            NewEventStrategy(),
            tuple(map(_of_stored, _COLUMNS)),
            short="ev",
            selectable=newer,
            storage="events",
            to_storage=to_core,
            from_storage=from_core,
        ),
    ]
