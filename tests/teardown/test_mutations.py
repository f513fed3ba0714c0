"""The tests can tell a wrong engine from a right one: each of these mistakes is put in, and found."""

from __future__ import annotations

import asyncio

import pytest

from pilotage.kube import ObjectKey, Propagation, merge_patch
from pilotage.runtime.clock import utc_now
from pilotage.teardown.engine import actions as acting
from pilotage.teardown.engine import decide, executor
from pilotage.teardown.engine.decision import Act
from pilotage.teardown.engine.observations import Observations
from pilotage.teardown.engine.prove import Proof
from pilotage.teardown.planning import plan
from pilotage.teardown.planning.ledger import HOLD
from pilotage_sim.explore import explore, run_plan
from pilotage_sim.plan import parse_plan
from pilotage_sim.scenarios import teardown_parts as parts
from pilotage_sim.scenarios.teardown import SmallestTeardown, TeardownScenario
from pilotage_sim.scenarios.teardown_endpoints import StuckTeardown
from pilotage_sim.scenarios.teardown_owners import OperatorLastTeardown, OwnerTeardown
from tests.teardown.building import NOW
from tests.teardown.test_decide import CASES


class ReplacedTeardown(TeardownScenario):
    """Another client replaces the ConfigMap while it waits for its turn."""

    kinds = (*parts.SERVING[:6], parts.CONFIG_MAPS)

    async def prepare_story(self) -> None:
        made = await self.make_all(
            [parts.config_map("web"), parts.deployment("web", config="web"), parts.service("web")]
        )
        self.mine = made[0].meta.uid

    async def disturb(self) -> None:
        await asyncio.sleep(0.3)
        key = ObjectKey("default", "web")
        await self.others.delete(parts.CONFIG_MAPS, key, uid=self.mine, propagation=Propagation.BACKGROUND)
        await self.others.create(*parts.config_map("web"))


def says(outcome, words: str) -> bool:
    return any(words in problem for problem in outcome.problems)


@pytest.mark.parametrize(
    "scenario", [SmallestTeardown, ReplacedTeardown, OwnerTeardown, StuckTeardown, OperatorLastTeardown]
)
def test_the_engine_as_it_is_passes_where_the_mistakes_do_not(scenario):
    assert run_plan(scenario).problems == []


def test_a_delete_by_name_is_found(monkeypatch):
    async def perform(client, action):
        entry = action.entry
        found = await client.get(entry.resource, entry.key)
        return await client.delete(entry.resource, entry.key, uid=found.meta.uid, propagation=Propagation.BACKGROUND)

    monkeypatch.setattr(executor, "perform", perform)
    assert says(run_plan(ReplacedTeardown), "a write to what is not in the ledger")


def test_an_order_that_was_forgotten_is_found(monkeypatch):
    monkeypatch.setattr(plan, "order", lambda graph, phases, **_: ({uid: set() for uid in phases}, []))
    told = [run_plan(SmallestTeardown, seed=seed) for seed in range(6)]  # without an order it is a matter of luck
    assert any(says(outcome, "was still there") for outcome in told)
    assert run_plan(OperatorLastTeardown).problems  # the operator is gone before its object: that is never released


def test_one_wait_that_was_forgotten_is_found(monkeypatch):
    monkeypatch.setattr(decide._Deciding, "settled", lambda *_: True)
    assert says(run_plan(SmallestTeardown), "was still there")


def test_to_take_unknown_for_gone_is_found_by_a_table(monkeypatch):
    monkeypatch.setattr(decide, "_OVER", (*decide._OVER, decide.State.UNKNOWN))
    case = next(case for case in CASES if case.name.startswith("unknown is not gone"))
    assert decide.decide(case.ledger, case.observations, case.refusals, NOW) != case.want


def test_to_take_unknown_for_gone_is_found_when_a_write_fails_and_the_look_at_it_too(monkeypatch):
    monkeypatch.setattr(Observations, "unknown", lambda self, uid, _: self.gone(uid, utc_now()))
    told = [
        run_plan(SmallestTeardown, parse_plan(f"fail-call:{number}:unavailable,fail-call:{number + 1}:unavailable"))
        for number in range(8, 13)
    ]
    assert any(says(outcome, "was still there") for outcome in told)


def test_to_strip_a_finalizer_of_somebody_else_is_found(monkeypatch):
    def terminating(self, entry, _):
        self.act(Act.RELEASE, entry)

    monkeypatch.setattr(decide._Deciding, "terminating", terminating)
    monkeypatch.setattr(acting, "without_finalizer", lambda *_: merge_patch({"metadata": {"finalizers": None}}))
    assert says(run_plan(StuckTeardown), "sim.pilotage.dev/stuck of services default/slow were taken off")


def test_to_release_the_hold_early_is_found(monkeypatch):
    right = decide._Deciding.terminating

    def terminating(self, entry, observation):
        if HOLD in observation.finalizers:
            self.act(Act.RELEASE, entry)
        else:
            right(self, entry, observation)

    monkeypatch.setattr(decide._Deciding, "terminating", terminating)
    assert says(run_plan(OwnerTeardown), "was let go, and")


def test_to_delete_without_the_hold_is_found(monkeypatch):
    monkeypatch.setattr(decide._Deciding, "cannot_hold", lambda *_: True)
    assert says(run_plan(OwnerTeardown), "was never held")


def test_to_skip_the_proof_is_found(monkeypatch):
    async def prove(*_, **__):
        return Proof({}, [], {}, {}, {}, [])

    monkeypatch.setattr(executor, "prove", prove)
    assert says(run_plan(SmallestTeardown), "seen gone, not proven")


def test_to_forget_the_ledger_is_found(monkeypatch):
    """Without it, a crash loses the rest of the ledger."""
    monkeypatch.setattr(SmallestTeardown, "saved", lambda _: None)
    assert explore(SmallestTeardown, plans_max=1).failures
