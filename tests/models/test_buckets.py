"""Buckets, through obstore: on a store in memory, and on a server that speaks as much S3 as a GET needs."""

import hashlib

import pytest

from pilotage.models import Access, BucketSource, Credentials, Passing, Problem, Reason, Standing, fetch, parse_source
from pilotage.models.fetch import Terms
from pilotage.models.sources import Wanted
from pilotage.models.sources.buckets import open_object
from tests.models.web import Cuts, Says, web

obstore = pytest.importorskip("obstore")

CONTENT = bytes(index * 31 % 253 for index in range(3_000_000))
SUM = hashlib.sha256(CONTENT).hexdigest()
HTTP = Access(plain_http=True)
S3 = "s3://bucket/dir/a.gguf"


async def read(store, **wanted):
    source = BucketSource("s3", "bucket", "a")
    async with open_object(store, source, Wanted(Access(), **wanted)) as opened:
        return opened, b"".join([chunk async for chunk in opened.chunks])


async def test_an_object_is_read_from_where_it_is_wanted_while_it_is_the_same():
    store = obstore.store.MemoryStore()
    await obstore.put_async(store, "a", b"0123456789")
    opened, content = await read(store)
    assert (opened.start, opened.size, content) == (0, 10, b"0123456789")
    again, rest = await read(store, start=4, validator=opened.validator)
    assert (again.start, again.size, rest) == (4, 10, b"456789")
    await obstore.put_async(store, "a", b"changed")
    changed, content = await read(store, start=4, validator=opened.validator)
    assert (changed.start, changed.size, content) == (0, 7, b"changed")


async def test_an_object_that_is_not_there_stands():
    with pytest.raises(Standing) as refused:
        await read(obstore.store.MemoryStore())
    assert refused.value.reason is Reason.NOT_FOUND


@pytest.fixture
async def bucket(monkeypatch):
    for name in ("AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    async with web() as site:
        site.files["/bucket/dir/a.gguf"], site.etags["/bucket/dir/a.gguf"] = CONTENT, '"v1"'
        monkeypatch.setenv("AWS_ENDPOINT_URL", site.url(""))
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "OPERATORS-OWN")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "operators-own")
        yield site


async def test_without_a_secret_nobodys_identity_is_used_least_of_all_the_operators(bucket, tmp_path):
    await fetch(parse_source(S3), tmp_path / "a", HTTP, terms=Terms(SUM))
    assert "authorization" not in bucket.asked[0].headers
    await fetch(parse_source(S3), tmp_path / "b", Access(ambient=True, plain_http=True))
    assert "OPERATORS-OWN" in bucket.asked[1].headers["authorization"]


async def test_a_secret_is_used_alone(bucket, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_SESSION_TOKEN", "operators-session")
    entries = {"AWS_ACCESS_KEY_ID": "MINE", "AWS_SECRET_ACCESS_KEY": "s3cret", "AWS_REGION": "eu-central-1"}
    await fetch(parse_source(S3), tmp_path / "a", HTTP, credentials=Credentials(entries))
    headers = bucket.asked[0].headers
    assert "Credential=MINE/" in headers["authorization"]
    assert "/eu-central-1/" in headers["authorization"]
    assert "x-amz-security-token" not in headers


async def test_what_breaks_off_is_continued(bucket, tmp_path):
    bucket.plans = [Cuts(1_700_000)]
    try:
        await fetch(parse_source(S3), tmp_path / "a", HTTP, terms=Terms(SUM))
    except Passing:
        await fetch(parse_source(S3), tmp_path / "a", HTTP, terms=Terms(SUM))
    assert (tmp_path / "a").read_bytes() == CONTENT
    assert bucket.asked[1].headers["range"].startswith("bytes=1")


@pytest.mark.parametrize(
    ("status", "kind", "reason"),
    [
        ("404 Not Found", Standing, Reason.NOT_FOUND),
        ("403 Forbidden", Standing, Reason.FORBIDDEN),
        ("401 Unauthorized", Standing, Reason.UNAUTHORIZED),
        ("500 Internal Server Error", Passing, Reason.SERVER_ERROR),
        ("503 Slow Down", Passing, Reason.SERVER_ERROR),
        ("429 Too Many Requests", Passing, Reason.THROTTLED),
    ],
)
async def test_each_answer_is_of_its_class(bucket, tmp_path, status, kind, reason):
    bucket.plans = [Says(status)] * 5
    with pytest.raises(Problem) as refused:
        await fetch(parse_source(S3), tmp_path / "a", HTTP)
    assert (type(refused.value), refused.value.reason) == (kind, reason), refused.value.__cause__
    assert len(bucket.asked) == 1


async def test_an_endpoint_or_a_host_hidden_in_a_region_is_not_taken_from_a_secret(bucket, tmp_path):
    for entries in ({"AWS_ENDPOINT_URL": "http://169.254.169.254"}, {"AWS_REGION": "x@169.254.169.254/#"}):
        with pytest.raises(Standing) as refused:
            await fetch(parse_source(S3), tmp_path / "a", HTTP, credentials=Credentials(entries))
        assert refused.value.reason is Reason.SECRET_UNUSABLE
        assert "169.254" not in str(refused.value)
    assert bucket.asked == []


async def test_nobody_there_passes(tmp_path, monkeypatch):
    async with web() as site:
        monkeypatch.setenv("AWS_ENDPOINT_URL", site.url(""))
    with pytest.raises(Passing):
        await fetch(parse_source(S3), tmp_path / "a", HTTP)


async def test_without_the_extra_it_is_said_what_to_install(tmp_path, monkeypatch):
    def missing(_name):
        raise ImportError

    monkeypatch.setattr("pilotage.models.sources.buckets.import_module", missing)
    with pytest.raises(Standing, match="not installed here") as refused:
        await fetch(parse_source("gs://bucket/a"), tmp_path / "a", Access())
    assert refused.value.reason is Reason.NOT_SUPPORTED
