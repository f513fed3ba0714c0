"""Errors as a person should see them: one sentence on what happened, one on what to do, and no traceback."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")


class BadConfig(click.ClickException):
    """The configuration cannot be used."""

    exit_code = 2


class NoAnswer(click.ClickException):
    """The API server refused, or could not be reached."""

    exit_code = 3


def one_sentence(command: Callable[P, R]) -> Callable[P, R]:
    """Print what went wrong with the configuration (exit code 2) or the API (exit code 3) instead of raising it."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        from pilotage.kube import ApiError, ConfigError

        try:
            return command(*args, **kwargs)
        except ConfigError as error:
            raise BadConfig(str(error)) from error
        except ApiError as error:
            raise NoAnswer(str(error)) from error

    return run
