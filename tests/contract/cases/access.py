"""Authorization: RBAC, access reviews, impersonation, escalation, anonymous requests."""

from __future__ import annotations

import base64
import json
from typing import Any

from tests.contract.case import Theme
from tests.contract.kit import Kit
from tests.contract.objects import CM, DEPLOYMENTS, cm, deployment, obj

theme = Theme("access")

GROUP = "rbac.authorization.k8s.io"
RBAC = f"{GROUP}/v1"
AUTHZ = "authorization.k8s.io/v1"


def rule(groups: str, resources: str, verbs: str, **more: Any) -> Any:
    """A rule from words."""
    return {
        "apiGroups": [g.strip('"') for g in groups.split()] or [""],
        "resources": resources.split(),
        "verbs": verbs.split(),
        **more,
    }


async def grant(kit: Kit, user: str, *rules: Any, cluster: bool = False, subject: Any = None) -> None:
    """Bind a role of these rules to a user, and wait until it counts."""
    name = f"{kit.ns}-{user.replace(':', '-')}"[:60]
    scope, kind = ("/", "ClusterRole") if cluster else ("", "Role")
    who = subject or {"kind": "User", "apiGroup": GROUP, "name": user}
    ref = {"apiGroup": GROUP, "kind": kind, "name": name}
    made = await kit.quiet.create(f"{scope}{RBAC}/{kind.lower()}s", obj(RBAC, kind, name, rules=[*rules]))
    assert made.status == 201, made.body
    made = await kit.quiet.create(
        f"{scope}{RBAC}/{kind.lower()}bindings", obj(RBAC, f"{kind}Binding", name, roleRef=ref, subjects=[who])
    )
    assert made.status == 201, made.body
    first = rules[0]
    attributes = {"namespace": "" if cluster else kit.ns, "verb": first["verbs"][0], "group": first["apiGroups"][0]}
    resource, _, sub = first["resources"][0].partition("/")
    attributes |= {"resource": resource, "subresource": sub, "name": (first.get("resourceNames") or [""])[0]}
    spec: Any = {"resourceAttributes": attributes, "user": user if who["kind"] != "Group" else "anybody"}
    if who["kind"] == "Group":
        spec["groups"] = [who["name"]]

    async def counts() -> bool:
        review = {"apiVersion": AUTHZ, "kind": "SubjectAccessReview", "spec": spec}
        return bool((await kit.quiet.create(f"/{AUTHZ}/subjectaccessreviews", review)).body["status"]["allowed"])

    await kit.until(f"{user} may do it", counts)


@theme.case()
async def nobody_may_anything(kit: Kit) -> None:
    bob = kit.as_user("bob")
    await bob.list(CM)
    await bob.get(CM, "a")
    await bob.create(CM, cm("a"))
    await bob.delete(CM, "a")
    await bob.patch(DEPLOYMENTS, "a", {}, "scale")
    await bob.send("GET", "/api/v1/nodes")
    await bob.send("DELETE", kit.path(CM))
    await bob.send("GET", kit.path(CM) + "?watch=1")
    await bob.send("GET", "/metrics")


@theme.case()
async def everybody_may_discover(kit: Kit) -> None:
    bob = kit.as_user("bob", "system:authenticated").picking(lambda b: b.get("kind"))
    for path in ("/api", "/apis", "/api/v1", "/apis/apps/v1", "/version"):
        await bob.send("GET", path)


@theme.case()
async def a_role_in_its_namespace(kit: Kit) -> None:
    await grant(kit, "reader", rule("", "configmaps", "get list"))
    reader = kit.as_user("reader")
    await kit.quiet.create(CM, cm("a"))
    await reader.get(CM, "a")
    await reader.picking(lambda b: b["kind"]).list(CM)
    await reader.list("secrets")
    await reader.in_namespace("default").list(CM)
    await reader.delete(CM, "a")
    await reader.send("GET", kit.path(CM) + "?watch=1&timeoutSeconds=1")
    await reader.send("GET", "/api/v1/configmaps")


