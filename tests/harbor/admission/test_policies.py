"""Policies in harbor: what is written is what was evaluated, and no policy stalls the server."""

import asyncio
import itertools
import json
import time

import pytest

from pilotage_harbor.admission.chain import InOrder
from pilotage_harbor.expressions import programs as expressions
from pilotage_harbor.expressions.programs import Expressions
from pilotage_harbor.schema import cel_budget
from tests.harbor.test_awaits import THINGS, Slow, until
from tests.harbor.test_by_passes import ask, harbor, make

__all__ = ["harbor"]

API = "/apis/admissionregistration.k8s.io/v1"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MAPS = "/api/v1/namespaces/x/configmaps"


async def install(harbor, *validations, operations=("CREATE", "UPDATE", "DELETE"), status=201, params=None, **spec):
    """Have a policy in force; returns the answer to its creation."""
    rule = {"apiGroups": [""], "apiVersions": ["*"], "resources": ["configmaps"], "operations": list(operations)}
    policy = {
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": each} if isinstance(each, str) else each for each in validations],
            **spec,
        },
    }
    binding = {"metadata": {"name": "b"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}}
    if params is not None:
        binding["spec"]["paramRef"] = params
    made = await ask(harbor, "POST", f"{API}/validatingadmissionpolicies", policy)
    assert made.status == status, made.body
    bound = await ask(harbor, "POST", f"{API}/validatingadmissionpolicybindings", binding)
    assert bound.status == 201
    return json.loads(made.body)


def labelled(name, **labels):
    return {"metadata": {"name": name, "labels": labels}}


async def held_up(harbor, doing):
    """Start a request, and hold it up between the policies and the validating webhooks. Returns how to let it go on."""
    slow = Slow(lambda _: True)
    before = harbor.core.admission
    harbor.core.admission = InOrder(before._policies, slow)
    task = asyncio.create_task(doing)
    await slow.asked.wait()
    harbor.core.admission = before

    async def go_on():
        slow.go_on.set()
        return await task

    return go_on


async def test_a_delete_is_decided_about_the_object_that_is_deleted(harbor):
    await install(harbor, "!has(oldObject.metadata.labels)", operations=("DELETE",))
    await make(harbor, "a")
    go_on = await held_up(harbor, ask(harbor, "DELETE", f"{MAPS}/a"))
    patch = {"metadata": {"labels": {"keep": "yes"}}}
    changed = await ask(harbor, "PATCH", f"{MAPS}/a", patch, content_type="application/merge-patch+json")
    assert changed.status == 200
    assert (await go_on()).status == 422
    assert (await ask(harbor, "GET", f"{MAPS}/a")).status == 200


async def test_a_patch_is_decided_about_the_object_that_it_makes(harbor):
    await install(harbor, "!has(object.data) || size(object.data) < 2", operations=("CREATE", "UPDATE"))
    await make(harbor, "a")
    how = {"content_type": "application/merge-patch+json"}
    go_on = await held_up(harbor, ask(harbor, "PATCH", f"{MAPS}/a", {"data": {"one": "1"}}, **how))
    assert (await ask(harbor, "PATCH", f"{MAPS}/a", {"data": {"two": "2"}}, **how)).status == 200
    assert (await go_on()).status == 422
    stored = json.loads((await ask(harbor, "GET", f"{MAPS}/a")).body)
    assert stored["data"] == {"two": "2"}


HEAVY = {
    "size of a text": "object.data.all(k, size(object.data.big) > 0)",
    "texts put together": "object.data.all(k, object.data.big + k != '')",
    "regular expressions": "object.data.all(k, !object.data.big.matches('(b*)*c' + k))",
    "a loop in a loop": "object.data.all(k, object.data.all(l, k + l != ''))",
    "a loop in a variable": "variables.heavy",
}


@pytest.mark.parametrize("expression", HEAVY.values(), ids=[name.replace(" ", "-") for name in HEAVY])
async def test_what_a_policy_does_with_a_large_object_is_bounded(harbor, expression):
    variables = [{"name": "heavy", "expression": HEAVY["size of a text"]}]
    await install(harbor, expression, variables=variables)
    data = {f"k{at}": "" for at in range(8000)} | {"big": "a" * 900_000}
    began = time.thread_time()
    answer = await ask(harbor, "POST", MAPS, {"metadata": {"name": "a"}, "data": data})
    assert answer.status == 422
    assert "running out of cost budget" in json.loads(answer.body)["message"]
    assert time.thread_time() - began < 10 * expressions.SECONDS_MAX  # without a bound it takes many times as long


