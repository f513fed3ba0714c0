"""The common part of built-in strategies: Go's treatment of fields, status and generation."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pilotage_harbor.apimachinery.field_errors import invalid
from pilotage_harbor.apimachinery.names import dns_subdomain
from pilotage_harbor.builtin.shape import shape
from pilotage_harbor.kinds import Kind, RestStrategy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.kinds import Json, TableColumn, View

MAX_INT32 = 2**31 - 1
_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")


def named(rule: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """A `name_problems` that follows a rule of `pilotage_harbor.apimachinery.names`."""

    def name_problems(_self: RestStrategy, name: str, *, prefix: bool = False) -> list[str]:
        return rule(name, prefix=prefix)

    return name_problems


class Builtin(RestStrategy):
    """A strategy that knows the Go type of its kind.

    Subclasses fill in `fill` (defaults), `check` (what is wrong with an object by itself) and `check_change` (what may
    not become of an old one).
    """

    go_type = ""
    """Such as ``core.Pod``: a type of `shapes.json`."""
    status = True
    """Whether a client's status is ignored, but for writes to the subresource."""
    qualified_finalizers = True
    """Whether a finalizer has to say whose it is, unless it is one of Kubernetes's own."""
    kept_by_status: tuple[str, ...] = ()
    """Fields of metadata that a write to the status cannot change."""
    name_problems = named(dns_subdomain)
    counts: tuple[str, ...] = ()
    """The fields whose changes count as a generation; empty where the kind has none."""

    reset_fields: Mapping[str, tuple[str, ...]] = {"": ("status",), "status": ("spec",), "finalize": ("status",)}

    def __init_subclass__(cls) -> None:
        if not cls.status:
            cls.reset_fields = {}

    def default(self, obj: Json) -> None:
        """Fill in the defaults of the Go type, then those of the kind."""
        shape(self.go_type)(obj)
        self.fill(obj)

    def fill(self, obj: Json) -> None:
        """Defaults of an object that has its shape."""

    def prepare_create(self, obj: Json, view: View) -> None:
        """Set the first generation and the initial status, for kinds that have them."""
        if self.counts:
            obj["metadata"]["generation"] = 1
        if self.status:
            obj["status"] = self.new_status(obj)

    def prepare_update(self, obj: Json, old: Json, view: View) -> None:
        """Keep the status and count the generation, for kinds that have them."""
        if self.status:
            self.keep_status(obj, old)
        if self.counts:
            self.count(obj, old)

    def prepare_status_update(self, obj: Json, old: Json) -> None:
        """Keep all but the status. Metadata may change on the way, unlike that of custom resources."""
        for name in [name for name in obj if name not in ("status", "metadata")]:
            if name not in old:
                del obj[name]
        obj.update({name: value for name, value in old.items() if name not in ("status", "metadata")})
        for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "generation", *self.kept_by_status):
            restore(obj["metadata"], old["metadata"], name)

    def new_status(self, obj: Json) -> Json:
        """The status of a new object: an empty one."""
        blank: Json = shape(self.go_type)({}).get("status", {})
        return blank

    def keep_status(self, obj: Json, old: Json) -> None:
        """Put the old status back."""
        restore(obj, old, "status")

    def count(self, obj: Json, old: Json) -> None:
        """Set the generation: one more if something changed that counts."""
        generation = old["metadata"].get("generation", 0)
        changed = any(obj.get(name) != old.get(name) for name in self.counts)
        obj["metadata"]["generation"] = generation + 1 if changed else generation

    def validate(self, obj: Json, view: View) -> list[StatusCause]:
        """Problems of a new object: its finalizers, and `check`."""
        return self._finalizer_problems(obj) + self.check(obj)

    def validate_update(self, obj: Json, old: Json, view: View) -> list[StatusCause]:
        """Problems of a changed object: its finalizers, and `check_change`."""
        return self._finalizer_problems(obj) + self.check_change(obj, old)

    def _finalizer_problems(self, obj: Json) -> list[StatusCause]:
        finalizers = obj["metadata"].get("finalizers")
        if not finalizers or not self.qualified_finalizers:
            return []
        why = "name is neither a standard finalizer name nor is it fully qualified"
        return [
            invalid(f"metadata.finalizers[{index}]", name, why)
            for index, name in enumerate(finalizers)
            if "/" not in name and name not in _FINALIZERS
        ]

    def check(self, obj: Json) -> list[StatusCause]:
        """Problems of an object by itself."""
        return []

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """Problems of an object that was another one."""
        return self.check(obj)


def kind(
    api: str,
    plural: str,
    name: str,
    strategy: RestStrategy,
    columns: Sequence[TableColumn],
    *,
    short: str = "",
    categories: str = "",
    subresources: str = "",
    selectable: str = "",
    **options: Any,  # noqa: ANN401 - fields of Kind
) -> Kind:
    """One row of the table of built-in kinds; lists of words are written as one text."""
    from pilotage_harbor.schema.builtin import builtin

    group, _, version = api.rpartition("/")
    return Kind(
        group,
        version,
        plural,
        name,
        builtin(group, version, name),
        short_names=tuple(short.split()),
        categories=tuple(categories.split()),
        subresources=frozenset(subresources.split()),
        selectable=frozenset(selectable.split()),
        strategy=strategy,
        columns=tuple(columns),
        **options,
    )


def now() -> str:
    """The time, as the API writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def restore(obj: Json, old: Json, name: str) -> None:
    """Put a field back as it was, or away if it was not there."""
    if name in old:
        obj[name] = old[name]
    else:
        obj.pop(name, None)


def protect(obj: Json, finalizer: str) -> None:
    """Add a finalizer to a new object, unless it is there."""
    finalizers = obj["metadata"].setdefault("finalizers", [])
    if finalizer not in finalizers:
        finalizers.append(finalizer)


def path(obj: Json, *names: str) -> Any:  # noqa: ANN401 - JSON
    """The value at a path of names, or None."""
    value: Any = obj
    for name in names:
        if type(value) is not dict:
            return None
        value = value.get(name)
    return value
