"""What a long-running command can be told: by flags, by variables of its environment, by a file; in this order.

Every setting has one name, written in each place as is usual there: ``--cache-root``, ``…_CACHE_ROOT``, and
``cacheRoot`` in the file. A list is a list in the file, a flag that is given several times, and words in a variable.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from pilotage.kube import ConfigError
from pilotage.runtime.manager import Address

if TYPE_CHECKING:
    from collections.abc import Mapping

S = TypeVar("S", bound="SettingsBase")
Given = dict[str, tuple[str, object]]
"""By field: the place where it was given, and its value."""


class SettingsError(ConfigError):
    """A setting that cannot be used. The message begins with the place where it was given."""


class SettingsBase(BaseModel):
    """What all settings have in common."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, extra="forbid", frozen=True)


def parse_address(text: str) -> Address | None:
    """``HOST:PORT``, ``[V6]:PORT`` or ``:PORT`` for all addresses; None for an empty text. ValueError for others."""
    if not text:
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535 or (":" in host and not host.startswith("[")):
        raise ValueError("it is HOST:PORT, such as 127.0.0.1:8081")
    return Address(host.strip("[]") or "0.0.0.0", int(port))  # noqa: S104 - who writes no host means all


def is_place(text: str) -> str:
    """The same, if `parse_address` understands it: to validate a field with."""
    parse_address(text)
    return text


def flag_name(field: str) -> str:
    """``cache_root`` on the command line."""
    return f"--{field.replace('_', '-')}"


def load(
    kind: type[S], prefix: str, flags: Mapping[str, object], env: Mapping[str, str], file: Path | None = None
) -> S:
    """The settings that all places together give. `flags` has the fields that were given, with their values.

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
    for source in sources:  # the later ones win
        for name, (place, value) in source.items():
            given[name], places[name] = value, place
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        place = places.get(str(first["loc"][0]) if first["loc"] else "", "")
        why = str(first.get("ctx", {}).get("error") or first["msg"]).removesuffix(".")
        shown = f"'{first['input']}'" if isinstance(first["input"], str) else repr(first["input"])
        raise SettingsError(
            f"{place}: {shown} cannot be used: {why[:1].lower()}{why[1:]}." if place else f"{why}."
        ) from error


def _from_environment(kind: type[SettingsBase], prefix: str, env: Mapping[str, str]) -> Given:
    found: Given = {}
    for name, field in kind.model_fields.items():
        variable = f"{prefix}{name.upper()}"
        if variable in env:
            is_list = get_origin(field.annotation) is tuple
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
    names = {to_camel(name): name for name in kind.model_fields}
    for key in content:
        if key not in names:
            close = difflib.get_close_matches(str(key), names, 1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(names)}."
            raise SettingsError(f"{file}: {key}: there is no such setting; {hint}")
    return {names[key]: (f"{file}: {key}", value) for key, value in content.items() if value is not None}
