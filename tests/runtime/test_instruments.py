"""Our instruments are scraped as prometheus_client's own would be."""

import prometheus_client as theirs
from hypothesis import given
from hypothesis import strategies as st

from pilotage.runtime import instruments as ours

BOUNDS = (0.001, 0.5, 1, 60)
SECONDS = st.one_of(st.sampled_from(BOUNDS), st.floats(0, 100))


@given(st.lists(st.tuples(st.sampled_from(["GET", "PUT"]), SECONDS)))
def test_what_is_scraped_is_what_prometheus_client_would_say(observed):
    mine, other = theirs.CollectorRegistry(), theirs.CollectorRegistry()
    my_seconds = ours.Histograms("seconds", "How long", ["method"], mine, BOUNDS)
    my_requests = ours.Counters("requests", "How many", ["method"], mine)
    my_depth = ours.Levels("depth", "How deep", ["method"], mine)
    seconds = theirs.Histogram("seconds", "How long", ["method"], buckets=BOUNDS, registry=other)
    requests = theirs.Counter("requests", "How many", ["method"], registry=other)
    depth = theirs.Gauge("depth", "How deep", ["method"], registry=other)
    for method, took in observed:
        my_seconds.labels(method).observe(took)
        my_requests.labels(method).value += 1
        my_depth.labels(method).value = took
        seconds.labels(method).observe(took)
        requests.labels(method).inc()
        depth.labels(method).set(took)
    assert _scraped(mine) == _scraped(other)


def _scraped(registry):
    text = theirs.generate_latest(registry).decode()
    return sorted(line for line in text.splitlines() if "_created" not in line)
