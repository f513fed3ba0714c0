"""ValidatingAdmissionPolicies: which writes they are about, what their expressions see, how they refuse."""

from __future__ import annotations

from typing import Any

from tests.contract.case import Theme
from tests.contract.cases.webhooks import install as hook
from tests.contract.hooks import allow, patching
from tests.contract.kit import TABLE, Kit
from tests.contract.objects import CM, DEPLOYMENTS, INT, Kind, cm, deployment, obj, props, with_pod

theme = Theme("policy")

API = "admissionregistration.k8s.io/v1"
POLICIES, BINDINGS = f"/{API}/validatingadmissionpolicies", f"/{API}/validatingadmissionpolicybindings"
EVERY = ("CREATE", "UPDATE", "DELETE")
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def rule(resource: str = "configmaps", *operations: str, group: str = "", version: str = "*", **more: Any) -> Any:
    """A resource rule."""
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "resources": [resource],
        "operations": list(operations or ("CREATE", "UPDATE")),
        **more,
    }


ON_NOTHING = [rule("nothings", "CREATE")]
"""Rules for policies that must not affect other cases."""


def policy(name: str, *expressions: Any, rules: Any = (), constraints: Any = None, **spec: Any) -> Any:
    """A policy of some validations, each an expression or a whole validation."""
    validations = [each if isinstance(each, dict) else {"expression": each} for each in expressions]
    resources = {"resourceRules": list(rules or [rule()]), **(constraints or {})}
    spec = {"matchConstraints": resources, "validations": validations, **spec}
    return obj(API, "ValidatingAdmissionPolicy", name, spec=spec)


def binding(name: str, **spec: Any) -> Any:
    """A binding of the policy of the same name."""
    spec = {"policyName": name, "validationActions": ["Deny"], **spec}
    return obj(API, "ValidatingAdmissionPolicyBinding", name, spec=spec)


async def install(kit: Kit, *expressions: Any, bound: Any = None, rules: Any = (), **spec: Any) -> None:
    """Have a policy in force in the namespace of the case alone."""
    here = {"matchLabels": {"kubernetes.io/metadata.name": kit.ns}}
    constraints = {"namespaceSelector": here, **spec.pop("constraints", {})}
    await in_force(kit, policy(kit.ns, *expressions, rules=rules, constraints=constraints, **spec), bound or {})


async def in_force(kit: Kit, made: Any, bound: Any) -> None:
    """Create a policy and its binding, and wait until both are in force.

    The real server reads them every second, all at once: a second policy, made after these, tells.
    """
    await kit.quiet.create(POLICIES, made)
    await kit.quiet.create(BINDINGS, binding(kit.ns, **bound))
    probe = f"{kit.ns}-probe"
    only = {"objectSelector": {"matchLabels": {"probe": probe}}}
    await kit.quiet.create(POLICIES, policy(probe, "false", rules=[rule("secrets")], constraints=only))
    await kit.quiet.create(BINDINGS, binding(probe))

    async def refused() -> bool:
        sent = obj("v1", "Secret", "probe", meta={"labels": {"probe": probe}})
        return (await kit.probing.create("secrets", sent, dryRun="All")).status == 422

    await kit.until("the policy is in force", refused)


@theme.case()
async def denies(kit: Kit) -> None:
    await install(kit, "object.data.k != 'bad'")
    await kit.create(CM, cm("a", {"k": "bad"}))
    await kit.create(CM, cm("a", {"k": "good"}))
    await kit.patch(CM, "a", {"data": {"k": "bad"}})
    await kit.put(CM, "a", cm("a", {"k": "bad"}))
    await kit.apply(CM, "a", cm("a", {"k": "bad"}), force="true")
    await kit.apply(CM, "b", cm("b", {"k": "bad"}))
    await kit.get(CM, "a")


@theme.case()
async def messages_and_reasons(kit: Kit) -> None:
    await install(
        kit,
        {"expression": "object.data.k != 'a'", "message": "  not a  ", "reason": "Forbidden"},
        {"expression": "object.data.k != 'b'", "messageExpression": "'not ' + object.data.k", "message": "unused"},
        {"expression": "object.data.k != 'c'", "messageExpression": "string(object.nothing)", "message": "instead"},
        {"expression": "object.data.k != 'd'", "messageExpression": "' '", "reason": "RequestEntityTooLarge"},
        {"expression": "object.data.k != 'e'", "messageExpression": "'two\\nlines'", "message": "one line"},
    )
    for key in "abcde":
        await kit.create(CM, cm("x", {"k": key}))


@theme.case()
async def sees_the_request(kit: Kit) -> None:
    seen = (
        "[request.operation, request.name, request.namespace, request.kind.kind, request.resource.resource, "
        "request.userInfo.username, request.requestKind.version, request.requestResource.group, "
        "string(request.dryRun), string(has(request.subResource)), string(has(request.userInfo.uid)), "
        "string('system:authenticated' in request.userInfo.groups)].join(' ')"
    )
    await install(kit, {"expression": "false", "messageExpression": seen}, rules=[rule("configmaps", *EVERY)])
    await kit.create(CM, cm("a"), dryRun="All")
    await kit.create(CM, cm("a"))
    await kit.as_user("alice", "system:masters").create(CM, cm("b"))


