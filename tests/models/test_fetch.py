"""Fetching over http: what breaks off is continued, what is wrong is said, and the target is whole or not there."""

import asyncio
import dataclasses
import datetime
import email.utils
import errno
import hashlib
import ipaddress
import shutil
import socket
import ssl

import pytest
from aiohttp import abc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pilotage.models import (
    Access,
    HubSource,
    PermanentError,
    Problem,
    Reason,
    SourceCredentials,
    TransientError,
    fetch,
    parse_source,
)
from pilotage.models.attempts import pause_after
from pilotage.models.fetch import Terms, Unfit
from pilotage.models.limits import Limits
from pilotage.models.partial import Partial
from tests.models.web import Chunked, Claims, Cuts, HangsUp, Says, Silent, Stalls, Unsized, open_access, web
from tests.models.weights import gguf, safetensors

CONTENT = bytes(index * 31 % 253 for index in range(3_000_000))
SUM = hashlib.sha256(CONTENT).hexdigest()


async def bring(site, target, *, path="/a", access=None, **options):
    return await fetch(parse_source(site.url(path)), target, access or open_access(), **options)


async def test_a_file_comes_whole_with_its_sum_and_nothing_else_is_left(tmp_path):
    seen = []
    async with web(a=CONTENT) as site:
        fetched = await bring(
            site, tmp_path / "new" / "a", terms=Terms(SUM), progress=lambda done, total: seen.append((done, total))
        )
    assert (fetched.size, fetched.sha256, fetched.validator) == (len(CONTENT), SUM, '"3000000-1"')
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a"]
    assert (tmp_path / "new" / "a").read_bytes() == CONTENT
    assert seen[0] == (0, len(CONTENT))
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert sorted(seen) == seen


@pytest.mark.parametrize("reset", [False, True])
async def test_what_breaks_off_is_continued_where_it_was(tmp_path, reset):
    async with web(a=CONTENT) as site:
        site.plans = [Cuts(1_700_000, reset)]
        with pytest.raises(TransientError) as broke:
            await bring(site, tmp_path / "a")
        assert broke.value.reason in (Reason.INCOMPLETE, Reason.CONNECTION)
        assert not (tmp_path / "a").exists()
        fetched = await bring(site, tmp_path / "a", terms=Terms(SUM))
    first, second = site.asked
    assert "range" not in first.headers
    if not reset:  # which may swallow everything
        assert second.headers["if-range"] == '"3000000-1"'
        assert int(second.headers["range"].removeprefix("bytes=").rstrip("-")) > 1_000_000
    assert fetched.sha256 == SUM  # of all of it, not of the last part
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


async def test_what_has_changed_meanwhile_is_fetched_from_its_beginning(tmp_path):
    async with web(a=CONTENT) as site:
        site.plans = [Cuts(2_000_000)]
        with pytest.raises(TransientError):
            await bring(site, tmp_path / "a")
        other = CONTENT[::-1]
        site.files["/a"], site.etags["/a"] = other, '"another"'
        await bring(site, tmp_path / "a")
    assert site.asked[1].headers["range"].startswith("bytes=")
    assert (tmp_path / "a").read_bytes() == other


OLD, NEW = "Tue, 15 Nov 2022 12:45:26 GMT", "Wed, 16 Nov 2022 12:45:26 GMT"


def _another_etag(site):
    site.etags["/a"] = '"another"'


def _another_time(site):
    site.changed = NEW


def _another_length(site):
    site.files["/a"] = CONTENT[::-1] + b"more"


def _no_etag(site):
    site.forgets_in_parts = ("ETag", "Last-Modified")


