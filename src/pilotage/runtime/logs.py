"""Structured logs: one event per line, with the controller, the key and the id of the reconcile that it belongs to."""

import contextlib
import io
import logging
import os
import sys
from typing import Any, TextIO, cast

import structlog

from pilotage.runtime.types import reconciling
from pilotage.terminal import one_line, own, printable

FORMAT = "PILOTAGE_LOGS"
"""The variable that says ``text`` or ``json``, where it does not go by whether somebody looks on."""


def configure_logging(*, level: str = "info", json: bool | None = None) -> None:
    """Log to standard error from this level up: as JSON lines, or readable where standard error is a terminal.

    `PILOTAGE_LOGS` says otherwise, if it is `text` or `json`.
    """
    said = {"json": True, "text": False}.get(os.environ.get(FORMAT, ""), not sys.stderr.isatty())
    as_json = said if json is None else json
    renderer: list[structlog.typing.Processor] = (
        [structlog.processors.dict_tracebacks, structlog.processors.JSONRenderer()]
        if as_json
        else [
            escape_values,
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=_escaped_traceback),
            _let_colours_pass,
        ]
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            name_reconcile,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.WriteLoggerFactory(cast("TextIO", _Lossy(sys.stderr))),
        cache_logger_on_first_use=False,
    )


class _Lossy:
    """Stream that drops what cannot be written, to a full disk for instance: no act may fail because of its log."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError):
            self._stream.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.flush()


def escape_values(
    _logger: structlog.typing.WrappedLogger, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """A processor: makes all text printable. What is no text is shown by its repr, which is."""
    return {name: one_line(value) if isinstance(value, str) else value for name, value in event.items()}


def _escaped_traceback(out: TextIO, problem: structlog.typing.ExcInfo) -> None:
    text = io.StringIO()
    structlog.dev.plain_traceback(text, problem)
    out.write(printable(text.getvalue()))


def _let_colours_pass(_logger: structlog.typing.WrappedLogger, _method: str, line: Any) -> str:  # noqa: ANN401 - text by now
    """A processor: the only sequences that are left are the renderer's own."""
    return own(line, sys.stderr)


def name_reconcile(
    _logger: structlog.typing.WrappedLogger, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """A processor: says which reconcile an event belongs to. Only here, because most reconciles log nothing."""
    current = reconciling.get()
    if current is not None:
        event.setdefault("controller", current.controller)
        event.setdefault("key", str(current.key))
        event.setdefault("reconcile_id", f"{current.number:016x}")
    return event
