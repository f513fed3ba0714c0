"""Ctrl-C and SIGTERM while a command waits: what runs elsewhere goes on, and what runs here ends in order."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pilotage.teardown.session.execution import Execution

INTERRUPTED = 130
"""The exit code of a command that was ended by Ctrl-C."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(Exception):
    """Ctrl-C."""


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Raise Interrupted on Ctrl-C and SIGTERM: the operation continues in the cluster, and that has to be said."""
    task = asyncio.current_task()
    assert task is not None
    struck = False

    def strike() -> None:
        nonlocal struck
        struck = True
        task.cancel()

    with _handled(strike):
        try:
            yield
        except asyncio.CancelledError:
            if not struck:
                raise
            task.uncancel()
            raise Interrupted from None


@contextlib.contextmanager
def stopping(execution: Execution) -> Iterator[None]:
    """The first Ctrl-C lets requests under way end; the second cancels the task at once."""
    task = asyncio.current_task()
    assert task is not None
    strokes = 0

    def stop() -> None:
        nonlocal strokes
        strokes += 1
        if strokes == 1:
            execution.stop()
        elif not execution.ended:
            task.cancel()

    with _handled(stop):
        try:
            yield
        finally:
            if strokes:  # all is said by now: another one changes nothing
                _ignore_from_now_on()


@contextlib.contextmanager
def _handled(handler: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number in _SIGNALS:
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number, previous in before.items():
            if loop.remove_signal_handler(number):
                signal.signal(number, previous)


def _ignore_from_now_on() -> None:
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_IGN)
