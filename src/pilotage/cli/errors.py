"""Errors as a person should see them: one sentence on what happened, one on what to do, and no traceback."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import click

from pilotage.cli.connection import ClusterChoice
from pilotage.terminal import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pilotage.kube import ApiError

UNAUTHORIZED = 401
_INSTALL = "pilotage install --print | kubectl apply --server-side -f -"

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


def plain_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Print in one sentence what went wrong, with an exit code of its own, instead of raising it."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except (click.ClickException, click.Abort):
            raise
        except Exception as error:
            cluster = kwargs.get("cluster")
            chosen = cluster if isinstance(cluster, ClusterChoice) else ClusterChoice(None, None)
            said = _in_words(error, _hint(error, kwargs), chosen.complete)
            if said is None:
                raise
            raise said from error

    return run


def _in_words(error: Exception, hint: str, complete: Callable[[str], str]) -> click.ClickException | None:
    """The error for people, with a hint where there is one; None for one that nobody expects.

    `complete` completes a suggested command.
    """
    from pilotage.api.base import OtherVersion  # not before: most commands end well
    from pilotage.api.names import GROUP
    from pilotage.cli.output.advice import with_advice
    from pilotage.kube import ApiError, ConfigError, KindNotServed
    from pilotage.kube.names import UnusableName
    from pilotage.rollout.requests import ChangeConflict
    from pilotage.teardown.engine.receipt import ReceiptError
    from pilotage.teardown.planning.arguments import TargetError
    from pilotage.teardown.session.request import RequestError, RequestRefused
    from pilotage.teardown.snapshot.dump import DumpError

    match error:
        case ConfigError():
            return BadConfig(f"{error}{hint}")
        case ChangeConflict():
            return NotChanged(f"{error.text} {complete(error.command)}".rstrip())
        case RequestRefused():
            words = with_advice(str(error), error.problem)
            return click.UsageError(words) if isinstance(error, RequestError) else BadTarget(words)
        case TargetError():
            return BadTarget(f"{error.text} {complete(error.command)}".rstrip())
        case DumpError():
            return BadTarget(str(error))
        case UnusableName():
            return BadTarget(f"{error}.")
        case ReceiptError():
            return BadTarget(f"{error}. Give a file that `pilotage delete` has written.")
        case OtherVersion():
            return NoAnswer(str(error))
        case KindNotServed() if GROUP in error.request:
            return NoAnswer(
                "Pilotage is not installed in this cluster: it has no ServingEndpoints. "
                f"Install it with: {complete(_INSTALL)}{hint and '.'}{hint}"
            )
        case ApiError():
            return NoAnswer(_with_advice(error) + hint)
    return None


def _hint(error: Exception, given: Mapping[str, object]) -> str:
    """The hint at a machine that is up here, for errors that it may explain; empty for others."""
    from pilotage.api.names import GROUP
    from pilotage.kube import ApiError, ConfigError, ErrorClass, KindNotServed

    match error:
        case KindNotServed():
            explains = GROUP in error.request
        case ApiError():
            explains = error.error_class is ErrorClass.UNAVAILABLE and not error.code
        case _:
            explains = isinstance(error, ConfigError)
    cluster = given.get("cluster")
    return cluster.hint() if explains and isinstance(cluster, ClusterChoice) else ""


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
