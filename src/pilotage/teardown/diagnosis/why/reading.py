"""Small readings that several families share; `teardown.fields` has the rest."""

from pilotage.kube import Json
from pilotage.kube.selectors import LabelSelector, SelectorError
from pilotage.teardown.snapshot.fields import entries, mapping, seconds_since, span
from pilotage.teardown.snapshot.world import World


def labels_at(body: object, *path: str) -> dict[str, str]:
    """The map of texts at a path."""
    return {key: value for key, value in mapping(body, *path).items() if isinstance(value, str)}


def condition(body: object, type_: str) -> Json:
    """The status condition of a type, or an empty object."""
    return next((each for each in entries(body, "status", "conditions") if each.get("type") == type_), {})


def since(world: World, moment: str) -> str:
    """``, since 14m`` or nothing where the time is not known."""
    seconds = seconds_since(world.now, moment) if moment else None
    return "" if seconds is None else f", since {span(seconds)}"


def counted(count: int, one: str, many: str = "") -> str:
    """``1 pod``, ``2 pods``."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def few(names: list[str], most: int = 3) -> str:
    """``a, b, c and 4 more``."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def selects(selector: object, labels: dict[str, str]) -> bool:
    """Whether a LabelSelector selects these labels; one that is not there or not valid selects nothing."""
    try:
        return LabelSelector.from_object(selector if isinstance(selector, dict) else None).matches(labels)
    except (SelectorError, TypeError):
        return False


def selects_plainly(wanted: dict[str, str], labels: dict[str, str]) -> bool:
    """Whether a plain map of labels, as Services have it, selects these; an empty one selects nothing."""
    return bool(wanted) and all(labels.get(key) == value for key, value in wanted.items())
