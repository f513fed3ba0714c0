"""Holders of the connections of a server, and the choice of those that are closed when there are too many.

Nobody can be kept out by those who hold connections and do nothing. When slots are short, the oldest idle connection
of those who have not said who they are is closed, and then the oldest idle one of the user that has the most. One user
may have only a share of all, the administrators excepted, and those who have not said who they are have half.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pilotage_harbor.apimachinery.users import ANONYMOUS, MASTERS

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.users import UserInfo

CONNECTIONS_MAX = 4096
_USER_SHARE = 1 / 8
_UNKNOWN_SHARE = 1 / 2
_UNKNOWN = ""


class Occupant(Protocol):
    """A connection, from the moment when it is accepted."""

    @property
    def idle(self) -> bool:
        """Whether nothing is lost with it."""

    def abort(self) -> None:
        """Break it off."""


class Slots:
    """The connections there are, by who holds them. `most` is how many there may be in all."""

    def __init__(self, most: int = CONNECTIONS_MAX) -> None:
        self.most = most
        self._unknown_max = max(int(most * _UNKNOWN_SHARE), 1)
        self._user_max = max(int(most * _USER_SHARE), 1)
        self._holder: dict[Occupant, str] = {}
        self._held: dict[str, dict[Occupant, None]] = {_UNKNOWN: {}}
        """Occupants by user, the oldest first."""

    def __len__(self) -> int:
        return len(self._holder)

    def make_room(self) -> bool:
        """Whether one more can be taken, perhaps in place of another."""
        unknown = self._held[_UNKNOWN]
        if len(self._holder) < self.most and len(unknown) < self._unknown_max:
            return True
        if self._evict(unknown):
            return True
        most = max(self._held.values(), key=len)
        return len(self._holder) >= self.most and len(unknown) < self._unknown_max and self._evict(most)

    def take(self, occupant: Occupant) -> None:
        """Add a connection whose user is not known yet."""
        self._holder[occupant] = _UNKNOWN
        self._held[_UNKNOWN][occupant] = None

    def identify(self, occupant: Occupant, user: UserInfo) -> bool:
        """Assign a connection to its user. False: that user has too many, without this one."""
        name = _UNKNOWN if user.name == ANONYMOUS else user.name
        before = self._holder.get(occupant)
        if before is None or before == name or name == _UNKNOWN:  # one who once said who he is need not each time
            return True
        held = self._held.setdefault(name, {})
        if len(held) >= self._user_max and MASTERS not in user.groups:
            return False
        self._leave(occupant, before)
        self._holder[occupant] = name
        held[occupant] = None
        return True

    def free(self, occupant: Occupant) -> None:
        """Remove a connection that is closed, or about to be."""
        name = self._holder.pop(occupant, None)
        if name is not None:
            self._leave(occupant, name)

    def _leave(self, occupant: Occupant, name: str) -> None:
        held = self._held[name]
        del held[occupant]
        if not held and name != _UNKNOWN:
            del self._held[name]

    def _evict(self, held: dict[Occupant, None]) -> bool:
        for occupant in held:
            if occupant.idle:
                self.free(occupant)
                occupant.abort()
                return True
        return False
