"""Hostile values in every field of our kinds: nothing outside of the tenant's namespace changes, and others are served.

Every field is tried with a quarter of its values, at least one; `make matrix` tries all. In virtual time, with the
operator at its most powerful: it may do everything, so only its own decisions protect others. No step of the operator
or of harbor, which share a loop here, may take long: others would wait for it.
"""

import asyncio
import json
import os
import time

import pytest

from pilotage.agent.launch.command import command_line, variables
from pilotage.agent.permission import LaunchRules, refusal
from pilotage.api.host import HostProcess
from pilotage.api.names import ENDPOINTS, GATEWAY_ROUTES, PROCESSES, TEARDOWNS
from pilotage.gateway.claims import Records, decide
from pilotage.gateway.inputs import read_route
from pilotage.kube import ApiError, Client, Object, ObjectKey, Propagation, merge_patch
from pilotage.serving.resources import CLAIMS, DEPLOYMENTS, SERVICES
from pilotage.serving.runtimes import HostLaunch
from pilotage_sim.loop import virtual
from tests.controllers.simulated_cluster import NAMESPACES
from tests.controllers.simulated_hosts import SimulatedHosts, simulated_hosts
from tests.hostile.fields import ATTACKER, VICTIM, VICTIM_NAME, Case, cases, sample

BATCH = 100
STALL_SECONDS_MAX = 1.0
"""Limit in seconds of CPU, so that the load of the machine does not count."""
OTHERS = (VICTIM, "default", "kube-system", "pilotage-system", "")
BY_HAND = (ENDPOINTS, TEARDOWNS, PROCESSES, SERVICES, DEPLOYMENTS, CLAIMS)
ON_HOST = {"placement": {"kind": "Host", "host": "gpu-1"}, "route": {"kind": "PilotageGateway"}}
WHOLE = os.environ.get("PILOTAGE_MATRIX") == "whole"
ALL = cases() if WHOLE else sample()
RULES = LaunchRules(commands=False, namespaces=(), host_namespaces=(), reserved_ports=(6443,))
PROGRAM, WEIGHTS = "llama-server", "/models/weights"
OWN_VARIABLES = {"MODEL_PATH", "MODEL_NAME", "HOST", "PORT", "OMP_NUM_THREADS"}


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Duration of each step of the loop, in seconds of CPU."""
    found: list[float] = []
    run = asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        run(handle)
        found.append(time.thread_time() - began)

    monkeypatch.setattr(asyncio.Handle, "_run", timed)
    return found


def untouched(place: SimulatedHosts) -> dict[str, str]:
    """All that is outside of the attacker's namespace, to the last bit.

    But for what says what runs where: how much is free on Hosts, and which Services their agents may speak for.
    """
    found = place.world.snapshot(OTHERS)
    return {
        key: json.dumps(obj, sort_keys=True)
        for key, obj in found.items()
        if not key.startswith(("hosts.", "hostservices."))
    }


async def settled_victims(place: SimulatedHosts) -> dict[str, str]:
    """The victim: an endpoint of pods and one on a Host. Returns the uids that an attacker may know."""
    for name in (ATTACKER, VICTIM):
        await place.user.create(NAMESPACES, {"metadata": {"name": name}})
    keys = [ObjectKey(VICTIM, VICTIM_NAME), ObjectKey(VICTIM, "hosted")]
    made = await place.deploy(keys[0], route={"kind": "Ingress", "host": "b.example.com"})
    await place.deploy(keys[1], **ON_HOST)
    for key in keys:
        await place.serving(f"{key.name}-1", key)
    await place.world.settle()
    uids = {"{victim uid}": made["metadata"]["uid"]}
    for resource in (SERVICES, DEPLOYMENTS):
        part = place.world.find(resource, ObjectKey(VICTIM, f"{VICTIM_NAME}-1"))
        assert part is not None
        uids[f"{{{resource.kind} uid}}"] = part["metadata"]["uid"]
    return uids


async def write(client: Client, case: Case, uids: dict[str, str]) -> bool:
    """Create it as the attacker would; returns whether the API server took it."""
    text = json.dumps(case.body)
    status = json.dumps(case.status)
    for name, uid in uids.items():
        text, status = text.replace(name, uid), status.replace(name, uid)
    try:
        made = await client.create(case.resource, json.loads(text), namespace=ATTACKER)
        if case.status is not None:
            patch = merge_patch({"status": json.loads(status)})
            await client.patch(case.resource, made.key, patch, subresource="status")
    except ApiError as error:
        if error.code >= 500:
            raise
        return False
    return True


async def remove_all(client: Client, place: SimulatedHosts) -> None:
    """Delete everything of the attacker, with the attacker's own finalizers."""
    for resource in BY_HAND:
        for obj in place.world.objects(resource, ATTACKER):
            key = ObjectKey(ATTACKER, obj["metadata"]["name"])
            uid = obj["metadata"]["uid"]
            if "attacker.example/never" in obj["metadata"].get("finalizers", []):
                await client.patch(resource, key, merge_patch({"metadata": {"finalizers": None}}))
            try:
                await client.delete(resource, key, uid=uid, propagation=Propagation.BACKGROUND)
            except ApiError:
                continue


def check_processes(place: SimulatedHosts) -> None:
    """All that an agent would run for the attacker is a preset of its own, with nothing that leads out of its place."""
    for obj in place.world.objects(PROCESSES, ATTACKER):
        spec = HostProcess.read(obj).spec
        if refusal(RULES, ATTACKER, spec) is not None or spec.runtime.name == "sglang":  # no machine has that itself
            continue
        launch = HostLaunch(spec.runtime, WEIGHTS, "name", "127.0.0.1", 40000, program=PROGRAM)
        program, *words = command_line(launch)
        assert program == PROGRAM, obj
        assert not [word for word in words if "/" in word and word != WEIGHTS], obj
        assert variables(launch).keys() <= OWN_VARIABLES, obj


def names_held(place: SimulatedHosts, before: Records | None = None) -> tuple[set[str], Records]:
    """The names at the gateway that lead to the victim, and what the gateway remembers of all."""
    routes = [read_route(Object.from_dict(obj)) for obj in place.world.objects(GATEWAY_ROUTES)]
    decision = decide(routes, before or {})
    held = [claim for claim in decision.claims if claim.route.key.namespace == VICTIM]
    return {name for claim in held for name in (*claim.models, claim.path, claim.host)}, decision.records


@pytest.mark.parametrize("part", range(0, len(ALL), BATCH), ids=lambda at: ALL[at].what.split(" = ")[0])
@virtual
async def test_nothing_outside_of_the_namespace_changes(part, steps):
    async with simulated_hosts("gpu-1") as place:
        uids = await settled_victims(place)
        attacker = place.world.client("mallory")
        before, (held, records) = untouched(place), names_held(place)
        taken = [case.what for case in ALL[part : part + BATCH] if await write(attacker, case, uids)]
        await asyncio.sleep(120.0)
        place.world.check()
        check_processes(place)
        assert untouched(place) == before, taken
        assert names_held(place, records)[0] == held, taken
        await remove_all(attacker, place)
        await asyncio.sleep(120.0)
        place.world.check()
        assert untouched(place) == before, taken
        fresh = ObjectKey(VICTIM, "fresh")
        await place.deploy(fresh, **ON_HOST)
        await place.serving("fresh-1", fresh)
    assert max(steps) < STALL_SECONDS_MAX, taken
