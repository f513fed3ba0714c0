"""Admission that blocks a delete, or the removal of a finalizer."""

import contextlib
import socket
from collections.abc import AsyncIterator, Iterator

import pytest

from pilotage.kube import Absent, Invalid, Object, ObjectKey, Propagation, Resource, json_patch
from pilotage.teardown.diagnosis.why.explain import explain
from pilotage.teardown.diagnosis.why.model import Confidence, StuckVerdict
from pilotage.teardown.diagnosis.why.render import render
from pilotage.teardown.relations import relate
from tests.contract.hooks import HookServer, deny
from tests.support.kinds import CONFIG_MAPS, CRDS, config_map
from tests.support.waiting import eventually
from tests.teardown.why.objects import (
    DEPLOYMENTS,
    FINALIZER,
    SERVICES,
    deleting,
    let_go,
    letting_go,
    policy,
    refused,
    refusing,
    webhook,
)
from tests.teardown.why.staging import Stage, name_of, root_codes, the


@pytest.fixture
async def hooks() -> AsyncIterator[HookServer]:
    async with HookServer.started() as server:
        yield server


@pytest.fixture
async def present(stage: Stage) -> Object:
    return await stage.make(CONFIG_MAPS, config_map("settings"))


@pytest.fixture
async def going(stage: Stage) -> Object:
    made = await stage.make(CONFIG_MAPS, config_map("settings", finalizers=[FINALIZER]))
    await stage.delete(CONFIG_MAPS, made)
    return made


