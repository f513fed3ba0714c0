"""Slots of backends: how a split by keys moves as few keys as possible. Pure.

A proxy that assigns requests by the hash of a key puts it into one of `WHOLE` slots. Each backend has as many slots as
its weight. A backend that grows takes slots from those that shrink, and nobody else's key moves: with shares that are
simply laid end to end, a change of one moves the keys of all behind it.

A backend gives away the slots that it got last. So a share that grows and falls back has the same keys as before.
"""

from collections.abc import Sequence

from pilotage.traffic.contract import WHOLE, Backend


def slots(now: Sequence[Backend], wanted: Sequence[Backend]) -> tuple[Backend, ...]:
    """The wanted backends with their slots, of which each keeps as many of those it has `now` as it can.

    Without any where the weights do not add up to `WHOLE`: there is nothing to assign by.
    """
    if sum(each.weight for each in wanted) != WHOLE:
        return tuple(each._replace(slots=()) for each in wanted)
    has = {each.key: each for each in now}
    kept: dict[tuple[str, int], tuple[int, ...]] = {}
    taken: set[int] = set()
    for each in wanted:
        own = has[each.key].slots if each.key in has else ()
        valid = [slot for slot in dict.fromkeys(own) if 0 <= slot < WHOLE and slot not in taken][: each.weight]
        kept[each.key] = tuple(valid)
        taken.update(valid)
    free = _given_away(now, taken)
    assigned = []
    for each in wanted:
        lacking = each.weight - len(kept[each.key])
        assigned.append(each._replace(slots=(*kept[each.key], *free[:lacking])))
        free = free[lacking:]
    return tuple(assigned)


def _given_away(now: Sequence[Backend], taken: set[int]) -> list[int]:
    """Slots that nobody keeps: first those of the backend that gives away most."""
    given = [[slot for slot in each.slots if slot not in taken] for each in now]
    order = [slot for slots in sorted(given, key=len, reverse=True) for slot in slots]
    return [slot for slot in dict.fromkeys((*order, *range(WHOLE))) if 0 <= slot < WHOLE and slot not in taken]
