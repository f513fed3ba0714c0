"""APIServices: read only. They say which groups are served; nothing is aggregated here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.builtin.base import Builtin, kind, path
from pilotage_harbor.builtin.cells import text
from pilotage_harbor.kinds.table import AGE, NAME

if TYPE_CHECKING:
    from pilotage_harbor.kinds import Json, Kind


class APIServiceStrategy(Builtin):
    """An APIService."""

    go_type = "apiregistration.APIService"
    unconditional_update = False


def _service(obj: Json) -> str:
    found = path(obj, "spec", "service")
    return f"{found.get('namespace', '')}/{found.get('name', '')}" if found else "Local"


def _available(obj: Json) -> str:
    for each in path(obj, "status", "conditions") or ():
        if each.get("type") == "Available":
            status = str(each.get("status", ""))
            return status if status == "True" else f"{status} ({each.get('reason', '')})"
    return "Unknown"


def kinds() -> list[Kind]:
    """The kinds of this family."""
    return [
        kind(
            "apiregistration.k8s.io/v1",
            "apiservices",
            "APIService",
            APIServiceStrategy(),
            (NAME, text("Service", _service), text("Available", _available), AGE),
            namespaced=False,
            categories="api-extensions",
            verbs=("get", "list", "watch"),
        )
    ]
