"""Authorization by RBAC."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage_harbor.access import reviews
from pilotage_harbor.access.attributes import AccessAttributes, attributes_of, refusal
from pilotage_harbor.access.bootstrap import bootstrap_objects
from pilotage_harbor.access.escalation import _missing, check_escalation
from pilotage_harbor.access.rbac import Authorizer
from pilotage_harbor.access.tokens import Tokens
from pilotage_harbor.apimachinery.errors import StatusError
from pilotage_harbor.apimachinery.users import LOOPBACK, NOBODY, UserInfo
from pilotage_harbor.schema.gotext import quote as quoted

GROUP = "rbac.authorization.k8s.io"
STORAGE = {kind: f"{kind.lower()}s.{GROUP}" for kind in ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")}
JANE = UserInfo("jane", groups=("devs", "system:authenticated"))
BOT = UserInfo("system:serviceaccount:ns:bot", groups=("system:serviceaccounts", "system:authenticated"))


class World:
    """A view of nothing but roles and bindings."""

    def __init__(self, *objects):
        self.all = list(objects)
        self.version = 0
        self.reads = 0
        self.authorizer = Authorizer(self, lambda: self.version)

    def objects(self, storage, namespace=""):
        self.reads += 1
        return [each for each in self.all if STORAGE[each["kind"]] == storage]

    def add(self, *objects):
        self.all += objects
        self.version += 1

    def may(self, user, verb, resource, namespace="", name="", group="", subresource=""):
        return self.authorizer.decide(
            user, AccessAttributes(verb, group, resource, subresource, namespace, name)
        ).allowed


def rule(verbs, resources="", groups="", names="", urls=""):
    built = {"verbs": verbs.split()}
    if resources:
        built |= {"apiGroups": groups.split() or [""], "resources": resources.split()}
    if names:
        built["resourceNames"] = names.split()
    if urls:
        built["nonResourceURLs"] = urls.split()
    return built


def role(name, *rules, namespace="", labels=None, gathers=None):
    built = {"kind": "Role" if namespace else "ClusterRole", "metadata": {"name": name}, "rules": list(rules)}
    if namespace:
        built["metadata"]["namespace"] = namespace
    if labels:
        built["metadata"]["labels"] = labels
    if gathers:
        built["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": gathers}]}
    return built


def binding(name, to, *subjects, namespace="", kind="ClusterRole"):
    built = {
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": to},
        "subjects": [dict(zip(("kind", "name", "namespace"), each.split("|"), strict=False)) for each in subjects],
    }
    if namespace:
        built["metadata"]["namespace"] = namespace
    return built


@pytest.mark.parametrize(
    ("given", "access", "allowed"),
    [
        (rule("get list", "pods"), ("get", "pods"), True),
        (rule("get list", "pods"), ("delete", "pods"), False),
        (rule("*", "pods"), ("delete", "pods"), True),
        (rule("get", "*"), ("get", "pods"), True),
        (rule("get", "pods"), ("get", "pods", "", "", "", "log"), False),
        (rule("get", "pods/log"), ("get", "pods", "", "", "", "log"), True),
        (rule("get", "*/log"), ("get", "pods", "", "", "", "log"), True),
        (rule("get", "*/log"), ("get", "pods"), False),
        (rule("get", "pods", "apps"), ("get", "pods"), False),
        (rule("get", "pods", "*"), ("get", "pods", "", "", "apps"), True),
        (rule("get", "pods", names="a b"), ("get", "pods", "", "b"), True),
        (rule("get", "pods", names="a b"), ("get", "pods", "", "c"), False),
        (rule("list", "pods", names="a b"), ("list", "pods"), False),
    ],
)
def test_a_rule_allows_what_it_says(given, access, allowed):
    world = World(role("r", given), binding("b", "r", "User|jane"))
    assert world.may(JANE, *access) is allowed
    assert not world.may(UserInfo("joe"), *access)


def test_names_are_asked_for_in_every_rule_that_could_allow():
    world = World(
        role("r", rule("get", "pods", names="a"), rule("get", "pods", names="b")), binding("b", "r", "User|jane")
    )
    assert [world.may(JANE, "get", "pods", name=name) for name in ("a", "b", "c", "a")] == [True, True, False, True]


@pytest.mark.parametrize(
    ("urls", "path", "allowed"),
    [
        ("/healthz", "/healthz", True),
        ("/healthz", "/healthz/ping", False),
        ("/healthz/*", "/healthz/ping", True),
        ("/healthz*", "/healthzz", True),
        ("*", "/anything", True),
    ],
)
def test_paths(urls, path, allowed):
    world = World(role("r", rule("get", urls=urls)), binding("b", "r", "Group|devs"))
    assert world.authorizer.decide(JANE, AccessAttributes("get", path=path)).allowed is allowed
    assert not world.authorizer.decide(JANE, AccessAttributes("post", path=path)).allowed


def test_a_role_is_for_its_namespace_and_a_cluster_role_for_where_it_is_bound():
    world = World(
        role("local", rule("get", "pods"), namespace="ns"),
        role("global", rule("get", "secrets")),
        binding("a", "local", "ServiceAccount|bot", namespace="ns", kind="Role"),
        binding("b", "global", "ServiceAccount|bot|ns", namespace="other"),
    )
    assert world.may(BOT, "get", "pods", "ns")
    assert not world.may(BOT, "get", "pods", "other")
    assert not world.may(BOT, "get", "pods")
    assert world.may(BOT, "get", "secrets", "other")
    assert not world.may(BOT, "get", "secrets", "ns")
    assert not world.may(BOT, "get", "secrets")


def test_who_may_everything_needs_no_rule():
    assert World().authorizer.decide(LOOPBACK, AccessAttributes("any", "thing", "at", "all")) == (True, "")


def test_the_reason_names_the_binding_or_the_role_that_is_missing():
    world = World(
        role("r", rule("get", "pods")),
        binding("one", "r", "ServiceAccount|bot", namespace="ns"),
        binding("two", "r", "Group|devs"),
        binding("three", "gone", "User|jane"),
        binding("four", "gone", "User|jane", namespace="ns", kind="Role"),
    )
    decide = world.authorizer.decide
    wanted = AccessAttributes("get", "", "pods", namespace="ns")
    assert (
        decide(BOT, wanted).reason
        == 'RBAC: allowed by RoleBinding "one/ns" of ClusterRole "r" to ServiceAccount "bot/ns"'
    )
    assert decide(JANE, wanted).reason == 'RBAC: allowed by ClusterRoleBinding "two" of ClusterRole "r" to Group "devs"'
    assert decide(JANE, wanted._replace(verb="list")).reason == (
        f'RBAC: [clusterrole.{GROUP} "gone" not found, role.{GROUP} "gone" not found]'
    )


def test_a_change_of_the_rules_counts_at_once_and_nothing_is_read_without_one():
    world = World()
    assert not world.may(JANE, "get", "pods")
    world.add(role("r", rule("get", "pods")), binding("b", "r", "User|jane"))
    assert world.may(JANE, "get", "pods")
    reads = world.reads
    assert world.may(JANE, "get", "pods")
    assert world.may(JANE, "get", "pods", "ns", "x")
    assert world.reads == reads
    world.all.clear()
    world.version += 1
    assert not world.may(JANE, "get", "pods")


def test_aggregated_roles_gather_through_others_and_no_circle_hangs():
    world = World(
        role("top", rule("get", "nothing"), gathers={"in": "top"}),
        role("middle", labels={"in": "top"}, gathers={"in": "middle"}),
        role("leaf", rule("get", "pods"), labels={"in": "middle"}),
        role("circle", labels={"in": "circle"}, gathers={"in": "circle"}),
        binding("b", "top", "User|jane"),
        binding("c", "circle", "User|jane"),
    )
    assert world.may(JANE, "get", "pods")
    assert not world.may(JANE, "get", "nothing")


def test_roles_that_all_gather_each_other_all_have_the_rules_of_all():
    circle = [role(f"c{at}", labels={"in": "circle", "at": "x"}, gathers={"in": "circle"}) for at in range(12)]
    for at, each in enumerate(circle):
        each["aggregationRule"]["clusterRoleSelectors"] += [
            {"matchLabels": {"at": "x"}},
            {"matchLabels": {"no": str(at)}},
        ]
    leaves = [role(f"leaf{at}", rule("get", f"things{at}"), labels={"no": str(at)}) for at in range(12)]
    world = World(*circle, *leaves)
    for each in circle:
        found = world.authorizer.role_rules("ClusterRole", "", each["metadata"]["name"])
        assert sorted(one["resources"][0] for one in found) == sorted(f"things{at}" for at in range(12))


def test_rules_of_an_aggregated_role_come_by_the_names_of_those_it_gathers():
    shared = rule("get", "shared")
    world = World(
        role("top", gathers={"in": "top"}),
        role("z", rule("get", "z"), shared, labels={"in": "top"}),
        role("a", labels={"in": "top"}, gathers={"in": "a"}),
        role("y", rule("get", "y"), shared, labels={"in": "a"}),
        role("x", rule("get", "x"), labels={"in": "a"}),
    )
    found = world.authorizer.role_rules("ClusterRole", "", "top")
    assert [each["resources"][0] for each in found] == ["x", "y", "shared", "z"]


@pytest.mark.parametrize(
    ("method", "path", "query", "wanted"),
    [
        ("GET", "/", {}, AccessAttributes("get", path="/")),
        ("GET", "/api/v1", {}, AccessAttributes("get", path="/api/v1")),
        ("GET", "/apis/apps/v1", {}, AccessAttributes("get", path="/apis/apps/v1")),
        ("POST", "/healthz/a/b/c", {}, AccessAttributes("post", path="/healthz/a/b/c")),
        ("GET", "/api/v1/pods", {}, AccessAttributes("list", "", "pods")),
        ("GET", "/api/v1/pods", {"watch": ["true"]}, AccessAttributes("watch", "", "pods")),
        ("GET", "/api/v1/pods", {"watch": ["0"]}, AccessAttributes("list", "", "pods")),
        ("GET", "/api/v1/pods", {"fieldSelector": ["metadata.name=x"]}, AccessAttributes("list", "", "pods", name="x")),
        ("GET", "/api/v1/pods", {"fieldSelector": ["a=b,metadata.name==.."]}, AccessAttributes("list", "", "pods")),
        ("GET", "/api/v1/watch/pods", {}, AccessAttributes("watch", "", "pods")),
        ("GET", "/api/v1/namespaces", {}, AccessAttributes("list", "", "namespaces")),
        ("GET", "/api/v1/namespaces/a", {}, AccessAttributes("get", "", "namespaces", namespace="a", name="a")),
        ("PUT", "/api/v1/namespaces/a/finalize", {},
         AccessAttributes("update", "", "namespaces", "finalize", "a", "a")),
        ("POST", "/api/v1/namespaces/a/pods", {}, AccessAttributes("create", "", "pods", namespace="a")),
        ("DELETE", "/api/v1/namespaces/a/pods", {}, AccessAttributes("deletecollection", "", "pods", namespace="a")),
        ("PATCH", "/apis/apps/v1/namespaces/a/deployments/d/scale", {},
         AccessAttributes("patch", "apps", "deployments", "scale", "a", "d")),
        ("DELETE", "/apis/x.io/v1/things/t", {}, AccessAttributes("delete", "x.io", "things", name="t")),
    ],
)  # fmt: skip
def test_what_a_request_wants(method, path, query, wanted):
    assert attributes_of(method, path, query) == wanted


def test_a_refusal_says_who_may_not_do_what_where():
    error = refusal(JANE, AccessAttributes("get", "apps", "deployments", "scale", "ns", "d"))
    assert error.status["message"] == (
        'deployments.apps "d" is forbidden: User "jane" cannot get resource "deployments/scale" in API group "apps" '
        'in the namespace "ns"'
    )
    assert error.status["details"] == {"name": "d", "group": "apps", "kind": "deployments"}
    path = refusal(NOBODY, AccessAttributes("get", path="/secret/<b>"))
    assert path.status["message"] == ('forbidden: User "system:anonymous" cannot get path "/secret/&lt;b&gt;"')
    assert (path.code, path.status["reason"], path.status["details"]) == (403, "Forbidden", {})
    cluster = refusal(JANE, AccessAttributes("list", "", "nodes"), "because")
    assert cluster.message == (
        'nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the cluster scope: because'
    )


def test_texts_are_quoted_as_go_does_it():
    assert quoted('a"b\\c\n\x01ü\u200b') == '"a\\"b\\\\c\\n\\x01ü\\u200b"'


BOOTSTRAP = bootstrap_objects()


def test_the_first_roles_let_everybody_see_what_there_is_and_nobody_more():
    world = World(*BOOTSTRAP)
    decide = world.authorizer.decide
    assert decide(NOBODY, AccessAttributes("get", path="/version")).allowed
    assert not decide(NOBODY, AccessAttributes("get", path="/api")).allowed
    assert decide(JANE, AccessAttributes("get", path="/apis/apps/v1")).allowed
    assert world.may(JANE, "create", "selfsubjectaccessreviews", group="authorization.k8s.io")
    assert not world.may(JANE, "get", "pods", "ns")


@pytest.mark.parametrize(
    ("name", "may", "may_not"),
    [
        ("view", [("get", "pods", "")], [("get", "secrets", ""), ("create", "pods", "")]),
        ("edit", [("get", "pods", ""), ("get", "secrets", "")], [("create", "roles", GROUP)]),
        ("admin", [("get", "pods", ""), ("create", "roles", GROUP)], [("get", "nodes", "")]),
    ],
)
def test_view_edit_and_admin_contain_each_other(name, may, may_not):
    world = World(*BOOTSTRAP, binding("b", name, "User|jane", namespace="ns"))
    assert all(world.may(JANE, verb, resource, "ns", group=group) for verb, resource, group in may)
    assert not any(world.may(JANE, verb, resource, "ns", group=group) for verb, resource, group in may_not)


def test_rules_of_aggregated_roles_are_there_from_the_beginning():
    stored = {each["metadata"]["name"]: each.get("rules") for each in BOOTSTRAP}
    assert {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]} in stored["edit"]
    assert all(each in stored["edit"] for each in stored["view"])
    assert all(each in stored["admin"] for each in stored["edit"])


def refused(world, user, plural, obj, old=None, named=""):
    try:
        check_escalation(world.authorizer, user, plural, obj, old, named=named)
    except StatusError as error:
        return error.message
    return None


HOLDER = role("held", rule("get list", "pods services"), rule("get", urls="/x/*")), binding("h", "held", "User|jane")


def test_nobody_writes_a_role_with_more_than_he_has():
    world = World(*HOLDER)
    assert refused(world, JANE, "clusterroles", role("r", rule("get", "pods"), rule("get", urls="/x/y"))) is None
    assert refused(world, JANE, "roles", role("r", rule("get", "pods"), namespace="ns")) is None
    more = role("r", rule("get list delete watch", "pods nodes", names="a"), rule("get", urls="/y"))
    assert refused(world, JANE, "clusterroles", more) == (
        f'clusterroles.{GROUP} "r" is forbidden: user "jane" (groups=["devs" "system:authenticated"]) is attempting to '
        "grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["nodes"], ResourceNames:["a"], Verbs:["get" "list" "delete" "watch"]}\n'
        '{APIGroups:[""], Resources:["pods"], ResourceNames:["a"], Verbs:["delete" "watch"]}\n'
        '{NonResourceURLs:["/y"], Verbs:["get"]}'
    )
    assert refused(world, LOOPBACK, "clusterroles", more) is None
    assert refused(world, JANE, "configmaps", {"metadata": {}}) is None


def test_a_right_to_one_name_is_no_right_to_all():
    world = World(role("held", rule("get", "pods", names="a")), binding("h", "held", "User|jane"))
    assert refused(world, JANE, "clusterroles", role("r", rule("get", "pods", names="a"))) is None
    assert refused(world, JANE, "clusterroles", role("r", rule("get", "pods", names="a b"))) is not None
    assert refused(world, JANE, "clusterroles", role("r", rule("get", "pods"))) is not None


def some(*words, least=1):
    return st.lists(st.sampled_from(words), min_size=least, max_size=2)


RULES = st.lists(
    st.fixed_dictionaries(
        {"verbs": some("a", "b", "*"), "apiGroups": some("a", "*"), "resources": some("a", "a/x", "*/x", "*")},
        optional={"resourceNames": some("", "a", least=0), "nonResourceURLs": some("/a", "/a/*", "*", least=0)},
    ),
    max_size=3,
)


def holds(held, verb, group, resource, name):
    """Whether one rule covers this much, word for word as kube-apiserver's comparison is described."""
    _, slash, subresource = resource.partition("/")
    return any(
        {verb, "*"} & {*each["verbs"]}
        and {group, "*"} & {*each["apiGroups"]}
        and {resource, "*", f"*/{subresource}" if slash else "*"} & {*each["resources"]}
        and (not each.get("resourceNames") or name in each["resourceNames"])
        for each in held
    )


