"""Counters, levels and histograms that cost a manager next to nothing until they are scraped.

prometheus_client's own take a lock and walk the buckets at each observation, which was a tenth of a reconcile. A
manager counts in the one thread of its loop, so a plain number will do; Prometheus' families are made at the scrape.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

T = TypeVar("T")


class Number:
    """Value of one counter or gauge."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0


class Durations:
    """Buckets, sum and count of one histogram."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        """Count one more."""
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.total += seconds


class _Family(Collector, ABC, Generic[T]):
    """One metric with labels: `labels` gives the instrument of their values, made at the first call."""

    def __init__(self, name: str, words: str, label_names: Sequence[str], registry: CollectorRegistry) -> None:
        self.name = name
        self.words = words
        self.label_names = label_names
        self._of: dict[tuple[str, ...], T] = {}
        registry.register(self)

    def labels(self, *values: str) -> T:
        """The instrument for these label values."""
        found = self._of.get(values)
        if found is None:
            found = self._of[values] = self._new()
        return found

    @abstractmethod
    def _new(self) -> T: ...


class Counters(_Family[Number]):
    """A counter: it only grows."""

    def collect(self) -> Iterable[Metric]:
        """The family with its samples, for a scrape."""
        family = CounterMetricFamily(self.name, self.words, labels=self.label_names)
        for values, number in self._of.items():
            family.add_metric(values, number.value)
        yield family

    def _new(self) -> Number:
        return Number()


class Levels(_Family[Number]):
    """A gauge: it goes up and down."""

    def collect(self) -> Iterable[Metric]:
        """The family with its samples, for a scrape."""
        family = GaugeMetricFamily(self.name, self.words, labels=self.label_names)
        for values, number in self._of.items():
            family.add_metric(values, number.value)
        yield family

    def _new(self) -> Number:
        return Number()


class Histograms(_Family[Durations]):
    """A histogram of durations."""

    def __init__(
        self,
        name: str,
        words: str,
        label_names: Sequence[str],
        registry: CollectorRegistry,
        bounds: Sequence[float],
    ) -> None:
        self._bounds = bounds
        super().__init__(name, words, label_names, registry)

    def collect(self) -> Iterable[Metric]:
        """The family with its samples, for a scrape."""
        family = HistogramMetricFamily(self.name, self.words, labels=self.label_names)
        for values, durations in self._of.items():
            bounds = [*(str(float(bound)) for bound in self._bounds), "+Inf"]
            buckets = list(zip(bounds, accumulate(durations.counts), strict=True))
            family.add_metric(values, buckets, durations.total)
        yield family

    def _new(self) -> Durations:
        return Durations(self._bounds)
