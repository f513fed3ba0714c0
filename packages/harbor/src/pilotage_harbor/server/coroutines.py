"""Coroutines that are begun outside of a task, because most end without waiting, and go on inside of one if not."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator

_Result = TypeVar("_Result")


@types.coroutine
def continued(handling: Coroutine[Any, Any, _Result], waits_for: object) -> Generator[object, Any, _Result]:
    """Go on, inside a task, with a coroutine that was begun outside of one and now waits for something."""
    while True:
        thrown: BaseException | None = None
        try:
            yield waits_for
        except BaseException as error:  # noqa: BLE001  # a cancellation: it is for the coroutine to see
            thrown = error
        try:
            waits_for = handling.send(None) if thrown is None else handling.throw(thrown)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