@pytest.mark.parametrize("change", [_another_etag, _another_time, _another_length, _no_etag])
async def test_a_server_that_ignores_if_range_does_not_mix_two_files(tmp_path, change):
    """It sends the rest of another file as if it were the same; only its headers give it away."""
    async with web(a=CONTENT) as site:
        site.date = "Thu, 17 Nov 2022 12:45:26 GMT"
        if change is _another_time:
            site.etags, site.changed = {}, OLD
        site.plans = [Cuts(2_000_000)]
        with pytest.raises(TransientError):
            await bring(site, tmp_path / "a")
        site.heeds_if_range = False
        site.files["/a"] = CONTENT[::-1]
        change(site)
        await bring(site, tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == site.files["/a"]
    assert ["range" in asked.headers for asked in site.asked] == [False, True, False]


async def test_a_server_that_ignores_if_range_and_has_the_same_file_is_continued(tmp_path):
    async with web(a=CONTENT) as site:
        site.plans = [Cuts(2_000_000)]
        with pytest.raises(TransientError):
            await bring(site, tmp_path / "a")
        site.heeds_if_range = False
        await bring(site, tmp_path / "a", terms=Terms(SUM))
    assert ["range" in asked.headers for asked in site.asked] == [False, True]


WEIGHTS = {"GGUF": gguf(filler=50_000), "Safetensors": safetensors(1000, 60_000)}


@pytest.mark.parametrize("sha256", [False, True])
@pytest.mark.parametrize("length", [10, 300, 1500])
@pytest.mark.parametrize("kind", WEIGHTS)
async def test_an_answer_that_ends_early_without_a_length_is_not_taken_for_the_whole(tmp_path, kind, length, sha256):
    whole = gguf() if kind == "GGUF" else WEIGHTS[kind]
    terms = Terms(hashlib.sha256(whole).hexdigest() if sha256 else "", kind)
    async with web(a=whole) as site:
        site.plans = [Unsized(length)]
        with pytest.raises(TransientError, match="broke off") as refused:
            await bring(site, tmp_path / "a", terms=terms)
        assert refused.value.reason is Reason.INCOMPLETE
        assert not (tmp_path / "a").exists()
        fetched = await bring(site, tmp_path / "a", terms=terms)
    assert (tmp_path / "a").read_bytes() == whole
    assert fetched.format.kind == kind


@pytest.mark.parametrize("kind", WEIGHTS)
async def test_a_file_that_is_short_at_its_source_lasts(tmp_path, kind):
    async with web(a=WEIGHTS[kind][:1500], b=WEIGHTS[kind]) as site:
        with pytest.raises(Unfit, match="it has 1500 bytes, and its header describes at least") as refused:
            await bring(site, tmp_path / "a", terms=Terms(format=kind))
        assert (refused.value.reason, refused.value.certain) == (Reason.BAD_FORMAT, True)
        site.plans = [Unsized(), Chunked()]
        for _ in range(2):
            await bring(site, tmp_path / "b", path="/b", terms=Terms(format=kind))
    assert (tmp_path / "b").read_bytes() == WEIGHTS[kind]


@pytest.mark.parametrize("plan", [Chunked(2_000_000), Claims(4_000_000)])
async def test_an_answer_that_is_cut_short_passes(tmp_path, plan):
    async with web(a=CONTENT) as site:
        site.plans = [plan]
        with pytest.raises(TransientError) as refused:
            await bring(site, tmp_path / "a")
        assert refused.value.reason is Reason.INCOMPLETE
        await bring(site, tmp_path / "a", terms=Terms(SUM))


async def test_what_has_become_shorter_is_fetched_from_its_beginning(tmp_path):
    async with web(a=CONTENT) as site:
        site.plans = [Cuts(2_000_000)]
        with pytest.raises(TransientError):
            await bring(site, tmp_path / "a")
        site.files["/a"] = b"short"
        await bring(site, tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"short"


async def test_a_server_without_ranges_or_without_a_validator_starts_again(tmp_path):
    async with web(a=CONTENT, b=CONTENT) as site:
        site.ranges = False
        site.etags["/b"] = 'W/"weak"'
        for path in ("/a", "/b"):
            site.plans = [Cuts(2_000_000)]
            with pytest.raises(TransientError):
                await bring(site, tmp_path / "x", path=path)
            await bring(site, tmp_path / "x", path=path, terms=Terms(SUM))
    assert "range" not in site.asked[3].headers
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


async def test_a_part_of_another_source_is_not_continued(tmp_path):
    async with web(a=CONTENT, b=CONTENT[::-1]) as site:
        site.plans = [Cuts(2_000_000)]
        with pytest.raises(TransientError):
            await bring(site, tmp_path / "x")
        await bring(site, tmp_path / "x", path="/b")
    assert (tmp_path / "x").read_bytes() == CONTENT[::-1]
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


async def test_only_what_is_on_the_disk_for_sure_is_continued(tmp_path):
    """After a loss of power the bytes behind that may be anything."""
    async with web(a=CONTENT) as site:
        site.plans = [Cuts(2_500_000)]
        with pytest.raises(TransientError):
            await bring(site, tmp_path / "a")
        (partial,) = tmp_path.glob(".a.*.partial")
        length = partial.stat().st_size
        with partial.open("ab") as file:
            file.write(b"garbage that was never synced" * 50_000)
        await bring(site, tmp_path / "a", terms=Terms(SUM))
    assert (tmp_path / "a").read_bytes() == CONTENT
    assert site.asked[1].headers["range"] == f"bytes={length}-"


async def test_a_cancelled_fetch_is_continued(tmp_path):
    async with web(a=CONTENT) as site:
        site.plans = [Cuts(2_200_000)]
        half = asyncio.Event()

        def progress(done, _total):
            if done > 1_000_000:
                half.set()

        task = asyncio.create_task(bring(site, tmp_path / "a", progress=progress))
        await half.wait()
        task.cancel()
        with pytest.raises((asyncio.CancelledError, TransientError)):
            await task
        await bring(site, tmp_path / "a", terms=Terms(SUM))
    assert "range" in site.asked[1].headers


REFUSALS = {
    "404 Not Found": (PermanentError, Reason.NOT_FOUND),
    "410 Gone": (PermanentError, Reason.NOT_FOUND),
    "401 Unauthorized": (PermanentError, Reason.UNAUTHORIZED),
    "403 Forbidden": (PermanentError, Reason.FORBIDDEN),
    "400 Bad Request": (PermanentError, Reason.REFUSED),
    "204 No Content": (PermanentError, Reason.REFUSED),
    "500 Internal Server Error": (TransientError, Reason.SERVER_ERROR),
    "503 Service Unavailable": (TransientError, Reason.SERVER_ERROR),
    "408 Request Timeout": (TransientError, Reason.SERVER_ERROR),
    "429 Too Many Requests": (TransientError, Reason.THROTTLED),
    "302 Found": (PermanentError, Reason.BAD_REDIRECT),
}


@pytest.mark.parametrize("status", REFUSALS)
async def test_each_answer_is_of_its_class(tmp_path, status):
    async with web(a=CONTENT) as site:
        site.plans = [Says(status)]
        with pytest.raises(Problem) as refused:
            await bring(site, tmp_path / "a")
    kind, reason = REFUSALS[status]
    assert isinstance(refused.value, kind)
    assert refused.value.reason is reason
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "120"}, 120.0),
        ({"Retry-After": "Thu, 17 Nov 2022 12:47:26 GMT", "Date": "Thu, 17 Nov 2022 12:45:26 GMT"}, 120.0),
        ({"Retry-After": "Thu, 17 Nov 2022 12:47:26 GMT"}, 0.0),  # that is over
        ({"Retry-After": "soon"}, 0.0),
        ({"Retry-After": "-5"}, 0.0),
    ],
)
async def test_a_server_that_asks_for_patience_gets_it(tmp_path, headers, seconds):
    async with web(a=CONTENT) as site:
        site.plans = [Says("429 Too Many Requests", headers)]
        with pytest.raises(TransientError) as refused:
            await bring(site, tmp_path / "a")
    assert refused.value.retry_after == seconds


