"""Reading of an Envoy. `test_on_contour` shows that a real one answers so."""

import re
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from pilotage.traffic.contract import Backend, Branch, Copies, ExpectedRoute, Header, Mix, Stickiness
from pilotage.traffic.envoy import STATS, EnvoyConfig, InvalidAnswer, parsed
from pilotage.traffic.programmed import in_flight, lacks
from tests.traffic.dumps import ANSWER, REDIRECT, cluster, dump, listener, mirror, routes, stats, to

OLD, NEW = cluster("old"), cluster("new")


def loaded(
    *rules: dict[str, Any], clusters: list[dict[str, Any]] | None = None, gauges: dict[str, int] | None = None
) -> EnvoyConfig:
    """An Envoy with these rules for a.example.com."""
    return parsed(
        dump(
            clusters=[OLD, NEW] if clusters is None else clusters,
            listeners=[listener("ingress_http")],
            route_configs=[routes("ingress_http", a=list(rules), b=[to(("other", 1))])],
        ),
        stats(**(gauges or {})),
    )


def wanted(*weights: tuple[str, int], host: str = "a.example.com", path: str = "/", **options) -> ExpectedRoute:
    mix = Mix(tuple(Backend(name, 8080, weight) for name, weight in weights))
    return ExpectedRoute("chat", host, path, mix, **options)


def test_the_same_shares_are_the_same():
    assert lacks(loaded(to(("old", 100), ("new", 0))), wanted(("old", 100), ("new", 0))) == ""
    assert lacks(loaded(to(("new", 0), ("old", 1))), wanted(("old", 100), ("new", 0))) == ""
    assert lacks(loaded(to(("new", 1))), wanted(("new", 100))) == ""
    assert lacks(loaded(to(("new", 1))), wanted(("new", 100), host="A.Example.com")) == ""


@pytest.mark.parametrize(
    ("rules", "what"),
    [
        ([to(("old", 1))], "sends a.example.com/ to chat/old:8080 1"),
        ([to(("old", 100), ("new", 0))], "sends a.example.com/ to chat/old:8080 100, chat/new:8080 0"),
        ([to(("new", 100), ("old", 0))], "sends a.example.com/ to chat/new:8080 100, chat/old:8080 0"),
        ([to(("new", 1), namespace="other")], "does not have the cluster other/new/8080/da39a3ee5e yet"),
        ([ANSWER], "answers a.example.com/ by itself"),
        ([], "has no route for a.example.com/"),
        ([to(("new", 1), path={"prefix": "/v1"})], "has no route for a.example.com/"),
        ([to(("new", 1)), to(("old", 1))], "sends a.example.com/ to chat/old:8080 1"),
    ],
)
def test_anything_else_is_said(rules, what):
    assert lacks(loaded(*rules), wanted(("new", 100))) == what


TEAM = {"x-team": "research"}
BESIDE = Mix(
    (Backend("old", 8080, 75), Backend("new", 8080, 25)),
    (Branch((Header("x-team", "research"),), (Backend("new", 8080),)),),
)


def test_a_header_rule_beside_a_split_is_the_route():
    envoy = loaded(to(("new", 1), headers={"X-Team": "research"}), to(("old", 3), ("new", 1)))
    assert lacks(envoy, wanted()._replace(mix=BESIDE)) == ""


REGEX = {"name": "x-team", "string_match": {"safe_regex": {"regex": "r.*"}}}
ANY_CASE = {"name": "x-team", "string_match": {"exact": "research", "ignore_case": True}}
INVERTED = {"name": "x-team", "string_match": {"exact": "research"}, "invert_match": True}


