"""Metrics of a manager, under the names of client-go and controller-runtime, so that dashboards fit.

One registry per manager, no globals. Everything that is counted in a reconcile or a request is a plain number until
somebody scrapes (`instruments`).
"""

from collections.abc import Hashable

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from pilotage.kube.transport import Request, Response, Transport
from pilotage.runtime.clock import monotonic
from pilotage.runtime.instruments import Counters, Histograms, Levels

_SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300)


class Metrics:
    """All collectors of one manager."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        to = self.registry
        self.depth = Levels("workqueue_depth", "Keys that wait for a worker", ["name"], to)
        self.adds = Counters("workqueue_adds", "Keys added", ["name"], to)
        self.retries = Counters("workqueue_retries", "Keys added with a delay", ["name"], to)
        self.waited = Histograms("workqueue_queue_duration_seconds", "From add to get", ["name"], to, _SECONDS)
        self.worked = Histograms("workqueue_work_duration_seconds", "From get to done", ["name"], to, _SECONDS)
        self.reconciles = Counters(
            "controller_runtime_reconcile", "Reconciles by how they ended", ["controller", "result"], to
        )
        self.requests = Counters("rest_client_requests", "Requests to the API server", ["method", "code"], to)
        self.request_seconds = Histograms(
            "rest_client_request_duration_seconds", "Until the answer began", ["method"], to, _SECONDS
        )
        self.leader = Gauge("leader_election_master_status", "1 while the Lease is held", ["name"], registry=to)
        self.events_dropped = Gauge("pilotage_events_dropped", "Events that could not be written", registry=to)
        self.cached = Gauge("pilotage_cached_objects", "Objects in the cache", ["resource"], registry=to)

    def render(self) -> bytes:
        """The text that Prometheus scrapes."""
        return generate_latest(self.registry)


class QueueMetrics:
    """The observer of one workqueue."""

    def __init__(self, metrics: Metrics, name: str) -> None:
        self._depth = metrics.depth.labels(name)
        self._adds = metrics.adds.labels(name)
        self._retries = metrics.retries.labels(name)
        self._waited = metrics.waited.labels(name)
        self._worked = metrics.worked.labels(name)

    def added(self, _item: Hashable) -> None:
        """Count an item that was added."""
        self._adds.value += 1

    def got(self, _item: Hashable, waited_seconds: float) -> None:
        """Observe how long an item has waited."""
        self._waited.observe(waited_seconds)

    def finished(self, _item: Hashable, worked_seconds: float) -> None:
        """Observe how long an item was worked on."""
        self._worked.observe(worked_seconds)

    def retried(self) -> None:
        """Count a retry."""
        self._retries.value += 1

    def depth(self, n: int) -> None:
        """Set the number of items that wait."""
        self._depth.value = n


class MeteredTransport:
    """A transport that counts what passes through it."""

    def __init__(self, inner: Transport, metrics: Metrics) -> None:
        self._inner = inner
        self._metrics = metrics

    async def send(self, request: Request) -> Response:
        """Send, and count the answer by method and code."""
        started = monotonic()
        code = "<error>"
        try:
            response = await self._inner.send(request)
            code = str(response.status)
            return response
        finally:
            self._metrics.requests.labels(request.method, code).value += 1
            self._metrics.request_seconds.labels(request.method).observe(monotonic() - started)

    async def close(self) -> None:
        """Close the transport within."""
        await self._inner.close()
