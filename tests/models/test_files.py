"""file://: only below the folders that were opened, whatever the links say."""

import errno
import os

import pytest

from pilotage.models import Access, PermanentError, Problem, Reason, TransientError, fetch, parse_source
from pilotage.models.sources import Wanted, open_source


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "a.gguf").write_bytes(b"0123456789")
    (tmp_path / "secret").write_bytes(b"not for you")
    return folder


async def read(path, *roots, start=0, validator=""):
    access = Access(roots=roots, host="gpu-3")
    async with open_source(parse_source(f"file://{path}"), Wanted(access, start=start, validator=validator)) as opened:
        return opened, b"".join([chunk async for chunk in opened.chunks])


async def refusal(path, *roots):
    with pytest.raises(PermanentError) as refused:
        await read(path, *roots)
    return refused.value


async def test_a_file_is_read_from_where_it_is_wanted_while_it_is_the_same(root):
    opened, content = await read(root / "a.gguf", root)
    assert (opened.start, opened.size, content) == (0, 10, b"0123456789")
    again, rest = await read(root / "a.gguf", root, start=4, validator=opened.validator)
    assert (again.start, rest) == (4, b"456789")
    (root / "a.gguf").write_bytes(b"changed!!!")
    os.utime(root / "a.gguf", ns=(1, 1))
    changed, content = await read(root / "a.gguf", root, start=4, validator=opened.validator)
    assert (changed.start, content) == (0, b"changed!!!")


async def test_a_missing_file_is_said_with_its_host(root):
    problem = await refusal(root / "no.gguf", root)
    assert problem.reason is Reason.FILE_MISSING
    assert str(problem) == (
        f"the file {root}/no.gguf does not exist on host gpu-3. Put it there, or change spec.source."
    )
    assert (await refusal(root / "a.gguf" / "below", root)).reason is Reason.FILE_MISSING


async def test_outside_of_the_roots_nothing_is_even_looked_for(root, tmp_path):
    there, not_there = await refusal(tmp_path / "secret", root), await refusal(tmp_path / "nothing", root)
    assert there.reason is not_there.reason is Reason.NOT_ALLOWED
    assert str(there).replace("secret", "nothing") == str(not_there)
    assert (await refusal(root / "a.gguf")).reason is Reason.NOT_ALLOWED
    assert (await refusal(f"{root}2/a.gguf", root)).reason is Reason.NOT_ALLOWED


async def test_links_are_judged_by_where_they_lead(root, tmp_path):
    (root / "inside").symlink_to(root / "a.gguf")
    (root / "outside").symlink_to(tmp_path / "secret")
    (root / "nowhere").symlink_to(tmp_path / "nothing")
    (root / "folder").symlink_to(tmp_path)
    assert (await read(root / "inside", root))[1] == b"0123456789"
    for way_out in ("outside", "nowhere", "folder/secret", "folder/nothing"):
        problem = await refusal(root / way_out, root)
        assert problem.reason is Reason.NOT_ALLOWED
        assert "leads out of" in str(problem)


async def test_a_root_that_is_a_link_is_a_root(root, tmp_path):
    (tmp_path / "link").symlink_to(root)
    assert (await read(tmp_path / "link" / "a.gguf", tmp_path / "link"))[1] == b"0123456789"
    assert (await read(root / "a.gguf", tmp_path / "link"))[1] == b"0123456789"


async def test_a_folder_that_is_swapped_while_it_is_opened_gains_nothing(root, tmp_path, monkeypatch):
    (root / "sub").mkdir()
    (root / "sub" / "secret").write_bytes(b"harmless")
    really_open = os.open

    def swap(path, flags, *rest):
        if str(path).endswith("sub/secret"):
            (root / "sub").rename(tmp_path / "away")
            (root / "sub").symlink_to(tmp_path)
        return really_open(path, flags, *rest)

    monkeypatch.setattr(os, "open", swap)
    assert (await refusal(root / "sub" / "secret", root)).reason is Reason.NOT_ALLOWED


async def test_only_regular_files_are_read(root):
    os.mkfifo(root / "pipe")
    (root / "loop").symlink_to("loop")
    for name in ("pipe", "loop"):
        assert (await refusal(root / name, root)).reason is Reason.NOT_A_FILE
    (root / "folder").mkdir()
    assert (await refusal(root / "folder", root)).reason is Reason.NOT_A_FILE


async def test_a_file_that_may_not_be_read_is_said(root, monkeypatch):
    really_open = os.open

    def refuse(path, *rest):
        if str(path).endswith("a.gguf"):
            raise PermissionError(13, "Permission denied", str(path))
        return really_open(path, *rest)

    monkeypatch.setattr(os, "open", refuse)
    problem = await refusal(root / "a.gguf", root)
    assert problem.reason is Reason.NOT_READABLE
    assert "may not be read by Pilotage" in str(problem)


async def test_a_disk_that_fails_passes(root, monkeypatch):
    def fail(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "read", fail)
    with pytest.raises(TransientError, match="Input/output error"):
        await read(root / "a.gguf", root)


async def test_a_file_is_copied_whole(root, tmp_path):
    await fetch(parse_source(f"file://{root}/a.gguf"), tmp_path / "copy", Access(roots=(root,)))
    assert (tmp_path / "copy").read_bytes() == b"0123456789"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pvc://claim/a.gguf", "read by the pod"),
        ("hf://Qwen/Qwen3", "Name a file of it"),
    ],
)
async def test_what_cannot_be_fetched_says_what_to_use(tmp_path, text, words):
    with pytest.raises(PermanentError, match=words) as refused:
        await fetch(parse_source(text), tmp_path / "x", Access())
    assert refused.value.reason is Reason.NOT_SUPPORTED


@pytest.mark.parametrize(
    ("error", "lasts"),
    [
        (FileNotFoundError(errno.ENOENT, "No such file or directory"), True),
        (NotADirectoryError(errno.ENOTDIR, "Not a directory"), True),
        (PermissionError(errno.EACCES, "Permission denied"), True),
        (PermissionError(errno.EPERM, "Operation not permitted"), True),
        (OSError(errno.EIO, "Input/output error"), False),
        (OSError(errno.ESTALE, "Stale file handle"), False),
        (TimeoutError(errno.ETIMEDOUT, "Connection timed out"), False),
    ],
)
async def test_what_heals_only_by_hand_is_told_from_what_may_pass(root, monkeypatch, error, lasts):
    """The distinction holds whatever the error was wrapped in."""

    def fail(*_):
        raise error

    monkeypatch.setattr(os, "open", fail)
    with pytest.raises(Problem) as refused:
        await read(root / "a.gguf", root)
    assert isinstance(refused.value, PermanentError if lasts else TransientError)
    assert refused.value.__cause__ is error
