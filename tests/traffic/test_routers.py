"""Routes that routers write and read back, and their reading of a status."""

from typing import Any

import pytest

from controlplane import Access
from pilotage.api.base import SecretRef
from pilotage.api.endpoint import EndpointSpec, GatewayRef, Route
from pilotage.kube import ApiError, Client, Json, load_config
from pilotage.traffic.contract import Backend, Branch, Copies, Header, Mix, Programming, RouteStatus, Stickiness
from pilotage.traffic.routers import ROUTERS, Capability, RouteRequest, route_problems
from pilotage.traffic.routers.base import Router
from tests.teardown.staged import install, theirs

OLD, NEW = Backend("old", 8080, 100), Backend("new", 8080, 0)
HOST = "a.example.com"
ROUTES = {
    "HTTPProxy": Route(kind="HTTPProxy", host=HOST, path="/v1", class_name="edge", tls=SecretRef(name="cert")),
    "HTTPRoute": Route(
        kind="HTTPRoute", host=HOST, path="/v1", gateway=GatewayRef(name="edge", namespace="infra", section_name="http")
    ),
    "Ingress": Route(kind="Ingress", host=HOST, path="/v1", class_name="edge", tls=SecretRef(name="cert")),
}


def router(kind: str) -> Router:
    return ROUTERS[kind]


def body(kind: str, *backends: Backend) -> Json:
    return mixed(kind, Mix(backends))


def mixed(kind: str, mix: Mix) -> Json:
    return router(kind).manifest(RouteRequest("chat", "assistant", {"a": "b"}, ROUTES[kind], mix))


def test_an_httpproxy():
    assert body("HTTPProxy", OLD, NEW) == {
        "apiVersion": "projectcontour.io/v1",
        "kind": "HTTPProxy",
        "metadata": {"namespace": "chat", "name": "assistant", "labels": {"a": "b"}},
        "spec": {
            "ingressClassName": "edge",
            "virtualhost": {"fqdn": HOST, "tls": {"secretName": "cert"}},
            "routes": [
                {
                    "conditions": [{"prefix": "/v1"}],
                    "services": [
                        {"name": "old", "port": 8080, "weight": 100},
                        {"name": "new", "port": 8080, "weight": 0},
                    ],
                    "timeoutPolicy": {"response": "infinity", "idle": "1h"},
                }
            ],
        },
    }


def test_an_httproute():
    assert body("HTTPRoute", OLD, NEW) == {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"namespace": "chat", "name": "assistant", "labels": {"a": "b"}},
        "spec": {
            "parentRefs": [{"name": "edge", "namespace": "infra", "sectionName": "http"}],
            "hostnames": [HOST],
            "rules": [
                {
                    "matches": [{"path": {"type": "PathPrefix", "value": "/v1"}}],
                    "backendRefs": [
                        {"name": "old", "port": 8080, "weight": 100},
                        {"name": "new", "port": 8080, "weight": 0},
                    ],
                    "timeouts": {"request": "0s", "backendRequest": "0s"},
                }
            ],
        },
    }


def test_an_ingress():
    spec = body("Ingress", OLD)["spec"]
    service = {"name": "old", "port": {"number": 8080}}
    assert spec == {
        "ingressClassName": "edge",
        "tls": [{"hosts": [HOST], "secretName": "cert"}],
        "rules": [
            {
                "host": HOST,
                "http": {"paths": [{"path": "/v1", "pathType": "Prefix", "backend": {"service": service}}]},
            }
        ],
    }


@pytest.mark.parametrize("kind", ["HTTPProxy", "HTTPRoute"])
def test_weights_are_read_back(kind):
    assert router(kind).mix(body(kind, OLD, NEW)) == Mix((OLD, NEW))
    assert router(kind).mix(body(kind, OLD)) == Mix((OLD,))
    assert router(kind).mix({"metadata": {}, "spec": {}}) == Mix()


def test_the_one_backend_of_an_ingress_is_read_back():
    assert router("Ingress").mix(body("Ingress", OLD)) == Mix((OLD,))
    default = {"service": {"name": "x", "port": {"number": 1}}}
    assert router("Ingress").mix({"spec": {"defaultBackend": default}}) == Mix((Backend("x", 1),))


