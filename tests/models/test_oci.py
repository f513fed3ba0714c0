"""oci://: on a real registry, open or with tokens; and on one that does not do what it should."""

import base64
import datetime as dt
import hashlib
import json
import time
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.x509.oid import NameOID

from field.registry import INDEX, ContainerRegistry
from pilotage.models import (
    Access,
    ImageSource,
    PermanentError,
    Problem,
    Reason,
    SourceCredentials,
    TransientError,
    fetch,
    parse_source,
)
from pilotage.models.fetch import Terms, Unfit
from pilotage.models.sources.oci import Descriptor, ImageManifest, choose_layer
from tests.models.web import Cuts, Says, open_access, web
from tests.models.weights import gguf

WEIGHTS = gguf(filler=2_500_000)
SUM = hashlib.sha256(WEIGHTS).hexdigest()
DIGEST = f"sha256:{SUM}"


async def bring(source, target, *, access=None, sha256="", **entries):
    credentials = SourceCredentials(entries)
    return await fetch(
        parse_source(source), target, access or open_access(), credentials=credentials, terms=Terms(sha256, "GGUF")
    )


async def refusal(source, target, **entries):
    with pytest.raises(Problem) as refused:
        await bring(source, target, **entries)
    assert not target.exists()
    return refused.value


# A real registry


@pytest.fixture(scope="module")
def registry(registry_program):
    with ContainerRegistry(print) as running:
        yield running


async def test_the_weights_of_an_artifact_are_fetched_by_tag_by_digest_and_by_name(registry, tmp_path):
    digest = registry.push("models/tiny", "v1", {"tiny.gguf": WEIGHTS, "README.md": b"# Tiny"})
    root = f"oci://{registry.host}/models/tiny"
    for number, source in enumerate((f"{root}:v1", f"{root}@{digest}", f"{root}:v1@{digest}#tiny.gguf")):
        fetched = await bring(source, tmp_path / str(number), sha256=SUM)
        assert (fetched.size, fetched.sha256, fetched.format.architecture) == (len(WEIGHTS), SUM, "qwen3")
        assert (tmp_path / str(number)).read_bytes() == WEIGHTS
    readme = parse_source(f"{root}:v1#README.md")
    assert (await fetch(readme, tmp_path / "readme", open_access())).size == 6


