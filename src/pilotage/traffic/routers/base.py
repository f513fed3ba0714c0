"""What a router is, and what several of them share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pilotage.api.endpoint import Route
    from pilotage.kube import Json, Resource
    from pilotage.traffic.contract import Backend, RouteStatus


class Router(ABC):
    """One kind of route. Objects are plain dicts, as the API has them; nothing is asked of anybody."""

    kind: ClassVar[str]
    """As in `spec.route.kind` of an endpoint."""
    resource: ClassVar[Resource | None]
    """What it writes; None: nothing, and `body` must not be called."""
    weighted: ClassVar[bool]
    """Whether a route can have several backends with weights. Without, a switch is direct."""
    proves: ClassVar[bool] = False
    """Whether its status is the proof: then no proxy is asked besides."""

    @abstractmethod
    def problems(self, route: Route) -> list[str]:
        """What is missing or cannot be done, a sentence each; empty: `body` can be called."""

    @abstractmethod
    def body(
        self,
        namespace: str,
        name: str,
        labels: Mapping[str, str],
        route: Route,
        backends: Sequence[Backend],
        models: Sequence[str] = (),
    ) -> Json:
        """The whole manifest. ValueError for weights that are all 0, or that it cannot write.

        `models`: what clients call the model, for a router that looks at that.
        """

    def plain(self, body: Json) -> Json:
        """The same without what older versions of the kind do not know.

        To apply that is refused with "field not declared in schema", and status code 500.
        """
        return body

    @abstractmethod
    def backends(self, obj: Json) -> list[Backend]:
        """What an object says, be it ours or changed by somebody else. Empty where it names none."""

    @abstractmethod
    def status(self, obj: Json, counted: Collection[str] = ()) -> RouteStatus:
        """What its controller says about the object at the generation that it has.

        PROGRAMMED only from one that `proves`, with the requests under way to the services `counted`.
        """


def checked(backends: Sequence[Backend]) -> Sequence[Backend]:
    """The same; ValueError where they would not mean what they say."""
    if not any(each.weight > 0 for each in backends):
        raise ValueError(f"no backend has a weight: {', '.join(map(str, backends)) or 'there is none'}")
    if any(each.weight < 0 for each in backends):
        raise ValueError(f"a weight is negative: {', '.join(map(str, backends))}")
    return backends


def metadata(namespace: str, name: str, labels: Mapping[str, str]) -> Json:
    """Of a manifest."""
    return {"namespace": namespace, "name": name, "labels": dict(labels)}


def at(value: object, *path: str) -> Any:  # noqa: ANN401 - JSON has no narrower type
    """The value at a path of fields, or None."""
    for each in path:
        value = value.get(each) if isinstance(value, dict) else None
    return value


def entries(value: object, *path: str) -> list[Json]:
    """The objects in the list at a path; none where there is no list."""
    found = at(value, *path)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def whole_number(value: object, default: int) -> int:
    """An integer of the API, or the default for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def is_current(condition: Json, obj: Json) -> bool:
    """Whether a condition is about the object as it stands."""
    observed: object = at(condition, "observedGeneration")
    return observed is not None and observed == at(obj, "metadata", "generation")
