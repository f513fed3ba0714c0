"""Two writers fetch one model into one place and are killed at random: it is never seen in part."""

import asyncio
import contextlib
import hashlib
import os
import random
import signal
import sys

from pilotage.models import fetch, parse_source
from pilotage.models.fetch import Terms
from pilotage.models.partial import claim
from tests.models.web import Cuts, open_access, web
from tests.support.waiting import eventually

KILLS = 20
CONTENT = random.Random(7).randbytes(2 << 20)
SUM = hashlib.sha256(CONTENT).hexdigest()


async def test_two_writers_killed_at_random_never_show_a_part(tmp_path):
    chance = random.Random(11)
    target = tmp_path / "model"
    seen = {"absent": 0, "whole": 0}

    def look():
        try:
            content = target.read_bytes()
        except FileNotFoundError:
            seen["absent"] += 1
            return
        seen["whole"] += 1
        assert content == CONTENT
        if chance.random() < 0.5:
            target.unlink(missing_ok=True)

    async with web(model=CONTENT) as site, maker(site.url("/model"), target) as make:
        writers = [await make(), await make()]
        for _ in range(KILLS):
            before = len(site.asked)
            async with asyncio.timeout(30):
                while len(site.asked) == before:  # some process is in the middle of a write then
                    await asyncio.sleep(0.002)
                    look()
            if chance.random() < 0.5:
                site.plans.append(Cuts(chance.randrange(len(CONTENT))))
            await asyncio.sleep(chance.random() * 0.01)
            victim = chance.randrange(2)
            os.kill(writers[victim], signal.SIGKILL)
            look()
            writers[victim] = await make()
        for writer in writers:
            os.kill(writer, signal.SIGKILL)
        await eventually(lambda: all_dead(writers))
        look()
        left = {path.name for path in tmp_path.iterdir()} - {"model"}
        assert len(left) <= 8, left  # leftovers of dead processes were taken over or removed all the time
        site.plans.clear()
        await fetch(parse_source(site.url("/model")), target, open_access(), terms=Terms(SUM))
    assert target.read_bytes() == CONTENT
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert seen["absent"]
    assert seen["whole"]
    assert any("range" in asked.headers for asked in site.asked)  # some continued the work of a dead one


@contextlib.asynccontextmanager
async def maker(url, target):
    """Gives what makes a writer, and its pid."""
    command = [sys.executable, "-m", "tests.models.writer", url, str(target), SUM]
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )

    async def make():
        process.stdin.write(b"one\n")
        async with asyncio.timeout(60):
            return int(await process.stdout.readline())

    try:
        yield make
    finally:
        process.stdin.close()
        await process.wait()


async def all_dead(pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 0)
            return False
    return True


def test_two_claims_never_get_the_same_file(tmp_path):
    one, two = claim(tmp_path / "x", "s"), claim(tmp_path / "x", "s")
    assert one.path != two.path
    one.begin('"v"')
    one.write(b"abc")
    one.pause()
    three, four = claim(tmp_path / "x", "s"), claim(tmp_path / "x", "s")
    assert (three.path, three.length, three.validator) == (one.path, 3, '"v"')
    assert four.path not in (two.path, three.path)
    for each in (two, three, four):
        each.discard()
    assert list(tmp_path.iterdir()) == []


def test_a_file_gets_its_name_by_a_rename(tmp_path):
    partial = claim(tmp_path / "x", "s")
    partial.begin("")
    partial.write(b"abc")
    number = partial.path.stat().st_ino
    partial.publish()
    assert (tmp_path / "x").stat().st_ino == number


def test_the_longest_of_what_was_left_is_continued_and_the_rest_removed(tmp_path):
    parts = [claim(tmp_path / "x", "s") for _ in range(3)]
    for index, part in enumerate(parts):
        part.begin('"v"')
        part.write(b"a" * (index + 1))
    for part in parts:
        part.pause()
    taken = claim(tmp_path / "x", "s")
    assert taken.length == 3
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".note", ".partial"]
    taken.discard()


def test_what_a_writer_left_that_died_while_it_wrote_its_note_goes_with_the_file(tmp_path):
    dead = claim(tmp_path / "x", "s")
    dead.begin('"v"')
    dead.write(b"ab")
    dead.pause()
    dead.path.with_suffix(".new").write_bytes(b"half a no")
    taken = claim(tmp_path / "x", "s")
    assert taken.length == 2
    taken.write(b"c")
    taken.publish()
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
