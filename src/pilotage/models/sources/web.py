"""https://: a file on a web server, over aiohttp, which is imported here and nowhere else in this package.

Three things are not left to it. Redirects are followed one by one: each goes through the same rules, and what
identifies us is left out as soon as the host changes. The address of each connection is judged when its socket is
made, which is after names were resolved: a name that resolves differently the second time gains nothing. And a resumed
answer is believed only where its headers say that it continues exactly what is there: not every server that knows
ranges heeds If-Range.
"""

import base64
import contextlib
import datetime as dt
import email.utils
import re
import socket
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

import aiohttp
from yarl import URL

from pilotage import __version__
from pilotage.models.access import Access, SourceCredentials
from pilotage.models.problems import PermanentError, Problem, Reason, TransientError
from pilotage.models.source import HttpSource
from pilotage.models.sources import Opened, Wanted
from pilotage.runtime.clock import utc_now

CONNECT_SECONDS_MAX = 15.0
IDLE_SECONDS_MAX = 60.0
"""Time without a byte after which a connection is given up. There is no limit on the whole: weights are large."""
REDIRECTS_MAX = 10
CHUNK_BYTES = 1 << 18
DATE_SECONDS_MIN = 60.0
"""A time of last change is precise to the second: only one that is older than this when it is read tells two apart."""

_PORTS = {"https": 443, "http": 80}
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-[0-9]{1,18}/([0-9]{1,18}|\*)")


class WebFile(NamedTuple):
    """A file on a web server, and how to ask for it."""

    url: str
    shown: str
    """Its name in messages."""
    authorization: str = ""
    """The Authorization header, for the host of the URL alone."""
    unauthorized: str = ""
    """Advice for a 401 or 403, where it is not just a matter of the right Secret."""
    accept: str = ""
    digest: str = ""
    """The name of a content that is addressed by it, and never changes: its validator, whatever the server says."""


class Challenged(PermanentError):
    """A 401 of the host that was asked; `challenge` is its WWW-Authenticate header."""

    def __init__(self, what: str, to_do: str, challenge: str) -> None:
        super().__init__(Reason.UNAUTHORIZED, what, to_do)
        self.challenge = challenge


class NoTls(TransientError):
    """A TLS handshake that failed for another reason than a certificate: the server may not speak TLS at all."""


@contextlib.asynccontextmanager
async def open_source(source: HttpSource, wanted: Wanted) -> AsyncIterator[Opened]:
    """Open a web source."""
    shown = str(source)
    file = WebFile(source.url, shown, authorization(source.url, shown, wanted.credentials))
    async with open_url(file, wanted) as opened:
        yield opened


def authorization(url: str, shown: str, given: SourceCredentials) -> str:
    """The Authorization header for a host: a token, or a user with a password.

    The host is chosen by whoever writes the Model, who may not be allowed to read Secrets. So the Secret itself has to
    name the hosts that it may be sent to.
    """
    if token := given.get("token"):
        header = f"Bearer {token}"
    elif user := given.get("username"):
        pair = f"{user}:{given.get('password')}"
        header = f"Basic {base64.b64encode(pair.encode()).decode()}"
    else:
        return ""
    host = _host(url)
    if host in re.split(r"[\s,]+", given.get("hosts").lower()):
        return header
    raise PermanentError(
        Reason.SECRET_UNUSABLE,
        f"the Secret for {shown} does not say that it may be sent to {host}",
        f"Let the owner of the Secret add the entry `hosts` with {host} to it, or change spec.source",
    )


def _host(url: str) -> str:
    """Host of a URL as a Secret names it: with the port unless it is the scheme's default."""
    scheme, host, port = _origin(url)
    shown = f"[{host}]" if host and ":" in host else host or ""
    return shown if port == _PORTS.get(scheme) else f"{shown}:{port}"


@contextlib.asynccontextmanager
async def open_url(file: WebFile, wanted: Wanted) -> AsyncIterator[Opened]:
    """Open a file on a web server."""
    gate = _Gate(wanted.access)
    connector = aiohttp.TCPConnector(socket_factory=gate.socket, limit=1, force_close=True, use_dns_cache=False)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS_MAX, sock_read=IDLE_SECONDS_MAX)
    session = aiohttp.ClientSession(
        connector=connector,
        timeout=timeout,
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        middlewares=(_once,),
        headers={"Accept-Encoding": "identity", "User-Agent": f"pilotage/{__version__}"},
    )
    async with session:
        trip = _Trip(session, gate, file)
        response, opened = await trip.go(file.url, wanted if wanted.validator else wanted._replace(start=0))
        try:
            yield opened
        finally:
            response.close()


