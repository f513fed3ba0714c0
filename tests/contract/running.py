"""Run cases against one server, many at a time, and keep what each has noted."""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import Iterable

from tests.contract.case import Case
from tests.contract.hooks import HookServer
from tests.contract.kit import Kit, Step
from tests.contract.kubectl import Kubectl
from tests.contract.server import PARALLEL, Connected, Place

CASE_SECONDS_MAX = 300.0

LANES = {"ns": 40, "gc": 40, "kubectl": 5}
"""Cases of a theme that run at a time. These wait rather than work, or wait for each other, and so begin at once;
all other themes share one lane."""


async def run(place: Place, cases: Iterable[Case]) -> dict[str, list[Step]]:
    """The transcript of each case, by its id. A case that breaks off has a last step `broken`."""
    chosen = list(cases)
    transcripts: dict[str, list[Step]] = {}
    lanes = {theme: asyncio.Semaphore(room) for theme, room in LANES.items()}
    shared = asyncio.Semaphore(PARALLEL)
    async with Connected.to(place) as server, HookServer.started() as hooks:
        server.hooks, server.kubectl = hooks, Kubectl(place)

        async def one(case: Case) -> None:
            async with lanes.get(case.theme, shared):
                transcripts[case.id] = await run_one(server, case)

        for case in chosen:
            if case.alone:
                await one(case)
        await asyncio.gather(*(one(case) for case in chosen if not case.alone))
    return transcripts


async def run_one(server: Connected, case: Case) -> list[Step]:
    """One case, in a namespace made for it."""
    kit = Kit(server, case)
    try:
        async with asyncio.timeout(CASE_SECONDS_MAX):
            made = await kit.quiet.create("/namespaces", {"metadata": {"name": case.namespace}})
            if made.status not in (200, 201):
                raise RuntimeError(f"no namespace {case.namespace}: {made.status} {made.body}")
            await case.run(kit)
    except Exception as error:  # noqa: BLE001 (whatever it is, it belongs to this case alone)
        with contextlib.suppress(Exception):
            kit.steps.append({"broken": "".join(traceback.format_exception(error))[-3000:]})
    return kit.steps
