"""Settings of every program that fetches weights: where they are kept, and where they may come from."""

import os
from pathlib import Path
from typing import Annotated

from msgspec import field

from pilotage.models.access import Access
from pilotage.models.limits import BYTES_MAX, Limits
from pilotage.runtime.settings import Network, SettingsBase, between


def absolute(path: Path) -> Path:
    """The path, independent of the working directory."""
    return path.absolute()


def user_folder(variable: str, default: str) -> Path:
    """The folder of Pilotage in a base directory of the user: the one in the environment, or one in the home."""
    base = os.environ.get(variable)
    return (Path(base) if base else Path.home() / default) / "pilotage"


class FetchSettings(SettingsBase, frozen=True, kw_only=True):
    """Settings of fetching."""

    cache_root: Annotated[Path, absolute] = field(
        default_factory=lambda: user_folder("XDG_CACHE_HOME", ".cache") / "models"
    )
    """Folder of fetched weights, which are kept while they are used."""
    file_roots: tuple[Path, ...] = ()
    """Folders below which file:// sources may be read. If empty, none may."""
    networks: tuple[Network, ...] = ()
    """Networks that weights may be fetched from although they are not public."""
    plain_http: bool = False
    """Whether weights may be fetched over http://."""
    model_bytes_max: Annotated[int, between(1)] = BYTES_MAX
    """Size of the largest file that is fetched."""
    ambient_credentials: bool = False
    """Whether buckets may be read with the identity of the program itself, for any Model."""

    @property
    def access(self) -> Access:
        """The sources that may be read."""
        return Access(
            roots=self.file_roots,
            networks=self.networks,
            plain_http=self.plain_http,
            ambient=self.ambient_credentials,
            limits=Limits(bytes_max=self.model_bytes_max),
        )