async def _once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Send a request once: aiohttp would send it again at once when the connection breaks, and count it as one."""
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise aiohttp.ClientError("the connection broke") from error


class _Gate:
    """Makes the sockets of one session, for addresses that may be connected to; remembers that it refused one."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self.refused = False

    def socket(self, info: tuple[Any, Any, int, str, tuple[Any, ...]]) -> socket.socket:
        family, kind, protocol, _, address = info
        if not self.access.allows(str(address[0])):
            self.refused = True
            raise PermissionError("this address may not be connected to")
        return socket.socket(family=family, type=kind, proto=protocol)


class _Trip:
    """The way from a URL to an answer that has the file, over redirects."""

    def __init__(self, session: aiohttp.ClientSession, gate: _Gate, file: WebFile) -> None:
        self._session = session
        self._gate = gate
        self._file = file
        self._shown = file.shown

    async def go(self, url: str, wanted: Wanted) -> tuple[aiohttp.ClientResponse, Opened]:
        """The answer with the file: from where it is wanted if it continues what is there, else from the beginning."""
        first = _origin(url)
        identity = self._file.authorization
        for _ in range(REDIRECTS_MAX + 1):
            self._check_scheme(url)
            response = await self._ask(url, wanted, identity)
            if response.status in _REDIRECTS:
                url = self._next(url, response)
                if _origin(url) != first:
                    identity = ""  # for good: who sends us elsewhere is not told who we are, nor is the next host
                continue
            status = response.status
            changed = status == 416 or (status == 206 and not self._continues(response.headers, wanted))
            if wanted.start and changed:
                response.close()  # it is another file by now, or may be: from the beginning
                wanted = wanted._replace(start=0)
                continue
            if status not in (200, 206):
                raise self._refusal(response, asked=_origin(url) == first)
            return response, self._opened(response, wanted)
        raise PermanentError(Reason.BAD_REDIRECT, f"{self._shown} redirects without end", "Change spec.source")

    def _opened(self, response: aiohttp.ClientResponse, wanted: Wanted) -> Opened:
        """Size and validator, from the headers of the answer."""
        encoding = response.headers.get("Content-Encoding", "identity").lower()
        if encoding != "identity":
            response.close()
            raise PermanentError(
                Reason.REFUSED,
                f"{self._shown} is sent compressed ({encoding}), though it was asked for as it is",
                "Change spec.source to a server that sends files unchanged",
            )
        start, size = 0, response.content_length
        if response.status == 206:
            part = _part(response.headers)
            if part is None or part[0] != wanted.start:
                response.close()
                what = f"{self._shown} answered with another part than the one asked for"
                raise TransientError(Reason.CHANGED, what)
            start, size = part[0], part[1] or wanted.size
        validator = self._file.digest or _validator(response.headers)
        return Opened(start, size, validator, self._chunks(response))

    def _continues(self, headers: Mapping[str, str], wanted: Wanted) -> bool:
        """Whether a partial answer is a part of the file that we have the beginning of."""
        start, size = _part(headers) or (None, None)
        same_size = size is None or wanted.size in (None, size)
        return start == wanted.start and same_size and (self._file.digest or _validator(headers)) == wanted.validator

    async def _chunks(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        try:
            async for chunk in response.content.iter_chunked(CHUNK_BYTES):
                yield chunk
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._failure(error) from error

    async def _ask(self, url: str, wanted: Wanted, identity: str) -> aiohttp.ClientResponse:
        self._gate.refused = False
        headers = {"Accept": self._file.accept} if self._file.accept else {}
        if wanted.start:
            headers["Range"] = f"bytes={wanted.start}-"
            if not self._file.digest:
                headers["If-Range"] = wanted.validator
        if identity:
            headers["Authorization"] = identity
        try:
            target = URL(url, encoded=True)
            return await self._session.get(target, headers=headers, allow_redirects=False)
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise self._failure(error, url) from error

    def _check_scheme(self, url: str) -> None:
        scheme = urlsplit(url).scheme
        if scheme == "https" or (scheme == "http" and self._gate.access.plain_http):
            return
        raise PermanentError(
            Reason.NOT_ALLOWED,
            f"{self._shown} is not read over https" if scheme == "http" else f"{self._shown} leads to no web server",
            "Use https, or let the administrator allow plain http",
        )

    def _next(self, url: str, response: aiohttp.ClientResponse) -> str:
        location = response.headers.get("Location", "")
        response.close()
        try:
            target = urlsplit(urljoin(url, location))
            if not location or not target.hostname or target.port == 0:
                raise ValueError
            host = target.netloc.rpartition("@")[2]  # what it says about who we are is not used
            return target._replace(netloc=host, fragment="").geturl()
        except ValueError:
            what = f"{self._shown} redirects to something that is no address"
            raise PermanentError(Reason.BAD_REDIRECT, what, "Change spec.source") from None

    def _refusal(self, response: aiohttp.ClientResponse, *, asked: bool) -> Problem:
        """The problem of an answer without the file; `asked`: of the host that was asked, not of another one."""
        status = response.status
        response.close()
        what = f"{self._shown} was answered with {status}"
        if status in (404, 410):
            what = f"{self._shown} does not exist: the server answered with {status}"
            return PermanentError(Reason.NOT_FOUND, what, "Put it there, or change spec.source")
        if status in (401, 403):
            to_do = "Name a Secret with the right token (entry `token`) in spec.secretRef, or change spec.source"
            to_do = self._file.unauthorized or to_do
            if status == 403:
                return PermanentError(Reason.FORBIDDEN, what, to_do)
            return Challenged(what, to_do, response.headers.get("WWW-Authenticate", "") if asked else "")
        if status == 429:
            return TransientError(Reason.THROTTLED, what, retry_after=_retry_after(response.headers))
        if status in (408, 425) or status >= 500:
            return TransientError(Reason.SERVER_ERROR, what, retry_after=_retry_after(response.headers))
        return PermanentError(Reason.REFUSED, what, "Change spec.source")

    def _failure(self, error: Exception, url: str = "") -> Problem:
        """The problem of an answer that did not come or broke off. `url`: while there was none."""
        host = urlsplit(url).hostname or ""
        if self._gate.refused and isinstance(error, aiohttp.ClientConnectorError):
            return PermanentError(
                Reason.ADDRESS_NOT_ALLOWED,
                f"{self._shown} leads to {host}, whose address is not public",
                "Change spec.source, or let the administrator allow its network",
            )
        match error:
            case TimeoutError():
                return TransientError(Reason.TIMED_OUT, f"{self._shown} was not answered in time")
            case aiohttp.ClientConnectorDNSError() if _is_unknown(error):
                what = f"DNS has no address for {host}, the host of {self._shown}"
                to_do = f"Change spec.source, or check the network and the DNS of host {self._gate.access.host}"
                return PermanentError(Reason.HOST_UNKNOWN, what, to_do)
            case aiohttp.ClientConnectorDNSError():
                what = f"DNS did not answer for {host}, the host of {self._shown}"
                return TransientError(Reason.CONNECTION, what)
            case aiohttp.ClientConnectorCertificateError():
                what = f"the certificate of {host} is not trusted"
                to_do = "Change spec.source, or let the administrator trust its authority (SSL_CERT_FILE)"
                return PermanentError(Reason.CERTIFICATE, what, to_do)
            case aiohttp.ClientConnectorSSLError():
                return NoTls(Reason.CONNECTION, f"the TLS handshake with {host} for {self._shown} failed")
            case aiohttp.ClientPayloadError():
                return TransientError(Reason.INCOMPLETE, f"the answer to {self._shown} broke off")
            case ValueError():  # after those of TLS, which are of this type, too
                return PermanentError(Reason.INVALID_SOURCE, f"{self._shown} is no valid URL", "Change spec.source")
        return TransientError(Reason.CONNECTION, f"the connection for {self._shown} failed")


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


def _is_unknown(error: aiohttp.ClientConnectorDNSError) -> bool:
    """Whether the name does not exist, as opposed to: nobody could be asked."""
    inner: BaseException | None = error
    while inner is not None and not isinstance(inner, socket.gaierror):
        inner = inner.__cause__ or getattr(inner, "os_error", None) if inner is not error else error.os_error
    return isinstance(inner, socket.gaierror) and inner.errno in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", -5))


def _part(headers: Mapping[str, str]) -> tuple[int, int | None] | None:
    """Offset of a partial answer, and the size of the whole, if it is known; None if it does not say."""
    found = _CONTENT_RANGE.fullmatch(headers.get("Content-Range", ""))
    return found and (int(found[1]), None if found[2] == "*" else int(found[2]))


def _validator(headers: Mapping[str, str]) -> str:
    """A strong ETag, or a time of last change that is old enough to be as good."""
    tag = headers.get("ETag", "")
    if tag:
        return "" if tag.startswith("W/") else tag
    changed, now = _moment(headers.get("Last-Modified", "")), _moment(headers.get("Date", ""))
    if changed is None or now is None or (now - changed).total_seconds() < DATE_SECONDS_MIN:
        return ""
    return headers["Last-Modified"]


def _retry_after(headers: Mapping[str, str]) -> float:
    """The seconds that a server asks to wait: a number, or a date by its own clock if it says what that shows."""
    text = headers.get("Retry-After", "")
    if re.fullmatch(r"[0-9]{1,18}", text):
        return float(text)
    moment = _moment(text)
    now = _moment(headers.get("Date", "")) or utc_now()
    return max(0.0, (moment - now).total_seconds()) if moment else 0.0


def _moment(text: str) -> dt.datetime | None:
    try:
        moment = email.utils.parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