@contextlib.contextmanager
def nobody_answers() -> Iterator[str]:
    """A port that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"https://127.0.0.1:{server.getsockname()[1]}/"


async def test_a_dead_webhook_refuses_the_delete(stage: Stage, present: Object):
    guard = webhook(stage, "DELETE", {"url": "https://127.0.0.1:1/"})
    async with refusing(stage, deleting(stage, CONFIG_MAPS, present), guard) as (configuration,):
        found = await stage.why(CONFIG_MAPS, present)
    assert found.verdict is StuckVerdict.STUCK
    assert root_codes(found) == {"webhook-unreachable"}
    step = the(found, "webhook-fails-on-delete")
    assert name_of(step.subject).name == configuration.meta.name
    assert "guard.staged.example.com" in step.text
    assert "connection refused" in step.evidence[0]
    assert "17 minutes" not in str(render(found)), "nobody has asked for its delete"
    assert "Ignore" in step.remedies[0].command
    assert step.remedies[1].command == f"kubectl delete validatingwebhookconfiguration {configuration.meta.name}"
    assert found.roots[0].remedies[0].title.startswith("Bring the webhook")


async def test_a_dead_webhook_keeps_a_finalizer_from_being_removed(stage: Stage, going: Object):
    guard = webhook(stage, "UPDATE", {"url": "https://127.0.0.1:1/"})
    async with refusing(stage, letting_go(stage, CONFIG_MAPS, going), guard) as (configuration,):
        found = await stage.why(CONFIG_MAPS, going)
    assert "webhook-unreachable" in root_codes(found)
    step = the(found, "webhook-fails-on-update")
    assert name_of(step.subject).name == configuration.meta.name
    assert "finalizer" in step.text
    assert "replay-delete" not in [remedy.code for remedy in step.remedies]


async def test_a_webhook_whose_service_does_not_exist(stage: Stage, present: Object):
    guard = webhook(stage, "DELETE", {"service": {"namespace": stage.namespace, "name": "guard"}})
    async with refusing(stage, deleting(stage, CONFIG_MAPS, present), guard):
        found = await stage.why(CONFIG_MAPS, present)
    assert root_codes(found) == {"service-missing"}
    assert str(the(found, "service-missing").subject) == f"service/guard -n {stage.namespace}"


async def test_a_webhook_whose_deployment_is_scaled_to_nothing(stage: Stage, present: Object):
    labels = {"app": "guard"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "none"}]}}
    workload = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    await stage.make(DEPLOYMENTS, {"metadata": {"name": "guard"}, "spec": workload})
    await stage.make(SERVICES, {"metadata": {"name": "guard"}, "spec": {"ports": [{"port": 443}], "selector": labels}})
    guard = webhook(stage, "DELETE", {"service": {"namespace": stage.namespace, "name": "guard"}})
    async with refusing(stage, deleting(stage, CONFIG_MAPS, present), guard):
        found = await stage.why(CONFIG_MAPS, present)
    assert root_codes(found) == {"workload-not-running"}
    assert str(found.roots[0].subject) == f"deployment/guard -n {stage.namespace}"
    assert found.roots[0].remedies[0].command == f"kubectl scale deployment/guard -n {stage.namespace} --replicas=1"
    chain = [the(found, code) for code in ("webhook-fails-on-delete", "service-without-endpoints")]
    assert chain[0].because[0].code == chain[1].code


async def test_a_webhook_with_a_certificate_of_nobody(stage: Stage, present: Object, hooks: HookServer):
    address = hooks.hook("guard", deny("never asked")).client_config["url"]
    guard = webhook(stage, "DELETE", {"url": address})
    async with refusing(stage, deleting(stage, CONFIG_MAPS, present), guard):
        found = await stage.why(CONFIG_MAPS, present)
    assert root_codes(found) == {"webhook-certificate-wrong"}


async def test_a_webhook_that_never_answers(stage: Stage, present: Object):
    with nobody_answers() as address:
        guard = webhook(stage, "DELETE", {"url": address})
        async with refusing(stage, deleting(stage, CONFIG_MAPS, present), guard):
            found = await stage.why(CONFIG_MAPS, present)
    assert root_codes(found) == {"webhook-times-out"}


async def test_a_webhook_that_says_no_to_the_delete(stage: Stage, present: Object, hooks: HookServer):
    guard = webhook(stage, "DELETE", hooks.hook("guard", deny("settings are precious")).client_config)
    async with refusing(stage, deleting(stage, CONFIG_MAPS, present), guard) as (configuration,):
        found = await stage.why(CONFIG_MAPS, present)
    assert root_codes(found) == {"webhook-denies-delete"}
    root = the(found, "webhook-denies-delete")
    assert name_of(root.subject).name == configuration.meta.name
    assert root.evidence == ("it says: settings are precious",)
    assert root.remedies[0].title == "Change what it objects to (settings are precious)"


async def test_a_webhook_that_says_no_to_the_finalizers_removal(stage: Stage, going: Object, hooks: HookServer):
    guard = webhook(stage, "UPDATE", hooks.hook("guard", deny("frozen")).client_config)
    async with refusing(stage, letting_go(stage, CONFIG_MAPS, going), guard) as (configuration,):
        found = await stage.why(CONFIG_MAPS, going)
    assert "webhook-denies-update" in root_codes(found)
    root = the(found, "webhook-denies-update")
    assert "frozen" in root.evidence[0]
    comply, remove = root.remedies  # its delete was let through: there is nothing to send again
    assert comply.title == "Change what it objects to (frozen)"
    assert comply.effect == "The update passes then. Nothing leaks."
    assert remove.command == f"kubectl delete validatingwebhookconfiguration {configuration.meta.name}"


async def test_a_webhook_that_lets_it_pass_is_no_cause(stage: Stage, present: Object, hooks: HookServer):
    allowing = hooks.hook("guard", lambda _: {"allowed": True})
    await stage.make(*webhook(stage, "DELETE", allowing.client_config))
    found = await stage.why(CONFIG_MAPS, present)
    assert found.verdict is StuckVerdict.NOT_STUCK
    assert found.causes == ()


async def test_a_webhook_that_cannot_be_asked_is_judged_by_what_stands_behind_it(stage: Stage, present: Object):
    missing = {"service": {"namespace": stage.namespace, "name": "guard"}}
    conditions = [{"name": "most", "expression": "request.userInfo.username != 'nobody'"}]
    guard = webhook(stage, "DELETE", missing, matchConditions=conditions)
    async with refusing(stage, deleting(stage, CONFIG_MAPS, present), guard):
        world = await stage.world()
    world.live = False
    item = world.get(present.meta.uid)
    assert item is not None
    found = explain(world, relate(world), item)
    step = the(found, "webhook-fails-on-delete")
    assert step.confidence is Confidence.LOW  # its matchConditions are for the server to judge
    assert root_codes(found) == {"service-missing"}


async def test_a_policy_that_refuses_the_delete(stage: Stage, present: Object):
    rules = policy(stage, "DELETE", "kept for the audit")
    async with refusing(stage, deleting(stage, CONFIG_MAPS, present), *rules):
        found = await stage.why(CONFIG_MAPS, present)
    root = the(found, "policy-denies-delete")
    assert root_codes(found) == {"policy-denies-delete"}
    assert name_of(root.subject).name == rules[0][1]["metadata"]["name"]
    assert "kept for the audit" in root.evidence[0]
    assert root.remedies[-1].command.startswith("kubectl delete validatingadmissionpolicybinding")


async def test_a_policy_that_refuses_the_finalizers_removal(stage: Stage, going: Object):
    rules = policy(stage, "UPDATE", "nothing changes on Fridays")
    async with refusing(stage, letting_go(stage, CONFIG_MAPS, going), *rules):
        found = await stage.why(CONFIG_MAPS, going)
    assert "policy-denies-update" in root_codes(found)


async def test_a_schema_that_rejects_the_finalizers_removal(stage: Stage, widgets: Resource):
    """The rule is younger than the object, which breaks it: not even its finalizer can be taken off."""
    made = await stage.make(widgets, {"metadata": {"name": "old"}, "spec": {}}, finalizers=[FINALIZER])
    await stage.delete(widgets, made)
    rule = {"rule": "self.metadata.name != 'old'", "message": "no widget may be old"}
    path = "/spec/versions/0/schema/openAPIV3Schema/x-kubernetes-validations"
    crd = await stage.client.get(CRDS, ObjectKey("", str(widgets)))
    await stage.client.patch(CRDS, crd.key, json_patch([{"op": "add", "path": path, "value": [rule]}]))
    try:
        await eventually(lambda: refused(letting_go(stage, widgets, made)))
        found = await stage.why(widgets, made)
    finally:
        await stage.client.patch(CRDS, crd.key, json_patch([{"op": "remove", "path": path}]))
        await eventually(lambda: _let_go(stage, widgets, made))
    root = the(found, "validation-rejects-update")
    assert name_of(root.subject).name == str(widgets)
    assert "no widget may be old" in root.evidence[0]
    assert root.remedies[0].title == "Change the object so that it is valid again"


async def _let_go(stage: Stage, resource: Resource, obj: Object) -> bool:
    try:
        await let_go(stage, resource, obj)
    except Absent:
        return True
    except Invalid:
        return False
    return True


async def test_crossplanes_webhook_is_never_asked(stage: Stage, hooks: HookServer):
    """It would write the attempt down, even of a dry run."""
    used = await stage.make(CONFIG_MAPS, config_map("used", labels={"crossplane.io/in-use": "true"}))
    guard = hooks.hook("guard", deny("in use"))
    body = webhook(stage, "DELETE", guard.client_config, name="nousages.protection.crossplane.io")
    async with refusing(stage, deleting(stage, CONFIG_MAPS, used), body):
        guard.asked.clear()
        await stage.why(CONFIG_MAPS, used)
        assert guard.asked == []


async def test_a_delete_that_the_garbage_collector_repeats_late_is_replayed(
    stage: Stage, hooks: HookServer, paused_controllers: None
):
    """Its owner is gone: the garbage collector is to delete it, and was refused."""
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "u-gone"}
    child = await stage.make(CONFIG_MAPS, config_map("child", ownerReferences=[reference]))
    guard = webhook(stage, "DELETE", hooks.hook("guard", deny("children stay")).client_config)
    async with refusing(stage, deleting(stage, CONFIG_MAPS, child), guard):
        found = await stage.why(CONFIG_MAPS, child)
    assert [remedy.code for remedy in the(found, "webhook-denies-delete").remedies] == ["", "replay-delete", ""]


async def test_a_foreground_deletion_whose_child_may_not_be_deleted(stage: Stage, hooks: HookServer):
    """The garbage collector is refused, and waits ever longer: the chain leads from the owner to the webhook."""
    owner = await stage.make(CONFIG_MAPS, config_map("owner"))
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": owner.meta.uid,
        "blockOwnerDeletion": True,
    }
    child = await stage.make(CONFIG_MAPS, config_map("child", ownerReferences=[reference], labels={"kept": "yes"}))
    guard = webhook(
        stage,
        "DELETE",
        hooks.hook("guard", deny("children stay")).client_config,
        objectSelector={"matchLabels": {"kept": "yes"}},
    )
    async with refusing(stage, deleting(stage, CONFIG_MAPS, child), guard):
        await stage.delete(CONFIG_MAPS, owner, Propagation.FOREGROUND)
        found = await stage.why(CONFIG_MAPS, owner, seconds_later=120)
    assert found.verdict is StuckVerdict.STUCK
    assert root_codes(found) == {"webhook-denies-delete"}
    replay = the(found, "webhook-denies-delete").remedies[1]
    assert (replay.code, str(replay.subject)) == ("replay-delete", f"configmap/child -n {stage.namespace}")
