"""Storage of Models: one copy for all that ask for the same, persistent, and removed with the last of them."""

import asyncio
import hashlib
import os
from pathlib import Path

import pytest

from pilotage.models import (
    FetchRequest,
    FileModelStore,
    ModelCache,
    PermanentError,
    Problem,
    Reason,
    SourceCredentials,
    TransientError,
    parse_source,
)
from pilotage.models.format import read_format
from tests.models.web import Cuts, Stalls, Unsized, open_access, web
from tests.models.weights import gguf

WEIGHTS = gguf(filler=1_500_000)
SUM = hashlib.sha256(WEIGHTS).hexdigest()


def keeper_of(tmp_path, owner=""):
    return FileModelStore(ModelCache(tmp_path / "cache", owner), open_access(tmp_path))


async def keep(keeper, url, user="u1", credentials=None, progress=lambda *_: None, **request):
    request = FetchRequest(parse_source(url), user=user, **request)
    return await keeper.keep(request, credentials or SourceCredentials(), progress)


def files(tmp_path):
    root = tmp_path / "cache"
    return sorted(str(path.relative_to(root)) for path in root.rglob("*.gguf"))


async def test_two_who_ask_for_the_same_share_one_file_that_is_fetched_once(tmp_path):
    async with web(**{"a.gguf": WEIGHTS}) as site:
        keeper = keeper_of(tmp_path)
        one, two = await asyncio.gather(*(keep(keeper, site.url("/a.gguf"), user) for user in ("u1", "u2")))
        again = await keep(keeper_of(tmp_path), site.url("/a.gguf"))
    assert one == two == again
    assert (one.size, one.sha256, one.in_place) == (len(WEIGHTS), SUM, False)
    assert (one.format.kind, one.format.architecture) == ("GGUF", "qwen3")
    assert len(site.asked) == 1
    assert len(files(tmp_path)) == 1


async def test_it_goes_with_the_last_who_used_it_and_says_what_went(tmp_path):
    async with web(**{"a.gguf": WEIGHTS}) as site:
        keeper = keeper_of(tmp_path)
        kept = await keep(keeper, site.url("/a.gguf"), "u1")
        await keep(keeper, site.url("/a.gguf"), "u2")
    (first,) = await keeper.release("u1")
    assert first.kept_for == "another Model"
    (second,) = await keeper.release("u2")
    assert (second.path, second.size, second.kept_for) == (kept.path, len(WEIGHTS), "")
    assert list((tmp_path / "cache").iterdir()) == []
    assert await keeper.release("u2") == []


async def test_what_is_to_be_retained_stays_until_somebody_uses_it_without_that_wish(tmp_path):
    async with web(**{"a.gguf": WEIGHTS}) as site:
        keeper = keeper_of(tmp_path)
        await keep(keeper, site.url("/a.gguf"), retain=True)
        (stays,) = await keeper.release("u1")
        assert stays.kept_for == "its cache policy"
        assert await keeper.sweep(set()) == []
        await keep(keeper, site.url("/a.gguf"), "u2")
        assert len(site.asked) == 1
        (gone,) = await keeper.release("u2", retain=False)
    assert not gone.kept_for
    assert files(tmp_path) == []


async def test_a_change_of_mind_lets_the_former_file_go(tmp_path):
    async with web(**{"a.gguf": WEIGHTS, "b.gguf": WEIGHTS}) as site:
        keeper = keeper_of(tmp_path)
        await keep(keeper, site.url("/a.gguf"))
        kept = await keep(keeper, site.url("/b.gguf"))
    (gone,) = await keeper.release("u1", but=FetchRequest(parse_source(site.url("/b.gguf"))))
    assert gone.path.endswith("/a.gguf")
    assert files(tmp_path) == [kept.path.removeprefix(f"{tmp_path}/cache/")]


