"""`spec.source`, parsed: small values that name exactly one thing, and clear refusals.

A source never carries credentials: they would end up in the object, in logs and in Events. They come from a Secret. No
I/O here; whether a source may be used is the business of `access` and of the file of its scheme in `sources`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TypeAlias
from urllib.parse import SplitResult, unquote, urlsplit

from pilotage.models.problems import PermanentError, Reason

_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
_ACCOUNT = re.compile(r"[a-z0-9]{3,24}")
_HUB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,199}")
_REGISTRY = re.compile(r"([a-z0-9.-]{1,253}|\[[0-9a-f:.]{2,45}\])(:[0-9]{1,5})?")
_REPOSITORY = re.compile(r"(?=.{1,255}\Z)[a-z0-9]+(?:(?:\.|_|__|-+|/)[a-z0-9]+)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_CLAIM = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class FileSource:
    """A file on the machine that fetches."""

    path: PurePosixPath

    def __str__(self) -> str:
        return f"file://{self.path}"


@dataclass(frozen=True, slots=True)
class HttpSource:
    """A file on a web server. Its text leaves the query out, which may hold a signature."""

    url: str

    def __str__(self) -> str:
        return self.url.partition("?")[0]


@dataclass(frozen=True, slots=True)
class HubSource:
    """A file of a repository on the Hugging Face Hub, or, without a path, the whole of it."""

    repository: str
    revision: str
    path: str

    def __str__(self) -> str:
        revision = "" if self.revision == "main" else f"@{self.revision}"
        return f"hf://{self.repository}{revision}" + (f"/{self.path}" if self.path else "")


@dataclass(frozen=True, slots=True)
class BucketSource:
    """An object in S3, Google Cloud Storage or Azure. `account` is Azure's; `bucket` is a container there."""

    scheme: str
    bucket: str
    key: str
    account: str = ""

    def __str__(self) -> str:
        return f"{self.scheme}://" + "/".join(part for part in (self.account, self.bucket, self.key) if part)


@dataclass(frozen=True, slots=True)
class ImageSource:
    """A file of an artifact in a container registry."""

    registry: str
    """Host, with the port where it is not that of https."""
    repository: str
    reference: str
    """Tag, or digest (sha256:…)."""
    file: str = ""
    """Name of one of its files; empty: the only one, or the one with weights."""

    def __str__(self) -> str:
        mark = "@" if ":" in self.reference else ":"
        return f"oci://{self.registry}/{self.repository}{mark}{self.reference}" + (f"#{self.file}" if self.file else "")


@dataclass(frozen=True, slots=True)
class ClaimSource:
    """A path on a PersistentVolumeClaim of the Model's namespace: it is there already, or the pod will say."""

    claim: str
    path: PurePosixPath

    def __str__(self) -> str:
        return f"pvc://{self.claim}/{self.path}"


Source: TypeAlias = FileSource | HttpSource | HubSource | BucketSource | ImageSource | ClaimSource


def parse_source(text: str) -> Source:
    """Parse a source. The `PermanentError` (InvalidSource) for a bad one repeats no secret in it."""
    scheme, mark, _ = text.partition("://")
    if not mark or scheme not in _PARSERS:
        raise _bad(f"it begins with none of {', '.join(f'{each}://' for each in _PARSERS)}")
    if not text.isprintable() or " " in text:
        raise _bad("it has white space or control characters in it; write a blank as %20")
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        raise _bad("it is no valid URL") from None
    if url.username is not None or url.password is not None:
        raise _bad(
            "it has credentials in it, which everybody can read; put them into a Secret and name it in secretRef"
        )
    if scheme not in ("http", "https", "oci") and (port is not None or url.query or url.fragment):
        raise _bad(f"{scheme}:// takes no port, query or fragment; write ? and # as %3F and %23")
    return _PARSERS[scheme](url)


def file_name(source: Source) -> str:
    """Name for the fetched file of a source: its last path element, with harmless characters only."""
    match source:
        case FileSource(path) | ClaimSource(_, path):
            last = path.name
        case HttpSource(url):
            last = unquote(urlsplit(url).path).rpartition("/")[2]
        case HubSource(_, _, path):
            last = path.rpartition("/")[2]
        case BucketSource():
            last = source.key.rpartition("/")[2]
        case ImageSource():
            last = (source.file or source.repository).rpartition("/")[2]
    return re.sub(r"[^A-Za-z0-9._-]", "_", last).lstrip(".")[-120:] or "model"


