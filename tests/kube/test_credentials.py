"""A token file as it is rotated, broken and repaired, and what is sent meanwhile."""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path

import pytest

from pilotage.kube.credentials import Impersonating, TokenFile
from pilotage_sim.loop import virtual


class Rotated:
    """A token file that is rotated."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "token"
        self.write(b"first\n")

    def write(self, content: bytes) -> None:
        self.path.write_bytes(content)

    def remove(self) -> None:
        self.path.unlink()


@pytest.fixture
def file(tmp_path: Path) -> Rotated:
    return Rotated(tmp_path)


@pytest.fixture
def token(file: Rotated) -> TokenFile:
    return TokenFile(file.path, origin="here")


def bearer(token: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {token}"}


@virtual
async def test_a_rotated_token_is_seen_after_a_minute_of_the_loop(file: Rotated, token: TokenFile) -> None:
    assert await token.headers() == bearer("first")
    file.write(b"second")
    await asyncio.sleep(60)
    assert await token.headers() == bearer("first")
    await asyncio.sleep(0.1)
    assert await token.headers() == bearer("second")
    file.write(b"third")
    await asyncio.sleep(60)
    assert await token.headers() == bearer("second")
    await asyncio.sleep(0.1)
    assert await token.headers() == bearer("third")


@virtual
async def test_a_rotated_token_is_seen_at_once_after_a_401(file: Rotated, token: TokenFile) -> None:
    assert await token.headers() == bearer("first")
    file.write(b"second")
    token.rejected()
    assert await token.headers() == bearer("second")


@virtual
async def test_what_was_rotated_between_loading_and_the_first_request_is_seen(file: Rotated, token: TokenFile) -> None:
    file.write(b"second")
    assert await token.headers() == bearer("second")


@pytest.mark.parametrize("broken", [b"", b" \n", b"\xff\xfe", b"two\nlines", None], ids=repr)
@virtual
async def test_the_last_good_token_stays_while_the_file_is_broken(
    file: Rotated, token: TokenFile, broken: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    assert await token.headers() == bearer("first")
    if broken is None:
        file.remove()
    else:
        file.write(broken)
    token.rejected()
    for _ in range(3):
        assert await token.headers() == bearer("first")
    assert [(record.levelno, record.name) for record in caplog.records] == [
        (logging.WARNING, "pilotage.kube.credentials")
    ]
    assert str(file.path) in caplog.text
    assert "two" not in caplog.text
    file.write(b"second")
    assert await token.headers() == bearer("second")  # no need to wait for another minute
    file.remove()
    await asyncio.sleep(61)
    assert await token.headers() == bearer("second")
    assert len(caplog.records) == 2  # another failure, another line


@virtual
async def test_the_fallback_lasts_until_the_file_can_be_read(file: Rotated) -> None:
    file.remove()
    token = TokenFile(file.path, origin="here", fallback=bearer("fallback"))
    assert await token.headers() == bearer("fallback")
    file.write(b"file")
    assert await token.headers() == bearer("file")


@virtual
async def test_nothing_is_read_and_nothing_made_while_nothing_changes(
    file: Rotated, token: TokenFile, caplog: pytest.LogCaptureFixture
) -> None:
    acting = Impersonating(token, [("Impersonate-User", "jane")])
    first = await acting.headers()
    file.remove()  # to read it now would be a line in the log
    await asyncio.sleep(60)
    assert await acting.headers() is first
    assert list(first.items()) == [("Authorization", "Bearer first"), ("Impersonate-User", "jane")]
    assert not caplog.records


@virtual
async def test_impersonation_passes_a_401_on(file: Rotated, token: TokenFile) -> None:
    acting = Impersonating(token, [("Impersonate-User", "jane")])
    used = await acting.headers()
    file.write(b"second")
    acting.rejected(used)
    assert await acting.headers() == {**bearer("second"), "Impersonate-User": "jane"}