def holds_path(held, verb, url):
    return any(
        {verb, "*"} & {*each["verbs"]}
        and not each.get("resourceNames")
        and any(url == own or (own[-1] == "*" and url.startswith(own[:-1])) for own in each.get("nonResourceURLs", ()))
        for each in held
    )


@settings(max_examples=300)
@given(RULES, RULES)
def test_a_role_is_refused_if_and_only_if_a_part_of_it_is_not_held(held, wanted):
    world = World(role("held", *held), binding("h", "held", "User|jane"))
    all_held = all(
        holds(held, *part)
        for each in wanted
        for part in product(each["verbs"], each["apiGroups"], each["resources"], each.get("resourceNames") or [None])
    ) and all(
        holds_path(held, *part) for each in wanted for part in product(each["verbs"], each.get("nonResourceURLs", ()))
    )
    granted = all_held or world.may(JANE, "escalate", "clusterroles", group=GROUP)
    assert (refused(world, JANE, "clusterroles", role("r", *wanted)) is None) == granted


@pytest.mark.parametrize("sizes", [(80, 80, 80, 0, 0), (2, 80, 80, 80, 0), (2000, 1, 1, 0, 2000)])
def test_a_refusal_does_not_spell_out_a_product(sizes):
    verbs, groups, resources, names, urls = (
        " ".join(f"{what}{at}" for at in range(size)) for what, size in zip("vgrn/", sizes, strict=True)
    )
    words = refused(World(*HOLDER), JANE, "clusterroles", role("r", rule(verbs, resources, groups, names, urls)))
    assert "not currently held" in words
    assert words.endswith("\n... and more")
    assert len(words) < 70_000


