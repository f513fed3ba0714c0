"""One kubeconfig file: the shape it must have, and how a mistake in it is said.

The shapes are those of kubectl's `v1.Config`, as far as a client needs them.
"""

import re
from pathlib import Path
from typing import Any

import msgspec

from pilotage.kube.errors import ConfigError


class Shape(msgspec.Struct, rename="kebab"):
    """Part of a kubeconfig. Unknown fields are ignored, null is the same as absent, and a repr shows no value."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"


class Extension(Shape):
    """An entry of `extensions`: anything, under a name."""

    name: str
    extension: Any = None


class Cluster(Shape):
    """A cluster of a kubeconfig: the address of the API server, and its TLS."""

    server: str | None = None
    tls_server_name: str | None = None
    insecure_skip_tls_verify: bool | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    proxy_url: str | None = None
    disable_compression: bool | None = None
    extensions: list[Extension] | None = None


class ExecVariable(Shape):
    """An entry of `exec.env`."""

    name: str
    value: str | None = None


class Exec(Shape, rename="camel"):
    """A program that hands out credentials."""

    command: str | None = None
    api_version: str | None = None
    args: list[str] | None = None
    env: list[ExecVariable] | None = None
    install_hint: str | None = None
    provide_cluster_info: bool | None = None
    interactive_mode: str | None = None


class User(Shape):
    """A user of a kubeconfig: the credentials."""

    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    username: str | None = None
    password: str | None = None
    as_: str | None = msgspec.field(default=None, name="as")
    as_uid: str | None = None
    as_groups: list[str] | None = None
    as_user_extra: dict[str, list[str]] | None = None
    auth_provider: Any = None
    exec: Exec | None = None


class KubeconfigContext(Shape):
    """A cluster, a user on it, and the namespace meant when none is given."""

    cluster: str | None = None
    user: str | None = None
    namespace: str | None = None


class NamedCluster(Shape):
    """An entry of `clusters`."""

    name: str
    cluster: Cluster | None = None


class NamedUser(Shape):
    """An entry of `users`."""

    name: str
    user: User | None = None


class NamedContext(Shape):
    """An entry of `contexts`."""

    name: str
    context: KubeconfigContext | None = None


class KubeconfigFile(Shape):
    """A whole file."""

    clusters: list[NamedCluster] | None = None
    users: list[NamedUser] | None = None
    contexts: list[NamedContext] | None = None
    current_context: str | None = None


def read_file(file: Path) -> KubeconfigFile | None:
    """The content of the file, or None if it does not exist; ConfigError if it cannot be read or is malformed."""
    try:
        text = file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror}). Correct the path or its permissions.") from error
    content = _parse(file, text)
    try:
        return msgspec.convert({} if content is None else content, KubeconfigFile)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{file}: {_explain(str(error), content)}") from None


def _parse(file: Path, text: bytes) -> object:
    if text.startswith(b"{") and (content := _parse_json(text)) is not None:
        return content
    import yaml  # not before: not every program reads a kubeconfig

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return yaml.load(text, loader)  # noqa: S506 - a safe loader it is
    except (yaml.YAMLError, ValueError) as error:  # a ValueError: a number or date that is none
        # Its own text quotes what stands around the mistake, and that may be a secret: `token: *abc` is a bad alias.
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "the whole file"
        problem = re.sub(r"'(?!<)[^']{2,}'", "'…'", getattr(error, "problem", None) or "unreadable characters")
        raise ConfigError(f"{file}: {place}: not YAML ({problem}). Correct it there.") from None


def _parse_json(text: bytes) -> dict[str, Any] | None:
    """JSON is YAML. None: it is none."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except ValueError:
        return None


_THEIR_WORDS_AND_OURS = {"str": "string", "object": "mapping", "array": "list"}


def _explain(message: str, content: object) -> str:
    """msgspec's message in a kubeconfig's terms: `users[admin].user.token: expected string, got int. …`."""
    problem, _, where = message.partition(" - at `$")
    place = _named_path(where.rstrip("`").lstrip("."), content) or "the whole file"
    if missing := re.match(r"Object missing required field `(.+)`", problem):
        return f"{place}: has no {missing[1]}. Add it."
    problem = re.sub(r"\w+", lambda word: _THEIR_WORDS_AND_OURS.get(word[0], word[0]), problem)
    problem = problem.replace("`", "").replace(" | null", "").replace("Expected", "expected")
    quotes = re.match(r"expected string, got (int|float|bool|date|datetime)\b", problem)
    return f"{place}: {problem}. {'Put it in quotes' if quotes else 'Correct it'}."


def _named_path(path: str, content: object) -> str:
    """`users[0].user.token` with the entry's name in place of its index, where it has one."""
    match = re.match(r"(clusters|users|contexts)\[(\d+)\]", path)
    if match is None:
        return path
    entry = content[match[1]][int(match[2])] if isinstance(content, dict) else None
    name = entry.get("name") if isinstance(entry, dict) else None
    return f"{match[1]}[{name}]{path[match.end() :]}" if isinstance(name, str) else path