@pytest.mark.parametrize(
    ("rules", "what"),
    [
        ([to(("old", 3), ("new", 1))], "has no route for a.example.com/ with x-team: research"),
        ([to(("new", 1), headers=TEAM)], "has no route for a.example.com/"),
        (
            [to(("old", 1), headers=TEAM), to(("old", 3), ("new", 1))],
            "sends a.example.com/ with x-team: research to chat/old:8080 1",
        ),
        (
            [to(("new", 1), headers=TEAM | {"x-b": "c"}), to(("old", 3), ("new", 1))],
            "has another rule for a.example.com/ with x-b: c and x-team: research",
        ),
        *(
            (
                [to(("new", 1), path={"prefix": "/", "headers": [each]}), to(("old", 3), ("new", 1))],
                "has another rule for a.example.com/ with other conditions",
            )
            for each in (REGEX, ANY_CASE, INVERTED)
        ),
        (
            [to(("new", 1), path={"prefix": "/", "query_parameters": [{"name": "a"}]}), to(("old", 3), ("new", 1))],
            "has another rule for a.example.com/ with other conditions",
        ),
    ],
)
def test_every_branch_is_compared_by_itself(rules, what):
    assert lacks(loaded(*rules), wanted()._replace(mix=BESIDE)) == what


def test_a_path_by_a_pattern_is_another_path():
    pattern = to(("old", 1), path={"safe_regex": {"regex": "/.*"}})
    assert lacks(loaded(pattern, to(("new", 1))), wanted(("new", 100))) == ""


def test_each_listener_that_has_the_path_needs_all_of_the_route():
    header, split = to(("new", 1), headers=TEAM), to(("old", 3), ("new", 1))
    configs = [routes("http-80", a=[header, split]), routes("http-81", a=[split])]
    listeners = [listener("http-80"), listener("http-81")]
    envoy = parsed(dump(clusters=[OLD, NEW], listeners=listeners, route_configs=configs), b"")
    assert lacks(envoy, wanted()._replace(mix=BESIDE)) == "has no route for a.example.com/ with x-team: research"


COPIED = Mix((Backend("old", 8080),), copies=(Copies("new", 8080, 25),))


@pytest.mark.parametrize(
    ("rule", "what"),
    [
        (to(("old", 1), mirrors={"new": 25}), ""),
        (to(("old", 1)), "copies a.example.com/ to nobody"),
        (to(("old", 1), mirrors={"new": 100}), "copies a.example.com/ to chat/new:8080 100 %"),
        (
            to(("old", 1), mirrors={"new": 25, "old": 1}),
            "copies a.example.com/ to chat/new:8080 25 %, chat/old:8080 1 %",
        ),
        (to(("old", 1), mirrors={"gone": 25}), "does not have the cluster chat/gone/8080/da39a3ee5e yet"),
    ],
)
def test_copies_are_compared_by_their_share(rule, what):
    assert lacks(loaded(rule), wanted()._replace(mix=COPIED)) == what


def test_a_mirror_without_a_fraction_and_one_of_the_whole_host_copy_too():
    rule = to(("old", 1), mirrors={"new": 1})
    del rule["route"]["request_mirror_policies"][0]["runtime_fraction"]
    everything = wanted()._replace(mix=COPIED._replace(copies=(Copies("new", 8080),)))
    assert lacks(loaded(rule), everything) == ""
    config = routes("http-80", a=[to(("old", 1))])
    config["route_config"]["virtual_hosts"][0]["request_mirror_policies"] = [mirror("new", 25)]
    envoy = parsed(dump(clusters=[OLD, NEW], listeners=[listener("http-80")], route_configs=[config]), b"")
    assert lacks(envoy, wanted()._replace(mix=COPIED)) == ""
    assert lacks(envoy, wanted(("old", 100))) == "copies a.example.com/ to chat/new:8080 25 %"


def test_a_split_by_a_key_is_another_than_one_by_chance():
    rule = to(("old", 3), ("new", 1))
    rule["route"]["weighted_clusters"]["use_hash_policy"] = True
    split = wanted(("old", 75), ("new", 25))
    assert lacks(loaded(rule), split) == "assigns requests for a.example.com/ by a key"
    by_key = split._replace(mix=split.mix._replace(sticky=Stickiness((("header", "x-user"),))))
    assert lacks(loaded(rule), by_key) == ""
    assert lacks(loaded(to(("old", 3), ("new", 1))), by_key) == "does not assign requests for a.example.com/ by a key"


