"""Settings of the operator, read as `pilotage.runtime.settings` says. Its variables begin with ``PILOTAGE_``.

Nothing has to be set.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pilotage.models.settings import FetchSettings
from pilotage.runtime.manager import Address
from pilotage.runtime.settings import (
    LogLevel,
    is_namespace,
    is_place,
    load,
    parse_address,
)

PREFIX = "PILOTAGE_"


def _is_admin(text: str) -> str:
    if not re.fullmatch(r"http://[^/]+|unix:///.+|pods://[^/]+/.+:[0-9]+", text):
        raise ValueError("it is http://HOST:PORT, unix:///PATH or pods://NAMESPACE/LABEL-SELECTOR:PORT")
    return text


def _is_url(text: str) -> str:
    if not re.fullmatch(r"https?://[^/?#]+/?", text):
        raise ValueError("it is http://HOST:PORT or https://HOST:PORT")
    return text


class OperatorSettings(FetchSettings, frozen=True, kw_only=True):
    """Settings of the operator. Each has its flag; a test holds that."""

    namespace: Annotated[str, is_namespace] = "pilotage-system"
    """Namespace of the operator: of its Lease, and of Teardowns of endpoints whose own namespace is deleted."""
    metrics_address: Annotated[str, is_place] = "127.0.0.1:8081"
    """Address of /metrics, /healthz and /readyz, as HOST:PORT. If empty, they are not served."""
    leader_election: bool = True
    """Whether operators elect a leader. Without it there must be only one."""
    fetch: Literal["operator", "pods"] = "operator"
    """Fetcher of weights: the operator, into its cache, or each pod."""
    fetch_image: str = ""
    """Image of Pilotage with which pods fetch weights. If empty, their runtime has to fetch them."""
    envoy_admins: tuple[Annotated[str, _is_admin], ...] = ()
    """Admin interfaces of Envoys: http://HOST:PORT, unix:///PATH, or through the API server
    pods://NAMESPACE/LABEL-SELECTOR:PORT.
    """
    gateway_url: Annotated[str, _is_url] = "http://127.0.0.1:8080"
    """URL of the gateway that Pilotage runs, for the URLs of endpoints."""
    log_level: LogLevel = "info"
    """Lowest level that is logged."""

    @property
    def address(self) -> Address | None:
        """Address of the health server, parsed."""
        return parse_address(self.metrics_address)


def variable_name(field: str) -> str:
    """``fetch_image`` in the environment."""
    return f"{PREFIX}{field.upper()}"


def load_settings(
    flags: Mapping[str, object] | None = None, env: Mapping[str, str] = os.environ, file: Path | None = None
) -> OperatorSettings:
    """The settings from all places; as `pilotage.runtime.settings.load`."""
    return load(OperatorSettings, PREFIX, flags or {}, env, file)
