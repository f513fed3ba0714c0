"""The target of a request: the kind, the namespace, the name and the subresource that its path names."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pilotage_harbor.patching import manager_name

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.calls import Call
    from pilotage_harbor.kinds import Kind

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get", "HEAD": "get"}


class Scope(NamedTuple):
    """The target of a request. The namespace is empty for all namespaces, and for kinds without one."""

    call: Call
    kind: Kind
    namespace: str
    name: str
    subresource: str

    @property
    def verb(self) -> str:
        """The verb, as RBAC calls it."""
        verb = _VERBS.get(self.call.method, self.call.method.lower())
        if self.name:
            return verb
        if verb == "get":
            return "watch" if self.call.flag("watch") else "list"
        return "deletecollection" if verb == "delete" else verb

    @property
    def manager(self) -> str:
        """The field manager: as the request names it, else by the client's user agent."""
        return manager_name(self.call.option("fieldManager"), self.call.headers.get("user-agent", ""))