def test_what_is_missing_of_a_product_is_not_all_made():
    many = [f"x{at}" for at in range(80)]
    assert len(_missing([], [{"verbs": ["get"], "apiGroups": many, "resources": many, "resourceNames": many}])) < 5000


def test_a_large_product_that_is_held_in_parts_is_granted():
    many = [f"x{at}" for at in range(1000)]
    world = World(role("held", rule("get", "*", "*"), rule("list", "*", "*")), binding("h", "held", "User|jane"))
    large = {"verbs": ["get", "list"], "apiGroups": many, "resources": many, "resourceNames": many}
    assert refused(world, JANE, "clusterroles", role("r", large)) is None


def test_who_may_escalate_may_write_anything():
    world = World(role("e", rule("escalate", "roles", GROUP)), binding("h", "e", "User|jane", namespace="ns"))
    anything = role("r", rule("*", "*", "*"), namespace="ns")
    assert refused(world, JANE, "roles", anything, named="r") is None
    assert refused(world, JANE, "roles", role("r", rule("*", "*", "*"), namespace="other"), named="r") is not None


def test_only_who_has_everything_gathers():
    world = World(*HOLDER)
    gathering = role("r", gathers={"a": "b"})
    words = f'clusterroles.{GROUP} "r" is forbidden: must have cluster-admin privileges to use the aggregationRule'
    assert refused(world, JANE, "clusterroles", gathering) == words
    assert refused(world, JANE, "clusterroles", role("r"), gathering, named="r") == words
    world.add(role("all", rule("*", "*", "*"), rule("*", urls="*")), binding("a", "all", "User|jane"))
    assert refused(world, JANE, "clusterroles", gathering) is None


