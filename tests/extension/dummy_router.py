"""A whole router in one file, for a kind of route that no catalogue and no other file knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.kube import Resource
from pilotage.teardown.snapshot.fields import dig, entries
from pilotage.traffic.contract import Backend, Mix, Programming, RouteStatus
from pilotage.traffic.routers.base import Capability, Router, RouteRequest, checked, references

if TYPE_CHECKING:
    from collections.abc import Collection

    from pilotage.kube import Json


class DummyRouter(Router):
    """Routes by host, with weights."""

    kind = "DummyRoute"
    resource = Resource("dummy.example.com", "v1", "dummyroutes", "DummyRoute")
    can = frozenset({Capability.WEIGHTS})
    fields = ("host",)
    needs = ("host",)
    rules = (("self.host != 'taken.example.com'", "this host is taken"),)

    def manifest(self, request: RouteRequest) -> Json:
        """Route with the weights of the request (`Router.manifest`)."""
        return self.written(request, {"host": request.route.host, "to": references(checked(request.mix).backends)})

    def mix(self, obj: Json) -> Mix:
        """Backends with their weights (`Router.mix`)."""
        return Mix(tuple(Backend(each["name"], each["port"], each["weight"]) for each in entries(obj, "spec", "to")))

    def status(self, obj: Json, counted: Collection[str] = ()) -> RouteStatus:
        """Accepted as soon as the dummy has seen the generation (`Router.status`)."""
        if dig(obj, "status", "seen") != dig(obj, "metadata", "generation"):
            return RouteStatus(Programming.PENDING, text="the dummy has not accepted it yet")
        return RouteStatus(Programming.ACCEPTED, text="accepted by the dummy")


ROUTER = DummyRouter()