@pytest.mark.parametrize("kind", ROUTES)
@pytest.mark.parametrize("backends", [[], [NEW], [NEW, OLD._replace(weight=0)], [OLD, NEW._replace(weight=-1)]])
def test_weights_that_would_not_mean_what_they_say_are_not_written(kind, backends):
    with pytest.raises(ValueError, match="weight"):
        body(kind, *backends)


def test_an_ingress_has_no_weights():
    with pytest.raises(ValueError, match="A route of kind Ingress cannot share requests between Services"):
        body("Ingress", OLD, NEW)


def test_what_others_wrote_is_read_as_the_router_takes_it():
    proxy = {"spec": {"routes": [{"services": [{"name": "a", "port": 1}, {"name": "b", "port": 1, "mirror": True}]}]}}
    assert router("HTTPProxy").mix(proxy) == Mix((Backend("a", 1, 0),), copies=(Copies("b", 1, 100),))
    references = [
        {"name": "a", "port": 1},
        {"name": "b", "port": 1, "weight": 3, "namespace": "chat", "kind": "Service"},
        {"name": "c", "port": 1, "namespace": "elsewhere"},
        {"name": "d", "kind": "Bucket"},
    ]
    route = {"metadata": {"namespace": "chat"}, "spec": {"rules": [{"backendRefs": references}]}}
    assert router("HTTPRoute").mix(route) == Mix((Backend("a", 1, 1), Backend("b", 1, 3)))


TEAM = (Header("x-team", "research"), Header("x-tier", "a b"))
WHOLE_MIX = Mix((OLD, NEW), (Branch(TEAM, (NEW._replace(weight=100),)),), (Copies("shadow", 8080),))


def test_a_branch_and_copies_of_an_httpproxy():
    def rule(*conditions: Json, services: list[Json]) -> Json:
        mirror = {"name": "shadow", "port": 8080, "weight": 100, "mirror": True}
        return {
            "conditions": [{"prefix": "/v1"}, *conditions],
            "services": [*services, mirror],
            "timeoutPolicy": {"response": "infinity", "idle": "1h"},
        }

    headers = [{"header": {"name": name, "exact": value}} for name, value in TEAM]
    written = mixed("HTTPProxy", WHOLE_MIX)["spec"]["routes"]
    old, new = ({"name": each.service, "port": 8080, "weight": each.weight} for each in (OLD, NEW))
    assert written == [rule(*headers, services=[new | {"weight": 100}]), rule(services=[old, new])]


def test_a_branch_and_copies_of_an_httproute():
    branch, main = mixed("HTTPRoute", WHOLE_MIX)["spec"]["rules"]
    path = {"path": {"type": "PathPrefix", "value": "/v1"}}
    headers = [{"type": "Exact", "name": name, "value": value} for name, value in TEAM]
    assert branch["matches"] == [path | {"headers": headers}]
    assert branch["backendRefs"] == [{"name": "new", "port": 8080, "weight": 100}]
    assert main["matches"] == [path]
    copies = [{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "shadow", "port": 8080}}}]
    assert branch["filters"] == main["filters"] == copies


@pytest.mark.parametrize("kind", ["HTTPProxy", "HTTPRoute"])
def test_a_mix_is_read_back(kind):
    assert router(kind).mix(mixed(kind, WHOLE_MIX)) == WHOLE_MIX


@pytest.mark.parametrize("kind", ["HTTPProxy", "HTTPRoute"])
@pytest.mark.parametrize(
    ("mix", "why"),
    [
        (Mix((OLD,), copies=(Copies("shadow", 8080, 0),)), "copies must be 1 to 100 percent"),
        (Mix((OLD,), (Branch(TEAM, (NEW,)),)), "no backend has a weight"),
        (Mix((OLD,), (Branch((), (OLD,)),)), "a branch has no headers"),
    ],
)
def test_a_mix_that_would_not_mean_what_it_says_is_not_written(kind, mix, why):
    with pytest.raises(ValueError, match=why):
        mixed(kind, mix)


