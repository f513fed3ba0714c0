"""Claims that are decided in parts come out as if they were decided together."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pilotage.gateway.claim_book import ClaimBook, Reservation
from pilotage.gateway.claims import ANY_HOST, decide, names
from pilotage.gateway.inputs import ProxiedRoute
from pilotage.gateway.snapshot import ORDER, ListenerConfig, Snapshot
from pilotage.kube import ObjectKey
from tests.gateway.test_decisions import up

ADDRESS = ListenerConfig("127.0.0.1", 8080)
SECONDS = 3.0


@st.composite
def routes(draw):
    number, namespace = draw(st.integers(0, 5)), draw(st.sampled_from(["one", "two"]))
    return ProxiedRoute(
        ObjectKey(namespace, f"r{number}"),
        f"{namespace}-{number}",
        draw(st.integers(1, 3)),
        f"2026-01-0{draw(st.integers(1, 3))}",
        draw(st.sampled_from(["a", "b", "c"])),
        tuple(draw(st.lists(st.sampled_from(["m", "n", "o"]), max_size=2, unique=True))),
        draw(st.sampled_from(["", "", "a.x.com", "b.x.com", "*.x.com", "*.com"])),
        draw(st.sampled_from(["/", "/deep"])),
    )


steps = st.lists(
    st.tuples(st.lists(routes(), max_size=2), st.lists(st.integers(0, 11), max_size=2), st.floats(0, 2)), max_size=8
)


class AllTogether:
    """The same without any index: each time all routes are decided."""

    def __init__(self):
        self.records, self.reserved, self.turn = {}, {}, 0

    def decide(self, wanted, now):
        claimed = {(each.uid, name) for each in wanted.values() for name in names(each)}
        released = {
            name: Reservation(uid.partition("-")[0], now + SECONDS)
            for uid, records in self.records.items()
            for name, each in records.items()
            if each.held and (uid, name) not in claimed
        }
        self.reserved = {name: each for name, each in (self.reserved | released).items() if each.until > now}
        namespaces = {name: each.namespace for name, each in self.reserved.items()}
        decision = decide(wanted.values(), self.records, (), ANY_HOST, namespaces, self.turn)
        self.records = decision.records
        self.turn = max([self.turn, *(record.turn for each in self.records.values() for record in each.values())])
        held = {name for each in self.records.values() for name, record in each.items() if record.held}
        self.reserved = {name: each for name, each in self.reserved.items() if name not in held}
        return {each.route.uid: each for each in decision.claims}


@settings(max_examples=60, deadline=None)
@given(steps)
def test_a_decision_about_some_is_that_about_all(taken):
    book, together, wanted, now = ClaimBook(ANY_HOST, SECONDS), AllTogether(), {}, 0.0
    claims, snapshot, waiting = {}, Snapshot(ADDRESS), set()
    for changed, gone, seconds in taken:
        now += seconds
        batch = book.expire(now) | waiting
        for each in changed:
            wanted[each.uid] = each
            batch.add(each.uid)
        for number in gone:
            uid = f"{['one', 'two'][number % 2]}-{number // 2}"
            if wanted.pop(uid, None) is not None:
                batch.add(uid)
        for uid in batch:
            book.note(uid, [wanted[uid]] if uid in wanted else [])
        uids = book.connected(batch)
        change = book.decide(uids, [wanted[uid] for uid in uids if uid in wanted], (), now)
        waiting = book.accept(change)
        for uid in batch:
            book.note(uid, [wanted[uid]] if uid in wanted else [])
        made = dict.fromkeys(uids) | {each.route.uid: each for each in change.decision.claims}
        claims = {uid: each for uid, each in (claims | made).items() if each is not None}
        assert claims == together.decide(wanted, now)
        assert (book.records, book.reserved) == (together.records, together.reserved)
        # Of the resources the same holds.
        snapshot.apply(snapshot.change(made, up()))
        whole = Snapshot(ADDRESS)
        whole.apply(whole.change(claims, up()))
        assert {each: snapshot.types[each].by_name for each in ORDER} == {
            each: whole.types[each].by_name for each in ORDER
        }
        assert {each: snapshot.types[each].version for each in ORDER} == {
            each: whole.types[each].version for each in ORDER
        }
