"""harbor beside etcd and kube-apiserver: how long until it serves, how much it serves, and what it weighs.

The processes of each server share one core; the load comes from the other one, from raw sockets that do little more
than count. Both servers are asked the same bytes.
"""

from bench import steadiness
from bench.figures import PILOTAGE, Goal, Section
from bench.harbor.load import Load
from bench.harbor.servers import SERVERS, Server
from bench.progress import say
from bench.run import Run

CREATES = 5_000
GETS = 10_000
LISTS = 20
GETS_BESIDE_LISTS = 500
WATCHERS = 50
EVENTS = 400
START_RATIO_MIN = 10.0
RSS_SHARE_MAX = 1 / 3
THROUGHPUT_SHARE_MIN = 1 / 2
KUBERNETES = "kube-apiserver"


def run(run: Run) -> Section:
    """Both in turn."""
    rates: dict[str, dict[str, float]] = {}
    starts: dict[str, float] = {}
    weights: dict[str, float] = {}
    for name, start in SERVERS.items():
        say(f"harbor: starting {name}")
        with start() as server:
            starts[name] = server.start_seconds
            rates[name] = _rates(name, server, run.size.rounds)
            weights[name] = server.rss_bytes() / 2**20
    return _section(starts, rates, weights)


def _rates(name: str, server: Server, rounds: int) -> dict[str, float]:
    with Load(server) as load:
        say(f"harbor: {name}: {CREATES:,} creates")
        steadiness.sample()
        rates = {"creates per second": load.creates(CREATES)}
        for number in range(1, rounds + 1):
            say(f"harbor: {name}: gets, lists and watches, round {number} of {rounds}")
            steadiness.sample()
            best = {
                "gets per second": load.gets(GETS),
                f"lists of {CREATES:,} per second": load.lists(LISTS),
                "gets per second beside lists": load.gets_beside_lists(GETS_BESIDE_LISTS),
                f"events per second to {WATCHERS} watchers": load.fan_out(WATCHERS, EVENTS),
            }
            rates |= {what: max(rate, rates.get(what, 0.0)) for what, rate in best.items()}
    return rates


def _section(starts: dict[str, float], rates: dict[str, dict[str, float]], weights: dict[str, float]) -> Section:
    ours, theirs = PILOTAGE, KUBERNETES
    section = Section("harbor", f"harbor beside etcd and kube-apiserver, each on one core; {CREATES:,} ConfigMaps")
    section.add("start until it answers", "s", starts)
    for what in rates[ours]:
        section.add(what, "/s", {name: rate[what] for name, rate in rates.items()})
    section.add("RSS with all that", "MiB", weights)
    section.goals.append(Goal("start, as a share", starts[ours] / starts[theirs], 1 / START_RATIO_MIN, ""))
    section.goals.append(Goal("RSS, as a share", weights[ours] / weights[theirs], RSS_SHARE_MAX, ""))
    for what in rates[ours]:
        slower = rates[theirs][what] / rates[ours][what]
        section.goals.append(Goal(f"{what}: times slower", slower, 1 / THROUGHPUT_SHARE_MIN, ""))
    return section