def test_nobody_binds_a_role_with_more_than_he_has():
    world = World(*HOLDER, role("less", rule("get", "pods")), role("more", rule("delete", "pods")))
    assert refused(world, JANE, "rolebindings", binding("b", "less", "User|joe", namespace="ns")) is None
    assert "not currently held" in refused(
        world, JANE, "rolebindings", binding("b", "more", "User|joe", namespace="ns")
    )
    assert refused(world, JANE, "clusterrolebindings", binding("b", "gone", "User|joe")) == (
        f'clusterrolebindings.{GROUP} "gone" not found'
    )
    world.add(role("binder", rule("bind", "clusterroles", GROUP, names="more")), binding("c", "binder", "User|jane"))
    assert refused(world, JANE, "rolebindings", binding("b", "more", "User|joe", namespace="ns")) is None


def test_finalizers_can_be_taken_off_what_one_could_not_write():
    world = World()
    old = binding("b", "gone", "User|joe")
    old["metadata"]["finalizers"] = ["x"]
    assert refused(world, JANE, "clusterrolebindings", binding("b", "gone", "User|joe"), old, "b") is None
    assert refused(world, JANE, "clusterrolebindings", binding("b", "gone", "User|jim"), old, "b") is not None


WORLD = World(role("r", rule("get", "pods")), binding("b", "r", "User|jane", namespace="ns"))
PODS = {"verb": "get", "resource": "pods", "namespace": "ns"}


