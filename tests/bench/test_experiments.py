"""The parts of the comparison of experiments that decide what a trial has shown."""

from typing import Any

import pytest

from bench.experiments.argo import COLUMNS, proxy
from bench.experiments.proxies import leads_to
from bench.experiments.subject import SCENARIOS
from bench.experiments.table import Round, began, lost, moments, tables
from bench.experiments.trial import Outcome, counted, failed, service_deleted
from controlplane import AuditRecord
from pilotage.kube import Object

UNREACHABLE = "503 upstream connect error or disconnect/reset before headers. reset reason: remote connection failure"


def dump(**route: Any) -> dict[str, Any]:
    """Envoy's route configurations with one route."""
    hosts = [{"name": "a.example.com", "routes": [{"match": {"prefix": "/"}, "route": route}]}]
    return {"configs": [{"route_config": {"name": "http-80", "virtual_hosts": hosts}}]}


def weighted(**weights: int) -> dict[str, Any]:
    clusters = [{"name": f"shop/{service}/9000/da39", "weight": weight} for service, weight in weights.items()]
    return dump(weighted_clusters={"clusters": clusters})


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (dump(cluster="shop/variant/9000/da39"), True),
        (weighted(stable=75, variant=25), True),
        (weighted(stable=100, variant=0), False),
        (weighted(stable=100), False),
        (dump(cluster="shop/variant-2/9000/da39"), False),
        (dump(cluster="other/variant/9000/da39"), False),
        ({}, False),
    ],
    ids=["alone", "with a weight", "with weight 0", "without it", "a longer name", "another namespace", "no routes"],
)
def test_a_proxy_leads_to_a_service_that_gets_some_of_its_requests(found: dict[str, Any], wanted: bool):
    assert leads_to(found, "shop", "variant") is wanted


def test_our_gateway_names_its_clusters_in_another_way():
    found = dump(weighted_clusters={"clusters": [{"name": "shop_variant_9000", "weight": 25}]})
    assert leads_to(found, "shop", "variant", "_")
    assert not leads_to(found, "shop", "var", "_")


def test_a_missing_route_is_a_failure_unless_the_endpoint_itself_goes():
    failures = {"404": 4, '404 {"error": {}}': 1, "503": 2, UNREACHABLE: 3}
    assert failed(failures) == 10
    assert failed(failures, leaves=True) == 3


def test_refused_streams_are_not_counted_for_they_are_tried_again_without_a_pause():
    assert failed({"stream: 503 no healthy upstream": 400, "503 no healthy upstream": 7}) == 7


def test_the_clients_of_all_proxies_are_counted_together():
    report = {"answers": {"a": 2}, "streams": {"a": 9}, "after": {"a": 1}, "failures": {"404": 1}, "cut": 1}
    other = {"answers": {"a": 1, "b": 1}, "streams": {}, "after": {}, "failures": {"404": 2}, "cut": 0}
    found = counted([report, other])
    assert (found.answers, found.after) == ({"a": 3, "b": 1}, {"a": 1})
    assert (found.failures, found.cut) == ({"404": 3}, 1)


def record(second: int, name: str = "variant", verb: str = "delete", resource: str = "services", code: int = 200):
    received = f"2026-01-01T00:00:{second:02}.000000Z"
    return AuditRecord("", verb, resource, "", "shop", name, code, "", "", received, None)


def test_a_service_goes_with_the_first_request_that_deletes_it():
    noise = [record(1, verb="patch"), record(2, name="stable"), record(3, code=409), record(4, resource="pods")]
    assert service_deleted(noise, "variant") is None
    first = service_deleted([*noise, record(6), record(5)], "variant")
    assert first == service_deleted([record(5)], "variant")


def test_a_service_goes_with_all_services_of_its_namespace():
    assert service_deleted([record(7, name="", verb="deletecollection")], "variant") == pytest.approx(1767225607)


def test_the_translation_has_the_host_and_the_weights_of_the_virtual_service():
    route = [
        {"destination": {"host": "chat-stable"}, "weight": 75},
        {"destination": {"host": "chat-canary"}},
        {"destination": {"host": "chat-variant"}, "weight": 25},
    ]
    spec = {"hosts": ["chat.example.com"], "http": [{"name": "primary", "route": route}]}
    found = proxy(Object.from_dict({"metadata": {"name": "chat", "namespace": "shop"}, "spec": spec}))
    assert found["metadata"] == {"name": "chat", "namespace": "shop"}
    assert found["spec"]["virtualhost"] == {"fqdn": "chat.example.com"}
    assert found["spec"]["routes"] == [
        {
            "services": [
                {"name": "chat-stable", "port": 9000, "weight": 75},
                {"name": "chat-canary", "port": 9000, "weight": 0},
                {"name": "chat-variant", "port": 9000, "weight": 25},
            ]
        }
    ]


def outcome(**fields: Any) -> Outcome:
    known: dict[str, Any] = {
        "requests": 1000,
        "failed": 0,
        "cut": 0,
        "failures": {},
        "failures_before": {},
        "share": 0.25,
        "seconds": 5.0,
        "server_killed": None,
        "service_deleted": None,
        "let_go": (None, None),
    }
    return Outcome(**known | fields)


def rounds(*outcomes: Outcome, not_started: int = 0) -> list[Round]:
    return [Round(each, not_started) for each in outcomes]


def test_a_cell_has_the_counts_of_each_round():
    assert lost(rounds(outcome(failed=54, cut=2), outcome(failed=1234))) == "54 / 1,234 failed, 2 / 0 cut, of 2,000"


def test_a_cell_has_the_first_and_the_last_moment_of_all_rounds_and_says_what_was_never_seen():
    one = outcome(server_killed=0.08, service_deleted=0.11, let_go=(2.04, 0.07))
    other = outcome(server_killed=1.5, service_deleted=0.12)
    assert moments(rounds(other, one)) == (
        "servers 0.1 to 1.5, Service 0.1, held proxy 2.0, or never, other proxy 0.1, or never"
    )
    assert moments(rounds(outcome(let_go=(2.0,)))) == "servers never, Service never, held proxy 2.0"
    assert moments(rounds(outcome())) == "servers never, Service never, held proxy never, other proxy never"


def test_a_scenario_that_a_product_has_no_way_for_is_a_cell_without_figures():
    found = {("end", "a"): rounds(outcome()), ("end", "b"): rounds(outcome()), ("special", "a"): rounds(outcome())}
    scenarios = {"end": SCENARIOS["end"], "special": SCENARIOS["terminate"]}
    first, second = tables({"a": COLUMNS["argo"], "b": COLUMNS["argo-no-delay"]}, scenarios, found).split("\n\n")
    for each in (first, second):
        assert each.splitlines()[-1].endswith(" | - |")
        assert each.splitlines()[-1].count("-") == 1


def test_a_cell_has_the_starts_that_failed_and_the_requests_that_the_others_cost():
    found = rounds(outcome(failures_before={"503": 3, "stream: 503": 9}), outcome(share=0.3), not_started=1)
    assert began(found) == "2 of 4 did not start; 3 requests failed in the others, which had 25% to 30% of the requests"
