"""The operator can do its work with the powers that are installed for it; without one of them, it says which."""

import asyncio
import re

import pytest

from pilotage.api.names import ENDPOINTS, HOSTS, LABEL_ENDPOINT_UID, LABEL_MANAGED_BY, MANAGED_BY, MODELS, PROCESSES
from pilotage.controllers.caches import MADE_BY_US, MADE_BY_US_WHERE_SERVED
from pilotage.kube import Client, Json, ObjectKey, Propagation, merge_patch
from pilotage.operator import rbac
from pilotage.runtime.leader import LeaseLost
from pilotage.serving.resources import SERVICES
from pilotage_sim.loop import run_virtual
from pilotage_sim.world import NotSettled, SimulatedWorld
from tests.api.objects import endpoint, model, process
from tests.operator.limited_operator import ALL, Outcome, Power, play, play_without_each, powers
from tests.support.kinds import CRDS

NAMESPACE = "default"
PATIENCE = 12.0
PARTS = (*MADE_BY_US, *MADE_BY_US_WHERE_SERVED)

SPECS: dict[str, Json] = {
    "plain": {
        "route": {"kind": "Ingress", "host": "a.example.com"},
        "cache": {"size": "1Gi"},
    },
    "scaled": {"autoscaling": {"max": 3}, "resources": {"requests": {"cpu": 1}}},
    "keda": {"autoscaling": {"max": 3, "targetConcurrency": 8}},
    "gated": {"route": {"kind": "HTTPRoute", "gateway": {"name": "g"}}},
    "proxied": {"route": {"kind": "HTTPProxy", "host": "b.example.com"}},
    "kserved": {"placement": {"kind": "KServe"}},
}


CHANGES: dict[str, Json] = {
    "plain": {"route": {"path": "/v2"}},
    "scaled": {"autoscaling": {"max": 4}},
    "keda": {"autoscaling": {"max": 4}},
    "gated": {"route": {"path": "/v2"}, "replicas": 2},
    "proxied": {"route": {"path": "/v2"}},
    "kserved": {"replicas": 2},
}
"""Changes in place: none of them makes a new revision."""


async def life(world: SimulatedWorld, user: Client) -> None:
    """Deploy one endpoint of each kind, change it in place, meddle with its parts, delete it; and a Model beside it."""
    await user.create(MODELS, model("weights"), namespace=NAMESPACE)
    for name, spec in SPECS.items():
        body = endpoint(name, {"model": {"source": "hf://o/r/m.gguf"}, "deletion": {"drainSeconds": 1}, **spec})
        await user.create(ENDPOINTS, body, namespace=NAMESPACE)
    await patiently(world, lambda: all(world.objects(resource) for resource in PARTS))
    for name, spec in CHANGES.items():
        await user.patch(ENDPOINTS, ObjectKey(NAMESPACE, name), merge_patch({"spec": spec}))
    for service in world.objects(SERVICES, NAMESPACE):
        patch = merge_patch({"spec": {"selector": dict.fromkeys(service["spec"].get("selector", {}), "meddled")}})
        await user.patch(SERVICES, ObjectKey(NAMESPACE, service["metadata"]["name"]), patch)
    await patiently(world, lambda: False)
    for resource in (ENDPOINTS, MODELS):
        for obj in (await user.list(resource, NAMESPACE)).items:
            await user.delete(resource, obj.key, uid=obj.meta.uid, propagation=Propagation.BACKGROUND)
    await patiently(world, lambda: not world.objects(ENDPOINTS) and not world.objects(MODELS))


async def patiently(world: SimulatedWorld, condition) -> None:
    """Wait until a condition holds, or for a while."""
    try:
        await world.until(condition, PATIENCE)
    except NotSettled:
        return


def of(*verbs: str, resources: tuple[str, ...] = ()) -> list[Power]:
    return [power for power in ALL if power.verb in verbs and (not resources or power.resource in resources)]


def silent(outcome: Outcome, lost: list[Power], text: str) -> list[str]:
    """Rules that were taken away and whose refusal no message names."""
    assert outcome.crashed is None or isinstance(outcome.crashed, LeaseLost)
    return [str(power) for power in lost if power.refusal not in text]


def test_with_all_its_powers_nothing_is_refused(tmp_path):
    outcome = run_virtual(play(life, [], tmp_path))
    assert outcome.crashed is None
    assert not re.findall(r"cannot \w+ resource.*", outcome.said)
    assert outcome.left == []


@pytest.mark.parametrize("verb", ["list", "watch"])
def test_what_it_may_not_read_is_named_by_its_health(tmp_path, verb):
    lost = [power for power in of(verb) if power.resource != "poddisruptionbudgets"]  # no cache has these
    outcome = run_virtual(play(life, lost, tmp_path))
    assert silent(outcome, lost, "\n".join(outcome.unready)) == []


