"""Models as people write them: what a text means, and that every text means something or gets a sentence."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotage.models.source import parse_source
from pilotage.rollout.model_argument import ModelReference, OnHub, model_reference
from pilotage.teardown.session.request import RequestError

FOLDER = Path("/srv/here")


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("./x.gguf", "file:///srv/here/x.gguf"),
        ("../x.gguf", "file:///srv/x.gguf"),
        ("/models/x.gguf", "file:///models/x.gguf"),
        ("file:/models/x.gguf", "file:///models/x.gguf"),
        ("file:x.gguf", "file:///srv/here/x.gguf"),
        ("file:///models/x.gguf", "file:///models/x.gguf"),
        ("./my model #1.gguf", "file:///srv/here/my%20model%20%231.gguf"),
        ("./a/./b/../x.gguf", "file:///srv/here/a/x.gguf"),
        ("hf://Qwen/Qwen3/x.gguf", "hf://Qwen/Qwen3/x.gguf"),
        ("qwen-small", "qwen-small"),
        ("qwen.gguf", "qwen.gguf"),
    ],
)
def test_paths_sources_and_names_are_told_apart(text: str, source: str):
    assert model_reference(text, FOLDER).text == source


def test_a_tilde_is_the_home(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert model_reference("~/x.gguf", FOLDER) == ModelReference("file:///home/me/x.gguf", Path("/home/me/x.gguf"))
    assert model_reference("file:~/x.gguf", FOLDER).text == "file:///home/me/x.gguf"


def test_a_relative_path_is_one_if_there_is_such_a_file(tmp_path: Path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "Qwen.gguf").touch()
    assert model_reference("models/Qwen.gguf", tmp_path).file == tmp_path / "models" / "Qwen.gguf"
    with pytest.raises(OnHub):
        model_reference("models/Other.gguf", tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Qwen/Qwen3-0.6B", "write --model hf://Qwen/Qwen3-0.6B/FILE, or with a runtime"),
        ("Qwen/Qwen3-0.6B-GGUF/qwen3.gguf", "write --model hf://Qwen/Qwen3-0.6B-GGUF/qwen3.gguf."),
        ("hf:Qwen/Qwen3/x.gguf", "write hf://Qwen/Qwen3/x.gguf, with two slashes"),
        ("https:/example.com/x.gguf", "write https://example.com/x.gguf, with two slashes"),
        ("qwen3:0.6b", "neither a path, nor a source"),
        ("Qwen3", "neither a path, nor a source"),
        ("ftp://a/b", "it begins with none of file://"),
        ("hf://Qwen", "looks like hf://OWNER/REPOSITORY/FILE"),
        ("~nobody-of-this-name/x.gguf", "cannot be the path of a file"),
        ("/", "has to name a file"),
        ("", "--model is empty"),
    ],
)
def test_others_get_a_sentence_that_says_what_to_write(text: str, words: str):
    with pytest.raises(RequestError, match=words.replace(".", r"\.").replace("?", r"\?")):
        model_reference(text, FOLDER)


def test_credentials_in_a_source_are_not_repeated():
    with pytest.raises(RequestError) as caught:
        model_reference("https://user:hunter2@example.com/x.gguf", FOLDER)
    assert "hunter2" not in str(caught.value)


_PIECES = st.sampled_from(
    ["file:", "file://", "hf://", "https://", "~", "/", "./", "..", "a", "B.gguf", ":", "%2F", "\0"]
)


@given(st.one_of(st.text(), st.lists(_PIECES, max_size=8).map("".join), st.text(st.characters(), max_size=5)))
def test_every_text_means_a_model_or_is_refused(text: str):
    with contextlib.suppress(RequestError):
        found = model_reference(text, FOLDER)
        assert "://" not in found.text or parse_source(found.text)
