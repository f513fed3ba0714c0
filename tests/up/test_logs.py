"""Logs that grow are rotated while they are written, in virtual time."""

import asyncio
import os

from pilotage.up import logs
from pilotage_sim.loop import virtual


@virtual
async def test_a_log_is_rotated_again_and_again_and_its_writer_goes_on(tmp_path):
    log, earlier, short = tmp_path / "part.log", tmp_path / "part.log.1", tmp_path / "short.log"
    short.write_text("short")
    said: list[str] = []
    running = asyncio.create_task(logs.keep_short([log, short, tmp_path / "none.log"], said.append))
    with log.open("ab", buffering=0) as writer:
        for life in (b"first", b"second"):
            writer.write(life)
            os.truncate(log, logs.BYTES_MAX + 1)
            await asyncio.sleep(logs.CHECK_SECONDS + 1)
            assert log.read_bytes() == b""
            assert earlier.read_bytes().rstrip(b"\0") == life
        writer.write(b"third")
        await asyncio.sleep(logs.CHECK_SECONDS + 1)
    assert log.read_bytes() == b"third"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["part.log", "part.log.1", "short.log"]
    assert said == []
    running.cancel()


@virtual
async def test_a_rotation_that_fails_is_reported_once_and_retried(tmp_path):
    log, earlier = tmp_path / "part.log", tmp_path / "part.log.1"
    earlier.mkdir()
    log.touch()
    os.truncate(log, logs.BYTES_MAX + 1)
    said: list[str] = []
    running = asyncio.create_task(logs.keep_short([log], said.append))
    await asyncio.sleep(10 * logs.RETRY_SECONDS)
    assert [each.partition(": ")[0] for each in said] == [f"{log} cannot be rotated, which is retried"]
    assert log.stat().st_size > logs.BYTES_MAX, "nothing is cut that was not copied"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["part.log", "part.log.1"], "nor is a copy left"
    earlier.rmdir()
    await asyncio.sleep(2 * logs.RETRY_SECONDS)
    assert log.stat().st_size == 0
    running.cancel()
