"""Settings of a long-running command, from flags, environment variables and a file; the first of these wins.

Every setting has one name, written in each place as is usual there: ``--cache-root``, ``…_CACHE_ROOT``, and
``cacheRoot`` in the file. A list is a list in the file, a flag that is given several times, and words in a variable.

Settings are a struct. A field is parsed by its type; what stands beside the type in `Annotated` are functions that
check or convert the parsed value, and raise ValueError.
"""

import difflib
import re
from collections.abc import Callable, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from pilotage.kube import ConfigError
from pilotage.runtime.manager import Address

S = TypeVar("S", bound="SettingsBase")
Given = dict[str, tuple[str, object]]
"""Source and value of each field that was given."""
Network = Annotated[IPv4Network | IPv6Network, ip_network]
LogLevel = Literal["debug", "info", "warning", "error"]
_FLAGS = {
    **dict.fromkeys(("1", "true", "t", "yes", "y", "on"), True),
    **dict.fromkeys(("0", "false", "f", "no", "n", "off"), False),
}


class SettingsError(ConfigError):
    """A setting that cannot be used. The message begins with the place where it was given."""


class SettingsBase(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all settings."""


class _Refused(ValueError):
    """A value that cannot be used: the one that was given, or one of its list."""

    def __init__(self, value: object, reason: str) -> None:
        super().__init__(reason)
        self.value = value


def parse_address(text: str) -> Address | None:
    """``HOST:PORT``, ``[V6]:PORT`` or ``:PORT`` for all addresses; None for an empty text. ValueError for others."""
    if not text:
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535 or (":" in host and not host.startswith("[")):
        raise ValueError("it is HOST:PORT, such as 127.0.0.1:8081")
    return Address(host.strip("[]") or "0.0.0.0", int(port))  # noqa: S104 - an omitted host means all addresses


def is_place(text: str) -> str:
    """A check: `parse_address` understands the text."""
    parse_address(text)
    return text


def is_namespace(text: str) -> str:
    """A check: the text is the name of a namespace."""
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", text):
        raise ValueError("a namespace's name has at most 63 characters of a-z, 0-9 and '-'")
    return text


def between(lowest: int, highest: int | None = None) -> Callable[[int], int]:
    """A check of a number; both bounds are allowed."""

    def check(number: int) -> int:
        if number < lowest:
            raise ValueError(f"input should be greater than or equal to {lowest}")
        if highest is not None and number > highest:
            raise ValueError(f"input should be less than or equal to {highest}")
        return number

    return check


def camel_case(field: str) -> str:
    """``cache_root`` in a file."""
    first, *others = field.split("_")
    return first + "".join(map(str.capitalize, others))


def flag_name(field: str) -> str:
    """``cache_root`` on the command line."""
    return f"--{field.replace('_', '-')}"


def load(
    kind: type[S], prefix: str, flags: Mapping[str, object], env: Mapping[str, str], file: Path | None = None
) -> S:
    """The settings from all places together. `flags` has the fields that were given, with their values.

    The variables begin with `prefix`; the one that ends with ``CONFIG`` names the file, unless it is given. Raises
    SettingsError, which names the place of the first thing that is wrong.
    """
    named_by = "--config" if file is not None else f"{prefix}CONFIG"
    if file is None and env.get(named_by):
        file = Path(env[named_by])
    given: dict[str, object] = {}
    places: dict[str, str] = {}
    sources = (
        _from_file(kind, file, named_by) if file is not None else {},
        _from_environment(kind, prefix, env),
        {name: (flag_name(name), value) for name, value in flags.items()},
    )
    types = get_type_hints(kind, include_extras=True)
    for source in sources:  # the later ones win
        for name, (place, value) in source.items():
            if name not in types:
                raise SettingsError(f"{place}: there is no such setting.")
            given[name], places[name] = value, place
    return kind(**{name: _parsed(types[name], value, places[name]) for name, value in given.items()})


def _parsed(type_: Any, value: object, place: str) -> object:  # noqa: ANN401 - a type
    try:
        return _value(type_, value)
    except _Refused as error:
        why = str(error).removesuffix(".")
        shown = f"'{error.value}'" if isinstance(error.value, str) else repr(error.value)
        raise SettingsError(f"{place}: {shown} cannot be used: {why[:1].lower()}{why[1:]}.") from error


def _value(type_: Any, value: Any) -> Any:  # noqa: ANN401 - of any type
    origin, arguments = get_origin(type_), get_args(type_)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise _Refused(value, "it has to be a list")
        return tuple(_value(arguments[0], each) for each in value)
    if origin is UnionType and NoneType in arguments:
        return None if value is None else _value(arguments[0], value)
    try:
        if origin is Annotated:
            parsed = _value(arguments[0], value)
            for check in arguments[1:]:
                parsed = check(parsed)
            return parsed
        if origin is Literal:
            return _choice(arguments, value)
        return _PARSERS.get(type_, lambda given: given)(value)
    except ValueError as error:
        raise error if isinstance(error, _Refused) else _Refused(value, str(error)) from error


def _choice(choices: tuple[str, ...], value: object) -> object:
    if value not in choices:
        *others, last = map(repr, choices)
        raise ValueError(f"input should be {', '.join(others)} or {last}")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("input should be a valid string")  # noqa: TRY004 - it is the user's
    return value


def _flag(value: object) -> bool:
    known = _FLAGS.get(str(value).lower())
    if known is None:
        raise ValueError("input should be a valid boolean, unable to interpret input")
    return known


def _number(value: object) -> int:
    try:
        return int(value) if isinstance(value, float) and value.is_integer() else int(str(value))
    except ValueError:
        raise ValueError("input should be a valid integer") from None


def _path(value: object) -> Path:
    if not isinstance(value, str | Path):
        raise ValueError("input is not a valid path")  # noqa: TRY004 - it is the user's
    return Path(value)


_PARSERS: dict[Any, Callable[[Any], Any]] = {str: _text, bool: _flag, int: _number, Path: _path}


def _from_environment(kind: type[SettingsBase], prefix: str, env: Mapping[str, str]) -> Given:
    found: Given = {}
    for name, type_ in get_type_hints(kind).items():
        variable = f"{prefix}{name.upper()}"
        if variable in env:
            is_list = get_origin(type_) is tuple
            found[name] = (variable, tuple(env[variable].split()) if is_list else env[variable])
    return found


def _from_file(kind: type[SettingsBase], file: Path, named_by: str) -> Given:
    import yaml

    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{named_by}: {file} cannot be read ({error.strerror}).") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: is not YAML: {' '.join(str(error).split())}.") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise SettingsError(f"{file}: has to be a mapping of settings to values.")
    names = {camel_case(name): name for name in kind.__struct_fields__}
    for key in content:
        if key not in names:
            close = difflib.get_close_matches(str(key), names, 1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(names)}."
            raise SettingsError(f"{file}: {key}: there is no such setting; {hint}")
    return {names[key]: (f"{file}: {key}", value) for key, value in content.items() if value is not None}
