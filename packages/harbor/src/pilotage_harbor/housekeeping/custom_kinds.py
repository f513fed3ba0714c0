"""Conversion of a CustomResourceDefinition to the kinds that it serves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pilotage_harbor.admission.conversion import Conversion
from pilotage_harbor.kinds import Kind, RestStrategy
from pilotage_harbor.kinds.scale import number_problems, text_problems
from pilotage_harbor.kinds.table import custom_columns
from pilotage_harbor.schema import SchemaNode, apply_defaults, from_openapi, prune, validate

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.kinds import Json, View


class CustomStrategy(RestStrategy):
    """The strategy of custom resources: their schema decides, and a status belongs to its subresource."""

    def __init__(
        self,
        schema: SchemaNode,
        *,
        has_status: bool,
        selectable: tuple[str, ...] = (),
        scale: tuple[str, str, str] = ("", "", ""),
    ) -> None:
        self._schema = schema
        self._has_status = has_status
        self._selectable = selectable
        self._scale = scale
        self.reset_fields = {"": ("status",), "status": ("spec", "metadata")} if has_status else {}
        self.unconditional_update = False

    def default(self, obj: Json) -> None:
        """Fill in the defaults of the schema."""
        apply_defaults(self._schema, obj)

    def prepare_create(self, obj: Json, view: View) -> None:
        """Set the first generation, and drop the status if it is a subresource."""
        if self._has_status:
            obj.pop("status", None)
        obj["metadata"]["generation"] = 1

    def prepare_update(self, obj: Json, old: Json, view: View) -> None:
        """Keep the status if it is a subresource, and count the generation."""
        if self._has_status:
            obj.pop("status", None)
            if "status" in old:
                obj["status"] = old["status"]
        generation = old["metadata"].get("generation", 1)
        unchanged = _content(obj, self._has_status) == _content(old, self._has_status)
        obj["metadata"]["generation"] = generation if unchanged else generation + 1

    def prepare_status_update(self, obj: Json, old: Json) -> None:
        """Keep all but the status; of the metadata, only managedFields can change."""
        status, managed = obj.get("status"), obj["metadata"].get("managedFields")
        obj.clear()
        obj.update(old)
        obj["metadata"] = {name: value for name, value in old["metadata"].items() if name != "managedFields"}
        if managed is not None:
            obj["metadata"]["managedFields"] = managed
        obj.pop("status", None)
        if status is not None:
            obj["status"] = status

    def validate(self, obj: Json, view: View) -> list[StatusCause]:
        """Problems of a new object: the schema, its rules, and the scale subresource."""
        return validate(self._schema, obj) + self._scale_problems(obj)

    def validate_update(self, obj: Json, old: Json, view: View) -> list[StatusCause]:
        """Problems of a changed object: the schema, its rules, and the scale subresource."""
        return validate(self._schema, obj, old) + self._scale_problems(obj)

    def validate_status_update(self, obj: Json, old: Json, view: View) -> list[StatusCause]:
        """Problems of a changed status: the schema, its rules, and the scale subresource."""
        return validate(self._schema, obj, old) + self._scale_problems(obj, status_only=True)

    def _scale_problems(self, obj: Json, *, status_only: bool = False) -> list[StatusCause]:
        spec, status, selector = self._scale
        if not spec:
            return []
        problems = [] if status_only else number_problems(obj, spec)
        problems += number_problems(obj, status)
        return problems + text_problems(obj, selector) if selector else problems

    def fields(self, obj: Json) -> dict[str, str]:
        """Fields for field selectors: the `selectableFields` of the definition."""
        return {path: _text(_at(obj, path)) for path in self._selectable}


def custom_kinds(crd: Json, as_of: int) -> list[Kind]:
    """All served versions of a CustomResourceDefinition that has been validated."""
    spec = crd["spec"]
    names = crd["status"]["acceptedNames"]
    storage_version = next(version["name"] for version in spec["versions"] if version["storage"])
    conversion = spec.get("conversion") or {}
    by_webhook = None
    if conversion.get("strategy") == "Webhook":
        by_webhook = Conversion(conversion.get("webhook") or {}, f"{names['plural']}.{spec['group']}")
    return [
        _kind(spec, names, version, storage_version, as_of, by_webhook)
        for version in spec["versions"]
        if version["served"]
    ]


def _schema(version: Json) -> SchemaNode:
    return from_openapi(version.get("schema", {}).get("openAPIV3Schema", {}))


def _kind(
    spec: Json, names: Json, version: Json, storage_version: str, as_of: int, conversion: Conversion | None
) -> Kind:
    schema = _schema(version)
    subresources = version.get("subresources") or {}
    scale = subresources.get("scale") or {}
    paths = (
        scale.get("specReplicasPath", ""),
        scale.get("statusReplicasPath", ""),
        scale.get("labelSelectorPath", ""),
    )
    selectable = tuple(field["jsonPath"].lstrip(".") for field in version.get("selectableFields", ()))
    group = spec["group"]

    stored = f"{group}/{storage_version}"
    stored_schema = next(_schema(each) for each in spec["versions"] if each["storage"]) if conversion else schema

    def write(obj: Json) -> Json:
        if conversion is None:
            return {**obj, "apiVersion": stored}
        new = conversion.converted(obj, stored)
        prune(stored_schema, new)
        apply_defaults(stored_schema, new)
        return new

    def read(obj: Json) -> Json:
        if conversion is not None and obj["apiVersion"] != f"{group}/{version['name']}":
            obj = conversion.converted(obj, f"{group}/{version['name']}")
        prune(schema, obj)
        apply_defaults(schema, obj)
        return {**obj, "apiVersion": f"{group}/{version['name']}"}

    return Kind(
        group,
        version["name"],
        names["plural"],
        names["kind"],
        schema,
        namespaced=spec["scope"] == "Namespaced",
        singular=names.get("singular", ""),
        list_kind=names.get("listKind", ""),
        short_names=tuple(names.get("shortNames", ())),
        categories=tuple(names.get("categories", ())),
        verbs=("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"),
        subresources=frozenset(subresources) & {"status", "scale"},
        strategy=CustomStrategy(schema, has_status="status" in subresources, selectable=selectable, scale=paths),
        columns=custom_columns(version.get("additionalPrinterColumns") or ()),
        selectable=frozenset(selectable),
        scale=paths,
        custom=True,
        deprecation=_deprecation(spec, names, version),
        to_storage=None if version["name"] == storage_version else write,
        from_storage=read,
        converted_by_webhook=conversion is not None,
        as_of=as_of,
    )


def _deprecation(spec: Json, names: Json, version: Json) -> str:
    if not version.get("deprecated"):
        return ""
    return version.get("deprecationWarning") or f"{spec['group']}/{version['name']} {names['kind']} is deprecated"


def _content(obj: Json, has_status: bool) -> Json:
    """The content that the generation counts: all but metadata, and but a status with a subresource of its own."""
    left_out = ("metadata", "status", "apiVersion") if has_status else ("metadata", "apiVersion")
    return {name: value for name, value in obj.items() if name not in left_out}


def _at(obj: Json, path: str) -> Any:  # noqa: ANN401 - JSON
    value: Any = obj
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _text(value: Any) -> str:  # noqa: ANN401 - JSON
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