async def test_a_date_without_that_of_the_server_is_compared_with_our_clock(tmp_path):
    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=30)
    async with web(a=CONTENT) as site:
        site.plans = [Says("503 Service Unavailable", {"Retry-After": email.utils.format_datetime(later, usegmt=True)})]
        with pytest.raises(TransientError) as refused:
            await bring(site, tmp_path / "a")
    assert 1500 < refused.value.retry_after <= 1800


@pytest.mark.parametrize("asked", [3600 * 24 * 365, 3601])
def test_nobody_is_waited_for_longer_than_an_hour(asked):
    problem = TransientError(Reason.THROTTLED, "it was answered with 429", retry_after=asked)
    assert pause_after(problem, 0, 0.5).seconds == 3600


async def test_a_connection_that_breaks_is_one_request(tmp_path):
    """When to ask again is decided in one place, and shown."""
    async with web(a=CONTENT) as site:
        site.plans = [HangsUp(), HangsUp()]
        with pytest.raises(TransientError) as refused:
            await bring(site, tmp_path / "a")
    assert refused.value.reason is Reason.CONNECTION
    assert len(site.asked) == 1


async def test_nobody_there_passes(tmp_path):
    async with web() as site:
        pass
    with pytest.raises(TransientError) as refused:
        await bring(site, tmp_path / "a")
    assert refused.value.reason is Reason.CONNECTION


