"""One resource in one version, and the strategy of its objects.

A kind says what its objects look like (a schema), what they are called, which subresources they have and what the API
does to them beyond storing: defaults, allocation, validation, what may change. Everything works on plain dicts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pilotage_harbor.apimachinery.names import dns_subdomain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.apimachinery.users import UserInfo
    from pilotage_harbor.schema import SchemaNode

Json = dict[str, Any]

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class TableColumn(NamedTuple):
    """One column of a Table. `cell` gives its value for an object at a time (in seconds since 1970)."""

    name: str
    type: str
    cell: Callable[[Json, float], Any]
    format: str = ""
    description: str = ""
    priority: int = 0


class View(Protocol):
    """A strategy's view of other objects, as they are stored."""

    def get(self, storage: str, namespace: str, name: str) -> Json | None:
        """A copy of one object of a storage (``services``, ``deployments.apps``), or None."""

    def objects(self, storage: str, namespace: str = "") -> Iterable[Json]:
        """Copies of all objects of a storage, of one namespace or of all."""


class RestStrategy:
    """The API's treatment of the objects of one kind. The base class is for kinds without anything particular.

    The order of a write: `default`, then mutating admission, `default` again, `prepare_create` or `prepare_update`,
    `validate` or `validate_update`, `admit`, then validating admission. Methods change `obj` in place; they
    never change `old`.
    """

    unconditional_update = True
    """Whether a PUT without a resourceVersion is taken."""
    create_on_update = False
    """Whether a PUT to a name that is free creates the object."""
    grace_seconds: int | None = None
    """Grace period, only for kinds that are deleted gracefully (Pods)."""
    allocates = False
    """Whether something is chosen for a new object that no other may have: such are created one at a time."""
    default_propagation = "background"
    """Propagation of a delete that names none: ``background`` or ``orphan``."""
    reset_fields: Mapping[str, tuple[str, ...]] = {"": ("status",), "status": ("spec", "metadata.labels")}
    """Fields that a write to a subresource ("" is the object itself) never owns."""

    def default(self, obj: Json) -> None:
        """Fill in what was left out."""

    def prepare_create(self, obj: Json, view: View) -> None:
        """Clear what a client may not set, and set what only the server sets. metadata is done already."""

    def note_author(self, obj: Json, user: UserInfo) -> None:
        """Write down who creates it, for kinds that say so."""

    def prepare_update(self, obj: Json, old: Json, view: View) -> None:
        """Keep what an update of the object itself may not change, and count its generation."""

    def prepare_status_update(self, obj: Json, old: Json) -> None:
        """Keep all but the status."""
        for name in [name for name in obj if name not in ("status", "metadata", "apiVersion", "kind")]:
            del obj[name]
        obj.update({name: value for name, value in old.items() if name not in ("status", "metadata")})
        meta, old_meta = obj["metadata"], old["metadata"]
        for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "generation", "ownerReferences", "finalizers"):
            meta.pop(name, None)
            if name in old_meta:
                meta[name] = old_meta[name]

    def validate(self, obj: Json, view: View) -> list[StatusCause]:
        """Problems of a new object, beyond its metadata."""
        return []

    def validate_update(self, obj: Json, old: Json, view: View) -> list[StatusCause]:
        """Problems of a changed object, beyond its metadata: also what may not change."""
        return self.validate(obj, view)

    def validate_status_update(self, obj: Json, old: Json, view: View) -> list[StatusCause]:
        """Problems of a changed status."""
        return []

    def admit(self, obj: Json, old: Json | None, view: View) -> None:
        """Raise what kube-apiserver's own admission plugins refuse of an object that is valid; `old` if it changes."""

    def name_problems(self, name: str, *, prefix: bool = False) -> list[str]:
        """Problems of a name (or, with `prefix`, of the beginning of a generated name)."""
        return dns_subdomain(name, prefix=prefix)

    def fields(self, obj: Json) -> dict[str, str]:
        """Fields for field selectors, besides metadata.name and metadata.namespace."""
        return {}

    def warnings(self, obj: Json, old: Json | None) -> list[str]:
        """Warnings for the client, of an object that is valid."""
        return []


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One resource in one version. `storage` names where its objects are kept, whichever version wrote them."""

    group: str
    version: str
    plural: str
    kind: str
    schema: SchemaNode
    namespaced: bool = True
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: frozenset[str] = frozenset()
    """Such as ``status``, ``scale``, ``eviction``, ``log``, ``finalize``, ``binding``."""
    storage: str = ""
    strategy: RestStrategy = field(default_factory=RestStrategy)
    columns: tuple[TableColumn, ...] = ()
    selectable: frozenset[str] = frozenset()
    """The field labels of `RestStrategy.fields`: a selector on another one is refused."""
    scale: tuple[str, str, str] = ("", "", "")
    """Paths of spec.replicas, status.replicas and the selector, such as ``.spec.replicas``."""
    custom: bool = False
    """Whether it comes from a CustomResourceDefinition: its schema decides then, and not a Go type."""
    to_storage: Callable[[Json], Json] | None = None
    from_storage: Callable[[Json], Json] | None = None
    """Conversion to and from the stored version, if that is another one. Neither function changes its input."""
    converted_by_webhook: bool = False
    """Whether a webhook is asked how objects look in other versions: both functions go by its answers."""
    as_of: int = 0
    """Objects stored before this version were written under another schema: they are pruned and defaulted when read."""
    deprecation: str = ""
    """Warning for users of this version."""
    prefix: bytes = b""
    """Beginning of the JSON of an object of this kind and version, as harbor stores it."""

    def __post_init__(self) -> None:
        for name, value in (
            ("singular", self.singular or self.kind.lower()),
            ("list_kind", self.list_kind or f"{self.kind}List"),
            ("storage", self.storage or self.qualified),
            ("prefix", f'{{"apiVersion":"{self.api_version}","kind":"{self.kind}",'.encode()),
        ):
            object.__setattr__(self, name, value)

    @property
    def api_version(self) -> str:
        """The apiVersion of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """``deployments.apps``, or ``pods``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural
