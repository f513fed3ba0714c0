"""The stories of teardowns with the operator's observer, which reads caches that all its teardowns share.

`ByOperator` tells a story in the operator's terms: its objects are sealed parts of an endpoint that is gone, a Teardown
names them, and the operator's controllers do the rest. A Teardown is about the kinds that endpoints are made of, in one
namespace. Stories about others (a namespace, a definition, a Deployment that another object's finalizer needs) are told
by `ByCaches`: the ledger is that of the program with watches, the executor has the operator's observer.
"""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, ClassVar

import msgspec

from pilotage.api.names import (
    ANNOTATION_SEAL,
    ENDPOINTS,
    LABEL_ENDPOINT,
    LABEL_ENDPOINT_UID,
    LABEL_MANAGED_BY,
    MANAGED_BY,
    MODELS,
    TEARDOWNS,
)
from pilotage.controllers.caches import MADE_BY_US, Caches
from pilotage.controllers.proof import Known
from pilotage.controllers.seals import Seals
from pilotage.controllers.teardown.ledger import grown_ledger
from pilotage.controllers.teardown.observer import CacheObserver
from pilotage.controllers.wiring import NoProxyObserver, Options, add_endpoints
from pilotage.kube import ApiError, ObjectKey, Propagation
from pilotage.operator.crds import crds
from pilotage.runtime.clock import utc_now
from pilotage.runtime.manager import Manager
from pilotage.serving.resources import INFERENCE_SERVICES
from pilotage.teardown.engine.executor import Executor
from pilotage.teardown.engine.observers import Reader
from pilotage.teardown.engine.receipt import Receipt
from pilotage.teardown.engine.run_state import RunState
from pilotage.teardown.planning.ledger import Ledger
from pilotage_sim.scenarios import teardown_parts as parts
from pilotage_sim.scenarios.teardown import SUBJECT, SmallestTeardown, TeardownScenario
from pilotage_sim.scenarios.teardown_endpoints import (
    DeniedTeardown,
    DeploymentTeardown,
    NamespaceTeardown,
    RecreatedTeardown,
    StuckTeardown,
)
from pilotage_sim.scenarios.teardown_owners import DefinitionTeardown, OperatorLastTeardown, OwnerTeardown
from pilotage_sim.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pilotage.kube import Client, Json, Object, Resource
    from pilotage.teardown.engine.progress import Outcome
    from pilotage.teardown.snapshot.world import World
    from pilotage_harbor.storage.store import Event
    from pilotage_sim.process import Main
    from pilotage_sim.world import SimulatedWorld

KEY = b"simulated"
HOME = "pilotage-system"
NAME = "web"
UID = "0e0d0901-0000-4000-8000-000000000000"
"""Uid of the endpoint, which is gone: its parts are sealed for it."""
LABELS = {LABEL_MANAGED_BY: MANAGED_BY, LABEL_ENDPOINT: NAME, LABEL_ENDPOINT_UID: UID}
PART_KINDS = frozenset({*MADE_BY_US, INFERENCE_SERVICES})
END_SECONDS_MAX = 2000.0
"""A refusal that only a person can lift is looked at again after five minutes, and several may come in a row."""
PAUSE_SECONDS = 0.25
"""Interval at which an executor on caches is advanced."""


@functools.cache
def _needed_kinds() -> list[Json]:
    """The definitions that an operator cannot do without. All others are optional for it, and take time to create."""
    needed = {str(each) for each in (ENDPOINTS, MODELS, TEARDOWNS)}
    return [crd for crd in crds() if crd["metadata"]["name"] in needed]


def sealed(resource: Resource, body: Json) -> Json:
    """The same object as a part of the endpoint; pods of it carry the endpoint's labels, too."""
    meta = body["metadata"]
    seal = Seals(HOME, KEY).seal(resource, ObjectKey(meta["namespace"], meta["name"]), UID)
    made = {**body, "metadata": {**meta, "labels": LABELS, "annotations": {ANNOTATION_SEAL: seal}}}
    if resource == parts.DEPLOYMENTS:
        template = body["spec"]["template"]
        pods = {**template["metadata"], "labels": {**template["metadata"]["labels"], **LABELS}}
        made["spec"] = {**body["spec"], "template": {**template, "metadata": pods}}
    return made


