"""The initial objects of a world: those that harbor creates at its first start, created once for all worlds.

It takes harbor 30 ms to make that, as long as a whole small run takes. So the first world of a process makes it, and
every other one begins with the very same objects, uids and times included.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from pilotage_harbor.api import Harbor
from pilotage_harbor.core import Core
from pilotage_harbor.housekeeping.bootstrap_objects import Beginnings
from pilotage_sim.loop import VIRTUAL_EPOCH

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pilotage_harbor.storage.store import StoredObject


class InitialState:
    """A journal (see `pilotage_harbor.storage.store.Journal`) that has the beginning, and keeps nothing."""

    def append(self, version: int, storage: str, entry: StoredObject, *, deleted: bool, before: int) -> None:
        """Keep nothing."""

    def problem(self) -> str:
        """Empty: everything can be stored."""
        return ""

    def forget(self, versions: Sequence[int], compacted: int) -> None:
        """Forget nothing, since nothing was kept."""

    def load(self) -> tuple[int, Iterable[tuple[str, StoredObject, bool]]]:
        """The rows of a harbor that has just been started."""
        return 0, _rows()


@lru_cache(maxsize=1)
def _rows() -> tuple[tuple[str, StoredObject, bool], ...]:
    core = Core(now=lambda: VIRTUAL_EPOCH, seed=0)
    making = Beginnings(core, Harbor(core).handle).make()
    try:
        making.send(None)  # it waits for nobody, so it is done in one step, with or without a loop
    except StopIteration:
        pass
    else:
        making.close()
        raise AssertionError("harbor has to wait for somebody before it can start")
    store = core.store
    rows = [(storage, entry, False) for storage in store.storages() for entry in store.entries(storage)]
    return tuple(sorted(rows, key=lambda row: row[1].version))
