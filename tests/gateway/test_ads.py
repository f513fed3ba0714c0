"""Messages to Envoy, one by one: for orders of events that a real one shows by chance only."""

import asyncio
import contextlib

from envoy.service.discovery.v3 import discovery_pb2

from pilotage.gateway.ads import Ads
from pilotage.gateway.inputs import Service, UpstreamHost
from pilotage.gateway.program import Program
from pilotage.gateway.snapshot import CDS, EDS, LDS, SRDS, Snapshot
from tests.gateway.test_decisions import ADDRESS, claimed, route, up

CLUSTER = "ns_a-1_80"


class Talk:
    """The other end of a stream."""

    def __init__(self, ads):
        self.sent = []
        self._requests = asyncio.Queue()
        self._task = asyncio.create_task(ads._talk(self._incoming(), self))

    async def write(self, response):
        self.sent.append(response)

    async def _incoming(self):
        while True:
            yield await self._requests.get()

    async def say(self, type_url, *names, unsubscribe=(), versions=(), nonce="", error=""):
        """Send a request; returns what comes of it."""
        before = len(self.sent)
        request = discovery_pb2.DeltaDiscoveryRequest(
            type_url=type_url,
            resource_names_subscribe=names,
            resource_names_unsubscribe=unsubscribe,
            initial_resource_versions=dict(versions),
            response_nonce=nonce,
        )
        if error:
            request.error_detail.message = error
        await self._requests.put(request)
        return await self.after(before)

    async def after(self, before):
        for _ in range(20):
            await asyncio.sleep(0)
        return [each.type_url for each in self.sent[before:]]

    def last(self, type_url):
        return [each for each in self.sent if each.type_url == type_url][-1]

    def names(self, type_url):
        """Names of the last response, and those that it removes."""
        last = self.last(type_url)
        return sorted(each.name for each in last.resources), sorted(last.removed_resources)

    async def acknowledge(self, type_url, **options):
        return await self.say(type_url, nonce=self.last(type_url).nonce, **options)

    async def refuse(self, type_url, error):
        return await self.say(type_url, nonce=self.last(type_url).nonce, error=error)

    async def end(self):
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task


def change(snapshot, *routes, hosts=None, **options):
    """A change to these routes, which is made at once."""
    made = snapshot.change({each.route.uid: each for each in claimed(routes)}, hosts or up("a-1", "b-1"), **options)
    snapshot.apply(made)
    return made.resources


async def begun(ads, *routes):
    """An Envoy that has taken these routes, and their snapshot."""
    snapshot = Snapshot(ADDRESS)
    offer = asyncio.create_task(ads.offer(change(snapshot, *routes)))
    await asyncio.sleep(0)
    talk = Talk(ads)
    await talk.say(CDS)
    if routes:
        await talk.say(EDS, *snapshot.types[EDS].by_name)
        await talk.acknowledge(EDS)
    await talk.acknowledge(CDS)
    await talk.say(LDS)
    await talk.acknowledge(LDS)
    await talk.say(SRDS)
    await talk.acknowledge(SRDS)
    assert (await offer).taken
    return talk, snapshot


async def test_what_is_referred_to_goes_first_and_an_offer_ends_with_the_last_acknowledgement():
    ads = Ads()
    offer = asyncio.create_task(ads.offer(change(Snapshot(ADDRESS), route("a", ("a-1", 100)))))
    await asyncio.sleep(0)
    talk = Talk(ads)
    assert await talk.say(CDS) == [CDS]
    assert await talk.say(LDS) == []  # not before the clusters are warm
    assert await talk.say(EDS, CLUSTER) == [EDS]
    assert await talk.acknowledge(EDS) == []
    assert await talk.acknowledge(CDS) == [LDS]
    assert await talk.say(SRDS) == [SRDS]
    assert await talk.acknowledge(LDS) == []
    assert not offer.done()
    assert await talk.acknowledge(SRDS) == []
    assert (await offer).taken
    await talk.end()