@theme.case()
async def a_role_for_names(kit: Kit) -> None:
    await grant(kit, "narrow", rule("", "configmaps", "get update", resourceNames=["a"]))
    narrow = kit.as_user("narrow")
    await kit.quiet.create(CM, cm("a"))
    await narrow.get(CM, "a")
    await narrow.get(CM, "b")
    await narrow.list(CM)


@theme.case()
async def list_by_name_field(kit: Kit) -> None:
    await grant(kit, "lister", rule("", "configmaps", "list watch", resourceNames=["a"]))
    await kit.quiet.create(CM, cm("a"))
    await kit.as_user("lister").picking(lambda b: len(b.get("items", ()))).list(CM, fieldSelector="metadata.name=a")
    await kit.as_user("lister").list(CM, fieldSelector="metadata.name=b")


@theme.case()
async def a_cluster_role(kit: Kit) -> None:
    await grant(kit, "wide", rule('"apps"', "deployments", "*"), cluster=True)
    wide = kit.as_user("wide")
    await wide.picking(lambda b: b["kind"]).send("GET", "/apis/apps/v1/deployments?limit=1")
    await wide.picking(lambda b: b["kind"]).create(DEPLOYMENTS, deployment("a"))
    await wide.get(DEPLOYMENTS, "a", "status")
    await wide.list(CM)


@theme.case()
async def subresources_are_granted_apart(kit: Kit) -> None:
    await grant(kit, "scaler", rule('"apps"', "deployments/scale", "get patch"))
    scaler = kit.as_user("scaler")
    await kit.quiet.create(DEPLOYMENTS, deployment("a"))
    await scaler.patch(DEPLOYMENTS, "a", {"spec": {"replicas": 2}}, "scale")
    await scaler.patch(DEPLOYMENTS, "a", {"spec": {"replicas": 3}})


@theme.case()
async def groups_count(kit: Kit) -> None:
    await grant(
        kit, "crew", rule("", "configmaps", "list"), subject={"kind": "Group", "apiGroup": GROUP, "name": "crew"}
    )
    await kit.as_user("anybody", "crew").picking(lambda b: b["kind"]).list(CM)
    await kit.as_user("anybody", "others").picking(lambda b: b["kind"]).list(CM)


@theme.case()
async def service_accounts_count(kit: Kit) -> None:
    who = f"system:serviceaccount:{kit.ns}:robot"
    await grant(
        kit,
        who,
        rule("", "configmaps", "list"),
        subject={"kind": "ServiceAccount", "namespace": kit.ns, "name": "robot"},
    )
    await kit.as_user(who).picking(lambda b: b["kind"]).list(CM)
    await kit.as_user(f"system:serviceaccount:{kit.ns}:other").list(CM)


@theme.case()
async def a_role_that_goes(kit: Kit) -> None:
    await grant(kit, "late", rule("", "configmaps", "list"))
    late = kit.as_user("late")
    await late.picking(lambda b: b["kind"]).list(CM)
    await kit.quiet.delete(f"{RBAC}/rolebindings", f"{kit.ns}-late"[:60])

    async def refused() -> bool:
        return (await late.quiet.list(CM)).status == 403

    await kit.until("it counts no more", refused)


@theme.case()
async def bound_to_a_role_that_is_absent(kit: Kit) -> None:
    ref = {"apiGroup": GROUP, "kind": "Role", "name": "never-made"}
    subject = {"kind": "User", "apiGroup": GROUP, "name": "hopeful"}
    await kit.quiet.create(f"{RBAC}/rolebindings", obj(RBAC, "RoleBinding", "a", roleRef=ref, subjects=[subject]))
    await kit.as_user("hopeful").picking(lambda b: [b["code"], b["reason"], b["details"]]).list(CM)


@theme.case()
async def bootstrap_roles(kit: Kit) -> None:
    for name in (
        "cluster-admin",
        "admin",
        "edit",
        "view",
        "system:discovery",
        "system:basic-user",
        "system:public-info-viewer",
    ):
        await kit.picking(
            lambda b: [b["metadata"]["name"], b["metadata"].get("labels"), b["metadata"].get("annotations")]
        ).get(f"/{RBAC}/clusterroles", name)