@pytest.mark.parametrize("state", ["active_state", "draining_state"])
def test_a_service_that_only_gets_copies_or_requests_with_a_header_is_still_routed_to(state):
    gone = wanted(counted=frozenset({"new"}))
    for rule, what in (
        (to(("old", 1), mirrors={"new": 1}), "still copies requests for a.example.com/ to chat/new:8080"),
        (to(("new", 1), headers=TEAM), "still has a route from a.example.com/ with x-team: research to chat/new:8080"),
    ):
        configs = [routes("http-80", a=[rule])]
        listeners = [listener("http-80", state=state)]
        assert lacks(parsed(dump(clusters=[OLD, NEW], listeners=listeners, route_configs=configs), b""), gone) == what


def test_a_cluster_that_is_not_ready_proves_nothing_even_at_weight_0():
    envoy = loaded(to(("old", 100), ("new", 0)), clusters=[OLD])
    assert lacks(envoy, wanted(("old", 100), ("new", 0))) == "does not have the cluster chat/new/8080/da39a3ee5e yet"


def test_the_same_service_of_another_namespace_is_another():
    envoy = loaded(to(("new", 1), namespace="other"), clusters=[cluster("new", namespace="other")])
    assert lacks(envoy, wanted(("new", 100))) == "sends a.example.com/ to other/new:8080 1"


def test_a_name_that_contour_has_cut_is_known():
    cut = cluster("a-very-long-name", called="chat/a-very-long-1f2e3d/8080/da39a3ee5e")
    rule = {"match": {"prefix": "/"}, "route": {"cluster": "chat/a-very-long-1f2e3d/8080/da39a3ee5e"}}
    assert lacks(loaded(rule, clusters=[cut]), wanted(("a-very-long-name", 100))) == ""


@pytest.mark.parametrize("match", [{"prefix": "/v1"}, {"path_separated_prefix": "/v1"}, {"prefix": "/v1/"}])
def test_paths_are_found_as_the_kinds_of_routes_write_them(match):
    assert lacks(loaded(to(("new", 1), path=match)), wanted(("new", 100), path="/v1")) == ""


def test_a_redirect_to_https_is_not_the_route():
    hosts = [routes("ingress_http", a=[REDIRECT]), routes("https/a.example.com", a=[to(("new", 1))])]
    listeners = [listener("ingress_http"), listener("https/a.example.com")]
    envoy = parsed(dump(clusters=[NEW], listeners=listeners, route_configs=hosts), b"")
    assert lacks(envoy, wanted(("new", 100))) == ""
    envoy = parsed(dump(clusters=[NEW], listeners=listeners, route_configs=hosts[:1]), b"")
    assert lacks(envoy, wanted(("new", 100))) == "has no route for a.example.com/"


def test_what_no_listener_uses_any_more_is_not_looked_at():
    configs = [routes("http-80", a=[to(("new", 1))]), routes("http-81", a=[to(("old", 1))])]
    envoy = parsed(dump(clusters=[OLD, NEW], listeners=[listener("http-80")], route_configs=configs), b"")
    assert lacks(envoy, wanted(("new", 100))) == ""
    assert lacks(envoy, wanted(counted=frozenset({"old"}))) == ""


def test_a_route_is_gone_when_nothing_leads_to_the_services_any_more():
    gone = wanted(counted=frozenset({"old", "new"}))
    assert lacks(loaded(to(("old", 100), ("new", 0))), gone) == "still has a route from a.example.com/ to chat/old:8080"
    assert lacks(loaded(to(("other", 1)), clusters=[cluster("other")]), gone) == ""
    assert lacks(loaded(), gone) == ""
    assert lacks(loaded(to(("other", 1)), clusters=[cluster("other")]), wanted()) == (
        "still has a route for a.example.com/"
    )


