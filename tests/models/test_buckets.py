"""Buckets, through obstore: on a store in memory, and on a server that speaks as much S3 as a GET needs."""

import hashlib
import json

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from pilotage.models import (
    Access,
    BucketSource,
    PermanentError,
    Problem,
    Reason,
    SourceCredentials,
    TransientError,
    fetch,
    parse_source,
)
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
    with pytest.raises(PermanentError) as refused:
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
    await fetch(parse_source(S3), tmp_path / "a", HTTP, credentials=SourceCredentials(entries))
    headers = bucket.asked[0].headers
    assert "Credential=MINE/" in headers["authorization"]
    assert "/eu-central-1/" in headers["authorization"]
    assert "x-amz-security-token" not in headers


async def test_what_breaks_off_is_continued(bucket, tmp_path):
    bucket.plans = [Cuts(1_700_000)]
    try:
        await fetch(parse_source(S3), tmp_path / "a", HTTP, terms=Terms(SUM))
    except TransientError:
        await fetch(parse_source(S3), tmp_path / "a", HTTP, terms=Terms(SUM))
    assert (tmp_path / "a").read_bytes() == CONTENT
    assert bucket.asked[1].headers["range"].startswith("bytes=1")


async def test_a_service_that_ignores_if_match_does_not_mix_two_objects(tmp_path, bucket):
    """The library resumes by itself within an answer; a new attempt has to notice that it got another object."""

    def stop(done, _total):
        if done:
            raise KeyError("the fetcher ends")

    with pytest.raises(KeyError):
        await fetch(parse_source(S3), tmp_path / "a", HTTP, progress=stop)
    other = CONTENT[::-1]
    bucket.files["/bucket/dir/a.gguf"], bucket.etags["/bucket/dir/a.gguf"] = other, '"v2"'
    await fetch(parse_source(S3), tmp_path / "a", HTTP)
    assert (tmp_path / "a").read_bytes() == other
    assert ["range" in asked.headers for asked in bucket.asked] == [False, True, False]


@pytest.mark.parametrize(
    ("status", "kind", "reason"),
    [
        ("404 Not Found", PermanentError, Reason.NOT_FOUND),
        ("403 Forbidden", PermanentError, Reason.FORBIDDEN),
        ("401 Unauthorized", PermanentError, Reason.UNAUTHORIZED),
        ("500 Internal Server Error", TransientError, Reason.SERVER_ERROR),
        ("503 Slow Down", TransientError, Reason.SERVER_ERROR),
        ("429 Too Many Requests", TransientError, Reason.THROTTLED),
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
        with pytest.raises(PermanentError) as refused:
            await fetch(parse_source(S3), tmp_path / "a", HTTP, credentials=SourceCredentials(entries))
        assert refused.value.reason is Reason.SECRET_UNUSABLE
        assert "169.254" not in str(refused.value)
    assert bucket.asked == []


@pytest.fixture
async def services(monkeypatch):
    """All three services, at addresses that the administrator has set, with the operator's own credentials beside."""
    async with web() as site:
        for variable in ("AWS_ENDPOINT_URL", "GOOGLE_BASE_URL", "AZURE_STORAGE_ENDPOINT"):
            monkeypatch.setenv(variable, site.url(""))
        for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(variable, "OPERATORS-OWN")
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "T1BFUkFUT1I=")
        monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", google_key(client_email="operator@example.com"))
        monkeypatch.setenv("GCE_METADATA_HOST", f"127.0.0.1:{site.port}")
        site.files["/bucket/a"], site.etags["/bucket/a"] = CONTENT, '"v1"'
        site.changed = "Tue, 15 Nov 2022 12:45:26 GMT"
        yield site


def google_key(**members):
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = made.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    key = {"type": "service_account", "private_key": pem.decode(), "private_key_id": "1", "client_email": "me@a.com"}
    return json.dumps(key | members)


async def test_a_google_key_does_not_say_where_to_connect_to(services, tmp_path):
    async with web(**{"bucket/a": b"SECRET-OF-AN-INTERNAL-SERVICE"}) as internal:
        internal.changed = services.changed
        elsewhere = {"gcs_base_url": internal.url(""), "token_uri": internal.url("/token"), "disable_oauth": True}
        entries = {"GOOGLE_SERVICE_ACCOUNT_KEY": google_key(**elsewhere)}
        await fetch(parse_source("gs://bucket/a"), tmp_path / "a", HTTP, credentials=SourceCredentials(entries))
    assert internal.asked == []
    assert [asked.headers["authorization"][:7] for asked in services.asked] == ["Bearer "]


@pytest.mark.parametrize("key", ["no json", "[]", "[" * 100_000, google_key(private_key=1), "{}"])
async def test_a_google_key_that_is_none_is_refused_without_being_repeated(tmp_path, key):
    credentials = SourceCredentials({"key.json": key})
    with pytest.raises(PermanentError) as refused:
        await fetch(parse_source("gs://bucket/a"), tmp_path / "a", HTTP, credentials=credentials)
    assert refused.value.reason is Reason.SECRET_UNUSABLE
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("source", ["s3://bucket/a", "gs://bucket/a", "az://account/bucket/a"])
async def test_no_bucket_is_read_as_the_operator_for_a_model_without_a_secret(services, tmp_path, source):
    await fetch(parse_source(source), tmp_path / "a", HTTP)
    assert [(asked.path, asked.headers.get("authorization")) for asked in services.asked] == [("/bucket/a", None)]


async def test_a_signature_in_a_secret_is_not_replaced_by_the_operators_own_key(services, tmp_path):
    entries = {"AZURE_STORAGE_SAS_KEY": "sv=1&sig=MINE"}
    await fetch(parse_source("az://account/bucket/a"), tmp_path / "a", HTTP, credentials=SourceCredentials(entries))
    assert [asked.headers.get("authorization") for asked in services.asked] == [None]


async def test_nobody_there_passes(tmp_path, monkeypatch):
    async with web() as site:
        monkeypatch.setenv("AWS_ENDPOINT_URL", site.url(""))
    with pytest.raises(TransientError):
        await fetch(parse_source(S3), tmp_path / "a", HTTP)


async def test_without_the_extra_it_is_said_what_to_install(tmp_path, monkeypatch):
    def missing(_name):
        raise ImportError

    monkeypatch.setattr("pilotage.models.sources.buckets.import_module", missing)
    with pytest.raises(PermanentError, match="not installed here") as refused:
        await fetch(parse_source("gs://bucket/a"), tmp_path / "a", Access())
    assert refused.value.reason is Reason.NOT_SUPPORTED
