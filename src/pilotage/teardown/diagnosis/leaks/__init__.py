"""Leaks: objects that nothing will ever clean up, and references to objects that do not exist.

`find_leaks` decides from a world, without I/O. A family of leaks is one file. A false alarm is worse than a miss: what
is younger than a minute, or being deleted, is in progress; what could not be read is unknown, and unknown is not gone.
"""

from collections.abc import Callable, Iterator

from pilotage.teardown.diagnosis.leaks import idle, orphans, owners, storage, teardowns, traffic
from pilotage.teardown.diagnosis.leaks.model import Leak, LeakCode, LeakSurvey, Severity
from pilotage.teardown.diagnosis.leaks.teardowns import LeftOver, left_over
from pilotage.teardown.snapshot.graph import Graph
from pilotage.teardown.snapshot.world import World

__all__ = ["Leak", "LeakCode", "LeftOver", "Severity", "find_leaks", "left_over"]

_FAMILIES: tuple[Callable[[LeakSurvey], Iterator[Leak]], ...] = (
    teardowns.leaks,
    owners.leaks,
    traffic.leaks,
    orphans.leaks,
    idle.leaks,
    storage.leaks,
)


def find_leaks(world: World, graph: Graph) -> list[Leak]:
    """All leaks that this world shows, the worst first. It must hold all kinds that are served (`gather` without
    `kinds`), or be a dump: else a kind that was left out could be taken for one that is not served.
    """
    survey = LeakSurvey(world, graph)
    found = {leak.key: leak for family in _FAMILIES for leak in family(survey)}
    return sorted(found.values(), key=lambda leak: (leak.severity.rank, *leak.subject.name, leak.code))
