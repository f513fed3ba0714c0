"""Admission webhooks: when they are asked, what they see, what becomes of their answers."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from tests.contract.case import Theme
from tests.contract.cases.deleting import HOLD
from tests.contract.hooks import Hook, Reply, allow, deny, patching
from tests.contract.kit import Kit
from tests.contract.objects import CM, DEPLOYMENTS, INT, LEASES, Kind, cm, deployment, lease, obj, owner, props

theme = Theme("hook")

API = "admissionregistration.k8s.io/v1"
TIMEOUT_SECONDS = 30
"""The maximum. On a busy machine a webhook can take seconds to answer."""


async def install(
    kit: Kit,
    reply: Reply,
    *operations: str,
    kind: str = "Validating",
    resources: str = "configmaps",
    group: str = "",
    name: str = "hook",
    **fields: Any,
) -> Hook:
    """A webhook for ConfigMaps of the case's namespace, and wait until it is asked."""
    path = f"{kit.ns}-{name}"
    hook = kit.server.hooks.hook(path, reply)
    probe = kit.server.hooks.hook(f"{path}-probe", allow)
    rule = {
        "operations": [*operations] or ["CREATE"],
        "apiGroups": [group],
        "apiVersions": ["*"],
        "resources": resources.split(),
    }
    webhook = {
        "name": f"{name}.example.com",
        "clientConfig": hook.client_config,
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": kit.ns}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": TIMEOUT_SECONDS,
        **fields,
    }
    # A second webhook in the same configuration tells when the server has taken notice of it.
    notice = {
        "name": f"{name}-probe.example.com",
        "clientConfig": probe.client_config,
        "rules": [rule | {"operations": ["CREATE"], "apiGroups": [""], "resources": ["secrets"]}],
        "namespaceSelector": webhook["namespaceSelector"],
        "objectSelector": {"matchLabels": {"probe": name}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": TIMEOUT_SECONDS,
    }
    body = obj(API, f"{kind}WebhookConfiguration", path[:60].rstrip("-"), webhooks=[webhook, notice])
    made = await kit.quiet.create(f"/{API}/{kind.lower()}webhookconfigurations", body)
    assert made.status == 201, made.body

    async def asked() -> bool:
        sent = obj("v1", "Secret", "probe", meta={"labels": {"probe": name}})
        await kit.quiet.create("secrets", sent, dryRun="All")
        return bool(probe.asked)

    await kit.until("the webhook is asked", asked)
    return hook


def seen(kit: Kit, hook: Hook) -> None:
    """Note what the webhook was asked."""
    for each in hook.asked:
        each.pop("userInfo")
        for part in (each.get("object"), each.get("oldObject")):
            if part:
                part["metadata"].pop("managedFields", None)
    kit.note("asked", hook.asked)


@theme.case()
async def denies(kit: Kit) -> None:
    await install(kit, deny("not today"))
    await kit.create(CM, cm("a"))
    await kit.get(CM, "a")


@theme.case()
async def denies_with_a_status(kit: Kit) -> None:
    await install(kit, deny("too many of them", 429, "TooManyRequests"))
    await kit.create(CM, cm("a"))


@theme.case()
async def denies_without_words(kit: Kit) -> None:
    await install(kit, lambda _: {"allowed": False})
    await kit.create(CM, cm("a"))


@theme.case()
async def sees_a_create(kit: Kit) -> None:
    hook = await install(kit, allow)
    await kit.quiet.create(CM, cm("a"), fieldManager="me")
    seen(kit, hook)


@theme.case()
async def sees_an_update(kit: Kit) -> None:
    hook = await install(kit, allow, "UPDATE")
    await kit.quiet.create(CM, cm("a", {"n": "1"}))
    await kit.quiet.patch(CM, "a", {"data": {"n": "2"}})
    seen(kit, hook)


@theme.case(facts=(13,))
async def sees_a_delete(kit: Kit) -> None:
    hook = await install(kit, allow, "DELETE")
    await kit.quiet.create(CM, cm("a"))
    await kit.quiet.delete(CM, "a", {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"})
    seen(kit, hook)


@theme.case(facts=(13,))
async def denies_a_delete(kit: Kit) -> None:
    await install(kit, deny("stay"), "DELETE")
    await kit.quiet.create(CM, cm("a"))
    await kit.delete(CM, "a")
    await kit.get(CM, "a")


@theme.case(facts=(2,))
async def removing_the_last_finalizer_is_an_update(kit: Kit) -> None:
    await install(kit, deny("no changes"), "UPDATE")
    await kit.quiet.create(CM, cm("a", finalizers=HOLD))
    await kit.quiet.delete(CM, "a")
    await kit.patch(CM, "a", {"metadata": {"finalizers": None}})
    await kit.get(CM, "a")


@theme.case(facts=(16,))
async def is_not_asked_when_a_definition_goes(kit: Kit) -> None:
    kind = await Kind(kit, props(n=INT)).served()
    hook = await install(kit, deny("stay"), "DELETE", resources="things", group=kind.group)
    await kit.quiet.create(kind.resource, kind.object("a", {"n": 1}))
    await kit.picking(lambda b: [b["code"], b["message"]]).delete(kind.resource, "a")
    hook.asked.clear()
    await kit.quiet.delete("/apiextensions.k8s.io/v1/customresourcedefinitions", kind.name)
    await kit.until_gone("/apiextensions.k8s.io/v1/customresourcedefinitions", kind.name)
    kit.note("asked", [each["operation"] for each in hook.asked])


@theme.case()
async def warns(kit: Kit) -> None:
    await install(kit, lambda _: {"allowed": True, "warnings": ["careful", 'with "quotes"']})
    await kit.create(CM, cm("a"))


@theme.case()
async def mutates(kit: Kit) -> None:
    operation = {"op": "add", "path": "/data/added", "value": "yes"}
    await install(kit, patching(operation), kind="Mutating")
    await kit.create(CM, cm("a"))


@theme.case()
async def mutates_into_something_invalid(kit: Kit) -> None:
    operation = {"op": "add", "path": "/metadata/labels", "value": {"a b": "c"}}
    await install(kit, patching(operation), kind="Mutating")
    await kit.create(CM, cm("a"))


@theme.case()
async def mutates_by_a_patch_that_fails(kit: Kit) -> None:
    operation = {"op": "remove", "path": "/absent"}
    await install(kit, patching(operation), kind="Mutating")
    await kit.create(CM, cm("a"))


@theme.case()
async def mutates_what_is_defaulted_after(kit: Kit) -> None:
    operation = {"op": "add", "path": "/spec/strategy", "value": {"type": "RollingUpdate"}}
    await install(kit, patching(operation), kind="Mutating", resources="deployments", group="apps")
    await kit.picking(lambda b: b["spec"]["strategy"]).create(DEPLOYMENTS, deployment("a"))


@theme.case()
async def validating_sees_what_mutating_made(kit: Kit) -> None:
    await install(kit, patching({"op": "add", "path": "/data/added", "value": "yes"}), kind="Mutating", name="first")
    hook = await install(kit, allow, name="second")
    await kit.quiet.create(CM, cm("a"))
    kit.note("data", [each["object"]["data"] for each in hook.asked])


@theme.case()
async def fails_closed(kit: Kit) -> None:
    await install(kit, lambda _: None)
    await kit.create(CM, cm("a"))


@theme.case()
async def fails_open(kit: Kit) -> None:
    await install(kit, lambda _: None, failurePolicy="Ignore")
    await kit.create(CM, cm("a"))


@theme.case()
async def answers_nonsense(kit: Kit) -> None:
    await install(kit, lambda _: web.Response(text="nonsense"))
    await kit.picking(lambda b: [b["code"], b["reason"], b["message"].split(":")[0]]).create(CM, cm("a"))


@theme.case()
async def answers_for_another(kit: Kit) -> None:
    await install(kit, lambda _: {"allowed": True, "uid": "00000000-0000-0000-0000-000000000001"})
    await kit.create(CM, cm("a"))


@theme.case()
async def nobody_listens(kit: Kit) -> None:
    await install(kit, allow, timeoutSeconds=5)
    name = f"{kit.ns}-hook"[:60].rstrip("-")
    dead = {"op": "replace", "path": "/webhooks/0/clientConfig/url", "value": "https://127.0.0.1:1/dead"}
    await kit.quiet.json_patch(f"/{API}/validatingwebhookconfigurations", name, [dead])

    async def refused() -> bool:
        return (await kit.probing.create(CM, cm("b"), dryRun="All")).status == 500

    await kit.until("the dead one is asked", refused)
    await kit.create(CM, cm("a"))


@theme.case()
async def object_selector(kit: Kit) -> None:
    hook = await install(kit, allow, objectSelector={"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]})
    await kit.quiet.create(CM, cm("a"))
    await kit.quiet.create(CM, cm("b", labels={"skip": "yes"}))
    kit.note("asked", [each["name"] for each in hook.asked])


@theme.case()
async def match_conditions(kit: Kit) -> None:
    conditions = [{"name": "not-b", "expression": "object.metadata.name != 'b'"}]
    hook = await install(kit, allow, matchConditions=conditions)
    await kit.quiet.create(CM, cm("a"))
    await kit.quiet.create(CM, cm("b"))
    kit.note("asked", [each["name"] for each in hook.asked])


@theme.case()
async def other_namespaces_are_not_asked(kit: Kit) -> None:
    hook = await install(kit, deny("no"))
    await kit.in_namespace("default").picking(lambda b: b["kind"]).create(CM, cm(f"{kit.ns}-a"), dryRun="All")
    kit.note("asked", len(hook.asked))


@theme.case()
async def subresources_are_matched_apart(kit: Kit) -> None:
    hook = await install(kit, allow, "UPDATE", resources="deployments/status", group="apps")
    await kit.quiet.create(DEPLOYMENTS, deployment("a"))
    await kit.quiet.patch(DEPLOYMENTS, "a", {"spec": {"replicas": 2}})
    await kit.quiet.patch(DEPLOYMENTS, "a", {"status": {"replicas": 2}}, "status")
    kit.note(
        "asked",
        [[each["operation"], each["subResource"], each["object"]["status"]] for each in hook.asked],
    )


@theme.case()
async def scale_is_seen_as_scale(kit: Kit) -> None:
    hook = await install(kit, allow, "UPDATE", resources="deployments/scale", group="apps")
    await kit.quiet.create(DEPLOYMENTS, deployment("a"))
    await kit.quiet.patch(DEPLOYMENTS, "a", {"spec": {"replicas": 2}}, "scale")
    seen(kit, hook)


@theme.case()
async def dry_run_is_told(kit: Kit) -> None:
    hook = await install(kit, allow)
    await kit.quiet.create(CM, cm("a"), dryRun="All")
    kit.note("asked", [[each["name"], each["dryRun"]] for each in hook.asked])


@theme.case()
async def side_effects_refuse_a_dry_run(kit: Kit) -> None:
    hook = await install(kit, allow)
    name = f"{kit.ns}-hook"[:60].rstrip("-")
    assert hook
    # Only "None" and "NoneOnDryRun" can be said in v1.
    await kit.json_patch(
        f"/{API}/validatingwebhookconfigurations",
        name,
        [{"op": "replace", "path": "/webhooks/0/sideEffects", "value": "Some"}],
    )


@theme.case()
async def sees_a_collection_delete(kit: Kit) -> None:
    hook = await install(kit, allow, "DELETE", resources="leases", group="coordination.k8s.io")
    for name in "ab":
        await kit.quiet.create(LEASES, lease(name))
    await kit.quiet.delete(LEASES)
    kit.note("asked", sorted([each["operation"], each.get("name")] for each in hook.asked))


@theme.case()
async def sees_an_apply(kit: Kit) -> None:
    hook = await install(kit, allow, "CREATE", "UPDATE")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"n": "1"}}
    await kit.quiet.apply(CM, "a", body)
    await kit.quiet.apply(CM, "a", body | {"data": {"n": "2"}})
    kit.note(
        "asked",
        [[each["operation"], each["object"]["data"], each["options"]] for each in hook.asked],
    )


@theme.case()
async def who_asked(kit: Kit) -> None:
    hook = await install(kit, allow)
    await kit.quiet.as_user("carol", "system:masters").create(CM, cm("a"))
    kit.note("user", [each["userInfo"] for each in hook.asked])


@theme.case()
async def reinvocation(kit: Kit) -> None:
    """A webhook with IfNeeded is asked again when one after it has changed the object."""
    first = await install(kit, allow, kind="Mutating", name="a-first", reinvocationPolicy="IfNeeded")
    await install(kit, patching({"op": "add", "path": "/data/added", "value": "yes"}), kind="Mutating", name="b-second")
    first.asked.clear()
    await kit.quiet.create(CM, cm("a"))
    kit.note("first saw", [each["object"]["data"] for each in first.asked])


@theme.case(facts=(13,))
async def the_collector_is_refused_as_well(kit: Kit) -> None:
    """The child stays until the delete is requested again."""
    refuses = [True]
    hook = await install(
        kit,
        lambda request: deny("stay")(request) if refuses[0] else allow(request),
        "DELETE",
        resources="leases",
        group="coordination.k8s.io",
    )
    made = await kit.quiet.create(CM, cm("owner"))
    body = lease("child")
    body["metadata"]["ownerReferences"] = [owner(made.body)]
    await kit.quiet.create(LEASES, body)
    await kit.quiet.delete(CM, "owner")

    async def asked() -> bool:
        return any(each["operation"] == "DELETE" for each in hook.asked)

    await kit.until("the collector has tried", asked)
    await kit.get(LEASES, "child")
    refuses[0] = False
    await kit.probing.delete(LEASES, "child")  # the collector may be faster, where its patience has not run out
    await kit.get(LEASES, "child")
