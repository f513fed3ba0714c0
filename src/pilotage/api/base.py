"""Base of all API types: the wire format of fields, errors of reading, and the types that several kinds share.

The docstring of a type, and the text below a field, are what `kubectl explain` prints: they are written as API
documentation, starting with a noun. Annotations are not postponed: evaluating their text at the first decode would cost
more than all imports of these modules do.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import Annotated, Any, Literal, Self, get_args

import msgspec
from msgspec import Meta
from msgspec.structs import astuple, fields

from pilotage.kube.wire import Object, ObjectMeta

_PLACE = re.compile(r" - at `(key in )?\$(?P<path>.*)`$")
_MISSING = re.compile(r"^Object missing required field `(?P<name>.*)`$")


class InvalidField(ValueError):
    """A value that the type of its field does not allow.

    `path` leads to the field from the value that was read (``runtime.port``); it is empty for that value itself.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.path = path
        self.reason = reason

    @classmethod
    def of(cls, error: msgspec.ValidationError, type_: type[msgspec.Struct]) -> Self:
        """The error of msgspec, when it read a value of a type, as a path and a reason."""
        place = _PLACE.search(str(error))
        path = place["path"].lstrip(".") if place else ""
        reason = _PLACE.sub("", str(error))
        if missing := _MISSING.match(reason):
            return cls(".".join(filter(None, (path, missing["name"]))), "is required")
        reason = reason.replace("`", "").replace(r"\\Z'", "$'").replace(r"\\", "\\")
        if reason.startswith("Invalid enum value"):
            reason = f"{reason}: supported values: {', '.join(_choices(type_, path))}"
        return cls(path, f"{reason[:1].lower()}{reason[1:]}")

    def below(self, field: str) -> str:
        """The path of the field when what was read is itself the value of `field`."""
        return f"{field}{'' if self.path.startswith('[') else '.'}{self.path}" if self.path else field


def _choices(type_: Any, path: str) -> list[str]:  # noqa: ANN401 - a type
    """The values that a field may have, where its type lists them."""
    for name in re.findall(r"[^.\[\]]+", re.sub(r"\[.*?\]", "", path)):
        struct = next(each for each in _leaves(type_) if isinstance(each, type) and issubclass(each, msgspec.Struct))
        type_ = next(each.type for each in fields(struct) if each.encode_name == name)
    return [each for each in _leaves(type_) if isinstance(each, str)]


def _leaves(type_: Any) -> Iterator[Any]:  # noqa: ANN401 - a type
    """The types and literals that a type is composed of."""
    within = get_args(type_)
    return chain.from_iterable(map(_leaves, within)) if within else iter((type_,))


class OtherVersion(Exception):
    """An object of ours that this version of Pilotage does not understand."""


class Schema(msgspec.Struct, frozen=True, rename="camel"):
    """A type of the API. Fields are camelCase on the wire; fields that are not known are ignored.

    The API server prunes and validates by the CRD; a newer version's fields must not break an older controller.
    """

    @classmethod
    def read(cls, value: object) -> Self:
        """The value of a field as decoded JSON; None reads as an empty object. Raises InvalidField."""
        try:
            return msgspec.convert({} if value is None else value, cls)
        except msgspec.ValidationError as error:
            raise InvalidField.of(error, cls) from error

    def written(self) -> dict[str, Any]:
        """The value as it is sent, without fields that are None."""
        made: dict[str, Any] = _without_none(msgspec.to_builtins(self))
        return made

    def without_defaults(self) -> dict[str, Any]:
        """The value as it is sent, without fields that have their default, at all depths."""
        values = zip(self.__struct_encode_fields__, astuple(self), _defaults(type(self)), strict=True)
        return {name: _without_defaults(value) for name, value, default in values if value != default}


def _without_none(value: Any) -> Any:  # noqa: ANN401 - JSON has no narrower type
    if isinstance(value, dict):
        return {name: _without_none(each) for name, each in value.items() if each is not None}
    return [_without_none(each) for each in value] if isinstance(value, list) else value


def _without_defaults(value: Any) -> Any:  # noqa: ANN401 - of any type
    if isinstance(value, Schema):
        return value.without_defaults()
    return [_without_defaults(each) for each in value] if isinstance(value, list) else value