@pytest.mark.parametrize(
    ("code", "kind", "reason", "words"),
    [
        (socket.EAI_AGAIN, TransientError, Reason.CONNECTION, "DNS did not answer for models.example"),
        (socket.EAI_FAIL, TransientError, Reason.CONNECTION, "DNS did not answer for models.example"),
        (socket.EAI_NONAME, PermanentError, Reason.HOST_UNKNOWN, "or check the network and the DNS of host gpu-3"),
        (socket.EAI_NODATA, PermanentError, Reason.HOST_UNKNOWN, "DNS has no address for models.example"),
    ],
)
async def test_a_name_that_does_not_exist_is_told_from_a_resolver_that_does_not_answer(
    tmp_path, monkeypatch, code, kind, reason, words
):
    def fail(*_args, **_options):
        raise socket.gaierror(code, "as the resolver says it")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(Problem, match=words) as refused:
        await fetch(parse_source("https://models.example/a"), tmp_path / "a", Access(host="gpu-3"))
    assert (type(refused.value), refused.value.reason) == (kind, reason)


async def test_a_server_that_says_nothing_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr("pilotage.models.sources.web.IDLE_SECONDS_MAX", 0.05)
    async with web(a=CONTENT) as site:
        site.plans = [Silent()]
        with pytest.raises(TransientError) as refused:
            await bring(site, tmp_path / "a")
    assert refused.value.reason is Reason.TIMED_OUT


async def test_a_wrong_sum_is_said_and_nothing_is_kept(tmp_path):
    (tmp_path / "a").write_bytes(b"what was there before")
    async with web(a=CONTENT) as site:
        with pytest.raises(Unfit, match=SUM) as refused:
            await bring(site, tmp_path / "a", terms=Terms("0" * 64))
    assert refused.value.reason is Reason.CHECKSUM
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"what was there before"


async def test_an_answer_that_is_longer_or_shorter_than_it_says_is_not_taken(tmp_path):
    async with web(a=CONTENT) as site:
        site.plans = [Says("206 Partial Content", {"Content-Range": "bytes 7-9/10"}, b"abc")]
        with pytest.raises(TransientError):
            await bring(site, tmp_path / "a")
        site.plans = [Says("206 Partial Content", {"Content-Range": "bytes 7-9/3"}, b"abc")]
        with pytest.raises(TransientError, match="another part"):
            await bring(site, tmp_path / "a")
        site.plans = [Says("200 OK", {"Content-Encoding": "gzip"}, b"abc")]
        with pytest.raises(PermanentError, match="compressed"):
            await bring(site, tmp_path / "a")
    assert not (tmp_path / "a").exists()


class Disk:
    """A disk of 20 MB, of which this much is free for what is below a folder."""

    def __init__(self, folder, free):
        self.folder, self.free, self.least = folder, free, free

    def use(self, monkeypatch):
        monkeypatch.setattr("shutil.disk_usage", self.usage)
        return self

    def usage(self, _path):
        used = sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())
        self.least = min(self.least, self.free - used)
        return DiskUsage(20_000_000, 20_000_000 - self.free + used, self.free - used)


DiskUsage = type(shutil.disk_usage("/"))


async def test_a_source_that_does_not_say_how_large_it_is_leaves_a_reserve_on_the_disk(tmp_path, monkeypatch):
    disk = Disk(tmp_path, 6_000_000).use(monkeypatch)
    async with web(a=bytes(12_000_000)) as site:
        site.plans = [Unsized()]
        with pytest.raises(PermanentError, match="too little space") as refused:
            await bring(site, tmp_path / "a")
    assert refused.value.reason is Reason.NO_SPACE
    assert disk.least >= 1_000_000
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("plan", [None, Unsized()])
async def test_a_source_that_is_too_large_is_not_kept(tmp_path, plan):
    access = dataclasses.replace(open_access(), limits=Limits(bytes_max=2_000_000))
    seen = []
    async with web(a=CONTENT) as site:
        site.plans = [plan]
        with pytest.raises(PermanentError, match="more than the 2000000 bytes") as refused:
            await bring(site, tmp_path / "a", access=access, progress=lambda done, _: seen.append(done))
    assert refused.value.reason is Reason.TOO_LARGE
    assert list(tmp_path.iterdir()) == []
    assert max(seen, default=0) <= 2_000_000
    assert bool(seen) == (plan is not None)  # one that says its size is not even read


