"""A small cluster in which the operator has exactly the powers that are installed for it, or some of them less."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import structlog

from pilotage.api.names import ENDPOINTS, MODELS, TEARDOWNS
from pilotage.controllers.caches import MADE_BY_US_WHERE_SERVED
from pilotage.kube import SECRETS, Client, Json, ObjectKey, Propagation, Resource, merge_patch
from pilotage.models.blocking import inline
from pilotage.operator import rbac
from pilotage.operator.install import NAME, Values, manifests
from pilotage.operator.run import operating, prepare
from pilotage.operator.settings import OperatorSettings
from pilotage.runtime.manager import Manager
from pilotage.serving.resources import CLAIMS
from pilotage_sim import models
from pilotage_sim.world import NotSettled, SimulatedWorld
from tests.operator.installing import apply_all
from tests.support.kinds import CRDS, definition

NAMESPACE = "pilotage-system"
ROLES = {
    "ClusterRole": Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False),
    "Role": Resource("rbac.authorization.k8s.io", "v1", "roles", "Role"),
}
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:{NAME}"


class Power(NamedTuple):
    """One thing that may be done to one resource."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}"

    @property
    def refusal(self) -> str:
        """Words of the API server that name it."""
        return f'cannot {self.verb} resource "{self.resource}"'


def powers(rules: Sequence[rbac.RbacRule]) -> list[Power]:
    """All that some rules give."""
    return [Power(rule.group, each, verb) for rule in rules for each in rule.resources for verb in rule.verbs]


ALL = powers((*rbac.EVERYWHERE, *rbac.AT_HOME, *rbac.AT_HOSTS))


def installed(lost: Sequence[Power]) -> list[Json]:
    """The installation, with some powers taken away."""
    objects = manifests(Values(namespace=NAMESPACE))
    for obj in objects:
        if obj["kind"] in ("ClusterRole", "Role") and obj["metadata"]["name"] in (NAME, f"{NAME}-hosts"):
            obj["rules"] = [
                {**rule, "resources": [resource], "verbs": verbs}
                for rule in obj["rules"]
                for resource in rule["resources"]
                if (verbs := [v for v in rule["verbs"] if Power(rule["apiGroups"][0], resource, v) not in lost])
            ]
    return [each for each in objects if each["kind"] != "Deployment"]


class Outcome(NamedTuple):
    """Behaviour of an operator that a person can see."""

    crashed: BaseException | None
    unready: list[str]
    logs: list[str]
    messages: list[str]
    """Messages in the statuses of our objects."""
    left: list[str]
    """Our objects that are still there."""

    @property
    def said(self) -> str:
        """All that was said, anywhere."""
        return "\n".join((*self.unready, *self.logs, *self.messages))


Story = Callable[[SimulatedWorld, Client], Awaitable[None]]


async def play(story: Story, lost: Sequence[Power], folder: Path) -> Outcome:
    """Let the operator run through a story, as its service account."""
    seen: dict[str, None] = {}
    async with SimulatedWorld(1) as world:
        await _settle(world, lost)
        async with _operator(world, folder) as (manager, running, lines):
            watching = asyncio.create_task(_listen(world, seen))
            with contextlib.suppress(NotSettled):
                await story(world, world.client("user"))
            unready = manager._unready()
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            crashed = running.exception() if running.done() else None
        left = [
            f"{resource.kind}/{obj['metadata']['name']}"
            for resource in (ENDPOINTS, MODELS)
            for obj in world.objects(resource)
        ]
    return Outcome(crashed, unready, lines(), list(seen), left)


