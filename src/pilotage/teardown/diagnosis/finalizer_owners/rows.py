"""A row of the table of known finalizers, and how one is found."""

from __future__ import annotations

import functools
from fnmatch import fnmatchcase

import msgspec


class Row(msgspec.Struct, frozen=True):
    """One finalizer, or several of one controller."""

    patterns: tuple[str, ...]
    """Its names, with ``*`` for any text."""
    who: str
    does: str
    """What it does before it lets go, as the end of "before that it …"."""
    leaks: str
    """What stays behind if it is removed by hand."""
    workloads: tuple[str, ...] = ()
    """Names of the Deployment, StatefulSet or DaemonSet that runs it, with ``*`` for any text."""
    namespaces: tuple[str, ...] = ()
    """Where it usually runs; it is looked for everywhere, and here first."""
    labels: tuple[tuple[str, str], ...] = ()
    """Labels of its workload, any of which is enough."""
    leases: tuple[str, ...] = ()
    """Names of its Lease, with ``*`` for any text."""
    builtin: bool = False


def find_row(finalizer: str) -> Row | None:
    """What the table knows of a finalizer."""
    return next((row for row in table() if any(fnmatchcase(finalizer, pattern) for pattern in row.patterns)), None)


@functools.cache
def table() -> tuple[Row, ...]:
    """All rows; the first that matches counts."""
    from pilotage.teardown.diagnosis.finalizer_owners import field, kubernetes

    return kubernetes.ROWS + field.ROWS