async def test_a_source_that_stops_delivering_is_given_up_and_continued_later(tmp_path):
    access = dataclasses.replace(open_access(), limits=Limits(rate_seconds=0.3))
    async with web(a=CONTENT) as site:
        site.plans = [Stalls(1_700_000)]
        with pytest.raises(TransientError, match="less than 16384 bytes per second") as refused:
            await bring(site, tmp_path / "a", access=access)
        assert (refused.value.reason, refused.value.retry_after) == (Reason.TOO_SLOW, 300.0)
        await bring(site, tmp_path / "a", access=access, terms=Terms(SUM))
    assert int(site.asked[1].headers["range"].removeprefix("bytes=").rstrip("-")) > 1_000_000


async def test_a_source_that_does_not_begin_is_given_up(tmp_path):
    access = dataclasses.replace(open_access(), limits=Limits(open_seconds=0.2))
    async with web(a=CONTENT) as site:
        site.plans = [Silent()]
        with pytest.raises(TransientError, match="not answered in time"):
            await bring(site, tmp_path / "a", access=access)


async def test_a_disk_that_is_too_small_is_said_before_it_is_full(tmp_path, monkeypatch):
    Disk(tmp_path, 1_001_000).use(monkeypatch)
    async with web(a=CONTENT) as site:
        with pytest.raises(PermanentError, match="too little space") as refused:
            await bring(site, tmp_path / "a")
    assert refused.value.reason is Reason.NO_SPACE
    assert list(tmp_path.iterdir()) == []


async def test_a_disk_that_fills_up_is_said_and_given_back(tmp_path, monkeypatch):
    written = []
    really_write = Partial.write

    def write(partial, block):
        if written:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(block)
        really_write(partial, block)

    monkeypatch.setattr(Partial, "write", write)
    async with web(a=CONTENT) as site:
        with pytest.raises(PermanentError, match="no space left for") as refused:
            await bring(site, tmp_path / "a")
    assert refused.value.reason is Reason.NO_SPACE
    assert list(tmp_path.iterdir()) == []


async def test_a_folder_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("no folder")
    async with web(a=CONTENT) as site:
        with pytest.raises(PermanentError) as refused:
            await bring(site, tmp_path / "file" / "a")
    assert refused.value.reason is Reason.STORAGE


# Where it may not go


async def test_loopback_is_refused_unless_it_is_allowed(tmp_path):
    async with web(a=CONTENT) as site:
        for host in ("127.0.0.1", "localhost"):
            with pytest.raises(PermanentError, match="address is not public") as refused:
                await fetch(parse_source(site.url("/a", host)), tmp_path / "a", Access(plain_http=True))
            assert refused.value.reason is Reason.ADDRESS_NOT_ALLOWED
    assert site.asked == []


@pytest.mark.parametrize("target", ["http://169.254.169.254/latest/meta-data", "http://[::1]:80/x", "http://10.0.0.1/"])
async def test_a_redirect_to_where_it_may_not_go_is_refused(tmp_path, target):
    async with web(a=CONTENT) as site:
        site.plans = [Says("302 Found", {"Location": target})]
        with pytest.raises(PermanentError) as refused:
            await bring(site, tmp_path / "a")
    assert refused.value.reason is Reason.ADDRESS_NOT_ALLOWED


async def test_a_name_that_leads_elsewhere_the_second_time_gains_nothing(tmp_path, monkeypatch):
    """Names are resolved once, for the connection, and the address that is judged is the one that is connected to."""

    class Rebinding(abc.AbstractResolver):
        asked = 0

        async def resolve(self, host, port=0, family=socket.AF_INET):
            Rebinding.asked += 1
            found = {"hostname": host, "host": "127.0.0.1", "port": port, "family": socket.AF_INET, "proto": 0}
            return [{**found, "flags": 0}]

        async def close(self):
            pass

    async with web(a=CONTENT) as site:
        monkeypatch.setattr("aiohttp.connector.DefaultResolver", lambda *_, **__: Rebinding())
        with pytest.raises(PermanentError) as refused:
            await fetch(parse_source(site.url("/a", "models.example.com")), tmp_path / "a", Access(plain_http=True))
    assert refused.value.reason is Reason.ADDRESS_NOT_ALLOWED
    assert site.asked == []
    assert Rebinding.asked == 1


async def test_plain_http_is_refused_also_by_a_redirect(tmp_path):
    access = Access(networks=(ipaddress.ip_network("127.0.0.0/8"),))
    async with web(a=CONTENT) as site:
        with pytest.raises(PermanentError, match="not read over https") as refused:
            await bring(site, tmp_path / "a", access=access)
        assert refused.value.reason is Reason.NOT_ALLOWED
        site.plans = [Says("302 Found", {"Location": "ftp://127.0.0.1/a"})]
        with pytest.raises(PermanentError, match="no web server"):
            await bring(site, tmp_path / "a")
    assert len(site.asked) == 1