def test_an_httproute_is_not_written_with_a_share_of_copies_that_contour_ignores():
    with pytest.raises(ValueError, match="an HTTPRoute copies all requests, or none"):
        mixed("HTTPRoute", Mix((OLD,), copies=(Copies("shadow", 8080, 25),)))
    mirror = {"backendRef": {"name": "shadow", "port": 1}}
    for share, percent in (({"percent": 5}, 5), ({"fraction": {"numerator": 1}}, 0)):
        rule = {"backendRefs": [{"name": "a", "port": 1}], "filters": [{"requestMirror": mirror | share}]}
        assert router("HTTPRoute").mix({"spec": {"rules": [rule]}}).copies == (Copies("shadow", 1, percent),)


def test_rules_that_no_mix_has_are_read_as_services_without_a_weight():
    conditions = (
        [{"header": {"name": "a", "regex": "b"}}],
        [{"header": {"name": "a", "exact": "b", "ignoreCase": True}}],
    )
    rules = [{"conditions": each, "services": [{"name": "x", "port": 1, "weight": 9}]} for each in conditions]
    ours = {"conditions": [{"prefix": "/"}], "services": [{"name": "a", "port": 1, "weight": 1}]}
    seen = router("HTTPProxy").mix({"spec": {"routes": [*rules, ours]}})
    assert seen == Mix((Backend("x", 1, 0), Backend("x", 1, 0), Backend("a", 1, 1)))
    matches: list[Json] = [{"headers": [{"type": "RegularExpression", "name": "a", "value": "b"}]}, {"method": "GET"}]
    refs = [{"name": "x", "port": 1, "weight": 9}]
    for rule in ({"matches": [each], "backendRefs": refs} for each in matches):
        assert router("HTTPRoute").mix({"spec": {"rules": [rule]}}) == Mix((Backend("x", 1, 0),))
    either = [{"headers": [{"name": "a", "value": "b"}]}, {"path": {"value": "/"}}]
    assert router("HTTPRoute").mix({"spec": {"rules": [{"matches": either, "backendRefs": refs}]}}).backends[0][2] == 0


def test_a_mirror_at_weight_0_copies_everything():
    services = [{"name": "a", "port": 1, "weight": 1}, {"name": "b", "port": 1, "weight": 0, "mirror": True}]
    assert router("HTTPProxy").mix({"spec": {"routes": [{"services": services}]}}).copies == (Copies("b", 1, 100),)


NONSENSE: list[Json] = [
    {"routes": 1, "rules": "x"},
    {
        "routes": [7, {"services": [{"mirror": 1}], "conditions": [{"header": 3}, 4]}],
        "rules": [{"matches": [{"headers": [{"name": 1}]}], "filters": [{"requestMirror": 5}]}],
    },
]


@pytest.mark.parametrize("kind", [*ROUTES, "None"])
@pytest.mark.parametrize("spec", NONSENSE)
def test_nonsense_names_no_service(kind, spec):
    assert not router(kind).mix({"metadata": {}, "spec": spec}).services


OTHER_TEAM = Branch((Header("x-team", "sales"),), (NEW._replace(weight=100),))
TIER = Branch((Header("x-tier", "a"),), (OLD,))
STICKY = Mix((OLD,), sticky=Stickiness((("header", "x-user"),)))


