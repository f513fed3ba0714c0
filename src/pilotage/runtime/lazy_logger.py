"""A logger for code that rarely has anything to say: structlog is imported when it does.

That takes as long as everything else that a short command imports.
"""

from __future__ import annotations

from typing import Any


class LazyLogger:
    """Like ``structlog.get_logger(name)``. Where nobody has configured logging, it goes to standard error."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, method: str) -> Any:  # noqa: ANN401 - the methods of a bound logger
        import structlog

        if not structlog.is_configured():
            from pilotage.runtime.logs import configure_logging

            configure_logging(level="warning")
        return getattr(structlog.get_logger(self._name), method)