class ByOperator(TeardownScenario):
    """A Teardown of the endpoint's parts, and the operator. What endpoints are not made of stays beside them."""

    end_seconds_max = END_SECONDS_MAX

    def __init__(self, world: SimulatedWorld) -> None:
        super().__init__(world)
        world.core.store.listen_to_all(self._recorded)

    def processes(self) -> Mapping[str, Main]:
        """The operator."""
        return {SUBJECT: self.operate}

    async def operate(self, client: Client) -> None:
        """The operator's program."""
        manager = Manager(client, name="operator", seed=1)
        add_endpoints(manager, Options(NoProxyObserver(), namespace=HOME, server="sim", key=KEY))
        await manager.run()

    async def prepare(self) -> None:
        """Create the parts, the operator's kinds, and the record that names the parts."""
        self.named: list[Json] = []
        await super().prepare()
        for crd in _needed_kinds():
            await self.others.create(parts.DEFINITIONS, crd)
        await self.others.create(*parts.namespace(HOME))
        target = {"apiVersion": ENDPOINTS.api_version, "kind": ENDPOINTS.kind, "name": NAME, "uid": UID}
        spec = {
            "target": {**target, "namespace": "default"},
            "reason": "Deleted",
            "allParts": True,
            "parts": self.named,
            "deletion": {"drainSeconds": 2, "keep": [str(keep).capitalize() for keep in sorted(self.policy.keep)]},
        }
        self.record = await self.others.create(TEARDOWNS, {"metadata": parts.metadata(NAME), "spec": spec})

    async def make(self, resource: Resource, body: Json, *, named: bool = True) -> Object:
        """Make an object as a part, if it can be one."""
        if resource not in PART_KINDS:
            return await super().make(resource, body, named=False)
        made = await super().make(resource, sealed(resource, body), named=named)
        part = {"apiVersion": resource.api_version, "kind": resource.kind, "resource": resource.plural}
        self.named.append({**part, "name": made.meta.name, "uid": made.meta.uid})
        return made

    def _recorded(self, event: Event) -> None:
        """Judge what the record says of its waits, and keep its ledger and its receipt."""
        if event.storage != str(TEARDOWNS) or event.type == "DELETED":
            return
        status = msgspec.json.decode(event.entry.raw).get("status", {})
        if (ledger := status.get("ledger")) is not None:
            self.save(msgspec.convert(ledger, Ledger))
        if (receipt := status.get("receipt")) is not None and self.receipt is None:
            self.receipt = msgspec.convert(receipt, Receipt)
            self.ended_at = asyncio.get_running_loop().time()
        self.unexplained += [
            f"a wait without a cause or a text, or until before it began: {wait}"
            for wait in status.get("waits", ())
            if not (wait["cause"] and wait["text"] and wait["since"] <= wait["until"])
        ]
        if "waits" in status and status.get("left") and not status.get("waitingFor"):
            self.unexplained.append(f"{status['left']} objects are left, and nobody says what for")

    async def until_quiet(self) -> None:
        """Wait until no client writes any more, also after the record is deleted."""
        await super().until_quiet()
        await self.others.delete(
            TEARDOWNS, self.record.key, uid=self.record.meta.uid, propagation=Propagation.BACKGROUND
        )
        await self.world.settle(1.0)

    def deeds(self) -> Trace:
        """All writes but those of progress: to the record, and Events."""
        trace = Trace()
        told = (f"{TEARDOWNS}/status", "events", "events.events.k8s.io")
        trace.writes = [write for write in self.world.trace.writes if write.resource not in told]
        return trace


class SmallestByOperator(ByOperator, SmallestTeardown):
    """The smallest story, by the operator."""


class EndpointByOperator(ByOperator, DeploymentTeardown):
    """An endpoint with all that goes with it, by the operator; its ConfigMap is no part of it."""


class RecreatedByOperator(ByOperator, RecreatedTeardown):
    """A program re-creates the Service, as no ConfigMap is a part, and a GitOps tool the Ingress."""

    def recreated(self) -> parts.Part:
        """The Service, without a seal, and without an address, which is drawn by lot."""
        resource, body = parts.service(NAME)
        return resource, {**body, "spec": {**body["spec"], "clusterIP": "None"}}


class StuckByOperator(ByOperator, StuckTeardown):
    """A Service with a finalizer whose keeper is down for a while, by the operator."""


class DeniedByOperator(ByOperator, DeniedTeardown):
    """An admission webhook denies the delete of Services for a while, by the operator."""


class OwnerByOperator(ByOperator, OwnerTeardown):
    """An InferenceService with parts in several phases and a live controller; its claim stays, as asked."""

    owner = INFERENCE_SERVICES
    stays = parts.CLAIMS
    policy = DeploymentTeardown.policy

    def part_that_stays(self, name: str, namespace: str, *, owner: Object) -> parts.Part:
        """A claim: no ConfigMap is a part. Its seal proves it when it is detached from its owner."""
        resource, body = parts.claim(name, namespace, owner=owner)
        return resource, sealed(resource, body)


class ByCaches(TeardownScenario):
    """A program with the operator's caches and its observer, on a ledger that no Teardown has."""

    identity: ClassVar[Known] = Known("default", UID)

    async def tear_down(self, client: Client) -> None:
        """Fill the caches, and then do as the program with watches does."""
        manager = Manager(client, name="caches", seed=1)
        self.caches = Caches(manager, Seals(HOME, KEY))
        async with asyncio.TaskGroup() as group:
            group.create_task(manager.run())
            await manager.started.wait()
            await super().tear_down(client)

    async def make(self, resource: Resource, body: Json, *, named: bool = True) -> Object:
        """Make an object, with a seal if the caches may show it."""
        return await super().make(resource, sealed(resource, body) if resource in PART_KINDS else body, named=named)

    async def execute(self, client: Client, ledger: Ledger, world: World) -> Outcome | None:
        """Advance a ledger to its end, as a reconcile does; None if it could not be read what still runs."""
        del world
        state = RunState(ledger, hasten=False, on_step=lambda _: self.judge(executor), on_ledger=self.save)
        pods = f"{LABEL_ENDPOINT_UID}={UID}"
        observer = CacheObserver(Reader(client, state), self.caches, NoProxyObserver(), self.identity, pods=pods)
        executor = Executor(observer)
        try:
            while True:
                decision = await executor.advance()
                self.judge(executor, decision)
                if observer.uncached:
                    state.grow(grown_ledger(state.ledger, observer.uncached, utc_now(), self.identity.namespace))
                    self.save(state.ledger)
                elif decision.finished and (proof := await executor.prove()).holds:
                    return executor.outcome(proof)
                await asyncio.sleep(PAUSE_SECONDS)
        except ApiError:
            return None


class NamespaceByCaches(ByCaches, NamespaceTeardown):
    """A namespace: a Teardown never deletes the one that it is in."""

    identity = Known("shop", UID)


class OperatorByCaches(ByCaches, OperatorLastTeardown):
    """An operator and an object whose finalizer it takes off: an endpoint is not made of such objects."""


class DefinitionByCaches(ByCaches, DefinitionTeardown):
    """A definition with its objects, which no cache shows: everything is read."""
