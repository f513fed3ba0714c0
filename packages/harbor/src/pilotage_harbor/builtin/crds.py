"""CustomResourceDefinitions, as objects; what they define is served by the core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.field_errors import forbidden, immutable, invalid, not_supported, required
from pilotage_harbor.apimachinery.names import dns1035, dns_subdomain
from pilotage_harbor.builtin.admission import client_problems
from pilotage_harbor.builtin.base import Builtin, kind, path
from pilotage_harbor.builtin.crd_schemas import selectable_problems, unknown_formats
from pilotage_harbor.kinds import TableColumn
from pilotage_harbor.kinds.table import NAME
from pilotage_harbor.schema.structural import structural_problems

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.kinds import Json, Kind, View

_PER_VERSION = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = (
    "byte", "date", "date-time", "double", "float", "int32", "int64", "password", "binary",
)  # fmt: skip
_MIXED = "may have mixed case, but should otherwise match: "


class DefinitionStrategy(Builtin):
    """A CustomResourceDefinition. Conditions and accepted names are set by whoever serves it."""

    go_type = "apiextensions.CustomResourceDefinition"
    counts = ("spec",)
    unconditional_update = False
    qualified_finalizers = False

    def fill(self, obj: Json) -> None:
        """Defaults."""
        spec = obj["spec"]
        names = spec["names"]
        names.setdefault("singular", names.get("kind", "").lower())
        if names.get("kind"):
            names.setdefault("listKind", f"{names['kind']}List")
        conversion = spec.setdefault("conversion", {"strategy": "None"})
        if (service := path(conversion, "webhook", "clientConfig", "service")) is not None:
            service.setdefault("port", 443)
        if "status" in obj and not obj["status"].get("storedVersions"):
            obj["status"]["storedVersions"] = _storage_versions(obj)[:1] or None

    def new_status(self, obj: Json) -> Json:
        """Nothing accepted yet; only which version is stored."""
        status = super().new_status(obj)
        status["storedVersions"] = _storage_versions(obj)[:1] or None
        return status

    def prepare_update(self, obj: Json, old: Json, view: View) -> None:
        """A version that becomes the stored one is remembered as such."""
        super().prepare_update(obj, old, view)
        stored = path(obj, "status", "storedVersions") or []
        now = _storage_versions(obj)[:1]
        if now and now[0] not in stored:
            obj["status"] = obj["status"] | {"storedVersions": [*stored, *now]}

    def warnings(self, obj: Json, old: Json | None) -> list[str]:
        """Formats that mean nothing here, and that it did not have before."""
        before = unknown_formats(old["spec"]) if old is not None else []
        return [f'unrecognized format "{each}"' for each in unknown_formats(obj["spec"]) if each not in before]

    def check(self, obj: Json) -> list[StatusCause]:
        """A new one: its name is made of plural and group."""
        spec, name = obj["spec"], obj["metadata"].get("name", "")
        problems: list[StatusCause] = []
        if name and name != f"{spec['names'].get('plural', '')}.{spec.get('group', '')}":
            problems.append(invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
        return problems + self._check_spec(spec) + _stored_problems(obj) + _approval_problems(obj)

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """Names that are in use stay."""
        new, was = obj["spec"], old["spec"]
        problems = self._check_spec(new)
        conditions = path(old, "status", "conditions") or ()
        if any(each.get("type") == "Established" and each.get("status") == "True" for each in conditions):
            problems += immutable("spec.scope", new.get("scope"), was.get("scope"))
            problems += immutable("spec.names.kind", new["names"].get("kind"), was["names"].get("kind"))
        problems += immutable("spec.group", new.get("group"), was.get("group"))
        problems += immutable("spec.names.plural", new["names"].get("plural"), was["names"].get("plural"))
        return problems + _stored_problems(obj)

    def _check_spec(self, spec: Json) -> list[StatusCause]:
        problems = _group_problems(spec.get("group", ""))
        scope = spec.get("scope", "")
        if not scope:
            problems.append(required("spec.scope"))
        elif scope not in ("Cluster", "Namespaced"):
            problems.append(not_supported("spec.scope", scope, ("Cluster", "Namespaced")))
        versions = spec.get("versions") or []
        for index, version in enumerate(versions):
            if path(version, "schema", "openAPIV3Schema") is None:
                problems.append(required(f"spec.versions[{index}].schema.openAPIV3Schema"))
        shared = {name for name in _PER_VERSION if all(v.get(name) == versions[0].get(name) for v in versions)}
        for index, version in enumerate(versions):
            here = f"spec.versions[{index}]"
            if why := dns1035(version.get("name", "")):
                problems.append(invalid(f"{here}.name", version.get("name", ""), ",".join(why)))
            problems += _version_problems({k: v for k, v in version.items() if k not in shared}, here, "schema")
        problems += self._versions(versions)
        if versions and (why := dns1035(versions[0].get("name", ""))):
            problems.append(invalid("spec.version", versions[0].get("name", ""), ",".join(why)))
        problems += _names_problems(spec["names"])
        if versions:
            first = {name: versions[0][name] for name in shared if name in versions[0]}
            problems += _version_problems(first, "spec", "validation")
        if spec.get("preserveUnknownFields"):
            words = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in"
            problems.append(invalid("spec.preserveUnknownFields", True, f"{words} spec.versions[*].schema instead"))
        return problems + _conversion_problems(spec["conversion"])

    def _versions(self, versions: list[Json]) -> list[StatusCause]:
        problems: list[StatusCause] = []
        names = [version.get("name") for version in versions]
        shown = _go_versions(versions)
        if len(set(names)) != len(names):
            problems.append(invalid("spec.versions", shown, "must contain unique version names"))
        if sum(bool(version.get("storage")) for version in versions) != 1:
            words = "must have exactly one version marked as storage version"
            problems.append(invalid("spec.versions", shown, words))
        return problems


def _go_versions(versions: list[Json]) -> list[Json]:
    """Versions as the internal type prints them, once what all of them share has been moved out."""
    shared = {name for name in _PER_VERSION if all(v.get(name) == versions[0].get(name) for v in versions)}
    return [
        {
            "Name": version.get("name", ""),
            "Served": version.get("served", False),
            "Storage": version.get("storage", False),
            "Deprecated": version.get("deprecated", False),
            "DeprecationWarning": version.get("deprecationWarning"),
            "Schema": None if "schema" in shared else version.get("schema"),
            "Subresources": None if "subresources" in shared else version.get("subresources"),
            "AdditionalPrinterColumns": None
            if "additionalPrinterColumns" in shared
            else version.get("additionalPrinterColumns"),
            "SelectableFields": None if "selectableFields" in shared else version.get("selectableFields"),
        }
        for version in versions
    ]


def _storage_versions(obj: Json) -> list[str]:
    return [version.get("name", "") for version in obj["spec"].get("versions") or () if version.get("storage")]


def _group_problems(group: str) -> list[StatusCause]:
    if not group:
        return [required("spec.group")]
    if why := dns_subdomain(group):
        return [invalid("spec.group", group, ",".join(why))]
    return [] if "." in group else [invalid("spec.group", group, "should be a domain with at least one dot")]


def _names_problems(names: Json) -> list[StatusCause]:
    field = "spec.names"
    problems = [
        required(f"{field}.{name}") for name in ("plural", "singular", "kind", "listKind") if not names.get(name)
    ]
    for name in ("plural", "singular"):
        if names.get(name) and (why := dns1035(names[name])):
            problems += [invalid(f"{field}.{name}", names[name], ",".join(why))]
    for name in ("kind", "listKind"):
        if names.get(name) and (why := dns1035(names[name].lower())):
            problems += [invalid(f"{field}.{name}", names[name], _MIXED + ",".join(why))]
    problems += _each_name(names, "shortNames")
    if names.get("kind") and names["kind"] == names.get("listKind"):
        problems.append(invalid(f"{field}.listKind", names["listKind"], "kind and listKind may not be the same"))
    return problems + _each_name(names, "categories")


def _each_name(names: Json, key: str) -> list[StatusCause]:
    return [
        invalid(f"spec.names.{key}[{index}]", name, ",".join(why))
        for index, name in enumerate(names.get(key, ()))
        if (why := dns1035(name))
    ]


def _version_problems(version: Json, field: str, schema_name: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    if version.get("deprecationWarning") is not None and not version.get("deprecated"):
        why = "can only be set for deprecated versions"
        problems.append(invalid(f"{field}.deprecationWarning", version["deprecationWarning"], why))
    if (schema := path(version, "schema", "openAPIV3Schema")) is not None:
        status = path(version, "subresources", "status") is not None
        problems += structural_problems(schema, f"{field}.{schema_name}.openAPIV3Schema", has_status=status)
    if scale := path(version, "subresources", "scale"):
        problems += _scale_problems(scale, f"{field}.subresources")
    for index, column in enumerate(version.get("additionalPrinterColumns", ())):
        problems += _column_problems(column, f"{field}.additionalPrinterColumns[{index}]")
    if fields := version.get("selectableFields"):
        here = f"{field}.selectableFields"
        if schema is not None:
            problems += selectable_problems(fields, schema, here)
        elif schema_name == "schema":
            why = "may only be set when `version.schema.openAPIV3Schema` is not included"
            problems.append(invalid(here, "", why))
        else:
            problems.append(invalid(here, "", "may only be set when validations.schema is included"))
    return problems


def _scale_problems(scale: Json, field: str) -> list[StatusCause]:
    problems: list[StatusCause] = []
    for name, roots, needed in (
        ("specReplicasPath", (".spec.",), True),
        ("statusReplicasPath", (".status.",), True),
        ("labelSelectorPath", (".spec.", ".status."), False),
    ):
        here, value = f"{field}.scale.{name}", scale.get(name)
        if not value:
            problems += [required(here)] if needed else []
        elif not value.startswith("."):
            problems.append(invalid(here, value, "must be a simple json path starting with ."))
        elif not value.startswith(roots):
            place = "either .spec or .status" if len(roots) > 1 else roots[0].rstrip(".")
            problems.append(invalid(here, value, f"should be a json path under {place}"))
    return problems


def _column_problems(column: Json, field: str) -> list[StatusCause]:
    problems = [] if column.get("name") else [required(f"{field}.name")]
    type_, why = column.get("type", ""), f"must be one of {','.join(_COLUMN_TYPES)}"
    if not type_:
        problems.append(required(f"{field}.type", why))
    elif type_ not in _COLUMN_TYPES:
        problems.append(invalid(f"{field}.type", type_, why))
    if (format_ := column.get("format")) and format_ not in _COLUMN_FORMATS:
        words = ",".join(sorted(_COLUMN_FORMATS))
        problems.append(invalid(f"{field}.format", format_, f"must be one of {words}"))
    value = column.get("jsonPath", "")
    if not value:
        problems.append(required(f"{field}.JSONPath"))
    elif not value.startswith("."):
        problems.append(invalid(f"{field}.JSONPath", value, "must be a simple json path starting with ."))
    return problems


def _conversion_problems(conversion: Json) -> list[StatusCause]:
    field, strategy = "spec.conversion", conversion.get("strategy", "")
    problems: list[StatusCause] = []
    if not strategy:
        problems.append(required(f"{field}.strategy"))
    elif strategy not in ("None", "Webhook"):
        problems.append(not_supported(f"{field}.strategy", strategy, ("None", "Webhook")))
    hook = conversion.get("webhook")
    client = path(hook or {}, "clientConfig")
    versions = (hook or {}).get("conversionReviewVersions") or []
    if strategy == "Webhook":
        if client is None:
            problems.append(required(f"{field}.webhookClientConfig", "required when strategy is set to Webhook"))
        else:
            problems += client_problems(client, f"{field}.webhookClientConfig")
        if not versions:
            problems.append(required(f"{field}.conversionReviewVersions"))
        elif not {"v1", "v1beta1"}.intersection(versions):
            why = "must include at least one of v1, v1beta1"
            problems.append(invalid(f"{field}.conversionReviewVersions", versions, why))
    else:
        why = "should not be set when strategy is not set to Webhook"
        if client is not None:
            problems.append(forbidden(f"{field}.webhookClientConfig", why))
        if versions:
            problems.append(forbidden(f"{field}.conversionReviewVersions", why))
    return problems


def _stored_problems(obj: Json) -> list[StatusCause]:
    field, stored = "status.storedVersions", path(obj, "status", "storedVersions") or []
    if not stored:
        return [invalid(field, None, "must have at least one stored version")]
    names = [version.get("name") for version in obj["spec"].get("versions") or ()]
    problems = [
        invalid(field, stored, f"must have the storage version {name}")
        for name in _storage_versions(obj)
        if name not in stored
    ]
    for index, name in enumerate(stored):
        if name not in names:
            why = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions"
                f" until a storage migration ensures no data remains persisted in {name} and removes {name} from"
                " status.storedVersions"
            )
            problems.append(invalid(f"{field}[{index}]", name, why))
    return problems


def _approval_problems(obj: Json) -> list[StatusCause]:
    """Groups of Kubernetes's own need a word from Kubernetes."""
    group, key = obj["spec"].get("group", ""), "api-approved.kubernetes.io"
    if not (group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))):
        return []
    value = (obj["metadata"].get("annotations") or {}).get(key, "")
    if value.startswith(("unapproved", "https://", "http://")):
        return []
    field = f"metadata.annotations[{key}]"
    if not value:
        why = f'protected groups must have approval annotation "{key}"'
        return [required(field, f"{why}, see https://github.com/kubernetes/enhancements/pull/1111")]
    why = f'protected groups must have approval annotation "{key}" with either a URL or a reason starting with'
    return [invalid(field, value, f'{why} "unapproved", see https://github.com/kubernetes/enhancements/pull/1111')]


def kinds() -> list[Kind]:
    """The kinds of this family."""
    created = TableColumn("Created At", "date", lambda obj, _: obj["metadata"].get("creationTimestamp"))
    return [
        kind(
            "apiextensions.k8s.io/v1",
            "customresourcedefinitions",
            "CustomResourceDefinition",
            DefinitionStrategy(),
            (NAME, created),
            namespaced=False,
            short="crd crds",
            categories="api-extensions",
            subresources="status",
        )
    ]