@theme.case()
async def bootstrap_bindings(kit: Kit) -> None:
    for name in ("cluster-admin", "system:discovery", "system:basic-user", "system:public-info-viewer"):
        await kit.picking(lambda b: [b["metadata"]["name"], b["roleRef"], b["subjects"]]).get(
            f"/{RBAC}/clusterrolebindings", name
        )


async def bound(kit: Kit, user: str, role: str) -> Kit:
    """A user with one of the built-in roles in the case's namespace."""
    ref = {"apiGroup": GROUP, "kind": "ClusterRole", "name": role}
    subject = {"kind": "User", "apiGroup": GROUP, "name": user}
    await kit.quiet.create(f"{RBAC}/rolebindings", obj(RBAC, "RoleBinding", user, roleRef=ref, subjects=[subject]))
    one = kit.as_user(user)

    async def counts() -> bool:
        return (await one.quiet.list(CM)).status == 200

    await kit.until(f"{user} has {role}", counts)
    return one


@theme.case()
async def view(kit: Kit) -> None:
    viewer = await bound(kit, "viewer", "view")
    brief = viewer.picking(lambda b: [b["kind"], b.get("reason")])
    for resource in (CM, "secrets", "pods", DEPLOYMENTS, "events", f"{RBAC}/roles", "networking.k8s.io/v1/ingresses"):
        await brief.list(resource)
    await brief.create(CM, cm("a"))


@theme.case()
async def edit(kit: Kit) -> None:
    editor = await bound(kit, "editor", "edit")
    brief = editor.picking(lambda b: [b["kind"], b.get("reason")])
    for resource in (CM, "secrets", "pods", DEPLOYMENTS, f"{RBAC}/roles"):
        await brief.list(resource)
    await brief.create(CM, cm("a"))
    await brief.create("secrets", obj("v1", "Secret", "a"))
    await brief.create(f"{RBAC}/roles", obj(RBAC, "Role", "a", rules=[]))
    await brief.delete("/namespaces", kit.ns)


@theme.case()
async def admin(kit: Kit) -> None:
    boss = await bound(kit, "boss", "admin")
    brief = boss.picking(lambda b: [b["kind"], b.get("reason")])
    await brief.create(f"{RBAC}/roles", obj(RBAC, "Role", "a", rules=[rule("", "configmaps", "get")]))
    await brief.create("resourcequotas", obj("v1", "ResourceQuota", "a"))
    await brief.get("/namespaces", kit.ns)
    await brief.list("/namespaces")


@theme.case()
async def escalation_is_refused(kit: Kit) -> None:
    await grant(
        kit, "climber", rule(f'"{GROUP}"', "roles rolebindings", "create update"), rule("", "configmaps", "get")
    )
    climber = kit.as_user("climber")
    await climber.picking(lambda b: b["kind"]).create(
        f"{RBAC}/roles", obj(RBAC, "Role", "same", rules=[rule("", "configmaps", "get")])
    )
    await climber.create(f"{RBAC}/roles", obj(RBAC, "Role", "more", rules=[rule("", "secrets", "get list")]))
    ref = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "cluster-admin"}
    subject = {"kind": "User", "apiGroup": GROUP, "name": "climber"}
    await climber.picking(
        lambda b: [b["code"], b["reason"], b["message"].split(" is attempting")[0].split(" (groups")[0]]
    ).create(f"{RBAC}/rolebindings", obj(RBAC, "RoleBinding", "b", roleRef=ref, subjects=[subject]))


def review(**spec: Any) -> Any:
    return {"apiVersion": AUTHZ, "kind": "SelfSubjectAccessReview", "spec": spec}


