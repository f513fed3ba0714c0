"""oci://: a file of an artifact in a container registry, such as ORAS, Docker and ModelPack push models.

Three requests over the fetcher of `web`, with its rules for addresses and redirects: a token, where the registry asks
for one (WWW-Authenticate), the manifest, and the layer that has the file. A manifest that was named by its digest is
compared with it, and the layer always is: its digest is the validator to resume by, and the checksum of the file. The
kept library, oras, blocks, does not resume, and compares nothing with a digest.
"""

import contextlib
import hashlib
import re
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, NamedTuple
from urllib.parse import urlencode, urlsplit

import msgspec

from pilotage.models.problems import PermanentError, Problem, Reason, TransientError
from pilotage.models.source import ImageSource
from pilotage.models.sources import Opened, Wanted
from pilotage.models.sources.web import Challenged, NoTls, WebFile, authorization, open_url

MANIFEST_BYTES_MAX = 4 << 20
"""The limit that registries have themselves."""
TOKEN_BYTES_MAX = 64 << 10
SHOWN_MAX = 5

_ACCEPT = ", ".join(
    f"application/vnd.{kind}+json"
    for kind in (
        "oci.image.manifest.v1",
        "oci.image.index.v1",
        "docker.distribution.manifest.v2",
        "docker.distribution.manifest.list.v2",
    )
)
_HOSTS = {"docker.io": "registry-1.docker.io"}
"""Registries whose API is on another host than their name says."""
_TITLES = ("org.opencontainers.image.title", "org.cncf.model.filepath")
_WEIGHTS = re.compile(r"gguf|safetensors|vnd\.ollama\.image\.model|vnd\.cncf\.model\.weight", re.IGNORECASE)
"""Names and media types of weights."""
_PACKED = re.compile(r"[.+](gzip|zstd)$|vnd\.cncf\.model\..*\.tar$")
_UNPACK = "io.deis.oras.content.unpack"
"""Annotation by which oras marks a folder that it has packed."""
_PARAMETER = re.compile(r'([A-Za-z_]{1,20})="([^"\\]{0,2000})"')
_TOKEN = re.compile(r"[\x21-\x7e]{1,32768}")

_Digest = Annotated[str, msgspec.Meta(pattern=r"^sha256:[0-9a-f]{64}\Z")]


class Descriptor(msgspec.Struct, frozen=True, rename="camel"):
    """A content of a registry: a layer, or a manifest of an index."""

    digest: _Digest
    size: Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
    media_type: str = ""
    annotations: dict[str, str] | None = None

    @property
    def title(self) -> str:
        """The name of its file, if it says one."""
        return next((self.annotations[each] for each in _TITLES if self.annotations and each in self.annotations), "")

    @property
    def is_packed(self) -> bool:
        """Whether it is an archive. oras calls a plain file a tar, too: with a title and without a mark it is none."""
        if self.annotations and self.annotations.get(_UNPACK) == "true":
            return True
        return bool(_PACKED.search(self.media_type)) or (self.media_type.endswith(".tar") and not self.title)


class ImageManifest(msgspec.Struct, frozen=True):
    """The layers of an artifact, or the manifests of an index."""

    layers: list[Descriptor] | None = None
    manifests: list[Descriptor] | None = None


class _Answer(msgspec.Struct):
    token: str = ""
    access_token: str = ""


class Challenge(NamedTuple):
    """Demand of a registry for authentication; `realm` is where its tokens come from."""

    scheme: str
    realm: str = ""
    service: str = ""
    scope: str = ""


@contextlib.asynccontextmanager
async def open_source(source: ImageSource, wanted: Wanted) -> AsyncIterator[Opened]:
    """Open the file of an artifact."""
    registry = _Registry(source, wanted)
    layer = choose_layer(await registry.manifest(), source)
    async with registry.blob(layer) as opened:
        yield opened._replace(size=layer.size, sha256=layer.digest.removeprefix("sha256:"))


