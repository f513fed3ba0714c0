"""Claims of names: a name stays with its holder, whatever others do and whatever is lost. Pure."""

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from pilotage.gateway.claims import HOST, MODEL, ClaimedName, ClaimRecord, decide, names
from pilotage.gateway.hostnames import HostRules, covers
from pilotage.gateway.inputs import ProxiedRoute
from pilotage.kube import ObjectKey

EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
VICTIM = "victim"


def route(name, namespace="ns", *, created=EARLY, uid="", **fields):
    return ProxiedRoute(ObjectKey(namespace, name), uid or f"{namespace}/{name}", 1, created, name, **fields)


def holders(decision):
    """Holders in force: the key of the route by name."""
    found = {}
    for each in decision.claims:
        for name in names(each.route):
            mine = each.models if name.kind == MODEL else (each.host,) if name.kind == HOST else (each.path,)
            if name.name in mine:
                found[str(name)] = str(each.route.key)
    return found


def test_an_old_route_that_claims_a_name_later_does_not_get_it():
    old, holder = route("old", "a"), route("gpt", "b", created=LATE, models=("gpt",))
    before = decide([old, holder], {})
    greedy = old._replace(models=("gpt",), generation=2)
    after = decide([greedy, holder], before.records)
    assert holders(after)["model gpt"] == "b/gpt"
    (conflict,) = after.claims[0].conflicts
    assert conflict.text == "model gpt leads to an endpoint of another namespace, which has it"
    # When the holder releases it, the one that waits gets it; the former holder then waits.
    free = decide([greedy, holder._replace(models=())], after.records)
    assert holders(free)["model gpt"] == "a/old"
    name = ClaimedName(MODEL, "gpt")
    assert not after.records[old.uid][name].held
    assert free.records[old.uid][name].held
    assert free.records[old.uid][name].turn > max(each[name].turn for each in after.records.values())
    back = decide([greedy, holder], free.records)
    assert holders(back)["model gpt"] == "a/old"


def test_those_that_wait_get_a_name_in_the_order_in_which_they_claimed_it():
    first = route("first", models=("m",), created=LATE)
    second = route("second", models=("m",), created=LATE)
    third = route("third", models=("m",), created=EARLY)
    records = {}
    for routes in ([first], [first, second], [first, second, third]):
        decision = decide(routes, records)
        assert holders(decision)["model m"] == "ns/first"
        records = decision.records
    assert holders(decide([second, third], records))["model m"] == "ns/second"
    assert "GatewayRoute ns/first" in decision.claims[-1].conflicts[0].text  # of its own namespace it is told


@given(st.permutations([("b", LATE), ("a", LATE), ("c", EARLY)]))
def test_of_those_that_come_together_the_oldest_gets_it_in_whatever_order_they_are_seen(order):
    made = decide([route(name, created=day, models=("m",), host="h.example.com") for name, day in order], {}).claims
    assert [(each.route.endpoint, each.models, each.host, len(each.conflicts)) for each in made] == [
        ("c", ("m",), "h.example.com", 0),
        ("a", (), "", 2),
        ("b", (), "", 2),
    ]


def test_a_host_is_of_one_namespace_with_all_its_paths():
    whole = route("whole", "a", host="chat.example.com")
    part = route("part", "a", host="chat.example.com", path="/deep/")
    before = decide([whole, part], {})
    assert [each.host for each in before.claims] == ["chat.example.com"] * 2
    greedy = route("greedy", "b", host="chat.example.com", path="/v1")
    after = decide([whole, part, greedy], before.records)
    assert [each.host for each in after.claims if each.route.key.namespace == "b"] == [""]
    # One path of it is released: the other one is still held, though the other namespace has waited for longer.
    later = route("later", "a", host="chat.example.com", path="/later", created=LATE)
    more = decide([whole, greedy, later], after.records)
    assert holders(decide([greedy, later], more.records)) == {
        "host chat.example.com/later": "a/later",
        "path /endpoints/a/later": "a/later",
        "path /endpoints/b/greedy": "b/greedy",
    }


def test_nobody_gets_a_host_below_the_wildcard_of_another_namespace():
    wild = route("wild", "a", host="*.a.example.com")
    before = decide([wild], {})
    for host in ("chat.a.example.com", "x.y.a.example.com", "*.y.a.example.com"):
        after = decide([wild, route("greedy", "b", host=host)], before.records)
        assert after.claims[1].host == "", host
        assert decide([wild, route("mine", "a", host=host)], before.records).claims[0].host == host