async def test_what_belongs_to_nobody_is_swept_but_not_what_another_operator_keeps(tmp_path):
    async with web(**{"a.gguf": WEIGHTS, "b.gguf": WEIGHTS, "c.gguf": WEIGHTS}) as site:
        await keep(keeper_of(tmp_path, "one"), site.url("/a.gguf"), "u1")
        await keep(keeper_of(tmp_path, "one"), site.url("/b.gguf"), "u2")
        await keep(keeper_of(tmp_path, "two"), site.url("/c.gguf"), "u3")
    (tmp_path / "cache" / ".trash-0123456789abcdef").mkdir()
    (tmp_path / "cache" / "somebody-elses").mkdir()
    (gone,) = await keeper_of(tmp_path, "one").sweep({"u1"})
    assert gone.path.endswith("/b.gguf")
    left = sorted(path.name for path in (tmp_path / "cache").iterdir())
    assert len(left) == 3
    assert left[-1] == "somebody-elses"
    assert {name.rpartition("/")[2] for name in files(tmp_path)} == {"a.gguf", "c.gguf"}


async def test_nothing_outside_of_the_root_is_removed(tmp_path):
    async with web(**{"a.gguf": WEIGHTS}) as site:
        keeper = keeper_of(tmp_path)
        kept = await keep(keeper, site.url("/a.gguf"))
    (tmp_path / "precious").write_text("stays")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "precious").write_text("stays")
    folder = (tmp_path / kept.path).parent
    (folder / "link").symlink_to(tmp_path / "precious")
    (folder / "links").symlink_to(tmp_path / "folder")
    (tmp_path / "cache" / ("0" * 32)).symlink_to(tmp_path / "folder")
    await keeper.release("u1")
    await keeper.sweep(set())
    assert (tmp_path / "precious").read_text() == (tmp_path / "folder" / "precious").read_text() == "stays"
    assert not folder.exists()


async def test_what_one_reads_with_a_secret_is_not_given_to_another(tmp_path):
    async with web(**{"a.gguf": WEIGHTS}) as site:
        keeper = keeper_of(tmp_path)
        token = SourceCredentials({"token": "t", "hosts": site.host})
        mine = await keep(keeper, site.url("/a.gguf"), namespace="chat", secret="token", credentials=token)
        other = await keep(keeper, site.url("/a.gguf"), "u2")
    assert mine.path != other.path
    assert [asked.headers.get("authorization") for asked in site.asked] == ["Bearer t", None]


async def test_a_file_that_was_tampered_with_is_fetched_again(tmp_path):
    async with web(**{"a.gguf": WEIGHTS}) as site:
        keeper = keeper_of(tmp_path)
        kept = await keep(keeper, site.url("/a.gguf"))
        path = tmp_path / kept.path
        path.write_bytes(WEIGHTS + b"more")
        await keep(keeper, site.url("/a.gguf"))
        path.unlink()
        await keep(keeper, site.url("/a.gguf"))
    assert len(site.asked) == 3
    assert path.read_bytes() == WEIGHTS


@pytest.mark.parametrize("wrong", [{"sha256": "0" * 64}, {"format": "Safetensors"}])
async def test_a_content_that_is_no_good_is_read_once_and_again_when_it_changes(tmp_path, wrong):
    async with web(**{"a.gguf": WEIGHTS}) as site:
        keeper = keeper_of(tmp_path)
        said, sent = set(), []
        for _ in range(3):
            with pytest.raises(PermanentError) as refused:
                await keep(keeper, site.url("/a.gguf"), progress=lambda done, _: sent.append(done), **wrong)
            said.add((refused.value.reason, str(refused.value)))
        with pytest.raises(PermanentError):
            await keep(keeper_of(tmp_path), site.url("/a.gguf"), **wrong)
        assert len(said) == 1
        assert sent.count(0) == 1  # it was asked each time, and read once
        assert len(site.asked) == 4
        site.etags["/a.gguf"] = '"another"'
        with pytest.raises(PermanentError):
            await keep(keeper, site.url("/a.gguf"), progress=lambda done, _: sent.append(done), **wrong)
        assert sent.count(0) == 2
    assert files(tmp_path) == []


async def test_a_source_without_a_validator_is_read_again_after_an_hour(tmp_path, monkeypatch):
    async with web(**{"a.gguf": b"no model"}) as site:
        site.etags.clear()
        keeper = keeper_of(tmp_path)
        sent = []
        for hours in (0, 0.5, 1.5):
            monkeypatch.setattr("time.time", lambda hours=hours: 1e9 + hours * 3600)
            with pytest.raises(PermanentError):
                await keep(keeper, site.url("/a.gguf"), progress=lambda done, _: sent.append(done))
    assert sent.count(0) == 2


