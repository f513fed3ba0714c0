"""Teardowns of endpoints that nobody owns: what serves together was named, or is in one namespace."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pilotage.catalogue.kind import Keep
from pilotage.kube import ObjectKey, without_finalizer
from pilotage.kube.wire import parse_time
from pilotage.teardown.planning.ledger import Policy
from pilotage_sim import adversaries
from pilotage_sim.loop import VIRTUAL_EPOCH
from pilotage_sim.plan import FaultKind
from pilotage_sim.scenarios import teardown_parts as parts
from pilotage_sim.scenarios.teardown import TeardownScenario

if TYPE_CHECKING:
    from pilotage.kube import Resource
    from pilotage.teardown.engine.receipt import Receipt

STUCK = "sim.pilotage.dev/stuck"
DOWN_SECONDS = 60.0
"""Downtime of that finalizer's controller, in seconds."""
DENIED_SECONDS = 8.0
PROOF_SECONDS = 0.1
"""Bound on the duration of a proving read that is not slow, in seconds."""
RETURN_SECONDS = 4.0
"""Duration for which re-creators are observed, in seconds."""


class DeploymentTeardown(TeardownScenario):
    """A Deployment with all that goes with it, beside all models and somebody who scales it up; its volume stays."""

    policy = Policy(keep=frozenset({Keep.VOLUMES}), detach_seconds=1.0, timeout_seconds=300.0)
    leave_out = frozenset({"job", "namespaces"})

    async def prepare_story(self) -> None:
        """Create a Deployment with all its parts, and the autoscaler that scales it up."""
        made = await self.make_all(
            [
                parts.claim("web"),
                parts.config_map("web"),
                parts.deployment("web", config="web", claim="web"),
                parts.service("web"),
                parts.ingress("web"),
                parts.autoscaler("web"),
            ]
        )
        self.stays = made[0].meta.uid
        scaling = adversaries.autoscaler(
            self.world.client("scaler"), parts.DEPLOYMENTS, ObjectKey("default", "web"), least=2
        )
        self.adversaries.append(self.world.live(scaling, "autoscaler"))

    def problems(self) -> list[str]:
        """The volume is there."""
        lost = [] if self.stays not in self.history.removed else ["the volume is gone"]
        return super().problems() + lost


class NamespaceTeardown(TeardownScenario):
    """A namespace with an endpoint, and with something that nothing refers to."""

    kinds = (*parts.SERVING, parts.NAMESPACES)
    namespaces = ("shop",)

    async def prepare_story(self) -> None:
        """Create a namespace with an endpoint and a ConfigMap that nothing refers to."""
        await self.make(*parts.namespace("shop"))
        await self.make_all(
            [
                parts.config_map("web", "shop"),
                parts.config_map("lonely", "shop"),
                parts.deployment("web", "shop", config="web"),
                parts.service("web", "shop"),
                parts.ingress("web", "shop"),
                parts.autoscaler("web", "shop", least=1),
            ],
            named=False,
        )