@pytest.mark.parametrize(
    ("kind", "mix", "problems"),
    [
        ("HTTPProxy", WHOLE_MIX, []),
        ("HTTPProxy", Mix((OLD,), copies=(Copies("shadow", 1, 5),)), []),
        ("HTTPProxy", Mix((OLD,), copies=(Copies("a", 1), Copies("b", 1))), ["copies requests to one Service only"]),
        ("HTTPProxy", Mix((OLD,), copies=(Copies("a", 1, 100, 2),)), ["cannot limit the number of copies in flight"]),
        ("HTTPProxy", STICKY, ["cannot keep requests with the same key on one side"]),
        ("HTTPProxy", Mix((OLD,), (OTHER_TEAM, Branch(TEAM, (OLD,)))), []),
        ("HTTPProxy", Mix((OLD,), (OTHER_TEAM, TIER)), ["match two rules by x-team and x-tier"]),
        ("HTTPRoute", WHOLE_MIX, []),
        ("HTTPRoute", Mix((OLD,), copies=(Copies("a", 1), Copies("b", 1))), []),
        ("HTTPRoute", Mix((OLD,), copies=(Copies("a", 1, 5),)), ["cannot copy a part of the requests: copy all"]),
        ("HTTPRoute", STICKY, ["cannot keep requests with the same key on one side"]),
        ("HTTPRoute", Mix((OLD,), (OTHER_TEAM, TIER)), []),
        (
            "HTTPRoute",
            Mix((OLD,), (TIER, Branch((*OTHER_TEAM.headers, Header("x-a", "b")), (OLD,)))),
            ["more headers"],
        ),
        ("Ingress", Mix((OLD,)), []),
        ("Ingress", Mix((OLD, NEW)), ["A route of kind Ingress cannot share requests between Services."]),
        ("None", Mix((OLD,), (TIER,)), ["A route of kind None cannot choose requests by a header."]),
        ("Ingress", Mix((OLD,), copies=(Copies("a", 1),)), ["cannot copy requests to another Service."]),
    ],
)
def test_a_router_says_in_a_sentence_what_it_cannot(kind, mix, problems):
    found = router(kind).problems(mix)
    assert len(found) == len(problems)
    for sentence, part in zip(found, problems, strict=True):
        assert part in sentence
        assert sentence.endswith(".")


@pytest.mark.parametrize(
    ("placement", "kind", "problem"),
    [
        ("Host", "Ingress", "A route of kind Ingress leads to pods; on a Host, use None or PilotageGateway."),
        ("Host", "PilotageGateway", None),
        ("Host", "None", None),
        ("Deployment", "Ingress", None),
        ("Deployment", "VirtualServer", "This operator has no route.kind VirtualServer: upgrade it, or choose another"),
    ],
)
def test_a_route_that_cannot_work_is_refused(placement: str, kind: str, problem: str | None):
    spec = EndpointSpec.read({"model": {"name": "m"}, "placement": {"kind": placement}, "route": {"kind": kind}})
    found = route_problems(spec)
    assert [each.startswith(problem or "") for each in found] == ([True] if problem else [])


def test_no_route_is_a_router_too():
    assert router("None").resource is None
    assert set(ROUTERS) == {"None", "PilotageGateway", *ROUTES}


def valid(status: str, generation: int, **more: Any) -> Json:
    condition = {"type": "Valid", "status": status, "observedGeneration": generation, **more}
    return {"metadata": {"generation": 3}, "status": {"conditions": [condition]}}


def test_an_httpproxy_is_accepted_at_its_generation_only():
    status = router("HTTPProxy").status
    assert status({"metadata": {"generation": 1}}).programming is Programming.PENDING
    assert status(valid("True", 2)).programming is Programming.PENDING
    assert status(valid("False", 2)).programming is Programming.PENDING
    assert status(valid("True", 3)).programming is Programming.ACCEPTED


def test_a_refusal_of_an_httpproxy_has_contours_words():
    errors = [{"type": "SpecError", "reason": "X", "message": "the port is wrong"}]
    obj = valid("False", 3, message="At least one error present", errors=errors)
    assert router("HTTPProxy").status(obj) == RouteStatus(
        Programming.REJECTED, text="At least one error present; the port is wrong"
    )
    obj["status"]["description"] = "the port is wrong"
    assert router("HTTPProxy").status(obj).text == "the port is wrong"


def parents(*conditions: tuple[str, str, int], controller: str = "example.com/it") -> Json:
    listed = [
        {"type": kind, "status": status, "observedGeneration": generation, "reason": "Why", "message": "so"}
        for kind, status, generation in conditions
    ]
    return {
        "metadata": {"generation": 3},
        "status": {"parents": [{"controllerName": controller, "conditions": listed}]},
    }