async def test_a_change_is_sent_alone_and_what_is_gone_is_removed():
    ads = Ads()
    talk, snapshot = await begun(ads, route("a", ("a-1", 100), models=("m",)), route("b", ("b-1", 100)))
    before = len(talk.sent)
    offer = asyncio.create_task(ads.offer(change(snapshot, route("b", ("b-1", 0)))))
    assert await talk.after(before) == [SRDS]
    assert talk.names(SRDS) == (["/endpoints/ns/b"], [])
    assert not offer.done()
    await talk.acknowledge(SRDS)
    assert (await offer).taken
    gone = snapshot.change({"uid-a": None}, up("a-1", "b-1"), drop=[CLUSTER])
    offer = asyncio.create_task(ads.offer(gone.resources))
    assert await talk.after(len(talk.sent)) == [CDS]
    assert talk.names(CDS) == ([], [CLUSTER])
    assert await talk.acknowledge(CDS) == [SRDS]
    assert talk.names(SRDS) == (["models"], ["/endpoints/ns/a", "model m"])
    assert talk.last(SRDS).system_version_info == ads.types[SRDS].version
    await talk.acknowledge(SRDS)
    assert (await offer).taken
    await talk.end()


async def test_after_a_refusal_envoy_gets_what_it_had_before_the_offer_returns():
    ads = Ads()
    talk, snapshot = await begun(ads, route("a", ("a-1", 100)))
    had = snapshot.types[SRDS].by_name["/endpoints/ns/a"].version
    offer = asyncio.create_task(
        ads.offer(change(snapshot, route("a", ("a-1", 0)), route("b", ("a-1", 100), models=("m",))))
    )
    await talk.after(0)
    assert talk.names(SRDS) == (["/endpoints/ns/a", "/endpoints/ns/b", "model m", "models"], [])
    # An old answer is none, and one that is neither an acknowledgement nor a refusal neither.
    assert await talk.say(SRDS, nonce="1") == []
    assert await talk.say(SRDS) == []
    assert await talk.refuse(SRDS, "no such cluster") == [SRDS]
    assert talk.names(SRDS) == (["/endpoints/ns/a", "models"], ["/endpoints/ns/b", "model m"])
    assert [each.version for each in talk.last(SRDS).resources if each.name != "models"] == [had]
    assert not offer.done()
    await talk.acknowledge(SRDS)
    assert await offer == ("no such cluster", SRDS)
    await talk.end()


async def test_what_another_envoy_refuses_is_not_taken_for_acknowledged():
    ads = Ads()
    talk, snapshot = await begun(ads)
    await talk.end()
    talk = Talk(ads)
    await talk.say(CDS)
    await talk.acknowledge(CDS)
    await talk.say(LDS, versions={"gateway": snapshot.types[LDS].by_name["gateway"].version})
    assert await talk.say(SRDS) == [SRDS]
    assert await talk.refuse(SRDS, "not these") == []
    before = len(talk.sent)
    offer = asyncio.create_task(ads.offer({}))
    assert await talk.after(before) == [SRDS]
    assert not offer.done()
    await talk.acknowledge(SRDS)
    assert (await offer).taken
    await talk.end()


async def test_addresses_are_sent_to_who_asks_for_them_again():
    ads = Ads()
    talk, snapshot = await begun(ads, route("a", ("a-1", 100)))
    assert await talk.say(EDS, CLUSTER) == [EDS]  # though it has not changed
    assert await talk.say(EDS, CLUSTER) == []  # one response at a time
    assert await talk.acknowledge(EDS) == [EDS]
    await talk.acknowledge(EDS)
    assert await talk.say(EDS, unsubscribe=[CLUSTER]) == []
    more = change(snapshot, route("c", ("c-1", 100)), hosts=up("a-1", "c-1"))
    offer = asyncio.create_task(ads.offer(more))
    assert await talk.after(len(talk.sent)) == [CDS]
    await talk.acknowledge(CDS)
    assert not offer.done()  # its addresses were not asked for yet
    assert await talk.say(EDS, "ns_c-1_80") == [EDS]
    assert talk.names(EDS) == (["ns_c-1_80"], [])
    assert await talk.acknowledge(EDS) == [SRDS]
    await talk.acknowledge(SRDS)
    assert (await offer).taken
    await talk.end()


async def test_a_cluster_that_goes_and_comes_back_gets_its_addresses_before_its_routes():
    ads = Ads()
    talk, snapshot = await begun(ads, route("a", ("a-1", 100)))
    gone = snapshot.change({"uid-a": None}, up("a-1"), drop=[CLUSTER])
    snapshot.apply(gone)
    offer = asyncio.create_task(ads.offer(gone.resources))
    await talk.after(0)
    await talk.acknowledge(CDS)
    await talk.acknowledge(SRDS)
    assert (await offer).taken
    before = len(talk.sent)
    offer = asyncio.create_task(ads.offer(change(snapshot, route("a", ("a-1", 100)))))
    assert await talk.after(before) == [CDS]
    assert await talk.acknowledge(CDS) == []  # Envoy is still to say that it does not need the old addresses
    assert await talk.say(EDS, CLUSTER, unsubscribe=[]) == [EDS]
    assert await talk.acknowledge(EDS) == [SRDS]
    await talk.acknowledge(SRDS)
    assert (await offer).taken
    await talk.end()


