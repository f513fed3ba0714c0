"""Teardowns of what a controller made and still keeps: custom resources, their controllers, and their definitions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from pilotage.catalogue.kind import Keep
from pilotage.catalogue.relation import ByName, Relation, RelationRow, TargetKind
from pilotage.kube import Absent, AlreadyExists, Conflict, ObjectKey, Terminating, without_finalizer
from pilotage.runtime.manager import Manager
from pilotage.runtime.types import Result
from pilotage.teardown.planning.ledger import Policy
from pilotage.teardown.relations import BUILT_IN
from pilotage_sim import models
from pilotage_sim.scenarios import teardown_parts as parts
from pilotage_sim.scenarios.teardown import TeardownScenario
from pilotage_sim.scenarios.teardown_parts import APPS, Part

if TYPE_CHECKING:
    from pilotage.kube import Object, Resource
    from pilotage.runtime.controller import Context
    from pilotage.runtime.types import Reconcile
    from pilotage.teardown.snapshot.world import Item, World

FINALIZER = "sim.pilotage.dev/app"
LAG_SECONDS = 0.3
"""Staleness of the controller's reads, in seconds."""
WORK_SECONDS = 2.0
"""Duration of an operator's cleanup, in seconds: longer than its own pods take to terminate."""


PartsOf = Callable[["Object"], "list[Part]"]
"""The parts of an App, as its controller makes them."""


class AppController:
    """Makes the parts of an App again when one is missing, until the App is being deleted; then it lets go.

    What it acts on is a little old, as with any controller: it may make a part again whose owner is going already.
    """

    def __init__(self, context: Context, resource: Resource, parts_of: PartsOf) -> None:
        """`resource`: that of the Apps."""
        self.client = context.client
        self.store = context.store
        self.resource = resource
        self.parts_of = parts_of

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """Create the missing parts of an App; remove its finalizer while it is being deleted."""
        app = self.store.get(key)
        if app is None:
            return None
        if app.meta.terminating:
            return await self.let_go(app)
        await asyncio.sleep(LAG_SECONDS)
        for resource, body in self.parts_of(app):
            try:
                await self.client.create(resource, body)
            except (AlreadyExists, Terminating):
                continue
        return None

    async def let_go(self, app: Object) -> Result | None:
        """Its finalizer goes when nothing runs any more."""
        patch = without_finalizer(app, FINALIZER)
        if patch is None:
            return None
        try:
            await self.client.get(parts.DEPLOYMENTS, app.key)
            return Result(requeue_after=1.0)
        except Absent:
            await self.client.patch(self.resource, app.key, patch)
            return None


class OwnerTeardown(TeardownScenario):
    """An App with parts in several phases and a live controller; its ConfigMap stays, as asked."""

    owner: ClassVar[Resource] = APPS
    """The kind of the App."""
    stays: ClassVar[Resource] = parts.CONFIG_MAPS
    """The kind of the part that stays."""
    kinds = (*parts.SERVING[:6], parts.CONFIG_MAPS, APPS)
    policy = Policy(keep=frozenset({Keep.CONFIGS}), detach_seconds=1.0, timeout_seconds=300.0)
    leave_out = frozenset({"endpointslice", "hpa", "job", "namespaces"})

    async def prepare_story(self) -> None:
        """Create an App with its definition and its controller."""
        await self.others.create(*parts.definition(self.owner))
        self.world.live(self.control(), "controller")
        app = await self.make(*parts.app("web", resource=self.owner, finalizers=(FINALIZER,)))
        self.owners.append(app.meta.uid)
        self.bundles.append({app.meta.uid})

    def parts_of(self, app: Object) -> list[Part]:
        """The parts of an App."""
        makers = (self.part_that_stays, parts.deployment, parts.service, parts.ingress)
        return [make(app.meta.name, app.meta.namespace, owner=app) for make in makers]

    def part_that_stays(self, name: str, namespace: str, *, owner: Object) -> Part:
        """The part that is kept."""
        return parts.config_map(name, namespace, owner=owner)

    async def control(self) -> None:
        """The controller of the Apps."""
        manager = Manager(self.world.client("controller"), name="apps", seed=1)
        informer = manager.informer(self.owner)
        kinds = (parts.DEPLOYMENTS, parts.SERVICES, parts.INGRESSES, self.stays)
        watches = [(manager.informer(resource), self.app_keys) for resource in kinds]
        manager.add("apps", informer, self.controller, watches=watches)
        await manager.run()

    def app_keys(self, obj: Object) -> list[ObjectKey]:
        """The mapper from a part to its App."""
        owner = obj.meta.controller
        return [ObjectKey(obj.meta.namespace, owner.name)] if owner and owner.kind == self.owner.kind else []

    def controller(self, context: Context) -> Reconcile:
        """One for each manager."""
        return AppController(context, self.owner, self.parts_of).reconcile

    def problems(self) -> list[str]:
        """The part that was to stay is there, and nobody owns it any more."""
        found = self.world.find(self.stays, ObjectKey("default", "web"))
        problems = super().problems()
        if found is None or found["metadata"].get("ownerReferences"):
            problems.append(f"the {self.stays.kind} that was to stay is not there, or still owned")
        return problems


