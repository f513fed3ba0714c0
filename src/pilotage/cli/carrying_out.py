"""Carrying a teardown out: the receipt before and after, the progress in between, and what Ctrl-C means."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import signal
import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import msgspec

from pilotage.cli.errors import BadTarget
from pilotage.cli.output.progress import Block, Events, Lines, describe, use_block, wait_to_json
from pilotage.cli.output.text import say
from pilotage.kube import ApiError, ObjectKey, Resource
from pilotage.kube.wire import format_time, parse_time
from pilotage.runtime.clock import utc_now
from pilotage.runtime.lazy_logger import silenced
from pilotage.teardown.diagnosis.remedies import spelled, strip_command
from pilotage.teardown.engine.decision import Cause
from pilotage.teardown.engine.drive import Drive
from pilotage.teardown.engine.receipt import ReceiptError, begin, conclude, save

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pilotage.cli.connection import Connection
    from pilotage.cli.output.progress import Progress
    from pilotage.teardown.engine.progress import Outcome
    from pilotage.teardown.engine.receipt import Receipt
    from pilotage.teardown.planning.ledger import Ledger
    from pilotage.teardown.snapshot.world import World

INTERRUPTED = 130
BLOCKERS_MAX = 20


async def identity(connection: Connection, world: World | None = None) -> str:
    """Which cluster this is: the uid of its namespace kube-system. Empty where that may not be read.

    It never changes: if a `world` has shown it, nobody is asked.
    """
    seen = world.find("", "Namespace", "", "kube-system") if world is not None else None
    if seen is not None:
        return seen.uid
    namespaces = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
    try:
        found = await connection.client.get(namespaces, ObjectKey("", "kube-system"), metadata_only=True)
    except ApiError:
        return ""
    return found.meta.uid


async def carry_out(
    connection: Connection, ledger: Ledger, world: World, *, receipt: Path | None, as_json: bool
) -> int:
    """Drive a teardown to its end, and say how it ended. Returns the exit code."""
    gc.freeze()  # from here on it may take a while; what there is by now stays to the end
    gc.set_threshold(50_000, 20, 50)
    gc.enable()
    ledger = msgspec.structs.replace(ledger, started=format_time(utc_now()))  # the plan may have been read for long
    path = receipt or default_receipt(ledger)
    cluster = await identity(connection, world)
    try:
        save(begin(ledger, connection.server, cluster), path)
    except ReceiptError as error:
        raise BadTarget(f"{error}. Nothing was done; say where it goes with --receipt.") from error
    shown: list[Progress] = []
    drive = Drive(
        connection.client,
        ledger,
        rng=random.Random(),  # noqa: S311 - it spreads retries
        world=world,
        on_step=lambda step: shown[0].step(step),
        on_decision=lambda decision: shown[0].decision(decision, utc_now()),
        on_ledger=lambda grown: save(begin(grown, connection.server, cluster), path),
    )
    shown.append(_progress(drive, as_json=as_json))
    with _stopping(drive), silenced():
        try:
            outcome = await drive.run()
        except asyncio.CancelledError:  # the second Ctrl-C
            say(f"Stopped at once. Go on with: pilotage delete --resume {quote(str(path))}", err=True)
            return INTERRUPTED
        shown[0].close()
        ended = conclude(outcome, connection.server, utc_now(), cluster)
        code = _tell(outcome, ended, drive, path, as_json=as_json)
        try:
            save(ended, path)
        except ReceiptError as error:
            say(f"Error: {error}. What is said above is true; the file is as it was at the start.", err=True)
            return code or 1
        return code


def default_receipt(ledger: Ledger) -> Path:
    """``NAME-DATE-TIME.json`` in the working directory, after the first that was named; never one that is there."""
    name = ledger.targets[0].partition(" ")[0].rpartition("/")[2] if ledger.targets else "teardown"
    stem = f"{name}-{parse_time(ledger.started):%Y%m%d-%H%M%S}"
    path, number = Path(f"{stem}.json"), 1
    while path.exists():
        number += 1
        path = Path(f"{stem}-{number}.json")
    return path


def _progress(drive: Drive, *, as_json: bool) -> Progress:
    if as_json:
        return Events(sys.stdout)
    if use_block(sys.stdout):
        import shutil

        return Block(drive, sys.stdout, width=shutil.get_terminal_size().columns)
    return Lines(drive, sys.stdout)


@contextlib.contextmanager
def _stopping(drive: Drive) -> Iterator[None]:
    """The first Ctrl-C lets what is under way end; the second ends at once."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    strokes = 0

    def stop() -> None:
        nonlocal strokes
        strokes += 1
        if strokes == 1:
            drive.stop()
        elif not drive.ended:
            task.cancel()

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN if strokes else handler)  # after a stroke, all is said by now


def _tell(outcome: Outcome, receipt: Receipt, drive: Drive, path: Path, *, as_json: bool) -> int:
    """The end: what is gone, what is left and why, and how to go on. Returns the exit code."""
    gone, kept, going = receipt.count("gone"), receipt.count("kept"), len(outcome.ledger.going)
    if as_json:
        Events(sys.stdout).say(
            {
                "event": "end",
                "result": receipt.result,
                "gone": gone,
                "kept": kept,
                "blockers": [wait_to_json(wait) for wait in outcome.decision.blockers],
                "notes": list(receipt.notes),
                "advice": how_to_let_go(outcome, drive),
                "receipt": str(path),
            }
        )
    elif outcome.complete:
        assert outcome.proof is not None
        version = outcome.proof.resource_version
        at = f", read at resourceVersion {version}" if version else ""
        say(f"prove    {gone} gone by uid, {len(receipt.references)} references left{at}")
        for text in receipt.references[:BLOCKERS_MAX]:
            say(f"left     {text}")
        for note in receipt.notes:
            say(f"note     {note}")
        say(f"Receipt: {path} ({gone} gone, {kept} kept)")
    else:
        _tell_what_is_left(outcome, receipt, drive, path, going)
    if receipt.result == "complete":
        return 0
    return INTERRUPTED if drive.stopped else 1


def _tell_what_is_left(outcome: Outcome, receipt: Receipt, drive: Drive, path: Path, going: int) -> None:
    seen = sum(drive.observations.get(entry.uid).state in ("gone", "foreign") for entry in outcome.ledger.going)
    lines = [f"{'Stopped.' if drive.stopped else 'Not finished.'} {seen} of {going} are gone."]
    held = [entry for entry in outcome.ledger.going if drive.is_held(entry)]
    if held:
        lines.append(f"{', '.join(map(str, held[:3]))} waits for its parts, and stays until they are gone.")
    now = utc_now()
    lines += (f"  {describe(wait, now)}" for wait in outcome.decision.blockers[:BLOCKERS_MAX])
    lines += (f"  {note}" for note in receipt.notes)
    lines += how_to_let_go(outcome, drive)
    lines.append(f"Go on with: pilotage delete --resume {quote(str(path))}")
    say(*lines, err=True)


def how_to_let_go(outcome: Outcome, drive: Drive) -> list[str]:
    """What a person can do about finalizers that nobody takes off: we remove none but our own."""
    lines = []
    for wait in outcome.decision.blockers:
        entry = wait.entry
        for finalizer in drive.observations.get(entry.uid).finalizers if wait.cause is Cause.FINALIZER else ():
            if finalizer in entry.abandoned:
                who = entry.keeper or "its controller"
                command = strip_command(spelled(entry.resource, entry.full_name), finalizer)
                lines.append(f"Bring {who} back, or let go of {entry} without it: {command}")
    return lines[:BLOCKERS_MAX]