def test_nobody_gets_a_wildcard_above_the_host_of_another_namespace():
    """It would get the requests of that host as soon as its endpoint is deployed again, and keep the host from it."""
    exact, wild = route("exact", "b", host="chat.a.example.com"), route("wild", "a", host="*.a.example.com")
    held = decide([exact], {})
    both = decide([exact, wild], held.records)
    assert holders(both)["host chat.a.example.com/"] == "b/exact"
    assert "host *.a.example.com/" not in holders(both)
    # It is released, and reserved.
    reserved = {ClaimedName(HOST, "chat.a.example.com", "/"): "b"}
    gone = decide([wild], both.records, reserved=reserved)
    assert gone.claims[0].host == ""
    back = decide([wild, exact._replace(uid="new")], gone.records, reserved=reserved)
    assert holders(back)["host chat.a.example.com/"] == "b/exact"
    # Whose host it is can have both, and others have hosts beside it.
    own = route("own", "b", host="*.a.example.com")
    beside = route("beside", "c", host="other.example.com")
    found = holders(decide([exact, own, beside], held.records, reserved=reserved))
    assert {"host *.a.example.com/", "host other.example.com/"} <= found.keys()
    # Where both are held, as earlier versions allowed it, each keeps its own.
    records = {
        exact.uid: {names(exact)[1]: ClaimRecord(1, held=True)},
        wild.uid: {names(wild)[1]: ClaimRecord(2, held=True)},
    }
    assert {each.host for each in decide([exact, wild], records).claims} == {"chat.a.example.com", "*.a.example.com"}


def test_the_newer_of_two_records_counts():
    """The old holder released it and came back, and the gateway died before it could write that down."""
    one, two = route("one", "a", models=("m",)), route("two", "b", models=("m",))
    name = ClaimedName(MODEL, "m")
    records = {one.uid: {name: ClaimRecord(5, held=True)}, two.uid: {name: ClaimRecord(9, held=True)}}
    assert holders(decide([one, two], records))["model m"] == "b/two"


def test_what_is_coming_keeps_its_names_and_a_refused_route_keeps_none():
    holder, other = route("holder", "a", models=("m",)), route("other", "b", models=("m",))
    records = decide([holder, other], {}).records
    # After a restart Envoy is offered the other one first.
    part = decide([other], records, coming=[holder])
    assert part.claims[0].models == ()
    assert holders(decide([other, holder], part.records))["model m"] == "a/holder"
    # The holder is refused: it is not coming any more, the other one gets the name and keeps it.
    alone = decide([other], part.records)
    assert holders(decide([other, holder], alone.records))["model m"] == "b/other"


def test_a_reserved_name_is_for_its_namespace_alone():
    waiting = [route("w", "b", models=("m",), host="x.example.com", path="/v1"), route("x", "b", host="y.wild.org")]
    records = decide(waiting[:1], {}, coming=[route("h", "a", models=("m",), host="x.example.com")]).records
    reserved = {
        ClaimedName(MODEL, "m"): "a",
        ClaimedName(HOST, "x.example.com", "/"): "a",
        ClaimedName(HOST, "*.wild.org", "/"): "a",
    }
    decision = decide(waiting, records, reserved=reserved)
    assert [(each.models, each.host) for each in decision.claims] == [((), "")] * 2
    assert "still reserved" in decision.claims[0].conflicts[0].text
    back = route("back", "a", models=("m",), host="x.example.com", created=LATE)
    assert holders(decide([*waiting, back], decision.records, reserved=reserved))["model m"] == "a/back"
    assert holders(decide([*waiting, back], decision.records))["model m"] == "b/w"  # its time is over


ADDRESSES = ("127.0.0.1", "127.1", "0x7f.1", "127.0.0.0x1", "2130706433", "*.0.0.1", "::1", "[::1]", "1.2.3.4.5", "a.1")
MACHINES = ("localhost", "a.localhost", "*.localhost", "gateway", "*.com", "*", "", "a..b", "-a.example.com", "A.b")


def test_addresses_and_names_of_machines_are_no_hosts():
    rules = HostRules(own=frozenset({"models.example.com"}))
    for host in (*ADDRESSES, *MACHINES, "models.example.com"):
        (claim,) = decide([route("greedy", host=host, models=("m",))], {}, rules=rules).claims
        assert claim.host == "", host
        assert claim.models == ("m",)
        if host:
            assert f"host {host} is refused" in claim.conflicts[0].text
    (claim,) = decide([route("fine", host="*.models.example.com")], {}, rules=rules).claims
    assert claim.host