@theme.case()
async def self_review(kit: Kit) -> None:
    await grant(kit, "asker", rule("", "configmaps", "get"))
    attributes = {"namespace": kit.ns, "verb": "get", "resource": "configmaps"}
    asker = kit.as_user("asker", "system:authenticated")
    await asker.create(f"/{AUTHZ}/selfsubjectaccessreviews", review(resourceAttributes=attributes))
    await asker.create(f"/{AUTHZ}/selfsubjectaccessreviews", review(resourceAttributes=attributes | {"verb": "delete"}))
    # Several bindings allow it, and any of them may be named.
    version = review(nonResourceAttributes={"path": "/version", "verb": "get"})
    await asker.picking(lambda b: b["status"]["allowed"]).create(f"/{AUTHZ}/selfsubjectaccessreviews", version)
    await kit.create(f"/{AUTHZ}/selfsubjectaccessreviews", review(resourceAttributes=attributes))


@theme.case()
async def self_review_that_asks_nothing(kit: Kit) -> None:
    await kit.create(f"/{AUTHZ}/selfsubjectaccessreviews", review())
    await kit.create(
        f"/{AUTHZ}/selfsubjectaccessreviews",
        review(resourceAttributes={"verb": "get"}, nonResourceAttributes={"path": "/"}),
    )
    named = review(resourceAttributes={"verb": "get", "resource": "pods"}) | {"metadata": {"name": "x"}}
    brief = kit.picking(lambda b: [b["code"], b["reason"], [cause["field"] for cause in b["details"]["causes"]]])
    await brief.create(f"/{AUTHZ}/selfsubjectaccessreviews", named)


@theme.case()
async def subject_review(kit: Kit) -> None:
    await grant(kit, "seen", rule("", "configmaps", "get"))
    attributes = {"namespace": kit.ns, "verb": "get", "resource": "configmaps"}
    for spec in (
        {"user": "seen", "resourceAttributes": attributes},
        {"user": "other", "resourceAttributes": attributes},
        {"resourceAttributes": attributes},
    ):
        await kit.create(
            f"/{AUTHZ}/subjectaccessreviews", {"apiVersion": AUTHZ, "kind": "SubjectAccessReview", "spec": spec}
        )


@theme.case()
async def local_subject_review(kit: Kit) -> None:
    await grant(kit, "local", rule("", "configmaps", "get"))
    attributes = {"namespace": kit.ns, "verb": "get", "resource": "configmaps"}
    body = {
        "apiVersion": AUTHZ,
        "kind": "LocalSubjectAccessReview",
        "spec": {"user": "local", "resourceAttributes": attributes},
    }
    await kit.create(f"{AUTHZ}/localsubjectaccessreviews", body | {"metadata": {"namespace": kit.ns}})
    await kit.create(
        f"{AUTHZ}/localsubjectaccessreviews",
        body | {"spec": {"user": "local", "resourceAttributes": attributes | {"namespace": "other"}}},
    )


@theme.case()
async def rules_review(kit: Kit) -> None:
    await grant(kit, "ruled", rule("", "configmaps", "get list", resourceNames=["a"]))
    body = {"apiVersion": AUTHZ, "kind": "SelfSubjectRulesReview", "spec": {"namespace": kit.ns}}
    await (
        kit.as_user("ruled")
        .picking(lambda b: [b["kind"], b["status"]["resourceRules"], b["status"]["incomplete"]])
        .create(f"/{AUTHZ}/selfsubjectrulesreviews", body)
    )
    await kit.create(f"/{AUTHZ}/selfsubjectrulesreviews", body | {"spec": {}})


@theme.case()
async def who_am_i(kit: Kit) -> None:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    one = kit.as_user("me", "one", "two", **{"Impersonate-Extra-Color": "red", "Impersonate-Uid": "u-1"})
    await one.create("/authentication.k8s.io/v1/selfsubjectreviews", body)


@theme.case()
async def impersonation_of_a_service_account(kit: Kit) -> None:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    await kit.as_user("system:serviceaccount:x:y").create("/authentication.k8s.io/v1/selfsubjectreviews", body)
    await kit.as_user("system:anonymous").create("/authentication.k8s.io/v1/selfsubjectreviews", body)


