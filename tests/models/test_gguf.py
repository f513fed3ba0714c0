"""Metadata of a GGUF file; arbitrary bytes get no more out of the reader than an error."""

import io
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.models import PermanentError
from pilotage.models.format import WeightsFormat, read_format
from pilotage.models.gguf import Gguf, GgufError, read_gguf_untrusted
from tests.models.weights import U32, entry, gguf, safetensors, text


def test_a_header_is_read():
    found = read_gguf_untrusted(io.BytesIO(gguf()))
    assert found == Gguf(3, "qwen3", "Tiny", "Q4_K_M", 32768, 64 * 32 + 32, len(gguf()))


def test_without_a_file_type_most_of_the_tensors_decide():
    assert read_gguf_untrusted(io.BytesIO(gguf(file_type=None))).quantization == "Q4_K"
    assert read_gguf_untrusted(io.BytesIO(gguf(file_type=4_000))).quantization == "Q4_K"
    assert read_gguf_untrusted(io.BytesIO(gguf(file_type=None, tensors=()))).quantization == ""


def test_the_other_byte_order_is_read():
    raw = b"GGUF" + struct.pack(">IQQ", 3, 0, 1)
    raw += struct.pack(">Q", 1) + b"k" + struct.pack(">II", U32, 7)
    assert read_gguf_untrusted(io.BytesIO(raw)).version == 3


def with_counts(tensors: int = 0, entries: int = 0, rest: bytes = b"") -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, tensors, entries) + rest


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "ends in the middle"),
        (b"<html>not found</html>", "does not begin like"),
        (b"GGUF" + struct.pack("<I", 1) + bytes(16), "version is 1"),
        (with_counts(entries=2**63), "metadata entries"),
        (with_counts(tensors=2**40), "tensors"),
        (with_counts(entries=1, rest=struct.pack("<Q", 2**62)), "too long"),
        (with_counts(entries=1, rest=entry("k", 77, b"")), "unknown type"),
        (with_counts(entries=1, rest=entry("k", 9, struct.pack("<IQ", 8, 2**61))), "larger than any header"),
        (with_counts(entries=1, rest=entry("k", 9, struct.pack("<IQ", 9, 1) * 9)), "nested"),
        (with_counts(tensors=1, rest=text("t") + struct.pack("<I", 4_000_000_000)), "dimensions"),
        (gguf(tensors=(("t", (2**63, 2**63), 0),)), "more parameters than any model has"),
    ],
)
def test_what_cannot_be_is_refused(raw, words):
    with pytest.raises(GgufError, match=words):
        read_gguf_untrusted(io.BytesIO(raw))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_mutated_header_is_read_or_refused(data):
    raw = bytearray(gguf())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(raw) - 1))
        raw[place : place + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
        raw = raw or bytearray(b"G")
    try:
        found = read_gguf_untrusted(io.BytesIO(bytes(raw)))
    except GgufError:
        return
    assert all(character.isprintable() for character in found.architecture + found.name + found.quantization)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 400))
def test_a_header_that_is_cut_short_is_refused(length):
    raw = gguf()
    with pytest.raises(GgufError):
        read_gguf_untrusted(io.BytesIO(raw[: min(length, len(raw) - 1)]))


def test_the_kind_is_recognised(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(gguf())
    assert read_format(path, "a.gguf") == WeightsFormat("GGUF", "qwen3", "Q4_K_M", 32768, "Tiny", 2080)
    path.write_bytes(safetensors(10, 20))
    assert read_format(path, "a").kind == "Safetensors"
    path.write_bytes(b"whatever")
    assert read_format(path, "a.bin").kind == "Unknown"
    assert read_format(path, "a.gguf", "Any").kind == "Unknown"


@pytest.mark.parametrize(("shown", "wanted"), [("https://x/a.gguf", ""), ("a.bin", "GGUF"), ("a.safetensors", "")])
def test_a_web_page_is_no_model(tmp_path, shown, wanted):
    path = tmp_path / "x"
    path.write_text("<html>sign in first</html>")
    with pytest.raises(PermanentError, match="cannot be used: it is no ") as refused:
        read_format(path, shown, wanted)
    assert refused.value.reason == "InvalidFormat"