async def test_an_index_of_one_artifact_is_that_artifact(registry, tmp_path):
    digest = registry.push("tiny", "v1", {"tiny.gguf": WEIGHTS})
    entry = {"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest, "size": 500}
    registry.put_manifest("tiny", "index", {"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]})
    await bring(f"oci://{registry.host}/tiny:index", tmp_path / "a", sha256=SUM)


async def test_an_interrupted_fetch_is_resumed(registry, tmp_path):
    registry.push("tiny", "v1", {"tiny.gguf": WEIGHTS})
    seen: list[int] = []

    def stop(done, _total):
        if done:
            raise KeyError("the fetcher ends")

    source = parse_source(f"oci://{registry.host}/tiny:v1")
    with pytest.raises(KeyError):
        await fetch(source, tmp_path / "a", open_access(), progress=stop)
    await fetch(source, tmp_path / "a", open_access(), terms=Terms(SUM), progress=lambda done, _: seen.append(done))
    assert seen[0] > 1_000_000
    assert (tmp_path / "a").read_bytes() == WEIGHTS


async def test_a_missing_repository_or_tag_lasts(registry, tmp_path):
    registry.push("tiny", "v1", {"tiny.gguf": WEIGHTS})
    for source in (f"oci://{registry.host}/none:v1", f"oci://{registry.host}/tiny:none"):
        problem = await refusal(source, tmp_path / "a")
        assert (type(problem), problem.reason) == (PermanentError, Reason.NOT_FOUND)


async def test_the_address_of_a_registry_is_judged_and_plain_http_is_not_tried_unasked(registry, tmp_path):
    registry.push("tiny", "v1", {"tiny.gguf": WEIGHTS})
    source = f"oci://{registry.host}/tiny:v1"
    refused = await refusal(source, tmp_path / "a", access=Access(plain_http=True))
    assert refused.reason is Reason.ADDRESS_NOT_ALLOWED
    no_tls = await refusal(source, tmp_path / "a", access=Access(networks=open_access().networks))
    assert (isinstance(no_tls, TransientError), no_tls.reason) == (True, Reason.CONNECTION)
    assert "TLS handshake" in str(no_tls)


class TokenService:
    """Token service of a registry: it signs what its clients may do."""

    def __init__(self, folder):
        self.key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tokens")])
        now = dt.datetime.now(dt.UTC)
        self.certificate = (
            x509.CertificateBuilder(name, name, self.key.public_key(), x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=1))
            .not_valid_after(now + dt.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self.key, hashes.SHA256())
        )
        self.bundle = folder / "tokens.pem"
        self.bundle.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def auth(self, realm: str) -> dict[str, Any]:
        return {
            "token": {"realm": realm, "service": "tests", "issuer": "tests", "rootcertbundle": str(self.bundle)},
        }

    def token(self, *actions: str) -> str:
        der = base64.b64encode(self.certificate.public_bytes(serialization.Encoding.DER)).decode()
        head = {"typ": "JWT", "alg": "ES256", "x5c": [der]}
        now = int(time.time())
        access = [{"type": "repository", "name": "tiny", "actions": [*actions]}]
        body = {"iss": "tests", "aud": "tests", "sub": "me", "nbf": now - 60, "exp": now + 600, "access": access}
        signed = ".".join(_encoded(json.dumps(part).encode()) for part in (head, body))
        r, s = utils.decode_dss_signature(self.key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{signed}.{_encoded(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"

    def says(self, *actions: str) -> Says:
        return Says("200 OK", {}, json.dumps({"token": self.token(*actions)}).encode())


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


@pytest.fixture
async def private(registry_program, tmp_path):
    """A real registry that takes tokens only, and the service that gives them."""
    service = TokenService(tmp_path)
    async with web() as site:
        push = f"Bearer {service.token('push', 'pull')}"
        with ContainerRegistry(print, auth=service.auth(site.url("/token")), push_authorization=push) as running:
            running.push("tiny", "v1", {"tiny.gguf": WEIGHTS})
            yield running, service, site


@pytest.fixture
def named(private):
    running, _, site = private
    return f"oci://{running.host}/tiny:v1", f"{running.host} {site.host}"


async def test_a_token_is_asked_for_where_the_registry_says(private, named, tmp_path):
    _, service, site = private
    source, hosts = named
    site.plans = [service.says("pull")] * 2
    await bring(source, tmp_path / "anonymous", sha256=SUM)
    assert "authorization" not in site.asked[0].headers
    assert site.asked[0].query == "service=tests&scope=repository%3Atiny%3Apull"
    await bring(source, tmp_path / "known", sha256=SUM, username="me", password="s3cret", hosts=hosts)
    assert site.asked[1].headers["authorization"] == f"Basic {base64.b64encode(b'me:s3cret').decode()}"


async def test_a_token_that_is_refused_lasts_and_no_password_is_shown(private, named, tmp_path):
    _, service, site = private
    source, hosts = named
    for answer in (Says("401 Unauthorized"), service.says(), Says("200 OK", {}, b'{"token": "a\\r\\nb"}')):
        site.plans = [answer]
        problem = await refusal(source, tmp_path / "a", username="me", password="s3cret", hosts=hosts)
        assert isinstance(problem, PermanentError)
        assert problem.reason is Reason.UNAUTHORIZED
        assert "`username` and `password`" in str(problem)
        assert "s3cret" not in str(problem)


async def test_a_password_goes_to_the_hosts_that_its_secret_names(private, named, tmp_path):
    """The registry is chosen by the author of the Model, and the service by the registry."""
    running, _, site = private
    source, _ = named
    for hosts in ("", running.host, site.host):
        problem = await refusal(source, tmp_path / "a", username="me", password="s3cret", hosts=hosts)
        assert problem.reason is Reason.SECRET_UNUSABLE
    assert site.asked == []


# One that does not do what it should


def manifest(**changes):
    layer = {
        "mediaType": "application/octet-stream",
        "digest": DIGEST,
        "size": len(WEIGHTS),
        "annotations": {"org.opencontainers.image.title": "tiny.gguf"},
    }
    return json.dumps({"schemaVersion": 2, "layers": [layer | changes]}).encode()


@pytest.fixture
async def site():
    async with web() as site:
        site.files["/v2/tiny/manifests/v1"] = manifest()
        site.files[f"/v2/tiny/blobs/{DIGEST}"] = WEIGHTS
        yield site


@pytest.fixture
def stub(site):
    return f"oci://{site.host}/tiny:v1"


async def test_a_layer_is_compared_with_its_digest(site, stub, tmp_path):
    site.files[f"/v2/tiny/blobs/{DIGEST}"] = WEIGHTS[:-1] + b"!"
    problem = await refusal(stub, tmp_path / "a")
    assert isinstance(problem, Unfit)
    assert (problem.reason, problem.certain) == (Reason.CHECKSUM, False)
    assert list(tmp_path.iterdir()) == []


async def test_a_manifest_is_compared_with_the_digest_that_names_it(site, tmp_path):
    site.files[f"/v2/tiny/manifests/{DIGEST}"] = manifest()
    problem = await refusal(f"oci://{site.host}/tiny@{DIGEST}", tmp_path / "a")
    assert (type(problem), problem.reason) == (PermanentError, Reason.CHECKSUM)


@pytest.mark.parametrize("size", [len(WEIGHTS) - 1, len(WEIGHTS) + 1])
async def test_a_layer_of_another_size_than_the_manifest_says_is_not_taken(site, stub, tmp_path, size):
    site.files["/v2/tiny/manifests/v1"] = manifest(size=size)
    assert (await refusal(stub, tmp_path / "a")).reason is Reason.INCOMPLETE


async def test_a_layer_is_resumed_by_its_digest_without_any_header(site, stub, tmp_path):
    site.plans = [None, Cuts(1_700_000)]
    problem = await refusal(stub, tmp_path / "a")
    assert isinstance(problem, TransientError)
    await bring(stub, tmp_path / "a", sha256=SUM)
    assert int(site.asked[-1].headers["range"].removeprefix("bytes=").rstrip("-")) > 1_000_000
    assert "if-range" not in site.asked[-1].headers


async def test_a_tag_that_leads_to_another_layer_is_not_mixed_with_the_former(site, stub, tmp_path):
    site.plans = [None, Cuts(1_700_000)]
    await refusal(stub, tmp_path / "a")
    other = gguf(architecture="llama", filler=2_000_000)
    digest = f"sha256:{hashlib.sha256(other).hexdigest()}"
    site.files["/v2/tiny/manifests/v1"] = manifest(digest=digest, size=len(other))
    site.files[f"/v2/tiny/blobs/{digest}"] = other
    await bring(stub, tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == other


async def test_a_blob_elsewhere_gets_no_token_and_has_to_be_public(site, stub, tmp_path):
    async with web() as store:
        store.files["/blob"] = WEIGHTS
        site.plans = [None, Says("307 Temporary Redirect", {"Location": store.url("/blob")})]
        await bring(stub, tmp_path / "a", sha256=SUM, token="s3cret", hosts=site.host)
        assert site.asked[-1].headers["authorization"] == "Bearer s3cret"
        assert "authorization" not in store.asked[0].headers
    site.plans = [None, Says("307 Temporary Redirect", {"Location": "http://169.254.169.254/blob"})]
    assert (await refusal(stub, tmp_path / "b")).reason is Reason.ADDRESS_NOT_ALLOWED


async def test_a_host_that_a_registry_redirects_to_is_not_authenticated_to(site, stub, tmp_path):
    async with web() as other:
        site.plans = [Says("307 Temporary Redirect", {"Location": other.url("/manifest")})]
        other.plans = [Says("401 Unauthorized", {"WWW-Authenticate": f'Bearer realm="{other.url("/token")}"'})]
        assert (await refusal(stub, tmp_path / "a")).reason is Reason.UNAUTHORIZED
        assert len(other.asked) == 1


@pytest.mark.parametrize(
    "challenge",
    ["", "Basic realm=x", "Negotiate", "Bearer", 'Bearer realm="no url"', 'Bearer realm="http://[x"', "Bearer " * 500],
)
async def test_a_challenge_that_cannot_be_answered_lasts(site, stub, tmp_path, challenge):
    site.plans = [Says("401 Unauthorized", {"WWW-Authenticate": challenge})]
    problem = await refusal(stub, tmp_path / "a")
    assert isinstance(problem, PermanentError)
    assert problem.reason is Reason.UNAUTHORIZED


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"layers": [{"digest": "md5:1", "size": 1}]}', bytes(5 << 20)])
async def test_what_is_no_manifest_is_refused(site, stub, tmp_path, body):
    site.files["/v2/tiny/manifests/v1"] = body
    problem = await refusal(stub, tmp_path / "a")
    assert (type(problem), problem.reason) == (PermanentError, Reason.REFUSED)


# Which layer


def layer(title="", media_type="", **annotations):
    named = {"org.opencontainers.image.title": title} if title else {}
    return Descriptor(DIGEST, 1, media_type, named | annotations or None)


TAR = "application/vnd.oci.image.layer.v1.tar"
UNPACK = {"io.deis.oras.content.unpack": "true"}


GGUF_TYPE, OLLAMA = "application/vnd.docker.ai.gguf.v3", "application/vnd.ollama.image.model"
MODEL_PACK = "application/vnd.cncf.model.weight.v1.raw"


@pytest.mark.parametrize(
    ("layers", "file", "chosen"),
    [
        ([layer()], "", 0),
        ([layer("a.txt"), layer("b.gguf")], "", 1),
        ([layer("a.gguf"), layer("b.gguf")], "b.gguf", 1),
        ([layer("a.gguf", TAR)], "", 0),
        ([layer(media_type="application/vnd.docker.ai.license"), layer(media_type=GGUF_TYPE)], "", 1),
        ([layer(media_type=OLLAMA), layer(media_type="application/vnd.ollama.image.template")], "", 0),
        ([layer(media_type="application/vnd.cncf.model.doc.v1.raw"), layer(media_type=MODEL_PACK)], "", 1),
    ],
)
def test_the_layer_with_the_weights_is_found(layers, file, chosen):
    source = ImageSource("ghcr.io", "x/y", "1", file)
    assert choose_layer(ImageManifest(layers), source) is layers[chosen]


@pytest.mark.parametrize(
    ("layers", "file", "reason", "words"),
    [
        ([], "", Reason.INVALID_SOURCE, "none of its 0 layers has a name"),
        ([layer("b.gguf"), layer("a.gguf")], "", Reason.INVALID_SOURCE, "it has a.gguf, b.gguf. Name one"),
        ([layer(), layer()], "", Reason.INVALID_SOURCE, "none of its 2 layers has a name"),
        ([layer("a.gguf")], "b.gguf", Reason.NOT_FOUND, "#b.gguf does not exist: it has a.gguf"),
        ([layer("\x1b[1m.gguf")], "b", Reason.NOT_FOUND, r"it has \[1m.gguf"),
        ([layer("a.tar.gz", f"{TAR}+gzip")], "", Reason.NOT_SUPPORTED, "is packed"),
        ([layer("folder", TAR, **UNPACK)], "", Reason.NOT_SUPPORTED, "is packed"),
        ([layer("", TAR)], "", Reason.NOT_SUPPORTED, "is packed"),
        ([layer("a.gguf", "application/vnd.cncf.model.weight.v1.tar")], "", Reason.NOT_SUPPORTED, "is packed"),
    ],
)
def test_a_layer_that_is_not_clear_is_refused_with_what_there_is(layers, file, reason, words):
    with pytest.raises(PermanentError, match=words) as refused:
        choose_layer(ImageManifest(layers), ImageSource("ghcr.io", "x/y", "1", file))
    assert refused.value.reason is reason
