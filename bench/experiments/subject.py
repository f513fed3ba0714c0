"""The contract of a product whose experiments are tried, and the ways in which an experiment can end."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass

from bench.experiments.stage import Stage
from controlplane import Cluster
from pilotage.kube import NAMESPACES, Client, ObjectKey, Propagation

SHARE = 25
"""Percent of the requests that an experiment takes."""


class NotStarted(Exception):
    """An experiment did not get its requests; the message says what was missing."""


class Subject(ABC):
    """One deployment in a namespace of its own, which exists, with an experiment that takes a part of its requests.

    Its pods select nodes by `stage.NOWHERE` and listen on `field.ground.backends.PORT`: then a server runs for each.
    """

    def __init__(self, stage: Stage, namespace: str) -> None:
        self.stage, self.client, self.namespace = stage, stage.client, namespace
        self.host = f"{namespace}.example.com"
        """Host name for which clients ask."""

    @abstractmethod
    async def start(self) -> None:
        """Deploy it, and return when it serves all requests without an experiment."""

    @abstractmethod
    async def shift(self) -> str:
        """Start an experiment with `SHARE` percent of the requests; return its Service as soon as the route says so.

        Raises `NotStarted` where it never does: the trial is then repeated, and counted.
        """

    @abstractmethod
    async def runs(self) -> None:
        """Wait until the product says that the experiment runs."""

    @abstractmethod
    async def end(self) -> None:
        """Let the experiment's time be over. This and all that follow return when the API server has taken it."""

    @abstractmethod
    async def terminate(self) -> None:
        """Ask the product to end the experiment now."""

    @abstractmethod
    async def delete_experiment(self) -> None:
        """Delete the experiment's object."""

    @abstractmethod
    async def delete_endpoint(self) -> None:
        """Delete everything that the user has created in `start`."""

    async def delete_namespace_in_order(self) -> None:
        """Delete the namespace by a command of the product, if it has one: see `Column.lacks`."""
        raise NotImplementedError

    async def delete_namespace(self) -> None:
        """Delete the namespace as `kubectl delete ns` does."""
        found = await self.client.get(NAMESPACES, ObjectKey("", self.namespace))
        await self.client.delete(NAMESPACES, found.key, uid=found.meta.uid, propagation=Propagation.BACKGROUND)

    @abstractmethod
    async def close(self) -> None:
        """End what this process runs for it. The namespace is not this one's to remove."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One way to end an experiment at `SHARE` percent."""

    title: str
    act: Callable[[Subject], Awaitable[None]]
    leaves: bool = False
    """Whether the endpoint itself goes: requests are then refused for want of a route, which is no failure."""


SCENARIOS = {
    "end": Scenario("the experiment ends", lambda subject: subject.end()),
    "terminate": Scenario("it is terminated", lambda subject: subject.terminate()),
    "delete-experiment": Scenario("it is deleted", lambda subject: subject.delete_experiment()),
    "delete-endpoint": Scenario("the endpoint is deleted", lambda subject: subject.delete_endpoint(), leaves=True),
    "delete-namespace-in-order": Scenario(
        "the namespace is deleted, by `pilotage delete ns/NAME`",
        lambda subject: subject.delete_namespace_in_order(),
        leaves=True,
    ),
    "delete-namespace": Scenario(
        "the namespace is deleted, by `kubectl delete ns`", lambda subject: subject.delete_namespace(), leaves=True
    ),
}


@dataclass(frozen=True, slots=True)
class Column:
    """A product with one router: how it is staged, the controller beside it, and its `Subject` for a namespace."""

    title: str
    stage: Callable[[Cluster, Client], AbstractAsyncContextManager[Stage]]
    controller: Callable[[Stage], AbstractContextManager[object]]
    subject: Callable[[Stage, str], Subject]
    lacks: Collection[str] = ()
    """Scenarios that the product has no way for."""
