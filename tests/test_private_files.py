"""Folders and files that hold secrets are used only where no other user can have put anything there."""

import os
import stat

import pytest

from pilotage.private_files import NotPrivate, check_private, make_private, open_private, read_private, write_private

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def test_one_that_is_made_is_for_its_owner_alone(tmp_path):
    folder = tmp_path / "a" / "b"
    make_private(folder)
    make_private(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_one_that_others_can_write_to_is_refused(tmp_path, mode):
    tmp_path.chmod(mode)
    with pytest.raises(NotPrivate, match=f"other users can write to {tmp_path} "):
        make_private(tmp_path)


@as_root
def test_one_that_belongs_to_somebody_else_is_refused_and_so_is_a_link_of_theirs(tmp_path):
    theirs, ours, link = tmp_path / "theirs", tmp_path / "ours", tmp_path / "link"
    theirs.mkdir(mode=0o700)
    os.chown(theirs, NOBODY, NOBODY)
    with pytest.raises(NotPrivate, match=rf"{theirs} belongs to user \w+ \(65534\), and this runs as user root \(0\)"):
        check_private(theirs)
    check_private(theirs, besides=[NOBODY])
    ours.mkdir(mode=0o700)
    link.symlink_to(ours)
    check_private(link)
    os.lchown(link, NOBODY, NOBODY)
    with pytest.raises(NotPrivate, match="belongs to"):
        check_private(link)


@as_root
@pytest.mark.parametrize("touch", [read_private, open_private])
def test_a_file_of_somebody_else_is_not_read(tmp_path, touch):
    secret = tmp_path / "ca.crt"
    secret.write_text("theirs")
    os.chown(secret, NOBODY, NOBODY)
    with pytest.raises(NotPrivate, match="belongs to"):
        touch(secret)


@pytest.mark.parametrize("touch", [read_private, open_private])
def test_a_file_is_not_read_through_a_link_nor_where_others_can_write_nor_from_a_pipe(tmp_path, touch):
    real, link, pipe = tmp_path / "real", tmp_path / "link", tmp_path / "pipe"
    write_private(real, b"ours")
    assert read_private(real) == b"ours"
    link.symlink_to(real)
    os.mkfifo(pipe, 0o600)
    for path, words in ((link, "is a symbolic link"), (pipe, "is not a regular file")):
        with pytest.raises(NotPrivate, match=words):
            touch(path)
    real.chmod(0o606)
    with pytest.raises(NotPrivate, match="other users can write to"):
        touch(real)


def test_what_cannot_be_written_leaves_the_old_content_and_no_draft(tmp_path, monkeypatch):
    path = tmp_path / "secret"
    write_private(path, b"old")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(OSError, match="No space"):
        write_private(path, b"new")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("secret", b"old")]
