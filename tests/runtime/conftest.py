"""Fixtures for tests of the runtime."""

import asyncio
import contextlib
from pathlib import Path

import pytest

from controlplane import Access, Cluster
from tests.runtime.waiting import eventually


def open_sockets() -> set[str]:
    """The sockets of this process, by inode."""
    links = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            links.append(str(descriptor.readlink()))
    return {link for link in links if link.startswith("socket:")}


@pytest.fixture
async def no_leaks(cluster: Access):
    """Check that no task and no socket is left after the test and after the fixtures that depend on this one."""
    tasks, sockets = asyncio.all_tasks(), open_sockets()
    yield
    mine = {asyncio.current_task()}
    if isinstance(cluster, Cluster):
        cluster.disconnect()  # its idle connections are its own
    await eventually(lambda: not (asyncio.all_tasks() - tasks - mine) and not (open_sockets() - sockets))
