"""The model of an endpoint as people write it: a path, a source, or the name of a Model.

The file system is asked for one thing: whether a relative path without a dot in front is that of a file.
"""

import os
import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from pilotage.models.problems import PermanentError
from pilotage.models.source import FileSource, parse_source
from pilotage.teardown.session.request import RequestError

_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_ON_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(/[\w./-]+)?", re.ASCII)
_WITHOUT_SLASHES = re.compile(r"(https?|hf|s3|gs|az|oci|pvc):/{0,1}(?!/)(.+)")
_TEXT_SHOWN_MAX = 80


class ModelReference(NamedTuple):
    """The model that a text means."""

    text: str
    """The source, in full, or the name of a Model."""
    file: Path | None = None
    """The file that a file:// source names."""


class OnHub(RequestError):
    """A repository of the Hugging Face Hub, or a file in it, without the scheme of the Hub."""

    def __init__(self, text: str) -> None:
        owner, name, *path = text.split("/")
        self.repository = f"{owner}/{name}"
        wanted = f"hf://{text}" if path else f"hf://{text}/FILE"
        whole = "" if path else f", or with a runtime that loads whole repositories, such as vllm, hf://{text}"
        super().__init__(
            f"--model {text} is neither a file here nor the name of a Model. "
            f"If it is on the Hugging Face Hub, write --model {wanted}{whole}."
        )


def model_reference(text: str, folder: Path) -> ModelReference:
    """The model that a text means, with paths relative to `folder`. Raises RequestError, OnHub among them."""
    if not text:
        raise RequestError("--model is empty: write a path, a source such as hf://OWNER/REPOSITORY/FILE, or a Model.")
    path = _path(text)
    if path is not None:
        return _file(path, folder)
    if "://" in text:
        return _source(text)
    if _NAME.fullmatch(text):
        return ModelReference(text)
    if _is_file(folder, text):
        return _file(text, folder)
    if _ON_HUB.fullmatch(text):
        raise OnHub(text)
    if found := _WITHOUT_SLASHES.fullmatch(text):
        raise RequestError(f"--model {_shown(text)}: write {_shown(f'{found[1]}://{found[2]}')}, with two slashes.")
    raise RequestError(
        f"--model {_shown(text)} is neither a path, nor a source such as hf://OWNER/REPOSITORY/FILE, "
        "nor can it be the name of a Model."
    )


def _path(text: str) -> str | None:
    """The path in a text that is clearly one; None for others."""
    if text.startswith("file:") and not text.startswith("file://"):
        return text.removeprefix("file:")
    return text if text in (".", "..", "~") or text.startswith(("/", "./", "../", "~")) else None


def _file(path: str, folder: Path) -> ModelReference:
    try:
        whole = os.path.abspath(folder / Path(path).expanduser())  # noqa: PTH100 - links stay as they were written
        return _source(f"file://{quote(os.fsencode(whole))}")
    except (RuntimeError, ValueError) as error:  # no such user, or bytes that no path can have
        raise RequestError(f"--model {_shown(path)} cannot be the path of a file ({error}).") from error


def _source(text: str) -> ModelReference:
    try:
        source = parse_source(text)
    except PermanentError as error:
        raise RequestError(f"--model: {error.what}.") from error
    return ModelReference(text, Path(source.path) if isinstance(source, FileSource) else None)


def _is_file(folder: Path, text: str) -> bool:
    try:
        return (folder / text).is_file()
    except (OSError, ValueError):
        return False


def _shown(text: str) -> str:
    return text if len(text) <= _TEXT_SHOWN_MAX else f"{text[:_TEXT_SHOWN_MAX]}…"