async def test_a_policy_that_runs_out_of_its_budget_is_ignored_if_its_failures_are(harbor):
    await install(harbor, HEAVY["a loop in a loop"], failurePolicy="Ignore")
    data = {f"k{at}": "" for at in range(8000)}
    assert (await ask(harbor, "POST", MAPS, {"metadata": {"name": "a"}, "data": data})).status == 201


async def test_all_parameters_of_a_binding_share_one_budget(harbor, monkeypatch):
    """A user who may create parameters cannot make a write take longer with each."""
    await install(
        harbor,
        "[1].all(each, params.data.size() == 0 || each == 1)",
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        params={"selector": {"matchLabels": {"of": "p"}}, "namespace": "x", "parameterNotFoundAction": "Allow"},
    )
    ticks = itertools.count()
    monkeypatch.setattr(cel_budget.time, "thread_time", lambda: next(ticks) * expressions.SECONDS_MAX / 4)
    answers = [await ask(harbor, "POST", MAPS, labelled(f"m{at}", of="p") | {"data": {"a": "b"}}) for at in range(8)]
    assert [answer.status for answer in answers[:3]] == [201, 201, 201]
    assert answers[-1].status == 422
    assert "running out of cost budget" in json.loads(answers[-1].body)["message"]


async def test_the_budget_of_one_policy_is_not_spent_by_another(harbor):
    await install(harbor, HEAVY["a loop in a loop"], failurePolicy="Ignore")
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "object.data.all(k, k != 'bad')", "message": "it is bad"}],
        "failurePolicy": "Ignore",
    }
    await ask(harbor, "POST", f"{API}/validatingadmissionpolicies", {"metadata": {"name": "q"}, "spec": spec})
    bound = {"metadata": {"name": "q"}, "spec": {"policyName": "q", "validationActions": ["Deny"]}}
    await ask(harbor, "POST", f"{API}/validatingadmissionpolicybindings", bound)
    data = {f"k{at}": "" for at in range(8000)} | {"bad": ""}
    answer = await ask(harbor, "POST", MAPS, {"metadata": {"name": "a"}, "data": data})
    assert answer.status == 422
    assert "it is bad" in json.loads(answer.body)["message"]


async def test_more_variables_than_can_run_are_refused_when_they_are_written(harbor):
    variables = [{"name": "v0", "expression": "1"}]
    variables += [{"name": f"v{at}", "expression": f"variables.v{at - 1} + 1"} for at in range(1, 40)]
    status = await install(harbor, "variables.v39 == 0", variables=variables, status=422)
    assert "nested too deeply" in status["message"]


async def test_a_policy_is_compiled_once(harbor, monkeypatch):
    await install(harbor, "true")
    compiled = []
    program = Expressions.program
    monkeypatch.setattr(Expressions, "program", lambda self, *a, **k: compiled.append(a) or program(self, *a, **k))
    for name in "abc":
        await make(harbor, name)
    await make(harbor, "s", plural="secrets")
    assert len(compiled) == 1


async def test_policies_hold_after_a_restart(harbor):
    await install(harbor, "object.metadata.name != 'a'", operations=("CREATE",))
    await harbor.stop()
    await harbor.start(begun=True)
    assert (await ask(harbor, "POST", MAPS, labelled("a"))).status == 422
    assert (await ask(harbor, "POST", MAPS, labelled("b"))).status == 201


async def test_what_a_rule_of_a_definition_does_with_a_large_object_is_bounded(harbor):
    text = {"type": "string"}
    spec = {
        "type": "object",
        "properties": {"big": text, "names": {"type": "array", "items": text}},
        "x-kubernetes-validations": [{"rule": "self.names.all(n, size(self.big) > 0)"}],
    }
    definition = json.loads(json.dumps(THINGS))
    schema = {"type": "object", "properties": {"spec": spec}}
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
    things = "/apis/example.com/v1/namespaces/x/things"

    async def are_served():
        return (await ask(harbor, "GET", things)).status == 200

    assert (await ask(harbor, "POST", CRDS, definition)).status == 201
    await until(are_served)
    large = {"big": "a" * 900_000, "names": [f"n{at}" for at in range(8000)]}
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": large}
    began = time.thread_time()
    answer = await ask(harbor, "POST", things, thing)
    assert answer.status == 422
    assert "cost limit exceeded" in json.loads(answer.body)["message"]
    assert time.thread_time() - began < 4  # without a bound it takes longer, and the object is stored
