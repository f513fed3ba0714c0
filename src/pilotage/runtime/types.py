"""The contract between a controller and what it runs.

`Reconcile` is a coroutine function from a key to an outcome. It is told which object to look at, never what happened
to it: it reads the state of the world and moves it one step. One key is never reconciled twice at the same time.

- It returns None or ``Result()``: done. It is called again when something it watches changes.
- It returns ``Result(requeue_after=seconds)``: done for now. It is called again after that, or earlier on a change.
- It raises `TerminalError`: the object cannot be brought further until somebody changes it. Its condition Stalled says
  why, one Event is recorded, and it is not tried again until it changes.
- It raises anything else: tried again with exponential backoff for this key (5 ms to 1000 s), and never earlier than
  a throttling server asked for. An error beats any wish for a delay.

What a reconcile writes to the very object it reconciles does not wake it again: it knows. A change by anybody else, or
to any other object that it watches, does.
"""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import NamedTuple

from pilotage.kube import ObjectKey


class Result(NamedTuple):
    """Result of a successful reconcile. `requeue_after`: seconds until it wants to be called again at the latest."""

    requeue_after: float | None = None


class TerminalError(Exception):
    """Trying again will not help. `reason` is one CamelCase word for the condition; the message is for people."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class Reconciling(NamedTuple):
    """One reconcile under way."""

    controller: str
    key: ObjectKey
    number: int
    """Random; the logs call it `reconcile_id`."""


reconciling: ContextVar[Reconciling | None] = ContextVar("reconciling", default=None)
"""Key that the current task reconciles."""


Reconcile = Callable[[ObjectKey], Awaitable[Result | None]]
