"""Context of every benchmark: the cluster, the stock on it, and how much to measure."""

from dataclasses import dataclass

from bench.stock import Stock
from controlplane import Cluster


@dataclass(frozen=True, slots=True)
class Size:
    """Amount of work to measure."""

    objects: int
    """Number of objects in the list, watch and patch benchmarks."""
    growth: tuple[int, ...]
    """Numbers of objects for the list benchmark, to show what grows with them."""
    patches: int
    lifecycle: int
    """Objects that live from creation to deletion."""
    rounds: int
    """Number of rounds, in which all contestants take turns; the median counts."""


FULL = Size(objects=10_000, growth=(1_000, 10_000, 100_000), patches=1_000, lifecycle=1_000, rounds=3)
QUICK = Size(objects=2_000, growth=(200, 2_000), patches=300, lifecycle=200, rounds=2)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the benchmarks."""

    cluster: Cluster
    stock: Stock
    size: Size