def is_read_by_pods(source: Source) -> bool:
    """Whether only a pod can read it: a claim, or a whole repository, which the server program loads by itself."""
    return isinstance(source, ClaimSource) or (isinstance(source, HubSource) and not source.path)


def _bad(why: str) -> PermanentError:
    return PermanentError(Reason.INVALID_SOURCE, f"spec.source cannot be used: {why}", "Change spec.source")


def _file(url: SplitResult) -> FileSource:
    if url.netloc not in ("", "localhost"):
        raise _bad("a file:// source has three slashes, as in file:///models/a.gguf; a host cannot be named")
    return FileSource(_path(unquote(url.path), "file:///models/a.gguf"))


def _http(url: SplitResult) -> HttpSource:
    if not url.hostname:
        raise _bad("it names no host")
    if not url.path.strip("/"):
        raise _bad("it names a host and no file on it")
    return HttpSource(url._replace(fragment="").geturl())


def _hub(url: SplitResult) -> HubSource:
    owner = url.netloc
    name, _, path = url.path.removeprefix("/").partition("/")
    name, at, revision = name.partition("@")
    if not _HUB_NAME.fullmatch(owner) or not _HUB_NAME.fullmatch(name):
        raise _bad("a Hugging Face source looks like hf://OWNER/REPOSITORY/FILE or hf://OWNER/REPOSITORY@REVISION/FILE")
    revision = unquote(revision)  # a branch with a slash is written with %2F
    if at and not _REVISION.fullmatch(revision):
        raise _bad("what follows the @ is no revision")
    path = unquote(path)
    if path:
        _check_parts(path, "hf://OWNER/REPOSITORY/FILE")
    return HubSource(f"{owner}/{name}", revision or "main", path)


def _bucket(url: SplitResult) -> BucketSource:
    return _in_bucket(url.scheme, url.netloc, unquote(url.path.removeprefix("/")), f"{url.scheme}://BUCKET/FILE")


def _azure(url: SplitResult) -> BucketSource:
    example = "az://ACCOUNT/CONTAINER/FILE"
    if not _ACCOUNT.fullmatch(url.netloc):
        raise _bad(f"an Azure source looks like {example}")
    container, _, key = unquote(url.path.removeprefix("/")).partition("/")
    return _in_bucket(url.scheme, container, key, example, account=url.netloc)


def _in_bucket(scheme: str, bucket: str, key: str, example: str, account: str = "") -> BucketSource:
    if not _BUCKET.fullmatch(bucket) or not key:
        raise _bad(f"such a source looks like {example}")
    _check_parts(key, example)
    return BucketSource(scheme, bucket, key, account)


def _image(url: SplitResult) -> ImageSource:
    example = "oci://HOST/REPOSITORY:TAG, …@sha256:DIGEST or …:TAG#FILE"
    named, _, digest = url.path.removeprefix("/").partition("@")
    repository, _, tag = named.partition(":")
    reference = digest or tag or "latest"
    if not _REGISTRY.fullmatch(url.netloc) or not _REPOSITORY.fullmatch(repository) or url.query:
        raise _bad(f"a source in a registry looks like {example}")
    if not (_DIGEST if digest else _TAG).fullmatch(reference):
        raise _bad(f"what follows its repository is no tag and no digest; it looks like {example}")
    file = unquote(url.fragment)
    if file:
        _check_parts(file, example)
    return ImageSource(url.netloc, repository, reference, file)


def _claim(url: SplitResult) -> ClaimSource:
    if not _CLAIM.fullmatch(url.netloc):
        raise _bad("a claim's source looks like pvc://CLAIM/PATH")
    return ClaimSource(url.netloc, _path(unquote(url.path), "pvc://CLAIM/PATH").relative_to("/"))


def _path(text: str, example: str) -> PurePosixPath:
    _check_parts(text.removeprefix("/"), example)
    return PurePosixPath("/", text.lstrip("/"))


def _check_parts(path: str, example: str) -> None:
    """A path with a name at its end, with no way up in it, and with nothing in it that cannot be shown."""
    parts = path.split("/")
    if not parts[-1] or any(part in ("", ".", "..") for part in parts):
        raise _bad(f"its path has to name a file, without empty parts, . or .., as in {example}")
    if not path.isprintable():
        raise _bad(f"its path has control characters in it; name a file as in {example}")


_PARSERS: dict[str, Callable[[SplitResult], Source]] = {
    "file": _file,
    "https": _http,
    "http": _http,
    "hf": _hub,
    "s3": _bucket,
    "gs": _bucket,
    "az": _azure,
    "oci": _image,
    "pvc": _claim,
}
