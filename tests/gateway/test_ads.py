"""Messages to Envoy, one by one: for orders of events that a real one shows by chance only."""

import asyncio
import contextlib

from envoy.service.discovery.v3 import discovery_pb2

from pilotage.gateway.ads import Ads
from pilotage.gateway.snapshot import CDS, EDS, LDS, RDS, compiled
from tests.gateway.test_decisions import ADDRESS, claimed, route, up


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

    async def say(self, type_url, *names, version="", nonce="", error=""):
        """Send a request; returns what comes of it."""
        before = len(self.sent)
        request = discovery_pb2.DiscoveryRequest(
            type_url=type_url, resource_names=names, version_info=version, response_nonce=nonce
        )
        if error:
            request.error_detail.message = error
        await self._requests.put(request)
        return await self.after(before)

    async def after(self, before):
        for _ in range(20):
            await asyncio.sleep(0)
        return [each.type_url for each in self.sent[before:]]

    async def acknowledge(self, type_url, *names):
        last = [each for each in self.sent if each.type_url == type_url][-1]
        return await self.say(type_url, *names, version=last.version_info, nonce=last.nonce)

    async def end(self):
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task


async def test_what_is_referred_to_goes_first_and_an_offer_ends_with_the_last_acknowledgement():
    ads = Ads()
    snapshot = compiled(ADDRESS, claimed([route("a", ("a-1", 100))]), up("a-1"), {})
    offer = asyncio.create_task(ads.offer(snapshot))
    await asyncio.sleep(0)
    talk = Talk(ads)
    assert await talk.say(CDS) == [CDS]
    assert await talk.say(LDS) == []  # not before the clusters are warm
    assert await talk.say(EDS, "ns_a-1_80") == [EDS]
    assert await talk.acknowledge(EDS, "ns_a-1_80") == []
    assert await talk.acknowledge(CDS) == [LDS]
    assert await talk.say(RDS, "main") == [RDS]
    assert await talk.acknowledge(LDS) == []
    assert not offer.done()
    assert await talk.acknowledge(RDS, "main") == []
    assert (await offer).taken
    await talk.end()


async def test_routes_go_with_a_refused_listener_and_are_sent_again_with_the_next():
    ads = Ads()
    snapshot = compiled(ADDRESS, [], {}, {})
    offer = asyncio.create_task(ads.offer(snapshot))
    await asyncio.sleep(0)
    talk = Talk(ads)
    assert await talk.say(CDS) == [CDS]
    assert await talk.acknowledge(CDS) == []
    assert await talk.say(LDS) == [LDS]
    assert await talk.say(RDS, "main") == [RDS]
    refused, sent = talk.sent[-2], talk.sent[-1]
    assert await talk.say(LDS, nonce=refused.nonce, error="cannot bind") == []
    assert await offer == ("cannot bind", LDS)
    # No longer subscribed: that is no acknowledgement, and no request either.
    assert await talk.say(RDS, nonce=sent.nonce) == []
    assert await talk.say(RDS, nonce=sent.nonce) == []
    before = len(talk.sent)
    again = asyncio.create_task(ads.offer(snapshot))
    assert await talk.after(before) == [LDS]
    assert await talk.say(RDS, "main", nonce=sent.nonce) == [RDS]
    assert await talk.acknowledge(LDS) == []
    assert not again.done()
    assert await talk.acknowledge(RDS, "main") == []
    assert (await again).taken
    await talk.end()


async def test_an_envoy_that_comes_with_everything_gets_nothing():
    ads = Ads()
    snapshot = compiled(ADDRESS, claimed([route("a", ("a-1", 100))]), up("a-1"), {})
    versions = {each: resources.version for each, resources in snapshot.types.items()}
    offer = asyncio.create_task(ads.offer(snapshot))
    await asyncio.sleep(0)
    talk = Talk(ads)
    for type_url, names in ((CDS, ()), (EDS, ("ns_a-1_80",)), (LDS, ()), (RDS, ("main",))):
        assert await talk.say(type_url, *names, version=versions[type_url]) == []
    assert (await offer).taken
    await talk.end()