@theme.case()
async def deletes_have_no_object(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a", {"keep": "yes"}))
    await kit.quiet.create(CM, cm("b"))
    await install(kit, "object == null && !has(oldObject.data.keep)", rules=[rule("configmaps", "DELETE")])
    await kit.delete(CM, "a")
    await kit.delete(CM, "b")
    await kit.get(CM, "a")


@theme.case()
async def creates_have_no_old_object(kit: Kit) -> None:
    await install(kit, "oldObject == null")
    await kit.create(CM, cm("a"))
    await kit.patch(CM, "a", {"data": {"k": "w"}})


@theme.case()
async def null_objects_have_no_fields(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    await install(kit, "object.metadata.name == 'a'", rules=[rule("configmaps", "DELETE")])
    await kit.delete(CM, "a")


@theme.case()
async def collections_are_deleted_one_by_one(kit: Kit) -> None:
    for name, label in (("a", "no"), ("b", "yes")):
        await kit.quiet.create(CM, cm(name, labels={"keep": label}))
    await install(
        kit,
        {
            "expression": "oldObject.metadata.labels.keep != 'yes'",
            "messageExpression": "oldObject.metadata.name + ' stays ' + string(has(request.name))",
        },
        rules=[rule("configmaps", "DELETE")],
    )
    await kit.delete(CM, labelSelector="keep=no")
    await kit.delete(CM, labelSelector="keep=yes")
    await kit.picking(lambda body: [each["metadata"]["name"] for each in body["items"]]).list(CM, labelSelector="keep")


@theme.case()
async def status_and_scale(kit: Kit) -> None:
    await kit.quiet.create(DEPLOYMENTS, deployment("d"))
    rules = [rule(f"deployments/{sub}", "UPDATE", group="apps") for sub in ("status", "scale")]
    await install(
        kit,
        {
            "expression": "request.subResource == 'status' ? object.status.replicas < 5 : object.spec.replicas < 5",
            "messageExpression": "request.subResource + ' ' + object.kind + ' ' + request.kind.kind",
        },
        rules=rules,
    )
    pick = kit.picking(lambda body: body.get("message") or body.get("status"))
    await pick.patch(DEPLOYMENTS, "d", {"status": {"replicas": 7}}, "status")
    await pick.patch(DEPLOYMENTS, "d", {"spec": {"replicas": 7}}, "scale")
    await pick.put(
        DEPLOYMENTS, "d", obj("autoscaling/v1", "Scale", "d", meta={"namespace": kit.ns}, spec={"replicas": 8}), "scale"
    )
    await pick.patch(DEPLOYMENTS, "d", {"spec": {"replicas": 3}}, "scale")
    await pick.patch(DEPLOYMENTS, "d", {"spec": {"replicas": 9}})


@theme.case()
async def conditions_come_first(kit: Kit) -> None:
    conditions = [
        {"name": "only-a", "expression": "request.name == 'a'"},
        {"name": "no-masters", "expression": "!('system:masters' in request.userInfo.groups)"},
    ]
    await kit.quiet.create("/rbac.authorization.k8s.io/v1/clusterrolebindings", admin(kit.ns, "alice"))
    await install(kit, "false", matchConditions=conditions)
    alice = kit.as_user("alice")
    await alice.create(CM, cm("a"))
    await alice.create(CM, cm("b"))
    await kit.create(CM, cm("a"))


@theme.case()
async def conditions_that_fail(kit: Kit) -> None:
    conditions = [
        {"name": "fails", "expression": "object.data.nothing == 'x'"},
        {"name": "fails-too", "expression": "object.metadata.labels.nothing == 'x'"},
    ]
    await install(kit, "false", matchConditions=conditions)
    await kit.create(CM, cm("a"))
    await kit.create(CM, cm("a", labels={"nothing": "y"}))


@theme.case()
async def conditions_that_fail_are_ignored(kit: Kit) -> None:
    conditions = [{"name": "fails", "expression": "object.data.nothing == 'x'"}]
    await install(kit, "false", matchConditions=conditions, failurePolicy="Ignore")
    await kit.create(CM, cm("a"))


@theme.case()
async def conditions_see_no_namespace(kit: Kit) -> None:
    conditions = [{"name": "a", "expression": "namespaceObject == null"}]
    await install(kit, "namespaceObject == null", matchConditions=conditions)
    await kit.create(CM, cm("a"))


@theme.case()
async def variables_build_on_each_other(kit: Kit) -> None:
    variables = [
        {"name": "limit", "expression": "int(object.data.limit)"},
        {"name": "double", "expression": "variables.limit * 2"},
        {"name": "maybe", "expression": "object.data[?'maybe']"},
        {"name": "unused", "expression": "object.nothing.at.all"},
    ]
    await install(
        kit,
        {
            "expression": "variables.double < 10 || variables.maybe.hasValue()",
            "messageExpression": "'variables.double is ' + string(variables.double)",
        },
        "variables.maybe.orValue('') != 'no' || variables.unused",
        variables=variables,
    )
    await kit.create(CM, cm("a", {"limit": "7"}))
    await kit.create(CM, cm("a", {"limit": "seven"}))
    await kit.create(CM, cm("a", {"limit": "7", "maybe": "no"}))
    await kit.create(CM, cm("a", {"limit": "7", "maybe": "yes"}))


@theme.case()
async def namespaces_are_seen(kit: Kit) -> None:
    await kit.quiet.patch("/namespaces", kit.ns, {"metadata": {"labels": {"tier": "gold"}}})
    await install(
        kit,
        {
            "expression": "object.data.k == namespaceObject.metadata.labels.tier",
            "messageExpression": "namespaceObject.metadata.name + ' is ' + namespaceObject.status.phase",
        },
    )
    await kit.create(CM, cm("a", {"k": "gold"}))
    await kit.create(CM, cm("b", {"k": "silver"}))


def admin(name: str, user: str) -> Any:
    """Everything for one user."""
    group = "rbac.authorization.k8s.io"
    return obj(
        f"{group}/v1",
        "ClusterRoleBinding",
        name,
        roleRef={"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        subjects=[{"kind": "User", "name": user, "apiGroup": group}],
    )


def may(name: str, namespace: str, user: str, *rules: Any) -> list[tuple[str, Any]]:
    """A role and its binding to a user or, with a colon, to an account."""
    group = "rbac.authorization.k8s.io"
    home, colon, account = user.partition(":")
    subject = {"kind": "ServiceAccount", "name": account, "namespace": home} if colon else None
    return [
        (f"{group}/v1/roles", obj(f"{group}/v1", "Role", name, rules=list(rules))),
        (
            f"{group}/v1/rolebindings",
            obj(
                f"{group}/v1",
                "RoleBinding",
                name,
                roleRef={"apiGroup": group, "kind": "Role", "name": name},
                subjects=[subject or {"kind": "User", "name": user, "apiGroup": group}],
            ),
        ),
    ]


@theme.case()
async def the_authorizer_decides(kit: Kit) -> None:
    for name, user, rules in (
        (
            "bob",
            "bob",
            [
                {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]},
                {"apiGroups": ["apps"], "resources": ["deployments/status"], "verbs": ["get"], "resourceNames": ["d"]},
            ],
        ),
        ("robot", f"{kit.ns}:robot", [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]),
    ):
        for path, made in may(name, kit.ns, user, *rules):
            await kit.quiet.create(path, made)
    checks = {
        "status": f"authorizer.group('apps').resource('deployments').subresource('status').namespace('{kit.ns}')",
        "robot": f"authorizer.serviceAccount('{kit.ns}', 'robot').group('').resource('secrets').namespace('{kit.ns}')",
        "request": "authorizer.requestResource",
    }
    validations = [
        {"expression": f"object.data.k != 'status' || {checks['status']}.name('d').check('get').allowed()"},
        {"expression": f"object.data.k != 'other' || {checks['status']}.name('e').check('get').allowed()"},
        {
            "expression": f"object.data.k != 'robot' || !{checks['robot']}.check('get').allowed()",
        },
        {"expression": f"object.data.k != 'unknown' || {checks['robot']}.check('list').allowed()"},
        {"expression": f"object.data.k != 'request' || !{checks['request']}.check('create').allowed()"},
        {"expression": f"object.data.k != 'delegate' || {checks['request']}.check('delegate').allowed()"},
        {"expression": "object.data.k != 'path' || !authorizer.path('/healthz').check('get').allowed()"},
        {"expression": "object.data.k != 'denied-path' || authorizer.path('/metrics').check('get').allowed()"},
        {"expression": "object.data.k != 'empty' || authorizer.path(' ').check('get').allowed()"},
        {"expression": "object.data.k != 'account' || authorizer.serviceAccount('a', '') == authorizer"},
        {"expression": "object.data.k != 'home' || authorizer.serviceAccount('A', 'a') == authorizer"},
        {
            "expression": f"object.data.k != 'reason' || {checks['request']}.check('create').reason() == ''",
        },
        {"expression": f"object.data.k != 'error' || {checks['request']}.check('create').errored()"},
        {"expression": f"object.data.k != 'words' || {checks['request']}.check('create').error() != ''"},
    ]
    await install(kit, *validations)
    bob = kit.as_user("bob")
    for key in (
        *("status", "other", "robot", "unknown", "request", "delegate", "path", "denied-path", "empty", "account"),
        *("home", "reason", "error", "words"),
    ):
        await bob.create(CM, cm("a", {"k": key}), dryRun="All")


@theme.case()
async def reasons_of_the_authorizer(kit: Kit) -> None:
    for path, made in may("bob", kit.ns, "bob", {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}):
        await kit.quiet.create(path, made)
    variables = [
        {"name": "may", "expression": "authorizer.requestResource.check('create')"},
        {"name": "mayNot", "expression": "authorizer.requestResource.check('delete')"},
        {"name": "words", "expression": "variables.may.reason() + '|' + variables.mayNot.reason()"},
    ]
    await install(
        kit, {"expression": "variables.words == ''", "messageExpression": "variables.words"}, variables=variables
    )
    await kit.as_user("bob").create(CM, cm("a"))


@theme.case()
async def presence_of_fields(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("a"))
    await install(
        kit,
        "object != null || !has(object.metadata)",
        "object != null || !has(object.metadata.labels)",
        "object != null || !object.?metadata.hasValue()",
        "object == null || !has(oldObject.data)",
        {
            "expression": "false",
            "messageExpression": "string(has(object.data)) + string(has(object.metadata.labels.x))",
        },
        rules=[rule("configmaps", *EVERY)],
    )
    await kit.delete(CM, "a")
    await kit.create(CM, cm("b"))
    await kit.create(CM, cm("b", labels={"x": "y"}))


@theme.case()
async def selecting_from_what_has_no_fields(kit: Kit) -> None:
    await install(
        kit,
        "object.data.k != 'string' || object.data.k.x == 1",
        "object.data.k != 'list' || object.metadata.managedFields.x == 1",
        "object.data.k != 'out' || object.metadata.managedFields[7].x == 1",
        "object.data.k != 'types' || object.data.k < 1",
        "object.data.k != 'method' || object.data.startsWith('a')",
        "object.data.k != 'condition' || object.data.k ? true : false",
        "object.data.k != 'bool' || object.data.k || false",
        "object.data.k != 'int' || int(object.data.k) == 1",
        "object.data.k != 'zero' || 1 / size([]) == 1",
        "object.data.k != 'time' || timestamp(object.data.k) == timestamp('2020-01-01T00:00:00Z')",
        "object.data.k != 'quantity' || quantity(object.data.k).asInteger() == 1",
        "object.data.k != 'dyn' || object.data['no' + object.data.k] == 'x'",
    )
    for key in (
        *("string", "list", "out", "types", "method", "condition", "bool", "int", "zero", "time"),
        *("quantity", "dyn"),
    ):
        await kit.create(CM, cm("a", {"k": key}), dryRun="All")


def by_params(**bound: Any) -> Any:
    """The parts of a binding that takes parameters."""
    return {"paramRef": {"parameterNotFoundAction": "Deny", **bound}}


LIMITED = {
    "expression": "int(object.data.k) <= int(params.data.max)",
    "messageExpression": "'at most ' + params.data.max",
}
OF_MAPS = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}


@theme.case()
async def params_by_name(kit: Kit) -> None:
    await kit.quiet.create("secrets", obj("v1", "Secret", "other"))
    await kit.quiet.create(CM, cm("limit", {"max": "5"}))
    applies = [{"name": "labelled", "expression": "object.metadata.?labels.limited.orValue('') == 'yes'"}]
    await install(kit, LIMITED, bound=by_params(name="limit"), matchConditions=applies, **OF_MAPS)
    yes = {"labels": {"limited": "yes"}}
    await kit.create(CM, cm("a", {"k": "7"}, **yes))
    await kit.create(CM, cm("a", {"k": "3"}, **yes))
    await kit.create(CM, cm("b", {"k": "7"}))
    await kit.quiet.patch(CM, "limit", {"data": {"max": "9"}})

    async def taken() -> bool:
        return (await kit.probing.create(CM, cm("c", {"k": "7"}, **yes), dryRun="All")).status == 201

    await kit.until("the parameter is followed", taken)
    await kit.create(CM, cm("c", {"k": "7"}, **yes))


@theme.case()
async def params_by_selector(kit: Kit) -> None:
    for name, most in (("small", "5"), ("large", "50")):
        await kit.quiet.create(CM, cm(name, {"max": most}, labels={"is": "limit"}))
    ref = {"selector": {"matchLabels": {"is": "limit"}}}
    rules = [rule("secrets")]
    small = {"expression": "size(object.metadata.name) <= int(params.data.max)", "message": "too long"}
    await install(kit, small, bound=by_params(**ref), rules=rules, **OF_MAPS)
    await kit.create("secrets", obj("v1", "Secret", "four"))
    await kit.create("secrets", obj("v1", "Secret", "not-so-short"))


@theme.case()
async def params_that_are_not_there(kit: Kit) -> None:
    await install(kit, LIMITED, bound=by_params(name="limit"), rules=[rule("secrets")], **OF_MAPS)
    await kit.create("secrets", obj("v1", "Secret", "a"))


@theme.case()
async def params_that_may_be_missing(kit: Kit) -> None:
    bound = by_params(name="limit", parameterNotFoundAction="Allow")
    await install(kit, LIMITED, bound=bound, rules=[rule("secrets")], **OF_MAPS)
    await kit.create("secrets", obj("v1", "Secret", "a"))


@theme.case()
async def params_that_are_not_there_are_ignored(kit: Kit) -> None:
    bound = by_params(selector={"matchLabels": {"is": "limit"}})
    await install(kit, LIMITED, bound=bound, rules=[rule("secrets")], failurePolicy="Ignore", **OF_MAPS)
    await kit.create("secrets", obj("v1", "Secret", "a"))


@theme.case()
async def params_without_a_reference(kit: Kit) -> None:
    await install(kit, "params == null", "has(params.data)", rules=[rule("secrets")], **OF_MAPS)
    await kit.create("secrets", obj("v1", "Secret", "a"))


@theme.case()
async def params_in_another_namespace(kit: Kit) -> None:
    other = f"{kit.ns}-2"
    await kit.quiet.create("/namespaces", {"metadata": {"name": other}})
    await kit.in_namespace(other).quiet.create(CM, cm("limit", {"max": "5"}))
    validation = {"expression": "false", "messageExpression": "params.metadata.namespace + ' ' + params.kind"}
    await install(kit, validation, bound=by_params(name="limit", namespace=other), rules=[rule("secrets")], **OF_MAPS)
    await kit.create("secrets", obj("v1", "Secret", "a"))


@theme.case()
async def params_of_a_custom_kind(kit: Kit) -> None:
    limits = await Kind(kit, props(max=INT), plural="limits", kind="Limit").served()
    await kit.quiet.create(limits.resource, limits.object("five", {"max": 5}))
    await install(
        kit,
        {"expression": "size(object.metadata.name) <= params.spec.max", "messageExpression": "'as ' + params.kind"},
        bound=by_params(name="five"),
        rules=[rule("secrets")],
        paramKind={"apiVersion": f"{limits.group}/v1", "kind": limits.kind},
    )

    async def found() -> bool:
        tried = await kit.probing.create("secrets", obj("v1", "Secret", "four"), dryRun="All")
        return tried.status == 201

    # The real server refreshes its kinds every 30 s, and may need two rounds.
    await kit.until("the kind of the parameters is found", found, seconds=120)
    await kit.create("secrets", obj("v1", "Secret", "four"))
    await kit.create("secrets", obj("v1", "Secret", "eleven"))


@theme.case()
async def params_of_a_kind_that_is_not_served(kit: Kit) -> None:
    kind = {"apiVersion": "nobody.example.com/v1", "kind": "Nothing"}
    await install(kit, "true", bound=by_params(name="a"), rules=[rule("secrets")], paramKind=kind)
    await kit.create("secrets", obj("v1", "Secret", "a"))


@theme.case()
async def errors_of_validations(kit: Kit) -> None:
    await install(kit, "object.data.nothing == 'x'", {"expression": "object.data.k == 'w'", "message": "no w"})
    await kit.create(CM, cm("a"))


@theme.case()
async def errors_are_ignored_but_not_refusals(kit: Kit) -> None:
    refused = {"expression": "object.data.k == 'w'", "message": "no w"}
    await install(kit, "object.data.nothing == 'x'", refused, failurePolicy="Ignore")
    await kit.create(CM, cm("a"))
    await kit.create(CM, cm("a", {"k": "w"}))


@theme.case()
async def warns(kit: Kit) -> None:
    await install(
        kit,
        {"expression": "request.operation == 'DELETE' || object.data.k == 'w'", "message": 'no "w"'},
        "request.operation == 'CREATE'",
        bound={"validationActions": ["Warn", "Audit"]},
        rules=[rule("configmaps", *EVERY)],
    )
    await kit.create(CM, cm("a"))
    await kit.patch(CM, "a", {"data": {"k": "x"}})
    await kit.delete(CM, "a")
    await kit.quiet.create(CM, cm("b", labels={"all": "of-them"}))
    await kit.picking(lambda body: len(body["items"])).delete(CM, labelSelector="all")


@theme.case()
async def warns_and_denies(kit: Kit) -> None:
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": kit.ns}}}
    await kit.quiet.create(POLICIES, policy(f"{kit.ns}-w", "object.data.k == 'w'", constraints=here))
    await kit.quiet.create(BINDINGS, binding(f"{kit.ns}-w", validationActions=["Warn"]))
    await install(kit, "object.data.k != 'v'")
    await kit.create(CM, cm("a"))


@theme.case()
async def audits(kit: Kit) -> None:
    await install(kit, "false", bound={"validationActions": ["Audit"]})
    await kit.create(CM, cm("a"))


@theme.case()
async def audit_annotations(kit: Kit) -> None:
    notes = [
        {"key": "name", "valueExpression": "'named ' + object.metadata.name"},
        {"key": "nothing", "valueExpression": "null"},
        {"key": "sometimes", "valueExpression": "'it is ' + object.data.note"},
    ]
    await install(kit, auditAnnotations=notes)
    await kit.create(CM, cm("a", {"note": "there"}))
    await kit.create(CM, cm("b"))


@theme.case()
async def audit_annotations_have_no_authorizer(kit: Kit) -> None:
    text = "authorizer.requestResource.check('get').allowed() ? 'yes' : 'no'"
    await install(kit, auditAnnotations=[{"key": "may", "valueExpression": text}])
    await kit.create(CM, cm("a"))


@theme.case()
async def excluded_resources(kit: Kit) -> None:
    spared = [rule("configmaps", "CREATE", resourceNames=["spared"]), rule("secrets", "*")]
    constraints = {"excludeResourceRules": spared}
    await install(kit, "false", rules=[rule("*", "CREATE", scope="Namespaced")], constraints=constraints)
    await kit.create(CM, cm("a"))
    await kit.create(CM, cm("spared"))
    await kit.create("secrets", obj("v1", "Secret", "a"))


@theme.case()
async def resource_names(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("held"))
    await install(kit, "false", rules=[rule("configmaps", "CREATE", "DELETE", resourceNames=["held", "other"])])
    await kit.create(CM, cm("other"))
    await kit.create(CM, cm("free"))
    await kit.delete(CM, "held")
    await kit.picking(lambda body: body["kind"]).delete(CM, fieldSelector="metadata.name=held")


@theme.case()
async def object_selector(kit: Kit) -> None:
    await install(kit, "false", constraints={"objectSelector": {"matchLabels": {"watched": "yes"}}})
    await kit.create(CM, cm("a"))
    await kit.create(CM, cm("b", labels={"watched": "yes"}))
    await kit.patch(CM, "a", {"metadata": {"labels": {"watched": "yes"}}})


@theme.case()
async def bindings_choose_too(kit: Kit) -> None:
    labelled = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
    bound = {"matchResources": {"resourceRules": [rule("secrets")], "objectSelector": labelled}}
    await install(kit, "false", rules=[rule("configmaps"), rule("secrets")], bound=bound)
    await kit.create(CM, cm("a", labels={"a": "b"}))
    await kit.create("secrets", obj("v1", "Secret", "a"))
    await kit.create("secrets", obj("v1", "Secret", "b", meta={"labels": {"a": "b"}}))


@theme.case()
async def several_bindings(kit: Kit) -> None:
    await kit.quiet.create(CM, cm("one", {"max": "1"}))
    other = {"policyName": kit.ns, **by_params(name="one")}
    await kit.quiet.create(BINDINGS, binding(f"{kit.ns}-2", **other))
    await kit.quiet.create(CM, cm("nine", {"max": "9"}))
    small = {
        "expression": "size(object.metadata.name) <= int(params.data.max)",
        "messageExpression": "'by ' + params.metadata.name",
    }
    await install(kit, small, bound=by_params(name="nine"), rules=[rule("secrets")], **OF_MAPS)
    await kit.create("secrets", obj("v1", "Secret", "a"))
    await kit.create("secrets", obj("v1", "Secret", "four"))


@theme.case()
async def other_versions_match(kit: Kit) -> None:
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": ANYTHING}}
        for name in ("v1", "v2")
    ]
    things = await Kind(kit, versions=versions).served("v1", "v2")
    rules = [rule("things", group=things.group, version="v1")]
    seen = "request.kind.version + request.requestKind.version + string(object.apiVersion)"
    await install(kit, {"expression": "false", "messageExpression": seen}, rules=rules)
    await kit.create(things.at("v2"), things.object("a", version="v2"))
    await kit.create(things.at("v1"), things.object("a"))