class OperatorLastTeardown(TeardownScenario):
    """An operator, and an object whose finalizer only it takes off, while it runs: it has to go last."""

    kinds = (*parts.SERVING[:6], APPS)

    async def prepare_story(self) -> None:
        """Create an App, and the operator that removes its finalizer."""
        await self.others.create(*parts.definition())
        await self.make(*parts.deployment("operator"))
        await self.make(*parts.app("mine", finalizers=(FINALIZER,)))
        self.world.live(self.operate(), "operator")

    async def operate(self) -> None:
        """The program in the operator's pods."""
        client, mine = self.world.client("operator"), ObjectKey("default", "mine")
        while True:
            await self.world.until(lambda: self._runs() and parts.is_terminating(self.world.find(APPS, mine)))
            await asyncio.sleep(WORK_SECONDS)
            if not self._runs():
                continue  # it was taken down before it could do its work
            try:
                if (patch := without_finalizer(await client.get(APPS, mine), FINALIZER)) is not None:
                    await client.patch(APPS, mine, patch)
            except Conflict:
                continue
            except Absent:
                return

    def _runs(self) -> bool:
        pods = self.world.objects(parts.PODS)
        return any(pod["metadata"]["labels"].get("app") == "operator" for pod in pods)

    def owner_of_finalizer(self, world: World, item: Item, finalizer: str) -> Item | None:
        """The controller of the finalizer is known."""
        del item
        return world.find("apps", "Deployment", "default", "operator") if finalizer == FINALIZER else None


class DefinitionTeardown(TeardownScenario):
    """A definition goes with its objects; two of them need each other, and a third needs one of the two."""

    kinds = (parts.DEFINITIONS, APPS)
    leave_out = frozenset(models.MODELS)
    rows = (
        *BUILT_IN,
        RelationRow(
            Relation.NEEDS,
            "spec.needs",
            ByName((TargetKind(APPS.group, APPS.kind),)),
            group=APPS.group,
            kind=APPS.kind,
        ),
    )

    async def prepare_story(self) -> None:
        """Create a definition and three Apps, of which two need each other."""
        await self.make(*parts.definition())
        self.uids = {
            name: (await self.make(*parts.app(name, needs=needs), named=False)).meta.uid
            for name, needs in (("a", "b"), ("b", "a"), ("c", "a"))
        }

    def problems(self) -> list[str]:
        """The circle is reported, and the third went before it."""
        problems = super().problems()
        ledger, removed = self.saved(), self.history.removed
        a, b, c = (self.uids[name] for name in "abc")
        if ledger is not None and [sorted(circle) for circle in ledger.cycles] != [sorted((a, b))]:
            problems.append(f"the circle of {a} and {b} is not reported: {ledger.cycles}")
        if removed.get(c, 0.0) >= removed.get(a, 0.0):
            problems.append("what is needed went before the one that needs it")
        return problems
