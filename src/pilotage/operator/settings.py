"""What the operator can be told; `pilotage.runtime.settings` says where. Its variables begin with ``PILOTAGE_``.

Nothing has to be set.
"""

from __future__ import annotations

import os
import re
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field

from pilotage.models.limits import BYTES_MAX
from pilotage.runtime.settings import SettingsBase, is_place, load, parse_address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pilotage.runtime import Address

PREFIX = "PILOTAGE_"


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


class Settings(SettingsBase):
    """All settings. A test sees that each has its flag."""

    namespace: Annotated[
        str,
        Field(
            pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
            description="The operator's own namespace: of its Lease, and of the records of endpoints whose own goes.",
        ),
    ] = "pilotage-system"
    metrics_address: Annotated[
        str,
        AfterValidator(is_place),
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
    model_bytes_max: Annotated[int, Field(gt=0, description="The largest file of weights that is fetched.")] = BYTES_MAX
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


def variable_name(field: str) -> str:
    """``fetch_image`` in the environment."""
    return f"{PREFIX}{field.upper()}"


def load_settings(
    flags: Mapping[str, object] | None = None, env: Mapping[str, str] = os.environ, file: Path | None = None
) -> Settings:
    """See `pilotage.runtime.settings.load`."""
    return load(Settings, PREFIX, flags or {}, env, file)
