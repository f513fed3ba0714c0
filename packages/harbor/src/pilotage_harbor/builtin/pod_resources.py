"""The requests and limits of a pod: sums over its containers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage_harbor.builtin.quantity import ZERO, Amount

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pilotage_harbor.kinds import Json

Amounts = dict[str, Amount]

_OF_THE_POD = ("cpu", "memory")
"""Resources that a pod can request and limit as a whole, in place of the sum over its containers."""


def requests_of(spec: Json, *, overhead: bool = False) -> Amounts:
    """Requests of a pod; with `overhead`, what running it costs besides."""
    total = _summed(spec, "requests")
    if overhead:
        _add(total, amounts(spec.get("overhead")))
    return total


def limits_of(spec: Json, *, overhead: bool = False) -> Amounts:
    """Limits of a pod; overhead is added only where there is a limit."""
    total = _summed(spec, "limits")
    if overhead:
        _add(total, {name: each for name, each in amounts(spec.get("overhead")).items() if name in total})
    return total


def amounts(resources: Mapping[str, str] | None) -> Amounts:
    """Quantities by name, to calculate with."""
    return {name: Amount.of(text) for name, text in (resources or {}).items()}


def _summed(spec: Json, kind: str) -> Amounts:
    """Containers run together; each init container runs alone, but with the sidecars that were begun before it."""
    total: Amounts = {}
    for container in spec.get("containers") or ():
        _add(total, _of(container, kind))
    sidecars: Amounts = {}
    largest: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = _of(container, kind)
        if container.get("restartPolicy") == "Always":
            _add(total, own)
            _add(sidecars, own)
            own = dict(sidecars)
        else:
            _add(own, sidecars)
        _raise_to(largest, own)
    _raise_to(total, largest)
    whole = amounts((spec.get("resources") or {}).get(kind))
    return total | {name: each for name, each in whole.items() if name in _OF_THE_POD}


def _of(container: Json, kind: str) -> Amounts:
    return amounts((container.get("resources") or {}).get(kind))


def _add(total: Amounts, more: Amounts) -> None:
    for name, each in more.items():
        total[name] = total.get(name, ZERO).plus(each)


def _raise_to(total: Amounts, least: Amounts) -> None:
    for name, each in least.items():
        if name not in total or each.value > total[name].value:
            total[name] = each