@cache
def _defaults(type_: type[Schema]) -> tuple[Any, ...]:
    return tuple(
        each.default if each.default_factory is msgspec.NODEFAULT else each.default_factory() for each in fields(type_)
    )


def matches(pattern: str, **bounds: Any) -> Meta:  # noqa: ANN401 - bounds are of Meta
    """A pattern of the API server, which is RE2's, and other constraints of a text.

    In RE2 a final ``$`` is the end of the text; in Python it is also the place before a last newline.
    """
    here = f"{pattern[:-1]}\\Z" if pattern.endswith("$") else pattern
    return Meta(pattern=here, extra_json_schema={"pattern": pattern}, **bounds)


def one_of(*values: str) -> Meta:
    """An enumeration in a status: the API server holds the writer to these values, readers take any text.

    Clients that are older than the operator have to read what it writes.
    """
    return Meta(extra_json_schema={"enum": list(values)})


def map_list(*keys: str) -> dict[str, Any]:
    """Keywords for a list whose entries are merged by these of their fields."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


def seconds_of(duration: str) -> int:
    """The seconds of a Duration."""
    return sum(int(number) * _UNITS[unit] for number, unit in re.findall("([0-9]+)([hms])", duration))


REPLICAS_MAX = 1000
"""Upper bound on replicas of a revision. Each costs memory and requests in the operator, on a Host also an object."""
SET: dict[str, Any] = {"x-kubernetes-list-type": "set"}
"""Keywords for a list without duplicates."""

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
ObjectName = Annotated[str, matches(rf"^{_LABEL}(\.{_LABEL})*$", min_length=1, max_length=253)]
"""The name of an object; nothing in it leads into another namespace."""
ShortName = Annotated[str, matches(rf"^{_LABEL}(\.{_LABEL})*$", min_length=1, max_length=63)]
"""The name of an object that has to fit into a label."""
Duration = Annotated[str, matches("^([0-9]{1,4}h)?([0-9]{1,5}m)?([0-9]{1,6}s)?$", min_length=2, max_length=16)]
"""A duration such as 90s, 10m or 1h30m."""
_UNITS = {"h": 3600, "m": 60, "s": 1}
Seconds = Annotated[int, Meta(ge=0, le=86400)]
Argument = Annotated[str, Meta(max_length=16384)]
"""One argument of a command line: a chat template or a JSON schema may be one."""
Timestamp = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]


class Condition(Schema, frozen=True, kw_only=True):
    """Condition of the object, as the Kubernetes API conventions define it."""

    type: Annotated[str, Meta(max_length=316)]
    """Type of the condition, in CamelCase."""
    status: Literal["True", "False", "Unknown"]
    """Status of the condition."""
    reason: Annotated[str, Meta(max_length=1024)]
    """Reason for the last transition, in CamelCase."""
    message: Annotated[str, Meta(max_length=32768)] = ""
    """Details of the transition, for people."""
    last_transition_time: Timestamp
    """Last time that the status changed."""
    observed_generation: int | None = None
    """Generation that the condition is about."""


Conditions = Annotated[
    list[Condition], Meta(description="Latest observations of the object's state.", extra_json_schema=map_list("type"))
]


class SecretRef(Schema, frozen=True):
    """Reference to a Secret in the same namespace."""

    name: ObjectName
    """Name of the Secret."""


class EnvVar(Schema, frozen=True):
    """Environment variable of the server."""

    name: Annotated[str, Meta(min_length=1, max_length=256)]
    """Name of the variable."""
    value: Annotated[str, Meta(max_length=32768)] = ""
    """Value of the variable."""


class Stored(msgspec.Struct, frozen=True):
    """An object of one of our kinds as a client reads it: the spec as its user wrote it, the status typed.

    A spec that an earlier CRD allowed may be invalid by now. Its object can still be shown, and deleted.
    """

    metadata: ObjectMeta = ObjectMeta()
    spec: dict[str, Any] = {}

    @classmethod
    def of(cls, obj: Object) -> Self:
        """An object that was read. OtherVersion where its status has a type that this version does not know."""
        try:
            return obj.decode_as(cls)
        except msgspec.ValidationError as error:
            raise OtherVersion(
                f"{obj.ref} was written by another version of Pilotage ({error}). Update this one."
            ) from error