def ask(resource, body, user=JANE, namespace=""):
    wanted = AccessAttributes("create", reviews.RESOURCES[resource], resource, namespace=namespace)
    return reviews.answer_to(wanted, body, user, WORLD.authorizer, "2026-01-01T00:00:00Z", Tokens())


def test_may_i():
    body = {"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1"}
    asked = {**body, "spec": {"resourceAttributes": PODS}}
    reason = 'RBAC: allowed by RoleBinding "b/ns" of ClusterRole "r" to User "jane"'
    assert ask("selfsubjectaccessreviews", asked)["status"] == {"allowed": True, "reason": reason}
    assert ask("selfsubjectaccessreviews", asked)["spec"] == asked["spec"]
    assert ask("selfsubjectaccessreviews", asked, LOOPBACK)["status"] == {"allowed": True}
    assert ask("selfsubjectaccessreviews", asked, NOBODY)["status"] == {"allowed": False}
    path = {**body, "spec": {"nonResourceAttributes": {"path": "/x", "verb": "get"}}}
    assert ask("selfsubjectaccessreviews", path)["status"] == {"allowed": False}


def test_may_he():
    asked = {"spec": {"user": "jane", "resourceAttributes": PODS}}
    assert ask("subjectaccessreviews", asked, LOOPBACK)["status"]["allowed"] is True
    assert (
        ask("subjectaccessreviews", {"spec": {**asked["spec"], "user": "joe"}}, LOOPBACK)["status"]["allowed"] is False
    )
    groups = {"spec": {"groups": ["system:masters"], "resourceAttributes": PODS}}
    assert ask("subjectaccessreviews", groups, JANE)["status"]["allowed"] is True
    local = {**asked, "metadata": {"namespace": "ns"}}
    assert ask("localsubjectaccessreviews", local, LOOPBACK, "ns")["status"]["allowed"] is True


