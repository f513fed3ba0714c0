"""What the operator can be told: by flags, by variables of its environment, by a file; in this order of precedence.

Every setting has one name, written in each place as is usual there: ``--fetch-image``, ``PILOTAGE_FETCH_IMAGE``, and
``fetchImage`` in the file. A list is a list in the file, a flag that is given several times, and words in a variable.
Nothing has to be set.
"""

from __future__ import annotations

import difflib
import os
import re
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from pilotage.kube import ConfigError
from pilotage.runtime import Address

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "PILOTAGE_"
CONFIG = "PILOTAGE_CONFIG"
"""The variable that names the file, unless ``--config`` does."""


class SettingsError(ConfigError):
    """A setting that cannot be used. The message begins with the place where it was given."""


def _is_address(text: str) -> str:
    parse_address(text)
    return text


def _is_admin(text: str) -> str:
    if not re.fullmatch(r"http://[^/]+|unix:///.+|pods://[^/]+/.+:[0-9]+", text):
        raise ValueError("it is http://HOST:PORT, unix:///PATH or pods://NAMESPACE/LABEL-SELECTOR:PORT")
    return text


def _is_url(text: str) -> str:
    if not re.fullmatch(r"https?://[^/?#]+/?", text):
        raise ValueError("it is http://HOST:PORT or https://HOST:PORT")
    return text


def _cache_root() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "pilotage" / "models"


class Settings(BaseModel):
    """All settings. A test sees that each has its flag."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, extra="forbid", frozen=True)

    namespace: Annotated[
        str,
        Field(
            pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
            description="The operator's own namespace: of its Lease, and of the records of endpoints whose own goes.",
        ),
    ] = "pilotage-system"
    metrics_address: Annotated[
        str,
        AfterValidator(_is_address),
        Field(description="Where /metrics, /healthz and /readyz are served, as HOST:PORT; empty for nowhere."),
    ] = "127.0.0.1:8081"
    leader_election: Annotated[
        bool, Field(description="Whether several operators take turns; without it there must be only one.")
    ] = True
    fetch: Annotated[
        Literal["operator", "pods"],
        Field(description="Who brings weights: the operator into its cache, or each pod for itself."),
    ] = "operator"
    fetch_image: Annotated[
        str, Field(description="The image of Pilotage with which pods fetch weights; empty: their runtime has to.")
    ] = ""
    cache_root: Annotated[Path, Field(description="Where the operator keeps fetched weights.")] = Field(
        default_factory=_cache_root
    )
    file_roots: Annotated[
        tuple[Path, ...], Field(description="Folders below which file:// sources may be read; none without it.")
    ] = ()
    networks: Annotated[
        tuple[IPv4Network | IPv6Network, ...],
        Field(description="Networks that are not public and that weights may be fetched from all the same."),
    ] = ()
    plain_http: Annotated[bool, Field(description="Whether weights may be fetched over http://.")] = False
    ambient_credentials: Annotated[
        bool,
        Field(description="Whether buckets may be read with the operator's own identity, by anybody with a Model."),
    ] = False
    envoy_admins: Annotated[
        tuple[Annotated[str, AfterValidator(_is_admin)], ...],
        Field(
            description="Where Envoys say what they have loaded: http://HOST:PORT, unix:///PATH, or "
            "pods://NAMESPACE/LABEL-SELECTOR:PORT through the API server."
        ),
    ] = ()
    gateway_url: Annotated[
        str,
        AfterValidator(_is_url),
        Field(description="Where clients find the gateway that Pilotage runs: for the URLs of endpoints."),
    ] = "http://127.0.0.1:8080"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Field(description="From which level up it logs.")
    ] = "info"

    @property
    def address(self) -> Address | None:
        """Where the health server listens."""
        return parse_address(self.metrics_address)


def parse_address(text: str) -> Address | None:
    """``HOST:PORT``, ``[V6]:PORT`` or ``:PORT`` for all addresses; None for an empty text. ValueError for others."""
    if not text:
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535 or (":" in host and not host.startswith("[")):
        raise ValueError("it is HOST:PORT, such as 127.0.0.1:8081")
    return Address(host.strip("[]") or "0.0.0.0", int(port))  # noqa: S104 - who writes no host means all


def flag_name(field: str) -> str:
    """``fetch_image`` on the command line."""
    return f"--{field.replace('_', '-')}"


def variable_name(field: str) -> str:
    """``fetch_image`` in the environment."""
    return f"{PREFIX}{field.upper()}"


def load_settings(
    flags: Mapping[str, object] | None = None,
    env: Mapping[str, str] = os.environ,
    file: Path | None = None,
) -> Settings:
    """The settings that all places together give. `flags` has the fields that were given, with their values.

    Raises SettingsError, which names the place of the first thing that is wrong.
    """
    named_by = "--config" if file is not None else CONFIG
    if file is None and env.get(CONFIG):
        file = Path(env[CONFIG])
    given: dict[str, object] = {}
    places: dict[str, str] = {}
    sources = (
        _from_file(file, named_by) if file is not None else {},
        _from_environment(env),
        {name: (flag_name(name), value) for name, value in (flags or {}).items()},
    )
    for source in sources:  # the later ones win
        for name, (place, value) in source.items():
            given[name], places[name] = value, place
    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        place = places[str(first["loc"][0])]
        why = str(first.get("ctx", {}).get("error") or first["msg"]).removesuffix(".")
        raise SettingsError(f"{place}: {_shown(first['input'])} cannot be used: {_lower(why)}.") from error


def _from_environment(env: Mapping[str, str]) -> dict[str, tuple[str, object]]:
    found: dict[str, tuple[str, object]] = {}
    for name, field in Settings.model_fields.items():
        variable = variable_name(name)
        if variable in env:
            is_list = get_origin(field.annotation) is tuple
            found[name] = (variable, tuple(env[variable].split()) if is_list else env[variable])
    return found


def _from_file(file: Path, named_by: str) -> dict[str, tuple[str, object]]:
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
    names = {to_camel(name): name for name in Settings.model_fields}
    for key in content:
        if key not in names:
            close = difflib.get_close_matches(str(key), names, 1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(names)}."
            raise SettingsError(f"{file}: {key}: there is no such setting; {hint}")
    return {names[key]: (f"{file}: {key}", value) for key, value in content.items() if value is not None}


def _shown(value: Any) -> str:  # noqa: ANN401 - whatever was given
    return repr(value) if not isinstance(value, str) else f"'{value}'"


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