@pytest.mark.parametrize(
    ("obj", "proof"),
    [
        ({"metadata": {"generation": 3}}, Programming.PENDING),
        (parents(("Accepted", "True", 2), ("ResolvedRefs", "True", 2)), Programming.PENDING),
        (parents(("Accepted", "True", 3)), Programming.PENDING),
        (parents(("Accepted", "True", 3), ("ResolvedRefs", "Unknown", 3)), Programming.PENDING),
        (parents(("Accepted", "False", 2), ("ResolvedRefs", "True", 3)), Programming.PENDING),
        (parents(("Accepted", "True", 3), ("ResolvedRefs", "True", 3)), Programming.ACCEPTED),
        (parents(("Accepted", "True", 3), ("ResolvedRefs", "False", 3)), Programming.REJECTED),
        (parents(("Accepted", "False", 3)), Programming.REJECTED),
        (
            parents(("Accepted", "True", 3), ("ResolvedRefs", "True", 3), ("PartiallyInvalid", "True", 3)),
            Programming.REJECTED,
        ),
        (
            parents(("Accepted", "True", 3), ("ResolvedRefs", "True", 3), ("PartiallyInvalid", "True", 2)),
            Programming.ACCEPTED,
        ),
    ],
)
def test_an_httproute_is_accepted_when_all_is_at_its_generation(obj, proof):
    assert router("HTTPRoute").status(obj).programming is proof


def test_every_controller_of_an_httproute_has_a_say():
    good = parents(("Accepted", "True", 3), ("ResolvedRefs", "True", 3), controller="a.example.com/a")
    bad = parents(("Accepted", "False", 3), controller="b.example.com/b")
    late = parents(("Accepted", "True", 2), controller="c.example.com/c")
    good["status"]["parents"] += late["status"]["parents"]
    assert router("HTTPRoute").status(good) == RouteStatus(
        Programming.PENDING, text="c.example.com/c has not accepted it yet"
    )
    good["status"]["parents"] += bad["status"]["parents"]
    assert router("HTTPRoute").status(good) == RouteStatus(Programming.REJECTED, text="b.example.com/b: Why: so")


@pytest.mark.parametrize("kind", ROUTES)
async def test_a_real_api_server_takes_it_as_it_is(cluster: Access, namespace: str, kind: str):
    install(cluster, theirs("contour", "httpproxies.projectcontour.io"))
    install(cluster, theirs("gateway-api", "httproutes.gateway.networking.k8s.io"))
    mix = WHOLE_MIX if Capability.WEIGHTS in router(kind).can else Mix((OLD,))
    written = router(kind).manifest(RouteRequest(namespace, "assistant", {"a": "b"}, ROUTES[kind], mix))
    resource = router(kind).resource
    assert resource
    async with Client.connect(load_config(kubeconfig=str(cluster.kubeconfig))) as client:
        kept = (await client.apply(resource, written, dry_run=True)).to_dict()
        assert router(kind).mix(kept) == mix
        without_defaults(kept["spec"], written["spec"])
        assert kept["spec"] == written["spec"]
        if kind == "HTTPRoute":  # the answer to an apply of a field that this version does not have
            rule = written["spec"]["rules"][0] | {"time-outs": {}}
            with pytest.raises(ApiError, match="field not declared in schema"):
                await client.apply(resource, written | {"spec": written["spec"] | {"rules": [rule]}}, dry_run=True)
            plain = router(kind).plain(written)
            assert "timeouts" not in plain["spec"]["rules"][0]
            assert "timeouts" in written["spec"]["rules"][0]
            await client.apply(resource, plain, dry_run=True)


def without_defaults(kept: Any, written: Any) -> None:
    """Take away, in place, what the server has added."""
    if isinstance(kept, dict) and isinstance(written, dict):
        for name in [*kept]:
            if name not in written:
                del kept[name]
            else:
                without_defaults(kept[name], written[name])
    elif isinstance(kept, list) and isinstance(written, list):
        for mine, theirs_ in zip(kept, written, strict=True):
            without_defaults(mine, theirs_)