@pytest.mark.parametrize(
    ("resource", "body", "code", "words"),
    [
        ("selfsubjectaccessreviews", {"spec": {}}, 422, "exactly one of nonResourceAttributes or resourceAttributes"),
        ("subjectaccessreviews", {"spec": {"resourceAttributes": PODS}}, 422, "at least one of user or group"),
        (
            "selfsubjectaccessreviews",
            {"metadata": {"name": "x"}, "spec": {"resourceAttributes": PODS}},
            422,
            "must be empty",
        ),
        (
            "localsubjectaccessreviews",
            {"spec": {"user": "x", "resourceAttributes": {"namespace": "a"}}},
            422,
            '.authorization.k8s.io "" is invalid: spec.resourceAttributes.namespace: Invalid value: "a": must match ',
        ),
        (
            "localsubjectaccessreviews",
            {"metadata": {"namespace": "a"}, "spec": {"user": "x", "resourceAttributes": {"namespace": "a"}}},
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        ("selfsubjectrulesreviews", {"spec": {}}, 400, "no namespace on request"),
    ],
)
def test_questions_that_make_no_sense(resource, body, code, words):
    with pytest.raises(StatusError) as caught:
        ask(resource, body, namespace="ns")
    assert caught.value.code == code
    assert words in caught.value.message


def test_what_may_i():
    answer = ask("selfsubjectrulesreviews", {"spec": {"namespace": "ns"}})
    assert answer["status"] == {
        "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
        "nonResourceRules": [],
        "incomplete": False,
    }
    assert ask("selfsubjectrulesreviews", {"spec": {"namespace": "other"}})["status"]["resourceRules"] == []


def test_who_am_i():
    user = JANE._replace(uid="7", extra={"a": ("b",)})
    answer = ask("selfsubjectreviews", {"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"}, user)
    assert answer["status"]["userInfo"] == {
        "username": "jane",
        "uid": "7",
        "groups": ["devs", "system:authenticated"],
        "extra": {"a": ["b"]},
    }
