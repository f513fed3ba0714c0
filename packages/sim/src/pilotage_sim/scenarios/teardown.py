"""A teardown as the process that things go wrong for: it plans, keeps its ledger on a disk, drives, and is killed.

`TeardownScenario` is what all its stories have in common. The smallest is a Deployment behind a Service and an Ingress;
the others are in the modules `teardown_endpoints` and `teardown_owners`.
"""

from __future__ import annotations

import asyncio
import random
from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

import msgspec

from pilotage.kube import Discovery, GroupKind
from pilotage.runtime.clock import utc_now
from pilotage.teardown.engine.decide import decide
from pilotage.teardown.engine.executor import watching
from pilotage.teardown.engine.receipt import conclude
from pilotage.teardown.planning.ledger import Ledger, Policy
from pilotage.teardown.planning.plan import make_ledger, plan_again
from pilotage.teardown.relations import BUILT_IN, full_kinds, relate
from pilotage.teardown.snapshot.gather import gather
from pilotage_sim import models
from pilotage_sim.scenario import Scenario
from pilotage_sim.scenarios import teardown_parts as parts
from pilotage_sim.scenarios.teardown_oracles import (
    History,
    everything_is_gone,
    explained,
    nothing_early,
    only_our_finalizer,
    only_the_ledgers,
    owner_last,
    quiet_since,
    true_receipt,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pilotage.catalogue.relation import RelationRow
    from pilotage.kube import Client, Json, Object, Resource
    from pilotage.teardown.engine.decision import Decision
    from pilotage.teardown.engine.executor import Executor
    from pilotage.teardown.engine.progress import Outcome
    from pilotage.teardown.engine.receipt import Receipt
    from pilotage.teardown.snapshot.world import Item, World
    from pilotage_sim.process import Main
    from pilotage_sim.trace import Trace
    from pilotage_sim.world import SimulatedWorld

SUBJECT = "subject"
AGAIN_SECONDS = 1.0
"""A teardown that has ended without a proof is taken up again, as a person would."""
UNEXPLAINED_MAX = 3
PREPARED_SECONDS = 3.0
SETTLED_SECONDS = 40.0
"""Longer than anybody in these stories sleeps between two writes."""


class TeardownScenario(Scenario):
    """Everything that is made (`prepare_story`) and named (`targets`) goes, in order; what is not, stays."""

    lies = False  # an Absent is what a teardown takes for a proof, so it has to be true
    same_end = True
    kinds: ClassVar[tuple[Resource, ...]] = parts.SERVING
    """Kinds that the snapshot contains."""
    namespaces: ClassVar[tuple[str, ...]] = ("default",)
    policy: ClassVar[Policy] = Policy(detach_seconds=1.0, timeout_seconds=300.0, stalled_seconds=10.0)
    rows: ClassVar[tuple[RelationRow, ...]] = BUILT_IN
    leave_out: ClassVar[frozenset[str]] = frozenset({"deployment", "endpointslice", "hpa", "job", "namespaces"})
    """The models that have nothing to do here. What they would have made is made by hand, which is cheaper."""
    end_seconds_max: ClassVar[float] = 900.0

    def __init__(self, world: SimulatedWorld) -> None:
        super().__init__(world)
        self.disk = b""
        self.saved_at: dict[str, float] = {}
        """Since when an object is in the ledger on the disk, by uid."""
        self.receipt: Receipt | None = None
        self.ended_at = 0.0
        self.unexplained: list[str] = []
        self.targets: set[str] = set()
        """The uids that are named."""
        self.bundles: list[set[str]] = []
        """Bundles of objects that serve together, each with all that it owns."""
        self.owners: list[str] = []
        """Those whose parts go one by one."""
        self.adversaries: list[asyncio.Task[None]] = []

    def processes(self) -> Mapping[str, Main]:
        """The teardown."""
        return {SUBJECT: self.tear_down}

    # The program

    async def tear_down(self, client: Client) -> None:
        """Plan or resume, and execute until it is proven; then there is nothing more to do."""
        while self.receipt is None:
            outcome = await self.attempt(client)
            if outcome is not None and outcome.complete:
                self.receipt = conclude(outcome, "sim", utc_now())
                self.ended_at = asyncio.get_running_loop().time()
            await asyncio.sleep(AGAIN_SECONDS)
        await asyncio.get_running_loop().create_future()

    async def attempt(self, client: Client) -> Outcome | None:
        """One execution; None if not enough could be read to make a first plan."""
        kinds = frozenset(GroupKind(resource.group, resource.kind) for resource in self.kinds)
        full = full_kinds(self.rows) & kinds
        world = await gather(client, Discovery(client), namespaces=self.namespaces, full=full, kinds=kinds)
        saved = self.saved()
        if saved is None:
            if any(reading.problem for reading in world.kinds.values()):
                return None
            ledger = self.plan(world)
        else:
            ledger = plan_again(saved, world, relate(world, self.rows), owner_of_finalizer=self.owner_of_finalizer)
        self.save(ledger)
        return await self.execute(client, ledger, world)

    async def execute(self, client: Client, ledger: Ledger, world: World) -> Outcome | None:
        """Execute a ledger to its end, with watches."""
        executor = watching(
            client,
            ledger,
            rng=random.Random(self.world.seed),  # noqa: S311 - chance in a game
            world=world,
            on_step=lambda _: self.judge(executor),
            on_decision=lambda decision: self.judge(executor, decision),
            on_ledger=self.save,
        )
        return await executor.run()

    def plan(self, world: World) -> Ledger:
        """The closure of the named targets, by uid: another object of the same name is not meant."""
        named = [item for item in world if item.uid in self.targets]
        return make_ledger(
            world, relate(world, self.rows), named, self.policy, owner_of_finalizer=self.owner_of_finalizer
        )

    def owner_of_finalizer(self, world: World, item: Item, finalizer: str) -> Item | None:
        """None: no finalizer has a controller in these stories."""
        del self, world, item, finalizer
        return None

    def saved(self) -> Ledger | None:
        """The ledger on the disk."""
        return msgspec.json.decode(self.disk, type=Ledger) if self.disk else None

    def save(self, ledger: Ledger) -> None:
        """Onto the disk, which outlives the process."""
        self.disk = msgspec.json.encode(ledger)
        now = asyncio.get_running_loop().time()
        for entry in ledger.entries:
            self.saved_at.setdefault(entry.uid, now)

    def judge(self, executor: Executor, decision: Decision | None = None) -> None:
        """Every decision has to be explained: those that are shown, and one for each thing that happens."""
        if len(self.unexplained) < UNEXPLAINED_MAX:
            now, observations = utc_now(), executor.observations.all
            judged = decision or decide(executor.ledger, observations, {}, now)
            self.unexplained += explained(executor.ledger, observations, judged, now)

    # The story

    async def prepare(self) -> None:
        """A cluster, and what is to be taken down in it."""
        self.history = History(self.world)
        self.others = self.world.client("others")
        cluster = models.run_all(self.world.client("models"), seed=1, leave_out=self.leave_out)
        self.world.live(cluster, "models")
        await self.prepare_story()
        await asyncio.sleep(PREPARED_SECONDS)
        self.beginning = frozenset(self.history.made)

    @abstractmethod
    async def prepare_story(self) -> None:
        """Creates the objects before the teardown begins: fills `targets`, `bundles` and `owners`."""

    async def make(self, resource: Resource, body: Json, *, named: bool = True) -> Object:
        """Make an object, and name it."""
        made = await self.others.create(resource, body)
        if named:
            self.targets.add(made.meta.uid)
        if resource == parts.DEPLOYMENTS and "deployment" in self.leave_out:
            replica_set = await self.others.create(*parts.replica_set(made))
            if "replicaset" in self.leave_out:
                await self.others.create(*parts.pod(replica_set))
        elif resource == parts.SERVICES and "endpointslice" in self.leave_out:
            await self.others.create(*parts.endpoint_slice(made))
        return made

    async def make_all(self, bodies: Iterable[tuple[Resource, Json]], *, named: bool = True) -> list[Object]:
        """Make objects that serve together."""
        made = [await self.make(resource, body, named=named) for resource, body in bodies]
        self.bundles.append({obj.meta.uid for obj in made})
        return made

    async def play(self) -> None:
        """Somebody gets in the way, and in the end it is done."""
        await self.disturb()
        await self.until_ended()
        await self.until_quiet()

    async def until_ended(self) -> None:
        """Wait until there is a receipt."""
        await self.world.until(lambda: self.receipt is not None, limit=self.end_seconds_max)

    async def until_quiet(self) -> None:
        """Wait until the adversaries are gone, and no client writes any more."""
        for adversary in self.adversaries:
            adversary.cancel()
        await self.after_faults(0.0)
        await self.world.settle(SETTLED_SECONDS)

    async def disturb(self) -> None:
        """The actions of others meanwhile."""

    def deeds(self) -> Trace:
        """The writes that the oracles judge."""
        return self.world.trace

    def problems(self) -> list[str]:
        """All oracles."""
        trace, history = self.deeds(), self.history
        ledger, receipt = self.saved(), self.receipt
        if ledger is None or receipt is None:
            return ["it did not end"]
        going = {entry.uid for entry in ledger.going}
        there = {obj["metadata"]["uid"] for obj in self.world.snapshot().values()}
        problems = [
            *self.unexplained,
            *everything_is_gone(history, sorted(going | (self.targets - {entry.uid for entry in ledger.kept}))),
            *only_the_ledgers(trace, SUBJECT, self.saved_at),
            *only_our_finalizer(trace, history, SUBJECT),
            *true_receipt(receipt, there),
            *quiet_since(trace, SUBJECT, self.ended_at),
        ]
        for bundle in self.bundles:
            whole = {*bundle, *(below for uid in bundle for below in history.below(uid))} & self.beginning
            problems += nothing_early(trace, history, SUBJECT, sorted(whole))
        for owner in self.owners:
            problems += owner_last(trace, history, SUBJECT, owner, self.beginning & going)
        return problems


class SmallestTeardown(TeardownScenario):
    """One Deployment, its Service and its Ingress."""

    kinds = parts.SERVING[:6]
    leave_out = frozenset({*TeardownScenario.leave_out, "replicaset"})

    async def prepare_story(self) -> None:
        """Create a Deployment, its Service and its Ingress."""
        await self.make_all([parts.deployment("web"), parts.service("web"), parts.ingress("web")])