async def test_addresses_that_change_while_others_are_under_way_come_next():
    ads, service = Ads(), Service("ns", "a-1")
    program = Program(ADDRESS, ads)
    program.wanted["uid-a"] = route("a", ("a-1", 100))
    program.hosts |= up("a-1")
    program.touch(route="uid-a")
    running = asyncio.create_task(program.run())
    await asyncio.sleep(0)
    talk = Talk(ads)
    await talk.say(CDS)
    await talk.say(EDS, CLUSTER)
    for each in (EDS, CDS):
        await talk.acknowledge(each)
    for each in (LDS, SRDS):
        await talk.say(each)
        await talk.acknowledge(each)
    assert program.accepted == program.wanted
    for number in (2, 3):
        program.hosts[service] = (UpstreamHost(f"10.0.0.{number}", 8000),)
        program.touch(service=service)
        await talk.after(0)
    before = len(talk.sent)
    assert b"10.0.0.2" in talk.last(EDS).resources[0].resource.value
    assert await talk.acknowledge(EDS) == [EDS]
    assert (len(talk.sent), b"10.0.0.3" in talk.last(EDS).resources[0].resource.value) == (before + 1, True)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await talk.end()


async def test_routes_go_with_a_refused_listener_and_are_sent_again_with_the_next():
    ads = Ads()
    changes = change(Snapshot(ADDRESS))
    offer = asyncio.create_task(ads.offer(changes))
    await asyncio.sleep(0)
    talk = Talk(ads)
    assert await talk.say(CDS) == [CDS]  # though there is none: Envoy waits for it
    assert await talk.acknowledge(CDS) == []
    assert await talk.say(LDS) == [LDS]
    assert await talk.say(SRDS) == [SRDS]
    assert await talk.refuse(LDS, "cannot bind") == []
    assert await offer == ("cannot bind", LDS)
    before = len(talk.sent)
    again = asyncio.create_task(ads.offer(changes))
    assert await talk.after(before) == [LDS]
    # The first listener's routes are acknowledged now; the second has none, and Envoy does not ask again.
    assert await talk.acknowledge(SRDS) == [SRDS]
    assert talk.names(SRDS) == (["main", "models"], [])
    assert await talk.acknowledge(LDS) == []
    assert not again.done()
    assert await talk.acknowledge(SRDS) == []
    assert (await again).taken
    await talk.end()


async def test_who_asks_for_nothing_more_and_then_again_gets_everything():
    ads = Ads()
    talk, _ = await begun(ads)
    assert await talk.say(SRDS, unsubscribe=["*"]) == []
    assert await talk.say(SRDS, nonce=talk.last(SRDS).nonce) == []  # no request
    assert await talk.say(SRDS, "*") == [SRDS]
    assert talk.names(SRDS) == (["main", "models"], [])
    await talk.end()


async def test_an_envoy_that_comes_with_everything_gets_nothing_and_else_the_difference():
    ads = Ads()
    snapshot = Snapshot(ADDRESS)
    offer = asyncio.create_task(ads.offer(change(snapshot, route("a", ("a-1", 100)))))
    await asyncio.sleep(0)
    versions = {
        type_url: {name: each.version for name, each in resources.by_name.items()}
        for type_url, resources in snapshot.types.items()
    }
    talk = Talk(ads)
    for type_url, names in ((CDS, ()), (EDS, (CLUSTER,)), (LDS, ()), (SRDS, ())):
        assert await talk.say(type_url, *names, versions=versions[type_url]) == []
    assert (await offer).taken
    await talk.end()
    talk = Talk(ads)
    versions[SRDS] |= {"/endpoints/ns/a": "other", "/endpoints/ns/gone": "old"}
    for type_url, names in ((CDS, ()), (EDS, (CLUSTER,)), (LDS, ())):
        assert await talk.say(type_url, *names, versions=versions[type_url]) == []
    assert await talk.say(SRDS, versions=versions[SRDS]) == [SRDS]
    assert talk.names(SRDS) == (["/endpoints/ns/a"], ["/endpoints/ns/gone"])
    await talk.end()
