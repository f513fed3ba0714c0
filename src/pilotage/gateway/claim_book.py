"""Claims of all routes, decided anew only where they may come out differently. Pure: time is an argument.

A decision about a name rests on the routes that claim it, and these may claim other names. So when a route changes, it
is decided together with all that it is connected with by names, directly or by way of others; hosts count as one name,
because a wildcard touches hosts of any form. The outcome is the same as if all routes were decided together; most
routes share no name with another, so it costs the same however many there are.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pilotage.gateway.claims import HOST, Claim, ClaimDecision, ClaimedName, ClaimRecord, Records, decide, names
from pilotage.gateway.hostnames import HostRules
from pilotage.gateway.inputs import ProxiedRoute

_ANY_HOST = ClaimedName(HOST, "")


class Reservation(NamedTuple):
    """A released name: the namespace that may have it, and until when no other may."""

    namespace: str
    until: float


class ClaimChange(NamedTuple):
    """A decision about some routes, not in force yet."""

    uids: frozenset[str]
    decision: ClaimDecision
    released: Mapping[ClaimedName, Reservation]


class ClaimBook:
    """Records of claims, and reservations of names that were released."""

    def __init__(self, rules: HostRules, reserve_seconds: float) -> None:
        self.records: Records = {}
        self.reserved: dict[ClaimedName, Reservation] = {}
        self._rules = rules
        self._reserve_seconds = reserve_seconds
        self._turn = 0
        self._claimants: dict[ClaimedName, dict[str, None]] = {}
        self._claimed: dict[str, frozenset[ClaimedName]] = {}
        self._namespaces: dict[str, str] = {}
        """Namespaces of routes by uid, also of those that are just gone."""

    def remember(self, records: Mapping[str, Mapping[ClaimedName, ClaimRecord]]) -> None:
        """Take up records that were written down before."""
        self.records = {uid: dict(each) for uid, each in records.items()}
        self._turn = max((each.turn for held in self.records.values() for each in held.values()), default=0)
        for uid in self.records:
            self.note(uid, ())

    def note(self, uid: str, versions: Iterable[ProxiedRoute]) -> None:
        """Note what a route claims: as it is, and as it is to be. None at all: it is gone."""
        for name in self._claimed.pop(uid, ()):
            entries = self._claimants[name]
            del entries[uid]
            if not entries:
                del self._claimants[name]
        known = [*versions]
        if known:
            self._namespaces[uid] = known[0].key.namespace
        claimed = frozenset(
            map(_shared, (*(name for each in known for name in names(each)), *self.records.get(uid, ())))
        )
        if claimed:
            self._claimed[uid] = claimed
        else:
            self._namespaces.pop(uid, None)
        for name in claimed:
            self._claimants.setdefault(name, {})[uid] = None

    def connected(self, uids: Iterable[str]) -> frozenset[str]:
        """These routes, and all whose names may depend on theirs."""
        found: set[str] = set()
        left = [*uids]
        while left:
            uid = left.pop()
            if uid not in found:
                found.add(uid)
                left += (each for name in self._claimed.get(uid, ()) for each in self._claimants[name])
        return frozenset(found)

    def expire(self, now: float) -> set[str]:
        """Drop reservations whose time is over; the uids of the routes that may get a name now."""
        over = [name for name, each in self.reserved.items() if each.until <= now]
        for each in over:
            del self.reserved[each]
        return {uid for name in over for uid in self._claimants.get(_shared(name), ())}

    def decide(
        self,
        uids: frozenset[str],
        offered: Iterable[ProxiedRoute],
        coming: Iterable[ProxiedRoute],
        now: float,
    ) -> ClaimChange:
        """Decide routes that are `connected` with no others; `offered` and `coming` as in `claims.decide`."""
        these, those = [*offered], [*coming]
        released = self._released(uids, [*these, *those], now)
        namespaces = {name: each.namespace for name, each in (self._reserved_for(uids) | released).items()}
        before = {uid: self.records[uid] for uid in uids if uid in self.records}
        decision = decide(these, before, those, self._rules, namespaces, self._turn)
        return ClaimChange(uids, decision, released)

    def accept(self, change: ClaimChange) -> set[str]:
        """Put a decision into force. Returns the uids of routes that are to be decided once more.

        These do not get a name: that it is reserved, or who has it, may have changed after it was their turn.
        """
        before = {uid: self.records.pop(uid) for uid in change.uids if uid in self.records}
        now = change.decision.records
        self.records |= now
        self.reserved |= change.released
        for records in now.values():
            self._turn = max([self._turn, *(each.turn for each in records.values())])
            for name, each in records.items():
                if each.held:
                    self.reserved.pop(name, None)
        return set() if now == before else {each.route.uid for each in change.decision.claims if _waits(each)}

    def _released(
        self, uids: Iterable[str], claimants: Iterable[ProxiedRoute], now: float
    ) -> dict[ClaimedName, Reservation]:
        """Names that were held and that nobody who held them claims any more, each for its time."""
        claimed = {(each.uid, name) for each in claimants for name in names(each)}
        until = now + self._reserve_seconds
        return {
            name: Reservation(self._namespaces[uid], until)
            for uid in uids
            for name, each in self.records.get(uid, {}).items()
            if each.held and (uid, name) not in claimed and uid in self._namespaces and until > now
        }

    def _reserved_for(self, uids: Iterable[str]) -> dict[ClaimedName, Reservation]:
        """Reservations that these routes may come up against."""
        claimed = {name for uid in uids for name in self._claimed.get(uid, ())}
        found = {name: self.reserved[name] for name in claimed if name in self.reserved}
        if _ANY_HOST in claimed:
            found |= {name: each for name, each in self.reserved.items() if name.kind == HOST}
        return found


def _shared(name: ClaimedName) -> ClaimedName:
    return _ANY_HOST if name.kind == HOST else name


def _waits(claim: Claim) -> bool:
    """Whether a route waits for a name."""
    return any(not each.refused for each in claim.conflicts)