class _Registry:
    """One conversation with a registry about one source."""

    def __init__(self, source: ImageSource, wanted: Wanted) -> None:
        self._source = source
        self._shown = str(source)
        self._wanted = wanted
        self._root = self._at("https")
        given = authorization(self._root, self._shown, wanted.credentials)
        self._authorization = given if given.startswith("Bearer ") else ""

    def _at(self, scheme: str) -> str:
        return f"{scheme}://{_HOSTS.get(self._source.registry, self._source.registry)}/v2/{self._source.repository}"

    async def manifest(self) -> ImageManifest:
        """The manifest of the source; of an index, that of its only entry."""
        found = await self._manifest(self._source.reference)
        if found.manifests:
            if len(found.manifests) > 1:
                what = f"{self._shown} is an index of {len(found.manifests)} artifacts"
                to_do = "Name one of them by its digest, as in oci://HOST/REPOSITORY@sha256:DIGEST"
                raise PermanentError(Reason.NOT_SUPPORTED, what, to_do)
            found = await self._manifest(found.manifests[0].digest)
        return found

    async def _manifest(self, reference: str) -> ImageManifest:
        try:
            raw = await self._asked(f"/manifests/{reference}")
        except TransientError as problem:
            if not self._speaks_plain_http(problem):
                raise
            self._root = self._at("http")
            raw = await self._asked(f"/manifests/{reference}")
        if ":" in reference and f"sha256:{hashlib.sha256(raw).hexdigest()}" != reference:
            what = f"the registry of {self._shown} answered with another manifest than that of its digest"
            raise PermanentError(Reason.CHECKSUM, what, "Push it again, or change spec.source")
        return manifest_untrusted(raw, self._shown)

    def _speaks_plain_http(self, problem: Problem) -> bool:
        """Whether to go on with http: no TLS on a port of its own, and the administrator allows it.

        Not where a password would be sent to another machine: whoever is on the way can make TLS fail.
        """
        where = urlsplit(self._root)
        if not isinstance(problem, NoTls) or not self._wanted.access.plain_http or where.port is None:
            return False
        is_local = where.hostname == "localhost" or (where.hostname or "").startswith("127.")
        return is_local or not authorization(self._root, self._shown, self._wanted.credentials)

    async def _asked(self, path: str) -> bytes:
        """A small answer, authenticated if the registry asks for it."""
        try:
            return await self._read(self._root + path, self._authorization, MANIFEST_BYTES_MAX)
        except Challenged as refused:
            if self._authorization or not refused.challenge:
                raise
            self._authorization = await self._authenticate(refused)
        return await self._read(self._root + path, self._authorization, MANIFEST_BYTES_MAX)

    async def _authenticate(self, refused: Challenged) -> str:
        """The Authorization header that answers a challenge."""
        challenge = challenge_untrusted(refused.challenge)
        given = authorization(self._root, self._shown, self._wanted.credentials)
        if challenge.scheme == "basic" and given:
            return given
        if challenge.scheme != "bearer" or not challenge.realm:
            raise refused
        scope = challenge.scope or f"repository:{self._source.repository}:pull"
        query = urlencode({"service": challenge.service, "scope": scope})
        url = f"{challenge.realm}{'&' if '?' in challenge.realm else '?'}{query}"
        # Where tokens come from is the registry's choice, who gets the password that of the Secret's owner.
        login = authorization(url, self._shown, self._wanted.credentials)
        raw = await self._read(url, login, TOKEN_BYTES_MAX)
        token = token_untrusted(raw)
        if not token:
            raise refused
        return f"Bearer {token}"

    async def _read(self, url: str, login: str, most: int) -> bytes:
        whole = bytearray()
        file = WebFile(url, self._shown, login, _TO_DO, accept=_ACCEPT)
        async with open_url(file, self._wanted._replace(start=0)) as opened:
            async for chunk in opened.chunks:
                whole += chunk
                if len(whole) > most:
                    what = f"the registry of {self._shown} answered with more than {most} bytes"
                    raise PermanentError(Reason.REFUSED, what, "Change spec.source")
        return bytes(whole)

    def blob(self, layer: Descriptor) -> contextlib.AbstractAsyncContextManager[Opened]:
        """Open a layer."""
        url = f"{self._root}/blobs/{layer.digest}"
        return open_url(
            WebFile(url, self._shown, self._authorization, _TO_DO, digest=layer.digest),
            self._wanted._replace(size=layer.size),
        )


_TO_DO = (
    "Check its name, and name a Secret with `username` and `password` (or `token`) that may pull it in spec.secretRef"
)


def manifest_untrusted(raw: bytes, shown: str) -> ImageManifest:
    """A manifest; `PermanentError` where it is none."""
    try:
        return msgspec.json.decode(raw, type=ImageManifest)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        what = f"the registry of {shown} answered with something that is no manifest"
        raise PermanentError(Reason.REFUSED, what, "Change spec.source") from None


def challenge_untrusted(header: str) -> Challenge:
    """A WWW-Authenticate header; without a realm that is a URL, it has none."""
    scheme, _, rest = header[:8192].strip().partition(" ")
    said = {name.lower(): value for name, value in _PARAMETER.findall(rest)}
    realm = said.get("realm", "")
    try:
        url = urlsplit(realm)
        if not url.hostname or url.port == 0 or url.username is not None:
            realm = ""
    except ValueError:
        realm = ""
    return Challenge(scheme.lower(), realm, said.get("service", ""), said.get("scope", ""))


def token_untrusted(raw: bytes) -> str:
    """The token in an answer of a registry's token service; "" where there is none that fits into a header."""
    try:
        answer = msgspec.json.decode(raw, type=_Answer)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return ""
    token = answer.token or answer.access_token
    return token if _TOKEN.fullmatch(token) else ""


def choose_layer(manifest: ImageManifest, source: ImageSource) -> Descriptor:
    """The layer with the file that is meant; `PermanentError` where that is not clear, or an archive."""
    layers = manifest.layers or []
    found = _meant(layers, source.file)
    if len(found) != 1:
        names = sorted({_printable(layer.title) for layer in layers if layer.title})
        there = f"it has {', '.join(names[:SHOWN_MAX])}" + (" and more" if len(names) > SHOWN_MAX else "")
        there = there if names else f"none of its {len(layers)} layers has a name"
        if source.file:
            what = f"{source} does not exist: {there}"
            raise PermanentError(Reason.NOT_FOUND, what, "Change what follows the # in spec.source")
        what = f"{source} does not say which file is meant: {there}"
        raise PermanentError(Reason.INVALID_SOURCE, what, "Name one in spec.source, after a #")
    (layer,) = found
    if layer.is_packed:
        what = f"the file of {source} is packed ({_printable(layer.media_type)})"
        to_do = "Push the weights as they are (oras push HOST/REPOSITORY:TAG FILE), or change spec.source"
        raise PermanentError(Reason.NOT_SUPPORTED, what, to_do)
    return layer


def _meant(layers: Sequence[Descriptor], file: str) -> list[Descriptor]:
    if file:
        return [layer for layer in layers if layer.title == file]
    weights = [layer for layer in layers if _WEIGHTS.search(f"{layer.title} {layer.media_type}")]
    return weights if len(layers) > 1 else [*layers]


def _printable(text: str) -> str:
    return "".join(filter(str.isprintable, text))[:100]
