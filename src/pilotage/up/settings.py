"""Settings of one machine: those that are given, and those that its folder remembers from the last `up`."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pilotage.private_files import read_private, write_private
from pilotage.up.layout import Layout

FLAGS = {
    "port": "--port",
    "api_port": "--api-port",
    "host": "--host-name",
    "file_roots": "--file-roots",
    "llama_server": "--llama-server",
    "envoy": "--envoy",
    "allow_commands": "--allow-commands",
}
"""Settings that are remembered, and the option of each."""


class UpOptions(NamedTuple):
    """The options of `pilotage up`."""

    folder: Path
    port: int = 8080
    """Port of the gateway."""
    api_port: int = 0
    host: str = "local"
    """The name of the Host that this machine is."""
    file_roots: Sequence[str] = ()
    llama_server: str | None = None
    envoy: str | None = None
    allow_commands: bool = False
    """Whether endpoints may name any command and argument; else this machine runs presets with safe ones."""
    stop_seconds: float = 120
    """Seconds from SIGTERM to SIGKILL for each component; an agent drains its servers meanwhile."""

    def chosen(self) -> dict[str, Any]:
        """The settings that are not the default."""
        defaults = UpOptions(self.folder)
        return {name: value for name in FLAGS if (value := getattr(self, name)) != getattr(defaults, name)}


class SettingsUnusable(OSError):
    """The file of remembered settings cannot be used, in a sentence that names it."""


def remembered(layout: Layout) -> dict[str, Any]:
    """The settings of the last `up`; empty where there was none. Raises SettingsUnusable, or NotPrivate."""
    try:
        found = json.loads(read_private(layout.settings))
        roots = tuple(found.pop("file_roots", ()))
        return UpOptions(layout.folder, file_roots=roots, **found).chosen()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (ValueError, TypeError, AttributeError) as error:
        raise SettingsUnusable(f"{layout.settings} cannot be read ({error}). Remove it and give all options") from error


def remember(layout: Layout, options: UpOptions) -> None:
    """Keep the settings for the next `up`. Raises OSError."""
    write_private(layout.settings, json.dumps(options.chosen(), indent=1).encode())


def flags(settings: Mapping[str, Any]) -> list[str]:
    """Settings as the words of a command line."""
    words = []
    for name, value in settings.items():
        match value:
            case bool():
                words.append(FLAGS[name] if value else FLAGS[name].replace("--", "--no-", 1))
            case list() | tuple():
                words += [word for each in value for word in (FLAGS[name], str(each))]
            case _:
                words += [FLAGS[name], str(value)]
    return words
