"""Errors as a person should see them: one sentence on what happened, one on what to do, and no traceback."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import click

from pilotage.terminal import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from pilotage.kube import ApiError

UNAUTHORIZED = 401

P = ParamSpec("P")
R = TypeVar("R")


class OneLine(click.ClickException):
    """An error whose message is one line, whatever an object or a server has put into it."""

    def format_message(self) -> str:
        """Text as it is printed."""
        return one_line(self.message)


class BadConfig(OneLine):
    """The configuration cannot be used."""

    exit_code = 2


class NoAnswer(OneLine):
    """The API server refused, or could not be reached."""

    exit_code = 3


class BadTarget(OneLine):
    """Words or a file that mean nothing here."""

    exit_code = 2


class NotChanged(OneLine):
    """Somebody else was faster."""

    exit_code = 1


def one_sentence(command: Callable[P, R]) -> Callable[P, R]:
    """Print what went wrong with the configuration (exit code 2) or the API (exit code 3) instead of raising it."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except Exception as error:
            from pilotage.kube import ApiError, ConfigError  # not before: most commands end well

            if isinstance(error, ConfigError):
                raise BadConfig(str(error)) from error
            if isinstance(error, ApiError):
                raise NoAnswer(_with_advice(error)) from error
            raise

    return run


def plain_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Print errors in what was typed, or in a file, in one sentence (exit code 2); and others as `one_sentence`."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except Exception as error:
            from pilotage.api.base import OtherVersion
            from pilotage.teardown.engine.receipt import ReceiptError
            from pilotage.teardown.planning.arguments import TargetError
            from pilotage.teardown.session.request import RequestError, RequestRefused
            from pilotage.teardown.snapshot.dump import DumpError  # not before: most commands end well

            if isinstance(error, RequestRefused):
                from pilotage.cli.output.advice import with_advice

                words = with_advice(str(error), error.problem)
                raise (click.UsageError(words) if isinstance(error, RequestError) else BadTarget(words)) from error
            if isinstance(error, DumpError | TargetError):
                raise BadTarget(str(error)) from error
            if isinstance(error, ReceiptError):
                raise BadTarget(f"{error}. Give a file that `pilotage delete` has written.") from error
            if isinstance(error, OtherVersion):
                raise NoAnswer(str(error)) from error
            raise

    return one_sentence(run)


def endpoint_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Same as `plain_errors`; and say how to install our kinds where the cluster lacks them, or who was faster."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        from pilotage.api.names import GROUP
        from pilotage.kube import KindNotServed

        try:
            return command(*args, **kwargs)
        except Exception as error:
            from pilotage.rollout.requests import ChangeConflict  # not before: most commands end well

            if isinstance(error, ChangeConflict):
                raise NotChanged(str(error)) from error
            if not isinstance(error, KindNotServed):
                raise
            if GROUP not in error.request:
                raise
            raise NoAnswer(
                "Pilotage is not installed in this cluster: it has no ServingEndpoints. "
                "Install it with: pilotage install --print | kubectl apply -f -"
            ) from error

    return plain_errors(run)


def _with_advice(error: ApiError) -> str:
    """The answer of the API, and what to do about it."""
    from pilotage.kube import ErrorClass

    match error.error_class:
        case ErrorClass.FORBIDDEN if error.code == UNAUTHORIZED:
            advice = "Renew the credentials of the kubeconfig, or choose others with --context."
        case ErrorClass.FORBIDDEN:
            advice = "Ask an administrator for the permission, or choose another user with --context."
        case ErrorClass.UNAVAILABLE if not error.code:
            advice = "Check that it runs, or choose another cluster with --context or --kubeconfig."
        case ErrorClass.UNAVAILABLE | ErrorClass.THROTTLED | ErrorClass.UNCERTAIN:
            advice = "Try again in a while."
        case _:
            return str(error)
    return f"{str(error).rstrip('.')}. {advice}"