SCALERS = ("horizontalpodautoscalers", "scaledobjects")
ROUTES = ("httproutes", "httpproxies", "inferenceservices")


@pytest.mark.parametrize(
    ("verb", "resources"),
    [
        # Each of another endpoint: no refusal hides another one.
        ("create", (*SCALERS, *ROUTES, "ingresses")),
        ("create", ("persistentvolumeclaims", "deployments")),
        ("create", ("services", "teardowns")),
        ("patch", (*SCALERS, *ROUTES, "ingresses")),
        ("patch", ("deployments",)),
        ("patch", ("services",)),
        ("delete", (*SCALERS, *ROUTES, "persistentvolumeclaims")),
        ("delete", ("ingresses", "deployments")),
        ("delete", ("services",)),
    ],
    ids=lambda value: value if isinstance(value, str) else "+".join(value),
)
def test_what_it_may_not_do_to_a_part_is_said_by_the_endpoint(tmp_path, verb, resources):
    lost = of(verb, resources=resources)
    outcome = run_virtual(play(life, lost, tmp_path))
    assert silent(outcome, lost, "\n".join(outcome.messages)) == []


@pytest.mark.parametrize(
    "lost",
    [
        of("get", resources=("leases",)),
        of("create", resources=("leases",)),
        of("update", resources=("leases",)),
        of("list", resources=("poddisruptionbudgets",)),
        of("patch", resources=("servingendpoints", "models")),
        of("patch", resources=("servingendpoints/status", "models/status")),
        of("patch", resources=("teardowns/status",))
        + of("get", resources=("namespaces",))
        + of("create", resources=("events",)),
    ],
    ids=lambda lost: ",".join(map(str, lost)),
)
def test_what_no_object_can_say_is_in_the_log(tmp_path, lost):
    outcome = run_virtual(play(life, lost, tmp_path))
    assert silent(outcome, lost, "\n".join(outcome.logs)) == []


async def start(world: SimulatedWorld, user: Client, rule: rbac.RbacRule) -> None:
    """Play what shows that a rule is missing: for most rules the start alone.

    For the others an endpoint is created, or a process on a Host. An Event tells that its second revision serves.
    Classes are read for a canary on an Ingress.
    Budgets are read when one is deleted. The last one is deleted while its router is uninstalled.
    """
    await asyncio.sleep(2.0)
    budgets = "poddisruptionbudgets" in rule.resources
    if "list" in rule.verbs and not budgets:
        return
    if "hostservices" in rule.resources:
        labels = {LABEL_MANAGED_BY: MANAGED_BY, LABEL_ENDPOINT_UID: "e0e0"}
        await user.create(HOSTS, {"metadata": {"name": "gpu-1"}, "spec": {}})
        await user.create(PROCESSES, process("chat-1-0", {"host": "gpu-1"}, labels=labels), namespace=NAMESPACE)
        await asyncio.sleep(5.0)
        return
    last = "customresourcedefinitions" in rule.resources
    spec = {"route": SPECS["proxied"]["route"]} if last else {}
    if "ingressclasses" in rule.resources:
        strategy = {"type": "Canary", "canary": {"steps": [{"setWeight": 50}]}}
        spec = {"route": {"kind": "Ingress", "className": "nginx"}, "strategy": strategy}
    made = endpoint(f"chat-{len(world.objects(ENDPOINTS))}", {"model": {"source": "hf://o/r/m.gguf"}, **spec})
    created = await user.create(ENDPOINTS, made, namespace=NAMESPACE)
    await asyncio.sleep(5.0)
    if "events" in rule.resources:
        await user.patch(ENDPOINTS, created.key, merge_patch({"spec": {"runtime": {"args": ["--seed", "2"]}}}))
        await asyncio.sleep(5.0)
    if last or budgets:
        await user.delete(ENDPOINTS, created.key, uid=created.meta.uid, propagation=Propagation.BACKGROUND)
        await asyncio.sleep(5.0)
    if last:
        definition = await user.get(CRDS, ObjectKey("", "httpproxies.projectcontour.io"))
        await user.delete(CRDS, definition.key, uid=definition.meta.uid, propagation=Propagation.BACKGROUND)
        await asyncio.sleep(60.0)


def test_without_any_one_of_its_rules_it_runs_on_and_says_what_it_lacks(tmp_path):
    rules = sorted((*rbac.EVERYWHERE, *rbac.AT_HOME), key=lambda rule: "customresourcedefinitions" in rule.resources)
    outcomes = run_virtual(play_without_each(start, rules, tmp_path))
    assert [rule for rule, outcome in outcomes.items() if outcome.crashed is not None] == []
    silent = [rule for rule, outcome in outcomes.items() if not any(p.refusal in outcome.said for p in powers([rule]))]
    assert silent == []
