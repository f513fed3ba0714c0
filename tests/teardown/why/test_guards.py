"""Disruption budgets refuse evictions, and are never why a delete does not go through."""

from collections.abc import AsyncIterator

import pytest

from pilotage.kube import PODS, Client, Throttled
from pilotage.teardown.diagnosis.why.model import StuckVerdict
from tests.support.waiting import eventually, until
from tests.teardown.why.objects import BUDGETS, force_pods_out, pod
from tests.teardown.why.staging import Stage, root_codes, the


@pytest.fixture(autouse=True)
async def no_pods_left(client: Client, namespace: str) -> AsyncIterator[None]:
    yield
    await force_pods_out(client, namespace)


@pytest.mark.usefixtures("namespace_for_pods")
async def test_a_budget_refuses_an_eviction_and_not_a_delete(stage: Stage):
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "db"}}}
    budget = await stage.make(BUDGETS, {"metadata": {"name": "db"}, "spec": spec})
    only = await stage.make(PODS, pod("db-0", "node-0", grace=1), labels={"app": "db"})
    await until(stage.client, BUDGETS, budget.key, lambda now: now and now.get("status", "currentHealthy") == 1)

    async def is_refused() -> bool:
        try:
            await stage.client.evict(only.key, uid=only.meta.uid)
        except Throttled as error:
            return "disruption budget" in error.message
        return False

    await eventually(is_refused)
    found = await stage.why(PODS, only)
    assert found.verdict is StuckVerdict.NOT_STUCK
    assert root_codes(found) == {"budget-refuses-eviction"}
    note = the(found, "budget-refuses-eviction")
    assert str(note.subject) == f"poddisruptionbudget/db -n {stage.namespace}"
    assert "A DELETE is unaffected." in note.text
    assert note.evidence == ("disruptionsAllowed is 0: 1 of 1 needed pods are healthy", "it asks for minAvailable 1")
    await stage.delete(PODS, only)
    await until(stage.client, PODS, only.key, lambda now: now is None)


@pytest.mark.usefixtures("namespace_for_pods")
async def test_a_budget_of_others_is_not_mentioned(stage: Stage):
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "db"}}}
    await stage.make(BUDGETS, {"metadata": {"name": "db"}, "spec": spec})
    other = await stage.make(PODS, pod("web", "node-0"), labels={"app": "web"})
    found = await stage.why(PODS, other)
    assert found.causes == ()
