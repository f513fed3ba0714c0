"""The order of a list after a strategic merge.

What the patch names comes in the patch's order, what only the server had keeps the server's order, and the two are
woven together so that, as far as possible, an element still comes before those that it came before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from pilotage_harbor.patching.values import Value


def ordered(merged: list[Any], patch_order: list[Any], server_order: list[Any], merge_key: str) -> list[Any]:
    """The elements of `merged` in order. Without a merge key, elements are values; else they are known by that key."""

    def key_of(item: Value) -> Value:
        return item.get(merge_key) if merge_key else item

    patch_rank = _ranks(patch_order, key_of)
    server_rank = _ranks(server_order, key_of)
    named = sorted((item for item in merged if key_of(item) in patch_rank), key=lambda item: patch_rank[key_of(item)])
    others = [item for item in merged if key_of(item) not in patch_rank]
    others.sort(key=lambda item: server_rank.get(key_of(item), -1))
    result: list[Any] = []
    waiting = iter(named)
    following = next(waiting, None)
    for item in others:
        rank = server_rank.get(key_of(item))
        while following is not None:
            other = server_rank.get(key_of(following))
            if rank is not None and other is not None and rank < other:
                break
            result.append(following)
            following = next(waiting, None)
        result.append(item)
    if following is not None:
        result.append(following)
    result.extend(waiting)
    return result


def _ranks(items: list[Any], key_of: Callable[[Any], Any]) -> dict[Any, int]:
    ranks: dict[Any, int] = {}
    for index, item in enumerate(items):
        ranks.setdefault(key_of(item), index)
    return ranks