def test_connections_of_a_drained_listener_may_still_use_its_routes_while_there_is_a_cluster():
    gone = wanted(counted=frozenset({"old"}))
    configs = [routes("http-80", a=[to(("old", 1))])]
    draining = [listener("http-80", state="draining_state")]
    there = parsed(dump(clusters=[OLD], listeners=draining, route_configs=configs), b"")
    assert lacks(there, gone) == "still has a route from a.example.com/ to chat/old:8080"
    assert lacks(there, wanted(("old", 100))) == "has no route for a.example.com/"
    assert lacks(parsed(dump(clusters=[], listeners=draining, route_configs=configs), b""), gone) == ""


def test_a_route_for_all_hosts_is_one_too():
    envoy = parsed(
        dump(
            clusters=[NEW],
            listeners=[listener("http-80")],
            route_configs=[
                {"route_config": {"name": "http-80", "virtual_hosts": [{"domains": ["*"], "routes": [to(("new", 1))]}]}}
            ],
        ),
        b"",
    )
    assert lacks(envoy, wanted(("new", 100), host="")) == ""


def test_requests_are_counted_that_are_under_way_or_wait_for_a_connection():
    envoy = loaded(
        gauges={
            "chat_old_8080__upstream_rq_active": 3,
            "chat_old_8080__upstream_rq_pending_active": 2,
            "chat_old_9090__upstream_rq_active": 1,
            "chat_new_8080__upstream_rq_active": 10,
            "other_old_8080__upstream_rq_active": 20,
            "projectcontour_contour_8001__upstream_rq_active": 40,
            "chat_old_8080__membership_healthy": 80,
            "a.b__upstream_rq_active": 160,
        }
    )
    assert in_flight(envoy, wanted(counted=frozenset({"old"}))) == {"old": 6}
    assert in_flight(envoy, wanted(counted=frozenset({"old", "older"}))) == {"old": 6, "older": 0}
    assert in_flight(envoy, wanted()) == {}


@pytest.mark.parametrize("gauge", ["upstream_rq_active", "upstream_rq_pending_active", "membership_healthy"])
def test_the_question_is_for_all_three_gauges(gauge):
    pattern = dict(parse_qsl(urlsplit(STATS).query))["filter"]
    assert re.fullmatch(pattern, f"cluster.chat_old_8080.{gauge}")
    assert not re.search(pattern, f"cluster.chat_old_8080.{gauge}_overflow")


def test_a_service_is_reachable_when_an_address_of_it_is_known():
    need = wanted(("new", 100), reachable=frozenset({"new"}))
    assert lacks(loaded(to(("new", 1))), need) == "knows no address of chat/new"
    none = loaded(to(("new", 1)), gauges={"chat_new_8080__membership_healthy": 0})
    assert lacks(none, need) == "knows no address of chat/new"
    assert lacks(loaded(to(("new", 1)), gauges={"chat_new_8080__membership_healthy": 2}), need) == ""


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"{}", "not fed by Contour"),
        (dump(clusters=[], listeners=[], route_configs=[], fed_by="xds-grpc"), "not fed by Contour"),
        (b"no healthy upstream", "not the dump of an Envoy"),
        (b'{"configs": [{"dynamic_listeners": 1}]}', "not the dump of an Envoy"),
        (b"\xff", "not the dump of an Envoy"),
    ],
)
def test_nothing_is_concluded_from_what_is_not_understood(answer, why):
    with pytest.raises(InvalidAnswer, match=why):
        parsed(answer, b"")


def test_nothing_is_concluded_from_gauges_that_are_none():
    with pytest.raises(InvalidAnswer, match="is no gauge"):
        parsed(dump(clusters=[], listeners=[], route_configs=[]), b"<html>\n")