def test_the_administrator_says_which_hosts_a_namespace_may_have():
    rules = HostRules(allowed=(("team-a", "*.a.example.com"), ("team-b", "b.example.com")))

    def granted(namespace, host):
        return bool(decide([route("r", namespace, host=host)], {}, rules=rules).claims[0].host)

    assert granted("team-a", "chat.a.example.com")
    assert granted("team-a", "*.a.example.com")
    assert granted("team-b", "b.example.com")
    for namespace, host in [
        ("team-a", "a.example.com"),
        ("team-a", "*.example.com"),
        ("team-b", "chat.a.example.com"),
        ("team-b", "x.b.example.com"),
        ("team-c", "c.example.com"),
    ]:
        assert not granted(namespace, host)


def test_what_a_wildcard_covers():
    assert covers("*.example.com", "a.b.example.com")
    assert covers("*.example.com", "*.b.example.com")
    assert not covers("*.example.com", "example.com")
    assert not covers("*.b.example.com", "*.example.com")


model_names = st.sets(st.sampled_from(["m", "n"]), max_size=2).map(lambda each: tuple(sorted(each)))
host_names = st.sampled_from(["", "x.example.com", "*.example.com", "y.x.example.com", "*.x.example.com"])
host_paths = st.sampled_from(["/", "/v1", "/v1/"])


class Tenants(RuleBasedStateMachine):
    """A victim that holds its names, and others that do whatever they can; a gateway that dies now and then.

    Statuses are written one by one, those of claims that wait after those of their holders, and a restart knows only
    what was written.
    """

    others = Bundle("others")

    def __init__(self):
        super().__init__()
        self.routes = {}
        self.records = {}
        self.written = {}
        self.number = 0

    def decide(self):
        decision = decide(self.routes.values(), self.records)
        self.records, self.claims = decision.records, {each.route.uid: each for each in decision.claims}

    @initialize()
    def the_victim_is_there(self):
        mine = {"models": ("m",), "host": "x.example.com", "path": "/"}
        self.routes["victim"] = route("victim", VICTIM, uid="victim", created=LATE, **mine)
        self.decide()
        self.write("victim")

    @rule(target=others, created=st.sampled_from([EARLY, LATE]), models=model_names, host=host_names, path=host_paths)
    def another_comes(self, created, models, host, path):
        self.number += 1
        uid = f"other-{self.number}"
        self.routes[uid] = route(uid, "attacker", uid=uid, created=created, models=models, host=host, path=path)
        self.decide()
        return uid

    @rule(uid=others, models=model_names, host=host_names, path=host_paths)
    def another_changes(self, uid, models, host, path):
        self.routes[uid] = self.routes[uid]._replace(models=models, host=host, path=path)
        self.decide()

    @rule(uid=consumes(others))
    def another_goes(self, uid):
        self.routes.pop(uid)
        self.written.pop(uid, None)
        self.decide()

    @rule(target=others, uid=others)
    def a_status_is_written(self, uid):
        self.write(uid)
        return multiple()

    @rule()
    def the_victim_changes_its_weights(self):
        self.routes["victim"] = self.routes["victim"]._replace(generation=self.routes["victim"].generation + 1)
        self.decide()

    @rule(first=st.sets(st.integers(0, 9)), refused=st.booleans())
    def the_gateway_dies(self, first, refused):
        """A configuration that Envoy refuses makes the next gateway offer the routes in parts."""
        self.records = {uid: dict(each) for uid, each in self.written.items()}
        if refused:
            uids = [*self.routes]
            part = [self.routes[uid] for number, uid in enumerate(uids) if number in first]
            coming = [self.routes[uid] for number, uid in enumerate(uids) if number not in first]
            decision = decide(part, self.records, coming)
            self.records = decision.records
            for each in decision.claims:
                assert each.route.uid == "victim" or ("m" not in each.models and each.host != "x.example.com")
        self.decide()

    def write(self, uid):
        waits_for = {each.name: each.holder for each in self.claims[uid].conflicts}
        self.written[uid] = {
            name: record
            for name, record in self.records[uid].items()
            if record.held or self.is_written(waits_for.get(name, ""))
        }

    def is_written(self, uid):
        held = {name: each for name, each in self.records.get(uid, {}).items() if each.held}
        return bool(held) and held.items() <= self.written.get(uid, {}).items()

    @invariant()
    def the_victim_has_its_names(self):
        mine = self.claims["victim"]
        assert (mine.models, mine.host, mine.conflicts) == (("m",), "x.example.com", ())

    @invariant()
    def no_name_has_two_holders(self):
        held = [name for uid in self.claims for name, each in self.records[uid].items() if each.held]
        assert len(held) == len({*held})

    @invariant()
    def nobody_is_between_the_victim_and_its_requests(self):
        for claim in self.claims.values():
            if claim.route.key.namespace != VICTIM:
                assert claim.host != "x.example.com"


TestTenants = Tenants.TestCase
TestTenants.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
