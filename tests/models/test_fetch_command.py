"""``pilotage fetch``: what an init container runs."""

import hashlib

import pytest

from pilotage.cli import HIDDEN
from tests.cli.running import run
from tests.models.weights import gguf

WEIGHTS = gguf()
SUM = hashlib.sha256(WEIGHTS).hexdigest()


@pytest.fixture
def source(tmp_path):
    (tmp_path / "a.gguf").write_bytes(WEIGHTS)
    return f"file://{tmp_path}/a.gguf"


def test_it_brings_a_file_and_knows_the_next_time_that_it_is_there(tmp_path, source):
    target = tmp_path / "new" / "b.gguf"
    first = run("fetch", source, "--to", target, "--allow-root", tmp_path, "--sha256", SUM)
    assert first.code == 0
    assert target.read_bytes() == WEIGHTS
    assert "fetched" in first.out
    assert f"GGUF, qwen3, Q4_K_M, sha256 {SUM}" in first.out
    (tmp_path / "a.gguf").unlink()
    again = run("fetch", source, "--to", target, "--allow-root", tmp_path, "--sha256", SUM)
    assert again.code == 0
    assert "is there already" in again.out


@pytest.mark.parametrize("change", ["content", "sha256", "source"])
def test_it_does_not_take_another_file_for_it(tmp_path, source, change):
    target = tmp_path / "b.gguf"
    assert run("fetch", source, "--to", target, "--allow-root", tmp_path).code == 0
    other = gguf(architecture="llama")
    if change == "content":
        target.write_bytes(other)
    (tmp_path / "a.gguf").write_bytes(other)
    (tmp_path / "c.gguf").write_bytes(other)
    wanted = ["--sha256", hashlib.sha256(other).hexdigest()] if change == "sha256" else []
    again = run("fetch", source.replace("a.gguf", "c.gguf") if change == "source" else source, "--to", target,
                "--allow-root", tmp_path, *wanted)  # fmt: skip
    assert "fetched" in again.out
    assert target.read_bytes() == other


def test_what_has_to_be_changed_first_ends_with_1_and_one_sentence(tmp_path, source):
    missing = run("fetch", source + ".no", "--to", tmp_path / "b", "--allow-root", tmp_path)
    assert missing.code == 1
    assert missing.err.startswith("error: the file ")
    assert missing.err.count("\n") == 1
    wrong = run("fetch", source, "--to", tmp_path / "b", "--allow-root", tmp_path, "--sha256", "0" * 64)
    assert wrong.code == 1
    assert not (tmp_path / "b").exists()
    assert run("fetch", source, "--to", tmp_path / "b").code == 1


def test_a_file_that_is_too_large_is_not_fetched(tmp_path):
    (tmp_path / "a").write_bytes(bytes(100))
    target = tmp_path / "b"
    ended = run("fetch", f"file://{tmp_path}/a", "--to", target, "--allow-root", tmp_path, "--max-bytes", "99")
    assert ended.code == 1
    assert "more than the 99 bytes" in ended.err
    assert not target.exists()


def test_one_byte_is_not_bytes(tmp_path):
    (tmp_path / "a").write_bytes(b"x")
    ended = run("fetch", f"file://{tmp_path}/a", "--to", tmp_path / "b", "--allow-root", tmp_path)
    assert "fetched, 1 byte, Unknown" in ended.out


def test_what_may_pass_ends_with_75(tmp_path):
    ended = run(
        "fetch", "http://127.0.0.1:9/a", "--to", tmp_path / "b", "--allow-http", "--allow-network", "127.0.0.0/8"
    )
    assert ended.code == 75


def test_bad_usage_ends_with_2(tmp_path):
    assert run("fetch", "http://127.0.0.1:9/a", "--to", tmp_path / "b", "--allow-network", "everywhere").code == 2
    assert run("fetch", "http://127.0.0.1:9/a").code == 2


def test_no_secret_is_printed(tmp_path):
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "token").write_text("s3cret")
    for source in ("https://me:s3cret@127.0.0.1:9/a", "https://127.0.0.1:9/a?sig=s3cret"):
        ended = run("fetch", source, "--to", tmp_path / "b", "--credentials", tmp_path / "secret")
        assert ended.code == 1
        assert "s3cret" not in ended.out + ended.err


def test_people_are_not_bothered_with_it():
    assert "fetch" in HIDDEN
    assert "\n  fetch " not in run("--help").out