@theme.case()
async def impersonation_of_a_group_without_a_user(kit: Kit) -> None:
    await kit.with_headers({"Impersonate-Group": "g"}).list(CM)


@theme.case()
async def impersonation_is_a_right(kit: Kit) -> None:
    await kit.quiet.create("serviceaccounts", obj("v1", "ServiceAccount", "robot"))
    who = f"system:serviceaccount:{kit.ns}:robot"
    await grant(kit, who, rule("", "users", "impersonate", resourceNames=["alice"]), cluster=True)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = (await kit.quiet.create("serviceaccounts", request, "robot", "token")).body["status"]["token"]
    robot = kit.anonymous(token)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    reviews = "/authentication.k8s.io/v1/selfsubjectreviews"
    await robot.as_user("alice", Authorization=f"Bearer {token}").create(reviews, body)
    await robot.as_user("bob", Authorization=f"Bearer {token}").create(reviews, body)
    await robot.as_user("alice", "system:masters", Authorization=f"Bearer {token}").create(reviews, body)


@theme.case()
async def token_claims(kit: Kit) -> None:
    await kit.quiet.create("serviceaccounts", obj("v1", "ServiceAccount", "robot"))
    await kit.quiet.create("secrets", obj("v1", "Secret", "key"))
    bound = {"apiVersion": "v1", "kind": "Secret", "name": "key"}
    spec = {"audiences": ["vault"], "boundObjectRef": bound, "expirationSeconds": 1200}
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    await kit.picking(_claims).create("serviceaccounts", request, "robot", "token")


def _claims(answer: Any) -> Any:
    """Claims of a signed token that are the same on every server."""
    part = answer["status"]["token"].split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    about = claims["kubernetes.io"]
    return {
        "names": sorted(claims),
        "aud": claims["aud"],
        "seconds": claims["exp"] - claims["nbf"],
        "sub": claims["sub"].replace(about["namespace"], "NAMESPACE"),
        "about": {kind: sorted(about[kind]) for kind in ("secret", "serviceaccount")},
    }


@theme.case()
async def anonymous(kit: Kit) -> None:
    nobody = kit.anonymous()
    await nobody.list(CM)
    await nobody.picking(lambda b: b.get("kind")).send("GET", "/api")
    await nobody.send("GET", "/readyz")
    await nobody.picking(lambda b: sorted(b)).send("GET", "/version")


@theme.case()
async def token_unknown(kit: Kit) -> None:
    await kit.anonymous("nonsense").list(CM)
    await kit.anonymous("nonsense").send("GET", "/version")


@theme.case()
async def token_review_of_nonsense(kit: Kit) -> None:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "nonsense"}}
    await kit.picking(lambda b: b["status"].get("authenticated", False)).create(
        "/authentication.k8s.io/v1/tokenreviews", body
    )


@theme.case()
async def forbidden_on_custom_resources(kit: Kit) -> None:
    from tests.contract.cases.custom import table_kind

    kind = await table_kind(kit)
    await kit.as_user("bob").picking(lambda b: [b["reason"], b["details"]["kind"]]).list(kind.resource)


@theme.case()
async def cluster_scoped_refusal(kit: Kit) -> None:
    bob = kit.as_user("bob")
    await bob.send("GET", "/api/v1/namespaces")
    await bob.send("GET", "/api/v1/nodes/x")
    await bob.send("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")


LABEL = "rbac.authorization.k8s.io/aggregate-to-view"


def gathering(kit: Kit, name: str, **fields: Any) -> Any:
    selectors = [{"matchLabels": {"case": kit.ns}}]
    return obj(RBAC, "ClusterRole", name, aggregationRule={"clusterRoleSelectors": selectors}, **fields)


def gathered(kit: Kit, name: str, *rules: Any) -> Any:
    return obj(RBAC, "ClusterRole", name, meta={"labels": {"case": kit.ns}}, rules=[*rules])


async def until_rules(kit: Kit, name: str, count: int) -> None:
    async def so() -> bool:
        return len((await kit.quiet.get(ROLES, name)).body.get("rules") or ()) == count

    await kit.until(f"{name} has {count} rules", so)


