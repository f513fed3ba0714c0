"""Metrics of the traffic: Envoy's own numbers, labelled with the endpoints that they are about."""

import re
from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pilotage.gateway.admin import Admin, AdminUnavailable
from pilotage.gateway.ads import Ads
from pilotage.gateway.inputs import parsed_name
from pilotage.gateway.program import Program

STATS = "/stats?usedonly"
_LABELS = ["namespace", "endpoint", "service", "copies"]
_CLASS = re.compile(r"upstream_rq_([1-5])xx")

_COUNTERS = {
    "upstream_rq_retry": ("pilotage_gateway_retries", "Requests sent again, because nothing was delivered"),
    "upstream_rq_rx_reset": ("pilotage_gateway_resets", "Requests that a server broke off"),
    "upstream_cx_connect_fail": ("pilotage_gateway_connect_failures", "Connections that a server did not take"),
}
_GAUGES = {
    "upstream_rq_active": ("pilotage_gateway_in_flight", "Requests that a server works on"),
    "upstream_rq_pending_active": ("pilotage_gateway_pending", "Requests that wait for a connection"),
    "membership_healthy": ("pilotage_gateway_servers", "Servers that take requests"),
}


class Traffic(Collector):
    """Collects what was last read; `refresh` reads."""

    def __init__(self, admin: Admin, program: Program, ads: Ads) -> None:
        self._admin, self._program, self._ads = admin, program, ads
        self._stats: dict[str, int] = {}
        self._up = False

    async def refresh(self) -> None:
        """Ask Envoy. Where it does not answer, that is what is shown, beside the last numbers."""
        try:
            self._stats = _numbers(await self._admin.get(STATS))
            self._up = True
        except AdminUnavailable:
            self._up = False

    def describe(self) -> Iterable[Metric]:
        """Nothing: what there is depends on Envoy."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """The metrics of one scrape."""
        endpoints = self._program.endpoints
        requests = CounterMetricFamily(
            "pilotage_gateway_requests", "Answers of servers, by class of status", labels=[*_LABELS, "code"]
        )
        families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {
            stat: CounterMetricFamily(name, text, labels=_LABELS) for stat, (name, text) in _COUNTERS.items()
        } | {stat: GaugeMetricFamily(name, text, labels=_LABELS) for stat, (name, text) in _GAUGES.items()}
        for name, value in self._stats.items():
            prefix, _, rest = name.partition(".")
            cluster, _, stat = rest.partition(".")
            parsed = parsed_name(cluster)
            if prefix != "cluster" or parsed is None:
                continue
            service, copies = parsed.service, "no" if parsed.copies_max is None else "yes"
            labels = [service.namespace, endpoints.get(cluster, ""), service.name, copies]
            if found := _CLASS.fullmatch(stat):
                requests.add_metric([*labels, f"{found[1]}xx"], value)
            elif stat in families:
                families[stat].add_metric(labels, value)
        yield requests
        yield from families.values()
        yield from self._of_the_gateway()

    def _of_the_gateway(self) -> Iterator[Metric]:
        answers = CounterMetricFamily(
            "pilotage_gateway_answers", "Answers to clients, by class of status; ours among them", labels=["code"]
        )
        for code in range(1, 6):
            answers.add_metric([f"{code}xx"], self._stats.get(f"http.gateway.downstream_rq_{code}xx", 0))
        yield answers
        active = self._stats.get("http.gateway.downstream_rq_active", 0)
        yield GaugeMetricFamily("pilotage_gateway_client_requests", "Requests of clients under way", active)
        yield GaugeMetricFamily("pilotage_gateway_envoy_up", "1 while Envoy answers", int(self._up))
        yield GaugeMetricFamily(
            "pilotage_gateway_connected", "1 while Envoy is connected to us", int(self._ads.connected)
        )
        yield GaugeMetricFamily("pilotage_gateway_routes", "Routes that Envoy has", len(self._program.accepted))
        yield GaugeMetricFamily(
            "pilotage_gateway_routes_rejected", "Routes that Envoy refuses", len(self._program.rejected)
        )
        sent = CounterMetricFamily("pilotage_gateway_updates", "What was sent to Envoy, by type", labels=["type"])
        for type_url, number in self._ads.sent.items():
            sent.add_metric([type_url.rpartition(".")[2]], number)
        yield sent


def _numbers(stats: bytes) -> dict[str, int]:
    lines = (line.rpartition(": ") for line in stats.decode(errors="replace").splitlines())
    return {name: int(value) for name, _, value in lines if value.isdigit()}