class RecreatedTeardown(TeardownScenario):
    """A program re-creates the ConfigMap, and a GitOps tool the Ingress: the new objects are left alone."""

    kinds = (*parts.SERVING[:6], parts.CONFIG_MAPS)

    def recreated(self) -> parts.Part:
        """The object that the program re-creates."""
        return parts.config_map("web")

    async def prepare_story(self) -> None:
        """Create an endpoint, and the programs that re-create parts of it."""
        await self.make_all(
            [
                parts.config_map("web"),
                parts.deployment("web", config="web"),
                parts.service("web"),
                parts.ingress("web"),
            ]
        )
        again = adversaries.recreator(self.world.client("recreator"), *self.recreated())
        applied = adversaries.gitops(self.world.client("gitops"), [parts.ingress("web")], every=1.0)
        self.adversaries += [self.world.live(again, "recreator"), self.world.live(applied, "gitops")]

    async def play(self) -> None:
        """Wait for the end, and for the re-creators after it."""
        await self.until_ended()
        await asyncio.sleep(RETURN_SECONDS)
        await self.until_quiet()

    def problems(self) -> list[str]:
        """Re-created objects are there; if they came before the proof, the receipt says so."""
        problems = super().problems()
        receipt = self.receipt
        for resource in (self.recreated()[0], parts.INGRESSES):
            found = self.world.find(resource, ObjectKey("default", "web"))
            uid = found["metadata"]["uid"] if found is not None else ""
            if not uid or uid in self.targets or receipt is None:
                problems.append(f"the new {resource.kind} is not there")
            elif self.history.made[uid].at < self._proven_at(receipt, resource) and uid not in str(receipt.notes):
                problems.append(
                    f"the receipt does not say that the name of the {resource.kind} was taken again: {receipt.notes}"
                )
        return problems

    def _proven_at(self, receipt: Receipt, resource: Resource) -> float:
        """The latest time at which a new object was there for the read that proved the old one gone."""
        (proof,) = (each.proof for each in receipt.objects if each.kind == resource.kind)
        if proof is None:
            return 0.0
        faults = [fault for process in self.running.values() for fault in process.injection.done]
        slow = sum(int(fault.detail) for fault in faults if fault.kind is FaultKind.SLOW_CALL)
        return parse_time(proof.at).timestamp() - VIRTUAL_EPOCH - slow - PROOF_SECONDS


class StuckTeardown(TeardownScenario):
    """A Service with a finalizer whose keeper is down for a while: the other endpoint goes meanwhile."""

    kinds = parts.SERVING[:6]

    async def prepare_story(self) -> None:
        """Create an endpoint whose Service has a finalizer, and one without."""
        resource, body = parts.service("slow")
        body["metadata"]["finalizers"] = [STUCK]
        stuck = await self.make_all([parts.deployment("slow"), (resource, body)])
        await self.make_all([parts.deployment("web"), parts.service("web")])
        self.slow = stuck[1].meta.uid
        self.quick = self.bundles[1]

    async def disturb(self) -> None:
        """Start the controller of the finalizer, which is down for a while."""
        self.world.live(self._keep(parts.SERVICES, ObjectKey("default", "slow")), "keeper")

    async def _keep(self, resource: Resource, key: ObjectKey) -> None:
        """The keeper of the finalizer: it comes back, and does its work."""
        await asyncio.sleep(DOWN_SECONDS)
        client = self.world.client("keeper")
        await self.world.until(lambda: parts.is_terminating(self.world.find(resource, key)))
        found = await client.get(resource, key)
        if (patch := without_finalizer(found, STUCK)) is not None:
            await client.patch(resource, key, patch)

    def problems(self) -> list[str]:
        """Nothing waited for the stuck one that need not."""
        removed = self.history.removed
        late = [uid for uid in self.quick if uid in removed and removed[uid] >= removed.get(self.slow, 0.0)]
        return super().problems() + [f"{self.history.made[uid]} waited for the stuck Service" for uid in late]


class DeniedTeardown(TeardownScenario):
    """An admission webhook denies the delete of Services for a while."""

    kinds = parts.SERVING[:6]

    async def prepare_story(self) -> None:
        """Create a Deployment, its Service and its Ingress."""
        await self.make_all([parts.deployment("web"), parts.service("web"), parts.ingress("web")])

    async def disturb(self) -> None:
        """Deny deletes of Services for a while."""
        webhook, end = adversaries.denying_webhook(self.world, operations=["DELETE"], plurals=["services"])
        self.webhook = webhook
        await asyncio.sleep(DENIED_SECONDS)
        end()

    def problems(self) -> list[str]:
        """It was asked again, and not without end."""
        asked = self.webhook.denied
        strange = [] if asked <= 60 else [f"the webhook was asked {asked} times in {DENIED_SECONDS:g} s"]
        return super().problems() + strange
