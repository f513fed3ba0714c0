"""One type of resources on one stream of delta ADS: what Envoy has, what it still has to get, and its answers. Pure.

Envoy asks for all resources of a type, or for some by name (EDS). It says which versions it has when it connects, and
from then on gets differences alone, one response at a time. A response that it refuses leaves the resources in it
unknown: Envoy may have taken up a part of them, and would take no second notice of one that it believes to have. So
each of these is sent again as it was before, and only then as it should be.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pilotage.gateway.snapshot import XdsResource

WILDCARD = "*"
_UNKNOWN = ""


class DeltaResponse(NamedTuple):
    """A response to be sent: resources that are new or changed, and names of those that are gone."""

    changed: dict[str, XdsResource]
    removed: list[str]


class Subscription:
    """The state of one type. `by_name`: only what was asked for by name is sent, and what is gone is not told."""

    def __init__(self, wanted: Mapping[str, XdsResource], *, by_name: bool) -> None:
        self.asked = False
        self.nonce = ""
        """Nonce of a response that is not answered yet."""
        self._wanted = wanted
        self._by_name = by_name
        self._names: set[str] = set()
        self._has: dict[str, str] = {}
        """Versions by name; `_UNKNOWN` where Envoy may have any."""
        self._due: set[str] = set()
        """Names to be compared with what Envoy has."""
        self._sent: dict[str, str | None] = {}
        self._refused: set[str] = set()
        self._owed = False
        """Whether Envoy waits for a response, even if there is nothing."""

    @property
    def done(self) -> bool:
        """Whether Envoy has acknowledged all that it should have."""
        asked = self.asked or (self._by_name and not self._wanted)
        return asked and not (self.nonce or self._due or self._refused or self._owed)

    def touch(self, names: Iterable[str]) -> None:
        """Note that these resources may have changed, and that those that were refused may be sent again."""
        self._due |= self._refused
        self._due.update(names)
        self._refused = set()

    def again(self, names: Iterable[str]) -> None:
        """Have those of these sent once more that Envoy has, or is about to have."""
        for each in names:
            if each in self._has or each in self._sent:
                self._sent.pop(each, None)
                self._has[each] = _UNKNOWN
                self._due.add(each)

    def end(self, names: Iterable[str]) -> None:
        """Note that Envoy is about to ask for these no more: it asks again where they come back."""
        self._unsubscribe(names)

    def take(self, request: Any) -> str | None:  # noqa: ANN401 - generated messages have no types
        """Take up a request: an ACK, a NACK, a change of what is asked for, or several. Returns the text of a NACK."""
        text = None
        if not self.asked and _asks(request):
            self._begin(request.initial_resource_versions)
            self._names.update(request.resource_names_subscribe)
        else:
            text = self._answered(request)
            self._subscribe(request.resource_names_subscribe)
        self._unsubscribe(request.resource_names_unsubscribe)
        return text

    def next(self) -> DeltaResponse | None:
        """Response to be sent now; None: there is none. The caller sets `nonce` to that of the response."""
        if not self.asked or self.nonce:
            return None
        ready = {each for each in self._due if self._sendable(each)}
        self._due -= ready
        if self._by_name:
            self._due = {each for each in self._due if each in self._wanted}
        changed = {name: self._wanted[name] for name in ready if name in self._wanted}
        changed = {name: each for name, each in changed.items() if self._has.get(name) != each.version}
        removed = [name for name in ready if name not in self._wanted and name in self._has]
        if not (changed or removed or self._owed):
            return None
        self._owed = False
        self._sent = {name: each.version for name, each in changed.items()} | dict.fromkeys(removed)
        return DeltaResponse(changed, removed)

    def _sendable(self, name: str) -> bool:
        return not self._by_name or (name in self._names and name in self._wanted)

    def _begin(self, versions: Mapping[str, str]) -> None:
        self.asked = True
        self._has = dict(versions)
        self._owed = not self._has and not self._by_name
        self._due = {*self._wanted, *self._has}

    def _answered(self, request: Any) -> str | None:  # noqa: ANN401 - as above
        if not self.nonce or request.response_nonce != self.nonce:
            return None
        sent, self._sent, self.nonce = self._sent, {}, ""
        if request.HasField("error_detail"):
            self._has |= dict.fromkeys(sent, _UNKNOWN)
            self._refused |= sent.keys()
            return request.error_detail.message or "Envoy gives no reason"
        for name, version in sent.items():
            if version is None:
                self._has.pop(name, None)
            else:
                self._has[name] = version
        return None

    def _subscribe(self, names: Iterable[str]) -> None:
        for each in names:
            if each == WILDCARD:
                self._begin({})
                return
            # Who asks again has lost it, though it may be under way.
            self._names.add(each)
            self._sent.pop(each, None)
            self._has.pop(each, None)
            self._due.add(each)

    def _unsubscribe(self, names: Iterable[str]) -> None:
        for each in names:
            if each == WILDCARD:
                self.asked, self.nonce = False, ""
                self._sent, self._has, self._due, self._refused = {}, {}, set(), set()
                return
            self._names.discard(each)
            self._sent.pop(each, None)
            self._has.pop(each, None)


def _asks(request: Any) -> bool:  # noqa: ANN401 - as above
    """Whether a request asks for something: a first one without any name asks for all."""
    return bool(request.resource_names_subscribe) or not (request.response_nonce or request.resource_names_unsubscribe)