async def test_a_wrong_sum_of_an_answer_without_a_length_is_not_believed_for_ever(tmp_path, monkeypatch):
    """It may have been cut short, where no header tells; the source will not say that anything has changed."""
    whole = b"weights of a format that is not known" * 100
    wanted = {"sha256": hashlib.sha256(whole).hexdigest()}
    async with web(**{"a.bin": whole}) as site:
        keeper = keeper_of(tmp_path)
        site.plans = [Unsized(1000)]
        for hours in (0, 0.5):
            monkeypatch.setattr("time.time", lambda hours=hours: 1e9 + hours * 3600)
            with pytest.raises(PermanentError) as refused:
                await keep(keeper, site.url("/a.bin"), **wanted)
            assert refused.value.reason is Reason.CHECKSUM
        monkeypatch.setattr("time.time", lambda: 1e9 + 1.5 * 3600)
        assert (await keep(keeper, site.url("/a.bin"), **wanted)).size == len(whole)


async def test_what_broke_off_is_continued_and_belongs_to_its_user(tmp_path):
    async with web(**{"a.gguf": WEIGHTS}) as site:
        keeper = keeper_of(tmp_path)
        site.plans = [Cuts(1_200_000)]
        with pytest.raises(TransientError):
            await keep(keeper, site.url("/a.gguf"), sha256=SUM)
        await keep(keeper, site.url("/a.gguf"), sha256=SUM)
        assert "range" in site.asked[1].headers
        site.plans = [Cuts(1_200_000)]
        with pytest.raises(TransientError):
            await keep(keeper, site.url("/a.gguf"), "u2")
    (part,) = await keeper.release("u2")
    assert part.path.endswith(".partial")


async def test_a_local_file_is_used_where_it_lies_and_hashed_once(tmp_path):
    (tmp_path / "a.gguf").write_bytes(WEIGHTS)
    url = f"file://{tmp_path}/a.gguf"
    hashed = []
    for _ in range(2):
        kept = await keep(keeper_of(tmp_path), url, sha256=SUM, progress=lambda done, _: hashed.append(done))
        assert (kept.path, kept.in_place, kept.sha256) == (f"{tmp_path}/a.gguf", True, SUM)
        assert kept.format.quantization == "Q4_K_M"
    assert hashed == [len(WEIGHTS)]
    assert files(tmp_path) == []
    assert await keeper_of(tmp_path).release("u1") == []
    assert (tmp_path / "a.gguf").read_bytes() == WEIGHTS


async def test_a_local_file_that_changes_is_looked_at_again(tmp_path):
    path = tmp_path / "a.gguf"
    path.write_bytes(WEIGHTS)
    keeper = keeper_of(tmp_path)
    await keep(keeper, f"file://{path}", sha256=SUM)
    path.write_bytes(WEIGHTS[::-1])
    for _ in range(2):
        with pytest.raises(PermanentError) as refused:
            await keep(keeper, f"file://{path}", sha256=SUM)
        assert refused.value.reason is Reason.CHECKSUM
    path.write_bytes(WEIGHTS)
    assert (await keep(keeper, f"file://{path}", sha256=SUM)).sha256 == SUM
    path.unlink()
    with pytest.raises(PermanentError) as missing:
        await keep(keeper, f"file://{path}", sha256=SUM)
    assert missing.value.reason is Reason.FILE_MISSING


async def test_a_cache_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "cache").write_text("no folder")
    async with web(**{"a.gguf": WEIGHTS}) as site:
        with pytest.raises(PermanentError) as refused:
            await keep(keeper_of(tmp_path), site.url("/a.gguf"))
    assert refused.value.reason is Reason.STORAGE
    assert site.asked == []


# The file that was checked


async def test_a_file_whose_time_stamp_was_set_back_is_read_again(tmp_path):
    path = tmp_path / "a.gguf"
    path.write_bytes(WEIGHTS)
    before = path.stat()
    await keep(keeper_of(tmp_path), f"file://{path}", sha256=SUM)
    with path.open("r+b") as file:
        file.seek(-4, os.SEEK_END)
        file.write(b"evil")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(PermanentError) as refused:
        await keep(keeper_of(tmp_path), f"file://{path}", sha256=SUM)
    assert refused.value.reason is Reason.CHECKSUM


