"""The controller of Models under faults: a sample, always the same; and that broken ones are found.

``python -m pilotage_sim explore model`` plays every single fault.
"""

import sys

import pytest

from pilotage.controllers.model import controller
from pilotage.controllers.model.controller import Models
from pilotage_sim.explore import explore, run_plan
from pilotage_sim.plan import parse_plan
from pilotage_sim.scenarios.model import ModelScenario

SAMPLE = 20


def test_single_faults_are_survived():
    report = explore(ModelScenario, plans_max=SAMPLE)
    sys.stdout.write(f"{report}\n")
    assert report.played == SAMPLE < report.possible, str(report)
    assert report.failures == [], str(report)


class Forgetful(Models):
    """Lets go before the files are gone."""

    async def _release(self, *_args, **_kwargs):
        return


class Hasty(Models):
    """Controller that does not check for users of a Model."""

    async def _users(self, _key):
        return []


class Talkative(Models):
    """Says the same again and again."""

    async def _follow(self, model, wish):
        result = await super()._follow(model, wish)
        if result is not None:
            await self._write(model, {"path": f"looked at {len(self.world_writes)}"})
            self.world_writes.append(1)
        return result

    def __init__(self, *args, **kwargs):
        self.world_writes = []
        super().__init__(*args, **kwargs)


class Impatient(Models):
    """Raises what lasts as an error."""

    async def _say(self, model, state, progress=None):
        await super()._say(model, state, progress)
        if isinstance(state, controller.PermanentError):
            raise state


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (Forgetful, "on the disk is"),
        (Hasty, "went while an endpoint used it"),
        (Talkative, "somebody still writes"),
        (Impatient, "ended with an error in that hour"),
    ],
)
def test_a_broken_controller_is_found(broken, words):
    story = type("BrokenScenario", (ModelScenario,), {"models": broken})
    outcome = run_plan(story)
    assert any(words in problem for problem in outcome.problems), outcome.problems


@pytest.mark.parametrize("plan", ["crash-before-write:2", "crash-after-write:40", "fail-call:30:uncertain-applied"])
def test_a_plan_can_be_replayed(plan):
    outcome = run_plan(ModelScenario, parse_plan(plan), baseline=run_plan(ModelScenario))
    assert outcome.problems == []
