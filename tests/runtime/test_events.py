"""Events on a real API server: one per note, counted when it repeats, and never in the way."""

import asyncio
import random

import pytest

from pilotage.kube import EVENTS, Client, load_config
from pilotage.runtime.events import Recorder
from tests.runtime.objects import THINGS
from tests.runtime.things import install_things, make_thing


@pytest.fixture
async def client(cluster, namespace, no_leaks):
    async with Client.connect(load_config(kubeconfig=str(cluster.kubeconfig))) as client:
        await install_things(client, namespace)
        yield client


@pytest.fixture
async def recorder(client):
    recorder = Recorder(client, controller="pilotage.dev/test", instance="test-1", rng=random.Random(3))
    running = asyncio.create_task(recorder.run())
    yield recorder
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_note_becomes_an_event_that_kubectl_shows(cluster, client, namespace, recorder):
    thing = await client.get(THINGS, await make_thing(client, namespace))
    recorder.warning(thing, "NoSuchFile", "the file is not there")
    await recorder.flush()
    described = cluster.kubectl("describe", "thing", "a", "-n", namespace)
    assert "NoSuchFile" in described
    assert "the file is not there" in described


async def test_a_note_that_repeats_is_one_event_with_a_count(own_cluster, client, namespace, recorder):
    thing = await client.get(THINGS, await make_thing(client, namespace))
    mark = own_cluster.audit_mark()
    for _ in range(1000):
        recorder.normal(thing, "Tick", "tock")
        await recorder.flush()
    recorder.normal(thing, "Other", "tock")
    await recorder.flush()
    events = {event.get("reason"): event for event in (await client.list(EVENTS, namespace)).items}
    assert set(events) == {"Tick", "Other"}
    assert events["Tick"].get("series", "count") == 512
    assert (
        len(own_cluster.audit(since=mark, resource="events", namespace=namespace)) <= 13
    )  # 1, 2, 4, … 512, Other, the list


async def test_a_long_note_in_any_script_is_cut_and_written(client, namespace, recorder):
    thing = await client.get(THINGS, await make_thing(client, namespace))
    recorder.normal(thing, "Long", "모델" * 1000)
    recorder.normal(thing, "Odd", "\ud800")
    await recorder.flush()
    notes = {event.get("reason"): event.get("note") for event in (await client.list(EVENTS, namespace)).items}
    assert notes["Long"].startswith("모델모델")
    assert set(notes) == {"Long", "Odd"}


async def test_an_event_that_cannot_be_written_is_dropped_and_counted(client, namespace, recorder):
    thing = await client.get(THINGS, await make_thing(client, namespace))
    recorder.normal(thing, "", "an Event needs a reason")
    recorder.normal(thing, "Fine", "this one goes through")
    await recorder.flush()
    assert recorder.dropped == 1
    assert [event.get("reason") for event in (await client.list(EVENTS, namespace)).items] == ["Fine"]