ROLES = f"/{RBAC}/clusterroles"


@theme.case(managed=True)
async def aggregation(kit: Kit) -> None:
    """Rules are gathered by the order of names, one of several that are the same, and go with whom they came from."""
    await kit.quiet.create(ROLES, gathered(kit, "aggregation-b", rule("", "pods", "get"), rule("", "secrets", "get")))
    await kit.quiet.create(ROLES, gathering(kit, "aggregation"))
    await until_rules(kit, "aggregation", 2)
    await kit.quiet.create(ROLES, gathered(kit, "aggregation-a", rule("", "nodes", "get"), rule("", "pods", "get")))
    await until_rules(kit, "aggregation", 3)
    await kit.get(ROLES, "aggregation")
    for name in ("aggregation-a", "aggregation-b"):
        await kit.quiet.delete(ROLES, name)
    await until_rules(kit, "aggregation", 0)
    await kit.get(ROLES, "aggregation")


@theme.case()
async def aggregation_overwrites_what_is_written(kit: Kit) -> None:
    await kit.quiet.create(ROLES, gathered(kit, "aggregation-of-one", rule("", "pods", "get")))
    await kit.quiet.create(ROLES, gathering(kit, "aggregation-over", rules=[rule("", "secrets", "get")]))
    await until_rules(kit, "aggregation-over", 1)
    rules = [rule("", "secrets", "get"), rule("", "nodes", "get")]
    await kit.quiet.patch(ROLES, "aggregation-over", {"rules": rules})
    await until_rules(kit, "aggregation-over", 1)
    await kit.get(ROLES, "aggregation-over")


@theme.case()
async def aggregation_is_effective(kit: Kit) -> None:
    ref = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "aggregation-effective"}
    who = {"kind": "User", "apiGroup": GROUP, "name": "gwen"}
    await kit.quiet.create(ROLES, gathering(kit, "aggregation-effective"))
    await kit.quiet.create(f"{RBAC}/rolebindings", obj(RBAC, "RoleBinding", "gwen", roleRef=ref, subjects=[who]))
    gwen = kit.as_user("gwen")
    await gwen.list(CM)
    await kit.quiet.create(ROLES, gathered(kit, "aggregation-lists", rule("", "configmaps", "list")))

    async def may() -> bool:
        return (await kit.probing.as_user("gwen").list(CM)).status == 200

    await kit.until("gwen may list", may)
    await gwen.list(CM)


@theme.case(alone=True)
async def aggregation_into_view_edit_and_admin(kit: Kit) -> None:
    added = rule("aggregation.example.com", "widgets", "get")
    await kit.quiet.create(
        ROLES, obj(RBAC, "ClusterRole", "aggregation-into-view", meta={"labels": {LABEL: "true"}}, rules=[added])
    )

    def has(present: bool) -> Any:
        async def probe() -> bool:
            found = [(await kit.quiet.get(ROLES, name)).body["rules"] for name in ("view", "edit", "admin")]
            return all((added in rules) is present for rules in found)

        return probe

    await kit.until("it is in all three", has(True))
    kit.note("gathered", "view, edit, admin")
    await kit.quiet.delete(ROLES, "aggregation-into-view")
    await kit.until("it is in none", has(False))
    kit.note("gathered", "none")


@theme.case()
async def aggregation_needs_everything(kit: Kit) -> None:
    """A user without all rights cannot let a role aggregate the rules of others."""
    await grant(kit, "hal", rule(GROUP, "clusterroles", "create update patch get list"), cluster=True)
    hal = kit.as_user("hal")
    await hal.create(ROLES, gathering(kit, "aggregation-of-hal"))
    await kit.quiet.create(ROLES, obj(RBAC, "ClusterRole", "aggregation-later", rules=[]))
    selectors = [{"matchLabels": {"case": kit.ns}}]
    await hal.patch(ROLES, "aggregation-later", {"aggregationRule": {"clusterRoleSelectors": selectors}})
