"""A logger for code that rarely has anything to say: structlog is imported when it does.

That takes as long as everything else that a short command imports.
"""

import contextlib
from collections.abc import Iterator
from typing import Any, ClassVar


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Let the code that logs through here say nothing: for commands that say themselves what is the matter."""
    LazyLogger.silent = True
    try:
        yield
    finally:
        LazyLogger.silent = False


def _nothing(*_: object, **__: object) -> None:
    """A method of a silent logger."""


class LazyLogger:
    """Like ``structlog.get_logger(name)``. Where nobody has configured logging, it goes to standard error."""

    silent: ClassVar[bool] = False

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, method: str) -> Any:  # noqa: ANN401 - the methods of a bound logger
        if LazyLogger.silent:
            return _nothing
        import structlog

        if not structlog.is_configured():
            from pilotage.runtime.logs import configure_logging

            configure_logging(level="warning")
        return getattr(structlog.get_logger(self._name), method)
