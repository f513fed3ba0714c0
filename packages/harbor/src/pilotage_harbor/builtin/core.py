"""Namespace, ConfigMap, Secret, ServiceAccount, ResourceQuota and LimitRange."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.field_errors import (
    duplicate,
    each_invalid,
    forbidden,
    immutable,
    invalid,
    required,
    too_long,
)
from pilotage_harbor.apimachinery.names import config_key, dns_label, qualified_name
from pilotage_harbor.builtin.base import Builtin, kind, named, path
from pilotage_harbor.builtin.cells import at, text
from pilotage_harbor.builtin.quantity import parse
from pilotage_harbor.builtin.quota_usage import WHOLE, is_enforced, is_standard
from pilotage_harbor.kinds.table import AGE, NAME

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.kinds import Json, Kind, View

_DATA_BYTES_MAX = 1024 * 1024
_SEALED = "field is immutable when `immutable` is set"


class NamespaceStrategy(Builtin):
    """A Namespace: labelled with its name, and held by a finalizer of its own kind."""

    go_type = "core.Namespace"
    name_problems = named(dns_label)

    def fill(self, obj: Json) -> None:
        """Defaults."""
        if name := obj["metadata"].get("name"):
            obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name
        obj["status"].setdefault("phase", "Active")

    def new_status(self, obj: Json) -> Json:
        """Active."""
        return {"phase": "Active"}

    def prepare_create(self, obj: Json, view: View) -> None:
        """The finalizer, and the label of a generated name."""
        super().prepare_create(obj, view)
        finalizers = obj["spec"].setdefault("finalizers", [])
        if "kubernetes" not in finalizers:
            finalizers.append("kubernetes")
        if name := obj["metadata"].get("name"):
            obj["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = name

    def prepare_update(self, obj: Json, old: Json, view: View) -> None:
        """Keep the finalizers: only the subresource `finalize` changes them."""
        super().prepare_update(obj, old, view)
        obj["spec"] = old.get("spec", {})

    def check(self, obj: Json) -> list[StatusCause]:
        """The finalizers."""
        problems: list[StatusCause] = []
        for name in obj["spec"].get("finalizers", ()):
            problems += each_invalid("spec.finalizers", name, qualified_name(name))
            if "/" not in name and name not in ("kubernetes", "orphan", "foregroundDeletion"):
                why = "name is neither a standard finalizer name nor is it fully qualified"
                problems.append(invalid("spec.finalizers", name, why))
        return problems

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """Nothing beyond metadata."""
        return []

    def validate_status_update(self, obj: Json, old: Json, view: View) -> list[StatusCause]:
        """Its phase says whether it is being deleted."""
        phase = path(obj, "status", "phase")
        word, words = ("Terminating", "is not") if obj["metadata"].get("deletionTimestamp") else ("Active", "is")
        if phase == word:
            return []
        return [invalid("status.Phase", phase, f"may only be '{word}' if `deletionTimestamp` {words} empty")]

    def fields(self, obj: Json) -> dict[str, str]:
        """Fields for field selectors."""
        return {"status.phase": path(obj, "status", "phase") or ""}


class ConfigMapStrategy(Builtin):
    """A ConfigMap."""

    go_type = "core.ConfigMap"
    status = False

    def check(self, obj: Json) -> list[StatusCause]:
        """Keys, and the size of it all."""
        data, binary = obj.get("data", {}), obj.get("binaryData", {})
        problems: list[StatusCause] = []
        size = 0
        for key, value in data.items():
            problems += each_invalid(f"data[{key}]", key, config_key(key))
            if key in binary:
                problems.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
            size += len(value) if value.isascii() else len(value.encode())
        for key, value in binary.items():
            problems += each_invalid(f"binaryData[{key}]", key, config_key(key))
            size += len(value) * 3 // 4
        if size > _DATA_BYTES_MAX:
            problems.append(too_long("[]", _DATA_BYTES_MAX))
        return problems

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """Nothing of an immutable one."""
        return sealed_problems(obj, old, ("data", "binaryData")) + self.check(obj)


def sealed_problems(obj: Json, old: Json, names: tuple[str, ...]) -> list[StatusCause]:
    """Changes to an object that declares itself immutable."""
    if not old.get("immutable"):
        return []
    problems = [] if obj.get("immutable") else [forbidden("immutable", _SEALED)]
    return problems + [forbidden(name, _SEALED) for name in names if obj.get(name) != old.get(name)]


class SecretStrategy(Builtin):
    """A Secret: its type asks for some keys, and never changes."""

    go_type = "core.Secret"
    status = False
    _KEYS = {  # noqa: RUF012
        "kubernetes.io/dockercfg": ".dockercfg",
        "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
    }

    def fill(self, obj: Json) -> None:
        """Defaults; plain text becomes data."""
        obj.setdefault("type", "Opaque")
        if plain := obj.pop("stringData", None):
            data = obj.setdefault("data", {})
            for key, value in plain.items():
                data[key] = base64.b64encode(value.encode()).decode()

    def check(self, obj: Json) -> list[StatusCause]:
        """Keys, size, and what the type asks for."""
        data = obj.get("data", {})
        problems: list[StatusCause] = []
        for key in data:
            problems += each_invalid(f"data[{key}]", key, config_key(key))
        if sum(len(value or "") for value in data.values()) * 3 // 4 > _DATA_BYTES_MAX:
            problems.append(too_long("data", _DATA_BYTES_MAX))
        return problems + self._of_type(obj, data)

    def _of_type(self, obj: Json, data: Json) -> list[StatusCause]:
        type_ = obj["type"]
        if type_ == "kubernetes.io/service-account-token":
            name = "kubernetes.io/service-account.name"
            if not (obj["metadata"].get("annotations") or {}).get(name):
                return [required(f"metadata.annotations[{name}]")]
        if key := self._KEYS.get(type_):
            if key not in data:
                return [required(f"data[{key}]")]
            try:
                good = isinstance(json.loads(base64.b64decode(data[key])), dict)
            except ValueError:
                good = False
            if not good:
                why = "must be a JSON object"  # the real one quotes its parser here
                return [invalid(f"data[{key}]", "<secret contents redacted>", why)]
        if type_ == "kubernetes.io/basic-auth" and not data.keys() & {"username", "password"}:
            return [required("data[username]"), required("data[password]")]
        if type_ == "kubernetes.io/ssh-auth" and not data.get("ssh-privatekey"):
            return [required("data[ssh-privatekey]")]
        if type_ == "kubernetes.io/tls":
            return [required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data]
        return []

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """Refuse a change of the type, and any change of an immutable one."""
        problems = immutable("type", obj["type"], old.get("type"))
        return problems + sealed_problems(obj, old, ("data",)) + self.check(obj)

    def fields(self, obj: Json) -> dict[str, str]:
        """Fields for field selectors."""
        return {"type": obj.get("type", "")}


class ServiceAccountStrategy(Builtin):
    """A ServiceAccount."""

    go_type = "core.ServiceAccount"
    status = False


_SCOPES = "harbor counts all objects of a namespace alike, so scopes would be ignored; leave them out"
_UNCOUNTED = "harbor does not count this resource, so the limit would be ignored; leave it out"


class ResourceQuotaStrategy(Builtin):
    """A ResourceQuota; it is enforced in `pilotage_harbor.core.quotas`, and what cannot be enforced is refused here."""

    go_type = "core.ResourceQuota"

    def check(self, obj: Json) -> list[StatusCause]:
        """The resources, and how much there is of each."""
        problems: list[StatusCause] = []
        for name, text_ in obj["spec"].get("hard", {}).items():
            field, amount = f"spec.hard[{name}]", parse(text_)
            problems += each_invalid(field, name, qualified_name(name))
            if "/" not in name and not is_standard(name):
                problems.append(invalid(field, name, "must be a standard resource type or fully qualified"))
                problems.append(invalid(field, name, "must be a standard resource for quota"))
            elif not is_enforced(name):
                problems.append(forbidden(field, _UNCOUNTED))
            if amount is not None and amount < 0:
                problems.append(invalid(field, text_, "must be greater than or equal to 0"))
            elif amount is not None and name in WHOLE and amount != amount.to_integral_value():
                problems.append(invalid(field, text_, "must be an integer"))
        if obj["spec"].get("scopeSelector"):
            problems.append(forbidden("spec.scopeSelector", _SCOPES))
        return problems

    def validate(self, obj: Json, view: View) -> list[StatusCause]:
        """A new one has no scopes."""
        scoped = [forbidden("spec.scopes", _SCOPES)] if obj["spec"].get("scopes") else []
        return super().validate(obj, view) + scoped

    def check_change(self, obj: Json, old: Json) -> list[StatusCause]:
        """The scopes stay."""
        new, was = obj["spec"].get("scopes"), old["spec"].get("scopes")
        same = sorted(new or ()) == sorted(was or ())
        return self.check(obj) + ([] if same else [invalid("spec.scopes", new, "field is immutable")])


class LimitRangeStrategy(Builtin):
    """A LimitRange; what it gives and refuses is in `pilotage_harbor.builtin.limits`."""

    go_type = "core.LimitRange"
    status = False
    create_on_update = True

    def fill(self, obj: Json) -> None:
        """Default limits from the largest, default requests from limits or the smallest."""
        for item in obj["spec"].get("limits") or ():
            if item["type"] == "Container":
                limits = dict(item.get("max", {})) | item.get("default", {})
                requests = dict(item.get("min", {})) | limits | item.get("defaultRequest", {})
                for name, value in (("default", limits), ("defaultRequest", requests)):
                    if value:
                        item[name] = value

    def check(self, obj: Json) -> list[StatusCause]:
        """The types of its limits."""
        problems: list[StatusCause] = []
        seen: set[str] = set()
        for index, item in enumerate(obj["spec"].get("limits") or ()):
            here, type_ = f"spec.limits[{index}].type", item["type"]
            if type_ not in ("Pod", "Container", "PersistentVolumeClaim") and "/" not in type_:
                why = qualified_name(type_) or ["must be a standard limit type or fully qualified"]
                problems += each_invalid(here, type_, why)
            if type_ in seen:
                problems.append(duplicate(here, type_))
            seen.add(type_)
            problems += self._bounds(item, f"spec.limits[{index}]")
        return problems

    def _bounds(self, item: Json, field: str) -> list[StatusCause]:
        problems: list[StatusCause] = []
        for name, least in item.get("min", {}).items():
            most = item.get("max", {}).get(name)
            low, high = parse(least), None if most is None else parse(most)
            if low is not None and high is not None and low > high:
                why = f"min value {least} is greater than max value {most}"
                problems.append(invalid(f"{field}.min[{name}]", least, why))
        return problems


def _quota(obj: Json, *, limits: bool) -> str:
    status = obj.get("status", {})
    used = status.get("used", {})
    return ", ".join(
        f"{name}: {used.get(name, '0')}/{hard}"
        for name, hard in sorted(status.get("hard", {}).items())
        if name.startswith("limits.") is limits
    )


def kinds() -> list[Kind]:
    """The kinds of this family."""
    return [
        kind(
            "v1",
            "namespaces",
            "Namespace",
            NamespaceStrategy(),
            (NAME, text("Status", at("status", "phase")), AGE),
            namespaced=False,
            short="ns",
            subresources="status finalize",
            selectable="status.phase",
            verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
        ),
        kind(
            "v1",
            "configmaps",
            "ConfigMap",
            ConfigMapStrategy(),
            (NAME, text("Data", lambda obj: len(obj.get("data", ())) + len(obj.get("binaryData", ()))), AGE),
            short="cm",
        ),
        kind(
            "v1",
            "secrets",
            "Secret",
            SecretStrategy(),
            (NAME, text("Type", at("type")), text("Data", lambda obj: len(obj.get("data", ()))), AGE),
            selectable="type",
        ),
        kind(
            "v1",
            "serviceaccounts",
            "ServiceAccount",
            ServiceAccountStrategy(),
            (NAME, AGE),
            short="sa",
            subresources="token",
        ),
        kind(
            "v1",
            "resourcequotas",
            "ResourceQuota",
            ResourceQuotaStrategy(),
            (
                NAME,
                text("Request", lambda obj: _quota(obj, limits=False)),
                text("Limit", lambda obj: _quota(obj, limits=True)),
                AGE,
            ),
            short="quota",
            subresources="status",
        ),
        kind("v1", "limitranges", "LimitRange", LimitRangeStrategy(), (), short="limits"),
    ]
