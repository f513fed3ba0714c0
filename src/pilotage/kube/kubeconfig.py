"""The kubeconfig files of a list, merged, and one context of them picked. No meaning is given to it here.

Merging follows kubectl: of each named cluster, user and context the first file that has it wins, whole; so does the
first `current-context` that is set. Every entry remembers its file: relative paths are relative to that, and messages
name it.
"""

import base64
import binascii
from collections.abc import Iterable
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from pilotage.kube.errors import ConfigError
from pilotage.kube.kubeconfig_file import Cluster, KubeconfigContext, KubeconfigFile, User, read_file

Value = TypeVar("Value")


class KubeconfigEntry(msgspec.Struct, Generic[Value], frozen=True):
    """A named cluster, user or context, and the file it came from."""

    kind: str
    name: str
    value: Value
    file: Path

    def field(self, name: str = "") -> str:
        """The file and the field, as messages name them."""
        return f"{self.file}: {self.kind}s[{self.name}].{self.kind}{'.' if name else ''}{name}"

    def error(self, field: str, problem: str) -> ConfigError:
        """An error about one field of this entry."""
        return ConfigError(f"{self.field(field)}: {problem}")

    def path(self, value: str) -> Path:
        """A path of this entry: relative to the file that says it."""
        return self.file.parent / value

    def read_bytes(self, field: str, data: str | None, path: str | None) -> tuple[bytes | None, str]:
        """The content of a pair of fields `<field>-data` (base64) and `<field>` (a path), and which of them gave it.

        The data wins over the file. None where neither is set.
        """
        if data:
            origin = self.field(f"{field}-data")
            try:
                return base64.b64decode("".join(data.split()), validate=True), origin
            except (binascii.Error, ValueError) as error:
                raise ConfigError(f"{origin}: is not base64. Encode the PEM with `base64 -w0`.") from error
        origin = self.field(field)
        if not path:
            return None, origin
        try:
            return self.path(path).read_bytes(), origin
        except OSError as error:
            raise ConfigError(
                f"{origin}: {self.path(path)} cannot be read ({error.strerror}). Correct the path."
            ) from error


class Selection(msgspec.Struct, frozen=True):
    """A context and what it refers to."""

    context: KubeconfigEntry[KubeconfigContext]
    cluster: KubeconfigEntry[Cluster]
    user: KubeconfigEntry[User]


class Kubeconfig:
    """All files of a list, merged."""

    def __init__(self, files: Iterable[Path]) -> None:
        """Read the files, most important first, skipping those that do not exist; ConfigError for a malformed one."""
        self.files: list[Path] = []
        self._clusters: dict[str, KubeconfigEntry[Cluster]] = {}
        self._users: dict[str, KubeconfigEntry[User]] = {}
        self._contexts: dict[str, KubeconfigEntry[KubeconfigContext]] = {}
        self._current: tuple[str, Path] | None = None
        for path in files:
            file = path.absolute()
            content = read_file(file)
            if content is not None:
                self.files.append(file)
                self._add(file, content)

    def __bool__(self) -> bool:
        return bool(self._clusters or self._users or self._contexts or self._current)

    @property
    def source(self) -> str:
        """The files, for messages."""
        return ", ".join(map(str, self.files))

    def select(self, context: str | None) -> Selection:
        """The named context, or the current one, with its cluster and user; ConfigError where one is missing."""
        chosen = self._context(context)
        cluster, user = chosen.value.cluster, chosen.value.user
        if not cluster:
            raise chosen.error("cluster", "is not set. Name one of the clusters.")
        if cluster not in self._clusters:
            raise chosen.error("cluster", f"there is no cluster {cluster!r}. {_known('cluster', self._clusters)}")
        if not user:
            raise chosen.error("user", "is not set. Name one of the users.")
        if user not in self._users:
            raise chosen.error("user", f"there is no user {user!r}. {_known('user', self._users)}")
        return Selection(chosen, self._clusters[cluster], self._users[user])

    def _context(self, name: str | None) -> KubeconfigEntry[KubeconfigContext]:
        if name:
            if name not in self._contexts:
                raise ConfigError(
                    f"{self.source}: contexts: there is none named {name!r}. {_known('context', self._contexts)}"
                )
            return self._contexts[name]
        if self._current is None:
            raise ConfigError(f"{self.source}: current-context: is not set. {_known('context', self._contexts)}")
        name, file = self._current
        if name not in self._contexts:
            raise ConfigError(
                f"{file}: current-context: there is no context {name!r}. {_known('context', self._contexts)}"
            )
        return self._contexts[name]

    def _add(self, file: Path, content: KubeconfigFile) -> None:
        _merge(
            self._clusters,
            [KubeconfigEntry("cluster", c.name, c.cluster or Cluster(), file) for c in content.clusters or ()],
        )
        _merge(self._users, [KubeconfigEntry("user", u.name, u.user or User(), file) for u in content.users or ()])
        _merge(
            self._contexts,
            [
                KubeconfigEntry("context", c.name, c.context or KubeconfigContext(), file)
                for c in content.contexts or ()
            ],
        )
        if self._current is None and content.current_context:
            self._current = (content.current_context, file)


def _merge(into: dict[str, KubeconfigEntry[Value]], entries: list[KubeconfigEntry[Value]]) -> None:
    seen: set[str] = set()
    for entry in entries:
        if entry.name in seen:
            raise ConfigError(f"{entry.file}: {entry.kind}s: two are named {entry.name!r}. Remove or rename one.")
        seen.add(entry.name)
        into.setdefault(entry.name, entry)


def _known(kind: str, names: Iterable[str]) -> str:
    known = ", ".join(sorted(names))
    return f"Choose one of: {known}." if known else f"No {kind} is defined at all."