async def test_a_redirect_without_end_is_left(tmp_path):
    async with web(a=CONTENT) as site:
        site.plans = [Says("302 Found", {"Location": "/a"})] * 50
        with pytest.raises(PermanentError, match="without end"):
            await bring(site, tmp_path / "a")
    assert len(site.asked) == 11


async def test_credentials_go_to_their_own_host_and_not_to_the_next(tmp_path):
    async with web(a=CONTENT) as first, web(b=CONTENT) as second:
        credentials = SourceCredentials({"token": "s3cret", "hosts": f"{first.host} {second.host}"})
        first.plans = [
            Says("302 Found", {"Location": "/again"}),
            Says("302 Found", {"Location": second.url("/b")}),
        ]
        second.plans = [Says("302 Found", {"Location": first.url("/a")})]
        await bring(first, tmp_path / "a", credentials=credentials)
    assert [asked.headers.get("authorization") for asked in first.asked] == ["Bearer s3cret", "Bearer s3cret", None]
    assert second.asked[0].headers.get("authorization") is None


async def test_a_user_and_a_password_are_sent(tmp_path):
    async with web(a=CONTENT) as site:
        await bring(
            site, tmp_path / "a", credentials=SourceCredentials({"username": "u", "password": "p", "hosts": site.host})
        )
    assert site.asked[0].headers["authorization"] == "Basic dTpw"


@pytest.mark.parametrize("entries", [{"token": "s3cret"}, {"username": "u", "password": "s3cret"}])
@pytest.mark.parametrize("hosts", ["", "models.example.com", "127.0.0.1", "127.0.0.1:443, [::1]:443", "*"])
async def test_a_secret_is_sent_to_the_hosts_that_it_names_and_to_no_other(tmp_path, entries, hosts):
    async with web(a=CONTENT) as site:
        with pytest.raises(PermanentError) as refused:
            await bring(site, tmp_path / "a", credentials=SourceCredentials(entries | {"hosts": hosts}))
        assert refused.value.reason is Reason.SECRET_UNUSABLE
        assert f"`hosts` with {site.host}" in str(refused.value)
        assert "s3cret" not in str(refused.value)
        assert site.asked == []
        await bring(site, tmp_path / "a", credentials=SourceCredentials(entries | {"hosts": f"{hosts},{site.host}\n"}))
    assert "authorization" in site.asked[0].headers


async def test_a_secret_without_credentials_for_the_web_changes_nothing(tmp_path):
    async with web(a=CONTENT) as site:
        await bring(site, tmp_path / "a", credentials=SourceCredentials({"AWS_ACCESS_KEY_ID": "x"}))
    assert "authorization" not in site.asked[0].headers


async def test_the_hub_is_asked_as_it_wants_to_be(tmp_path):
    async with web(x=CONTENT) as site:
        site.files["/Qwen/Q/resolve/refs%2Fpr%2F1/dir/q%204.gguf"] = b"GGUF"
        access = Access(networks=open_access().networks, plain_http=True, hub=site.url("") + "/")
        source = HubSource("Qwen/Q", "refs/pr/1", "dir/q 4.gguf")
        await fetch(source, tmp_path / "q", access, credentials=SourceCredentials({"HF_TOKEN": "hf_x"}))
        assert site.asked[0].headers["authorization"] == "Bearer hf_x"
        site.plans = [Says("401 Unauthorized")]
        with pytest.raises(PermanentError, match="accepted on its page first"):
            await fetch(source, tmp_path / "p", access)


async def test_no_secret_is_in_any_message(tmp_path):
    secret = "AKIA-very-secret"
    async with web(a=CONTENT) as site:
        for status in REFUSALS:
            site.plans = [Says(status, {"Location": f"http://u:{secret}@10.0.0.1/{secret}?{secret}"})]
            source = parse_source(site.url("/a") + f"?signature={secret}")
            with pytest.raises(Problem) as refused:
                await fetch(
                    source,
                    tmp_path / "a",
                    open_access(),
                    credentials=SourceCredentials({"token": secret, "hosts": site.host}),
                )
            assert secret not in str(refused.value)


async def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "self")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = tmp_path / "pem"
    pem.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pem)
    async with web(context, a=CONTENT) as site:
        with pytest.raises(PermanentError, match="not trusted") as refused:
            await bring(site, tmp_path / "a")
    assert refused.value.reason is Reason.CERTIFICATE