async def test_a_path_is_that_of_the_file_and_not_of_a_link_to_it(tmp_path):
    path = tmp_path / "a.gguf"
    path.write_bytes(WEIGHTS)
    (tmp_path / "link.gguf").symlink_to(path)
    kept = await keep(keeper_of(tmp_path), f"file://{tmp_path}/link.gguf")
    assert kept.path == str(path)
    (tmp_path / "link.gguf").unlink()
    await keeper_of(tmp_path).confirm(kept)


def swapped(path, how):
    """Put something else where the file is, with the same size and the same time stamp."""
    before = path.stat()
    other = path.with_name("other")
    other.write_bytes(WEIGHTS[::-1])
    if how == "written":
        path.write_bytes(other.read_bytes())
    elif how == "replaced":
        other.replace(path)
    else:
        path.unlink()
        if how == "gone":
            return
        path.symlink_to(other)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("swap", ["written", "replaced", "linked", "gone"])
@pytest.mark.parametrize("in_place", [True, False])
async def test_a_file_that_is_not_the_checked_one_any_more_is_not_confirmed(tmp_path, swap, in_place):
    keeper = keeper_of(tmp_path)
    async with web(**{"a.gguf": WEIGHTS}) as site:
        (tmp_path / "a.gguf").write_bytes(WEIGHTS)
        kept = await keep(keeper, f"file://{tmp_path}/a.gguf" if in_place else site.url("/a.gguf"))
        await keeper.confirm(kept)
    swapped(Path(kept.path), swap)
    with pytest.raises(Problem):
        await keeper.confirm(kept)


def _rename_over(path):
    path.with_name("other").replace(path)


def _swap_folder(path):
    path.parent.rename(path.parent.with_name("away"))
    path.parent.mkdir()
    path.write_bytes(WEIGHTS[::-1])


@pytest.mark.parametrize("replace", [_rename_over, _swap_folder])
@pytest.mark.parametrize("sha256", [SUM, ""])
async def test_a_file_that_is_replaced_while_it_is_checked_is_not_published(tmp_path, monkeypatch, replace, sha256):
    """Other programs are given the path: it has to lead to the file that was hashed."""
    path = tmp_path / "models" / "a.gguf"
    path.parent.mkdir()
    path.write_bytes(WEIGHTS)
    path.with_name("other").write_bytes(WEIGHTS[::-1])
    really_read = read_format

    def swap(*args):
        monkeypatch.undo()
        replace(path)
        return really_read(*args)

    monkeypatch.setattr("pilotage.models.store.read_format", swap)
    keeper = keeper_of(tmp_path)
    with pytest.raises(TransientError) as refused:
        await keep(keeper, f"file://{path}", sha256=sha256)
    assert refused.value.reason is Reason.CHANGED
    with pytest.raises(PermanentError):  # the next attempt sees what is there now
        await keep(keeper, f"file://{path}", sha256=sha256)


# Fair shares


async def test_a_namespace_whose_sources_deliver_nothing_does_not_keep_others_from_theirs(tmp_path):
    """Eight stalled fetches hold all slots. Another namespace gets one at once; the one that lost its slot resumes."""
    slow = {f"slow-{number}.gguf": WEIGHTS for number in range(8)}
    async with web(**slow, **{"a.gguf": WEIGHTS}) as site:
        keeper = keeper_of(tmp_path)
        site.plans = [Stalls(1000)] * 8
        stuck = [
            asyncio.create_task(keep(keeper, site.url(f"/{name}"), f"u{number}", namespace="greedy"))
            for number, name in enumerate(slow)
        ]
        async with asyncio.timeout(30):
            await site.until_asked(8)
            kept = await keep(keeper, site.url("/a.gguf"), "other", namespace="modest")
            assert kept.sha256 == SUM
            done, left = await asyncio.wait(stuck, return_when=asyncio.FIRST_COMPLETED)
        assert [task.result().sha256 for task in done] == [SUM]
        for task in left:
            task.cancel()
        await asyncio.wait(left)