async def play_without_each(
    story: Callable[[SimulatedWorld, Client, rbac.RbacRule], Awaitable[None]],
    rules: Sequence[rbac.RbacRule],
    folder: Path,
) -> dict[rbac.RbacRule, Outcome]:
    """The same, again and again in one cluster, each time without one of the rules."""
    outcomes = {}
    async with SimulatedWorld(1) as world:
        await _settle(world, [])
        user = world.client("admin")
        for rule in rules:
            seen: dict[str, None] = {}
            for role in (each for each in installed(powers([rule])) if each["metadata"]["name"] == NAME):
                if role["kind"] in ROLES:
                    key = ObjectKey(role["metadata"].get("namespace", ""), NAME)
                    await user.patch(ROLES[role["kind"]], key, merge_patch({"rules": role["rules"]}))
            for secret in world.objects(SECRETS, NAMESPACE):  # as at its first start
                place = ObjectKey(NAMESPACE, secret["metadata"]["name"])
                await user.delete(SECRETS, place, uid=secret["metadata"]["uid"], propagation=Propagation.BACKGROUND)
            async with _operator(world, folder) as (manager, running, lines):
                await story(world, user, rule)
                _note(world, seen)
                unready = manager._unready()
                crashed = running.exception() if running.done() else None
            outcomes[rule] = Outcome(crashed, unready, lines(), list(seen), [])
    return outcomes


async def _settle(world: SimulatedWorld, lost: Sequence[Power]) -> None:
    """A cluster in which the operator is installed, with some powers taken away."""
    admin = world.client("admin")
    await apply_all(admin, installed(lost))
    others = [each for each in MADE_BY_US_WHERE_SERVED if each.group != ENDPOINTS.group]
    for number, resource in enumerate(others):
        crd = definition(resource, f"x{number}")
        crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, for a test"}
        await admin.create(CRDS, crd)
    world.live(models.run_all(world.client("cluster"), seed=2, leave_out=frozenset({"job"})), "models")
    world.live(_release_claims(world), "claims")


@contextlib.asynccontextmanager
async def _operator(
    world: SimulatedWorld, folder: Path
) -> AsyncIterator[tuple[Manager, asyncio.Task[None], Callable[[], list[str]]]]:
    """One that runs, and what it says in its log."""
    settings = OperatorSettings(
        namespace=NAMESPACE, metrics_address="", cache_root=folder, fetch="operator", fetch_image="pilotage:test"
    )
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}")
    client = world.client(ACCOUNT, groups=groups)
    with _all_logs() as logs:
        await prepare(settings, client)
        async with operating(settings, client, "sim", blocking=inline) as manager:
            running = asyncio.create_task(manager.run())
            try:
                yield (
                    manager,
                    running,
                    lambda: [f"{each['event']} {each.get('error', '')}" for each in logs if "error" in each],
                )
            finally:
                manager.stop()
                await asyncio.gather(running, return_exceptions=True)


@contextlib.contextmanager
def _all_logs() -> Iterator[list[structlog.typing.EventDict]]:
    """Enable every log message, whatever other tests have configured."""
    before = structlog.get_config()
    structlog.reset_defaults()
    try:
        with structlog.testing.capture_logs() as logs:
            yield logs
    finally:
        structlog.configure(**before)


async def _release_claims(world: SimulatedWorld) -> None:
    """Release the claims, as a cluster does once no pod uses them."""
    client = world.client("cluster")
    while True:
        for claim in world.objects(CLAIMS):
            meta = claim["metadata"]
            if "deletionTimestamp" in meta and meta.get("finalizers"):
                patch = merge_patch({"metadata": {"finalizers": None}})
                await client.patch(CLAIMS, ObjectKey(meta["namespace"], meta["name"]), patch)
        await asyncio.sleep(1.0)


async def _listen(world: SimulatedWorld, seen: dict[str, None]) -> None:
    """Note the messages of all statuses that ever were there."""
    while True:
        _note(world, seen)
        await asyncio.sleep(1.0)


def _note(world: SimulatedWorld, seen: dict[str, None]) -> None:
    for resource in (ENDPOINTS, MODELS, TEARDOWNS):
        for obj in world.objects(resource):
            status = obj.get("status", {})
            if status.get("waitingFor"):
                seen[f"{resource.kind} waits: {status['waitingFor']}"] = None
            for condition in status.get("conditions", ()):
                if condition.get("message"):
                    seen[f"{resource.kind} {condition['type']}={condition['status']}: {condition['message']}"] = None