@theme.case()
async def other_versions_match_not_exactly(kit: Kit) -> None:
    versions = [
        {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": ANYTHING}}
        for name in ("v1", "v2")
    ]
    things = await Kind(kit, versions=versions).served("v1", "v2")
    rules = [rule("things", group=things.group, version="v1")]
    await install(kit, "false", rules=rules, constraints={"matchPolicy": "Exact"})
    await kit.create(things.at("v2"), things.object("a", version="v2"))
    await kit.create(things.at("v1"), things.object("b"))


@theme.case()
async def custom_resources_and_their_status(kit: Kit) -> None:
    things = await Kind(kit, props(size=INT), subresources={"status": {}}).served()
    rules = [rule(each, *EVERY, group=things.group) for each in ("things", "things/status")]
    await kit.quiet.create(things.resource, things.object("a", {"size": 1}))
    await install(
        kit,
        {
            "expression": "request.?subResource.orValue('') == 'status' ? object.status.by == request.name : false",
            "messageExpression": "request.operation + ' ' + request.kind.kind",
        },
        rules=rules,
    )
    await kit.create(things.resource, things.object("b", {"size": 1}))
    await kit.patch(things.resource, "a", {"spec": {"size": 2}})
    await kit.patch(things.resource, "a", {"status": {"by": "b"}}, "status")
    await kit.patch(things.resource, "a", {"status": {"by": "a"}}, "status")
    await kit.apply(things.resource, "a", things.object("a", {"size": 4}))
    await kit.apply(things.resource, "a", things.object("a", status={"by": "c"}), "status", force="true")
    await kit.delete(things.resource, "a")


@theme.case()
async def cluster_scoped(kit: Kit) -> None:
    name = f"{kit.ns}-role"
    seen = "string(namespaceObject == null) + string(has(request.namespace))"
    rules = [rule("clusterroles", *EVERY, group="rbac.authorization.k8s.io", resourceNames=[name], scope="Cluster")]
    await install(kit, {"expression": "false", "messageExpression": seen}, rules=rules)
    role = obj("rbac.authorization.k8s.io/v1", "ClusterRole", name, rules=[])
    await kit.create("/rbac.authorization.k8s.io/v1/clusterroles", role)


@theme.case()
async def namespaces_themselves(kit: Kit) -> None:
    name = f"{kit.ns}-2"
    seen = "string(namespaceObject == null) + request.namespace + request.name"
    only = {"namespaceSelector": {"matchLabels": {"of": kit.ns}}}
    rules = [rule("namespaces", *EVERY, scope="Cluster")]
    await install(kit, {"expression": "false", "messageExpression": seen}, rules=rules, constraints=only)
    await kit.create("/namespaces", {"metadata": {"name": name, "labels": {"of": kit.ns}}})


@theme.case()
async def namespaced_params_of_cluster_scoped_objects(kit: Kit) -> None:
    name = f"{kit.ns}-role"
    rules = [rule("clusterroles", *EVERY, group="rbac.authorization.k8s.io", resourceNames=[name])]
    await install(kit, "true", bound=by_params(name="a"), rules=rules, **OF_MAPS)
    role = obj("rbac.authorization.k8s.io/v1", "ClusterRole", name, rules=[])
    await kit.create("/rbac.authorization.k8s.io/v1/clusterroles", role)


@theme.case()
async def a_namespace_for_params_that_have_none(kit: Kit) -> None:
    kind = {"apiVersion": "v1", "kind": "Namespace"}
    bound = by_params(name="default", namespace="default")
    await install(kit, "true", bound=bound, rules=[rule("secrets")], paramKind=kind)
    await kit.create("secrets", obj("v1", "Secret", "a"))


@theme.case()
async def policies_are_exempt(kit: Kit) -> None:
    rules = [rule("*", "*", group="admissionregistration.k8s.io")]
    only = {"objectSelector": {"matchLabels": {"of": kit.ns}}}
    await install(kit, "false", rules=rules, constraints=only)
    labels = {"metadata": {"labels": {"of": kit.ns}}}
    await kit.picking(lambda body: body["kind"]).patch(POLICIES, kit.ns, labels)
    await kit.picking(lambda body: body["kind"]).patch(BINDINGS, kit.ns, labels)
    hooks = obj(API, "ValidatingWebhookConfiguration", kit.ns, meta=labels["metadata"], webhooks=[])
    await kit.create(f"/{API}/validatingwebhookconfigurations", hooks)


@theme.case()
async def policies_come_before_webhooks(kit: Kit) -> None:
    changed = await hook(
        kit, patching({"op": "add", "path": "/data/by", "value": "hook"}), kind="Mutating", name="first"
    )
    asked = await hook(kit, allow, name="last")
    await install(kit, {"expression": "object.data.k != 'v'", "messageExpression": "'by ' + object.data.by"})
    await kit.create(CM, cm("a"))
    kit.note("mutating was asked", len(changed.asked))
    kit.note("validating was asked", len(asked.asked))


@theme.case()
async def bindings_come_and_go(kit: Kit) -> None:
    await install(kit, "false")
    await kit.create(CM, cm("a"))
    await kit.quiet.delete(BINDINGS, kit.ns)

    async def free() -> bool:
        return (await kit.probing.create(CM, cm("a"), dryRun="All")).status == 201

    await kit.until("the policy is not bound any more", free)
    await kit.create(CM, cm("a"))


@theme.case()
async def evictions_and_tokens(kit: Kit) -> None:
    await with_pod(kit, "p")
    await kit.quiet.create("serviceaccounts", obj("v1", "ServiceAccount", "s"))
    seen = "[request.operation, request.kind.kind, request.subResource, request.name, string(object.kind)].join(' ')"
    rules = [rule("pods/eviction", *EVERY), rule("serviceaccounts/token", *EVERY), rule("pods/binding", *EVERY)]
    await install(kit, {"expression": "false", "messageExpression": seen}, rules=rules)
    await kit.create("pods", obj("policy/v1", "Eviction", "p"), "p", "eviction")
    await kit.create("pods", obj("v1", "Binding", "p", target={"kind": "Node", "name": "n"}), "p", "binding")
    await kit.create("serviceaccounts", {"spec": {}}, "s", "token")
    await kit.picking(lambda body: body["metadata"]["name"]).get("pods", "p")


@theme.case()
async def an_eviction_is_no_delete(kit: Kit) -> None:
    await with_pod(kit, "p")
    await install(kit, "false", rules=[rule("pods", "DELETE")])
    await kit.delete("pods", "p")
    await kit.create("pods", obj("policy/v1", "Eviction", "p"), "p", "eviction")


@theme.case()
async def finalizing_a_namespace(kit: Kit) -> None:
    name = f"{kit.ns}-2"
    await kit.quiet.create("/namespaces", {"metadata": {"name": name, "labels": {"of": kit.ns}}})
    only = {"namespaceSelector": {"matchLabels": {"of": kit.ns}}}
    rules = [rule("namespaces/finalize", *EVERY)]
    await install(kit, {"expression": "false", "messageExpression": "request.operation"}, rules=rules, constraints=only)
    await kit.send("PUT", f"/api/v1/namespaces/{name}/finalize", obj("v1", "Namespace", name, spec={}))


@theme.case()
async def many_variables(kit: Kit) -> None:
    variables = [{"name": "v0", "expression": "size(object.data)"}]
    variables += [{"name": f"v{at}", "expression": f"variables.v{at - 1} + 1"} for at in range(1, 20)]
    seen = "string(variables.v19)"
    await install(kit, {"expression": "variables.v19 == 0", "messageExpression": seen}, variables=variables)
    await kit.create(CM, cm("a"))


@theme.case()
async def libraries(kit: Kit) -> None:
    await install(
        kit,
        "quantity('1Gi').isGreaterThan(quantity('500Mi'))",
        "'a-b'.split('-') == ['a', 'b'] && ['b', 'a'].sort() == ['a', 'b']",
        "isURL('https://example.com/x') && url('https://example.com/x').getHost() == 'example.com'",
        "ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.2.3.4')",
        "semver('1.2.3').isLessThan(semver('1.3.0'))",
        "sets.contains([1, 2, 3], [2]) && [1, 2].all(i, v, v > 0) && {'a': 1}.exists(k, v, k == 'a')",
        "'%s is %d'.format(['a', 1]) == 'a is 1'",
        "object.metadata.?labels['x'].orValue('none') == 'none'",
        "'abc'.find('b') == 'b' && 'aXb'.lowerAscii() == 'axb' && 'abc'.substring(1) == 'bc'",
        "timestamp('2024-01-01T00:00:00Z') < timestamp('2024-01-02T00:00:00Z') && duration('1h') > duration('1m')",
        "[1, 2, 3].sum() == 6 && [1, 2].max() == 2 && ['a'].isSorted() && [1, 2].indexOf(2) == 1",
        "[[1], [2]].flatten() == [1, 2] && lists.range(3) == [0, 1, 2] && [1, 1].distinct() == [1]",
        "1.0 < 2 && 3 > 2.5 && b'a' == bytes('a') && type(object.data) == map",
    )
    await kit.create(CM, cm("a"))


@theme.case()
async def what_is_filled_in(kit: Kit) -> None:
    await kit.create(POLICIES, policy(kit.ns, "true", rules=[rule("pods/exec", "CONNECT", group="*")]))
    await kit.create(BINDINGS, binding(kit.ns, matchResources={"excludeResourceRules": [rule()]}))
    await kit.patch(POLICIES, kit.ns, {"spec": {"failurePolicy": "Ignore"}})
    await kit.patch(POLICIES, kit.ns, {"metadata": {"labels": {"a": "b"}}})
    await kit.patch(POLICIES, kit.ns, {"status": {"observedGeneration": 2}}, "status")
    await kit.patch(BINDINGS, kit.ns, {"spec": {"validationActions": ["Warn"]}})


@theme.case()
async def tables(kit: Kit) -> None:
    cells = kit.picking(lambda body: body["rows"][0]["cells"][:3]).accepting(TABLE)
    kind = {"apiVersion": "example.com/v1", "kind": "Limit"}
    await kit.quiet.create(POLICIES, policy(kit.ns, "true", "1 == 1", rules=ON_NOTHING, paramKind=kind))
    await cells.get(POLICIES, kit.ns)
    refs: list[Any] = [{"name": "a"}, {"name": "a", "namespace": "b"}, {"selector": {"matchLabels": {"a": "b"}}}]
    for at, ref in enumerate(refs):
        name = f"{kit.ns}-{at}"
        await kit.quiet.create(BINDINGS, binding(name, **by_params(**ref)))
        await cells.get(BINDINGS, name)


def _refused(name: str, made: Any) -> None:
    theme.creates(f"refused {name}", POLICIES, made)


_refused("nothing in it", obj(API, "ValidatingAdmissionPolicy", "refused-empty", spec={}))
_refused("no rules", policy("refused-rules", "true", constraints={"resourceRules": []}))
_refused("no validations", policy("refused-validations"))
_refused(
    "expressions",
    policy(
        "refused-expressions",
        "",
        "object.x ==",
        "object.spec",
        "'text'",
        "request.nothing == 1",
        "namespaceObject.nothing == 1",
        "params.x == 1",
        "unknown == 1",
        "unknown.field == 1",
        "variables.x == 1",
        "request.name == 1",
        "authorizer.check('x')",
        "authorizer.group('').resource('x').check('get')",
        "request.userInfo.username.nothing == 1",
        "nothing(object)",
        "object.nothing('x')",
        "request.userInfo.groups.all(g, h, g == 'x')",
        "has(object)",
        "{'a': 1}",
        "[1]",
        "null",
        "1.5",
        "optional.of(true)",
        "timestamp('2020-01-01T00:00:00Z')",
    ),
)
_refused(
    "messages",
    policy(
        "refused-messages",
        {"expression": "true", "messageExpression": "1"},
        {"expression": "true", "messageExpression": " "},
        {"expression": "true", "message": " "},
        {"expression": "true", "message": "two\nlines"},
        {"expression": "true", "reason": "Unauthorized"},
        {"expression": "true", "messageExpression": "authorizer.path('/').check('get').reason()"},
    ),
)
_refused(
    "variables",
    policy(
        "refused-variables",
        "variables.bad == 1 && variables.good == 1",
        "variables.text == 1",
        "variables.missing",
        variables=[
            {"name": "", "expression": ""},
            {"name": "not-good", "expression": "1"},
            {"name": "in", "expression": "1"},
            {"name": "early", "expression": "variables.good"},
            {"name": "good", "expression": "1"},
            {"name": "bad", "expression": "1 +"},
            {"name": "text", "expression": "'text'"},
        ],
    ),
)
_refused(
    "conditions",
    policy(
        "refused-conditions",
        "true",
        matchConditions=[
            {"name": "", "expression": " "},
            {"name": "twice", "expression": "true"},
            {"name": "twice", "expression": "1"},
            {"name": "not good", "expression": "variables.x"},
            {"name": "params", "expression": "params.x == 1"},
        ],
        variables=[{"name": "x", "expression": "true"}],
    ),
)
_refused(
    "annotations",
    policy(
        "refused-annotations",
        auditAnnotations=[
            {"key": "a", "valueExpression": ""},
            {"key": "a", "valueExpression": "1"},
            {"key": "not good", "valueExpression": "'x'"},
        ],
    ),
)
_refused(
    "choices",
    policy(
        "refused-choices",
        "true",
        failurePolicy="Perhaps",
        paramKind={"apiVersion": "a/b/c", "kind": "Not A Kind"},
        constraints={"matchPolicy": "Roughly", "namespaceSelector": {"matchLabels": {"a": "not good!"}}},
        rules=[
            rule("pods", "EAT", resourceNames=["a", "a", "b/c"]),
            {"apiGroups": ["", "*"], "apiVersions": [], "resources": ["*", "pods"], "operations": ["*", "CREATE"]},
        ],
    ),
)
_refused("param kind", policy("refused-param-kind", "true", paramKind={"apiVersion": "Bad_Group/", "kind": ""}))
_refused("reserved name", policy("not a name", "true"))


@theme.case()
async def refused_bindings(kit: Kit) -> None:
    selector = {"matchLabels": {"a": "b"}}
    specs: tuple[Any, ...] = (
        {"policyName": "", "validationActions": []},
        {"policyName": "not a name", "validationActions": ["Deny", "Warn", "Warn", "Eat"]},
        {"paramRef": {}},
        {"paramRef": {"name": "a", "selector": selector, "parameterNotFoundAction": "Perhaps"}},
        {"paramRef": {"name": "a/b", "parameterNotFoundAction": "Allow"}},
        {"matchResources": {"matchPolicy": "Roughly", "resourceRules": [rule("pods", "EAT")]}},
    )
    for spec in specs:
        await kit.create(BINDINGS, binding(kit.ns, **spec))


@theme.case()
async def refused_changes(kit: Kit) -> None:
    await kit.quiet.create(POLICIES, policy(kit.ns, "true", rules=ON_NOTHING))
    await kit.patch(POLICIES, kit.ns, {"spec": {"validations": [{"expression": "1"}]}})
    await kit.put(POLICIES, kit.ns, policy(kit.ns, "true", rules=ON_NOTHING))


async def may_now(kit: Kit, resource: str, name: str = "") -> None:
    """Wait until roles that were made are in force."""

    async def asked() -> bool:
        return (await kit.probing.get(resource, name)).status != 403

    await kit.until(f"{resource} may be read", asked)


@theme.case()
async def who_may_use_params(kit: Kit) -> None:
    group = "rbac.authorization.k8s.io"
    write = {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["*"]}
    role = obj(f"{group}/v1", "ClusterRole", kit.ns, rules=[write])
    await kit.quiet.create(f"/{group}/v1/clusterroles", role)
    bound = admin(kit.ns, "policy-writer")
    bound["roleRef"]["name"] = kit.ns
    await kit.quiet.create(f"/{group}/v1/clusterrolebindings", bound)
    writer = kit.as_user("policy-writer")
    await may_now(writer, POLICIES)
    await writer.create(POLICIES, policy(kit.ns, "true", rules=ON_NOTHING, **OF_MAPS))
    await kit.quiet.create(POLICIES, policy(kit.ns, "true", rules=ON_NOTHING, **OF_MAPS))
    await writer.create(BINDINGS, binding(kit.ns, **by_params(name="a", namespace=kit.ns)))
    await writer.create(BINDINGS, binding(kit.ns, **by_params(selector={})))
    missing = {**by_params(name="a"), "policyName": "nobody"}
    await writer.create(BINDINGS, binding(kit.ns, **missing))
    for path, made in may("reader", kit.ns, "policy-writer", {"apiGroups": [""], "resources": [CM], "verbs": ["get"]}):
        await kit.quiet.create(path, made)
    await may_now(writer, CM, "a")
    await writer.create(BINDINGS, binding(kit.ns, **by_params(name="a", namespace=kit.ns)))
    await writer.patch(POLICIES, kit.ns, {"spec": {"paramKind": {"apiVersion": "v1", "kind": "Secret"}}})
    await writer.picking(lambda body: body["kind"]).patch(POLICIES, kit.ns, {"spec": {"failurePolicy": "Ignore"}})


@theme.case()
async def formats(kit: Kit) -> None:
    await kit.create(POLICIES, policy(kit.ns, "!format.dns1123Label().validate('a').hasValue()", rules=ON_NOTHING))


@theme.case()
async def very_many_variables(kit: Kit) -> None:
    variables = [{"name": "v0", "expression": "1"}]
    variables += [{"name": f"v{at}", "expression": f"variables.v{at - 1} + 1"} for at in range(1, 40)]
    await kit.create(POLICIES, policy(kit.ns, "variables.v39 == 0", rules=ON_NOTHING, variables=variables))
