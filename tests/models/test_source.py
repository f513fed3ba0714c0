"""Meaning of `spec.source`, and the values that are refused."""

from pathlib import PurePosixPath

import pytest

from pilotage.models import (
    BucketSource,
    ClaimSource,
    FileSource,
    HttpSource,
    HubSource,
    ImageSource,
    PermanentError,
    Reason,
    parse_source,
)
from pilotage.models.source import file_name, is_read_by_pods

GOOD = {
    "file:///models/a.gguf": FileSource(PurePosixPath("/models/a.gguf")),
    "file://localhost/models/a%20b.gguf": FileSource(PurePosixPath("/models/a b.gguf")),
    "https://example.com/x/a.gguf?sig=1#top": HttpSource("https://example.com/x/a.gguf?sig=1"),
    "hf://Qwen/Qwen3-0.6B-GGUF/q4.gguf": HubSource("Qwen/Qwen3-0.6B-GGUF", "main", "q4.gguf"),
    "hf://Qwen/Qwen3@v1/sub/q4.gguf": HubSource("Qwen/Qwen3", "v1", "sub/q4.gguf"),
    "hf://Qwen/Qwen3@refs%2Fpr%2F1/q4.gguf": HubSource("Qwen/Qwen3", "refs/pr/1", "q4.gguf"),
    "hf://Qwen/Qwen3-0.6B": HubSource("Qwen/Qwen3-0.6B", "main", ""),
    "s3://bucket/a/b.gguf": BucketSource("s3", "bucket", "a/b.gguf"),
    "gs://bucket/b.gguf": BucketSource("gs", "bucket", "b.gguf"),
    "az://account1/container/b.gguf": BucketSource("az", "container", "b.gguf", "account1"),
    "oci://ghcr.io/x/y:1": ImageSource("ghcr.io", "x/y", "1"),
    "oci://registry.local:5000/y": ImageSource("registry.local:5000", "y", "latest"),
    f"oci://ghcr.io/x/y:1@sha256:{'a' * 64}": ImageSource("ghcr.io", "x/y", f"sha256:{'a' * 64}"),
    "oci://[::1]:5000/x/y:1#dir/a%20b.gguf": ImageSource("[::1]:5000", "x/y", "1", "dir/a b.gguf"),
    "pvc://weights/a/b.gguf": ClaimSource("weights", PurePosixPath("a/b.gguf")),
}


@pytest.mark.parametrize("text", GOOD)
def test_a_source_is_read(text):
    assert parse_source(text) == GOOD[text]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("models/a.gguf", "begins with none of"),
        ("ftp://host/a", "begins with none of"),
        ("file://models/a.gguf", "three slashes"),
        ("file:///models/../etc/passwd", "without empty parts, . or .."),
        ("file:///models/%2e%2e/etc/passwd", "without empty parts, . or .."),
        ("file:///models/", "has to name a file"),
        ("https:///a.gguf", "names no host"),
        ("https://example.com/", "no file on it"),
        ("https://host:port/a", "no valid URL"),
        ("https://a b/c", "white space"),
        ("hf://Qwen/x y", "white space"),
        ("hf://Qwen/Qwen3/../x", "without empty parts"),
        ("hf://Qwen", "looks like hf://"),
        ("hf://Qwen/Qwen3@/x", "no revision"),
        ("s3://B!/x", "looks like s3://"),
        ("s3://bucket/", "looks like s3://"),
        ("s3://bucket:1/x", "no port"),
        ("az://account1/container", "looks like az://"),
        ("oci://ghcr.io", "looks like oci://"),
        ("oci://ghcr.io/X/y:1", "looks like oci://"),
        ("oci://ghcr.io/x/../y:1", "looks like oci://"),
        ("oci://ghcr.io/x/y?a=b", "looks like oci://"),
        ("oci://ghcr.io:99999/x/y", "no valid URL"),
        ("oci://ghcr.io/x/y:1:2", "no tag and no digest"),
        ("oci://ghcr.io/x/y@sha256:abc", "no tag and no digest"),
        ("oci://ghcr.io/x/y:1#../a", "without empty parts"),
        ("pvc://Weights/x", "looks like pvc://"),
        ("pvc://weights/../x", "without empty parts"),
    ],
)
def test_a_bad_source_is_refused_with_what_is_wrong(text, words):
    with pytest.raises(PermanentError, match=r"spec\.source cannot be used: ") as refused:
        parse_source(text)
    assert words in str(refused.value)
    assert refused.value.reason is Reason.INVALID_SOURCE


def test_credentials_in_a_source_are_refused_and_not_repeated():
    with pytest.raises(PermanentError, match="secretRef") as refused:
        parse_source("https://me:hunter2@example.com/a.gguf")
    assert "hunter2" not in str(refused.value)


def test_a_signature_in_a_query_is_not_shown():
    assert str(parse_source("https://example.com/a.gguf?X-Amz-Signature=secret")) == "https://example.com/a.gguf"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("https://example.com/x/a%20b.gguf?y=z", "a_b.gguf"),
        ("file:///models/.hidden", "hidden"),
        ("s3://bucket/dir/w.safetensors", "w.safetensors"),
        ("https://example.com/%2F", "model"),
        ("oci://ghcr.io/x/tiny:1", "tiny"),
        ("oci://ghcr.io/x/tiny:1#dir/q4.gguf", "q4.gguf"),
    ],
)
def test_a_fetched_file_gets_a_harmless_name(text, name):
    assert file_name(parse_source(text)) == name


def test_claims_and_whole_repositories_are_read_by_pods():
    read = {text for text in GOOD if is_read_by_pods(parse_source(text))}
    assert read == {"hf://Qwen/Qwen3-0.6B", "pvc://weights/a/b.gguf"}
