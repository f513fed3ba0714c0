"""Consequence of each outcome of a reconcile, on a real API server."""

import asyncio
import contextlib
import itertools

import pytest

from pilotage.kube import Client, Conflict, ObjectKey, Propagation, load_config, merge_patch
from pilotage.kube.http import HttpTransport
from pilotage.runtime.conditions import find_condition
from pilotage.runtime.controller import owner_keys
from pilotage.runtime.manager import Manager
from pilotage.runtime.types import Result, TerminalError
from tests.runtime.objects import CONFIGMAPS, THINGS
from tests.runtime.things import install_things, make_thing
from tests.runtime.waiting import eventually
from tests.support.tcp_proxy import TcpProxy


@pytest.fixture
async def client(cluster, namespace, no_leaks):
    async with Client.connect(load_config(kubeconfig=str(cluster.kubeconfig))) as client:
        await install_things(client, namespace)
        yield client


@contextlib.asynccontextmanager
async def managed(client, namespace, reconcile, **options):
    """A running manager with one controller of Things; `reconcile(context, key)`."""
    manager = Manager(client, name="test", seed=1)
    informer = manager.informer(THINGS, namespace=namespace)
    watches = [(manager.informer(resource, namespace=namespace), keys) for resource, keys in options.pop("watches", [])]
    controller = manager.add(
        "things", informer, lambda context: lambda key: reconcile(context, key), watches=watches, **options
    )
    running = asyncio.create_task(manager.run())
    try:
        await eventually(manager.started.is_set)
        yield manager, controller, running
    finally:
        manager.stop()
        await running


class Calls(list[ObjectKey]):
    """The keys that were reconciled, in order."""

    async def settle(self, client, namespace):
        """Wait until nothing that has happened so far can cause another call: a sentinel object has had its turn."""
        name = f"sentinel-{len(self)}"
        await make_thing(client, namespace, name)
        await eventually(lambda: ObjectKey(namespace, name) in self)

    def of(self, name):
        return sum(key.name == name for key in self)


def is_sentinel(key):
    return key.name.startswith("sentinel")


async def test_an_own_status_write_does_not_wake_but_anyone_elses_does(client, namespace):
    calls = Calls()

    async def reconcile(context, key):
        calls.append(key)
        if not is_sentinel(key):
            patch = merge_patch({"status": {"seen": calls.of(key.name)}})
            await context.client.patch(THINGS, key, patch, subresource="status")

    async with managed(client, namespace, reconcile):
        key = await make_thing(client, namespace)
        await eventually(lambda: calls.of("a") == 1)
        await calls.settle(client, namespace)
        assert calls.of("a") == 1
        await client.patch(THINGS, key, merge_patch({"status": {"foreign": True}}), subresource="status")
        await eventually(lambda: calls.of("a") == 2)
        await client.patch(THINGS, key, merge_patch({"metadata": {"labels": {"x": "y"}}}))
        await eventually(lambda: calls.of("a") == 3)
        await calls.settle(client, namespace)
        assert calls.of("a") == 3


class WatchesThroughProxy:
    """A transport whose watches go another way than the rest: so that events can be late while answers are not."""

    def __init__(self, rest, watches):
        self._rest = rest
        self._watches = watches

    async def send(self, request):
        return await (self._watches if "watch=1" in request.target else self._rest).send(request)

    async def close(self):
        await self._rest.close()
        await self._watches.close()


async def test_a_change_by_another_whose_event_comes_after_an_own_write_still_wakes(cluster, client, namespace):
    seen = []

    async def reconcile(context, key):
        seen.append(context.store.get(key).get("spec", "x"))
        patch = merge_patch({"status": {"seen": len(seen)}})  # at whatever version the object is
        await context.client.patch(THINGS, key, patch, subresource="status")

    config = load_config(kubeconfig=str(cluster.kubeconfig))
    async with TcpProxy(config.server) as proxy:
        watches = HttpTransport(proxy.config(config))
        split = client.through(lambda rest: WatchesThroughProxy(rest, watches))
        async with managed(split, namespace, reconcile) as (_, controller, _):
            key = await make_thing(client, namespace, x=1)
            await eventually(lambda: key in controller.informer.store)
            await eventually(lambda: controller.informer.store.get(key).get("status", "seen") == 1)
            proxy.hold_answers()
            await client.patch(THINGS, key, merge_patch({"spec": {"x": 2}}))
            await proxy.held()
            controller.queue.add(key)
            await eventually(lambda: len(seen) == 2)
            assert seen == [1, 1], "its event was held back: this pass could not know"
            proxy.release()
            await eventually(lambda: seen[-1] == 2)
        await watches.close()


async def test_a_reconcile_reads_what_the_one_before_it_wrote(client, namespace):
    stale = []

    async def reconcile(context, key):
        thing = context.store.get(key)
        count = thing.get("status", "count", default=0)
        written = await context.client.patch(
            THINGS, key, merge_patch({"status": {"count": count + 1}}), subresource="status"
        )
        if context.store.get(key).meta.resource_version != written.meta.resource_version:
            stale.append(count)
        return Result(requeue_after=0) if count < 50 else None

    async with managed(client, namespace, reconcile):
        key = await make_thing(client, namespace)

        async def count():
            return (await client.get(THINGS, key)).get("status", "count")

        async with asyncio.timeout(30):
            while await count() != 51:  # noqa: ASYNC110 - another process's state
                await asyncio.sleep(0.02)
        assert stale == []


async def test_what_is_deleted_goes_first_and_what_is_new_waits_for_what_has_begun(client, namespace):
    calls, gate = Calls(), asyncio.Event()

    async def reconcile(_context, key):
        calls.append(key)
        if key.name == "busy":
            await gate.wait()

    await make_thing(client, namespace, "begun")
    doomed = await make_thing(client, namespace, "doomed")
    held = await client.patch(THINGS, doomed, merge_patch({"metadata": {"finalizers": ["test.dev/hold"]}}))
    async with managed(client, namespace, reconcile) as (_, controller, _running):
        await calls.settle(client, namespace)
        await make_thing(client, namespace, "busy")
        await eventually(lambda: calls[-1].name == "busy")
        for name in ("new-1", "new-2"):
            await make_thing(client, namespace, name)
        await client.patch(THINGS, ObjectKey(namespace, "begun"), merge_patch({"spec": {"size": 2}}))
        await client.delete(THINGS, doomed, uid=held.meta.uid, propagation=Propagation.BACKGROUND)
        await eventually(lambda: len(controller.queue) == 4)
        gate.set()
        await eventually(lambda: len(controller.queue) == 0 and calls[-1].name == "new-2")
        assert [key.name for key in calls[-4:]] == ["doomed", "begun", "new-1", "new-2"]
    await client.patch(THINGS, doomed, merge_patch({"metadata": {"finalizers": None}}))


async def test_an_error_is_retried_with_backoff_and_then_forgotten(client, namespace):
    calls = Calls()
    times = []

    async def reconcile(_context, key):
        calls.append(key)
        times.append(asyncio.get_running_loop().time())
        if len(calls) < 5:
            raise RuntimeError("not yet")

    async with managed(client, namespace, reconcile) as (manager, controller, _):
        key = await make_thing(client, namespace)
        await eventually(lambda: calls.of("a") == 5)
        gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
        assert all(gap >= 0.005 * 2**number for number, gap in enumerate(gaps))
        await eventually(lambda: controller.queue.num_requeues(key) == 0)
        ended = manager.metrics.registry.get_sample_value
        labels = {"controller": "things"}
        assert ended("controller_runtime_reconcile_total", labels | {"result": "error"}) == 4
        assert ended("controller_runtime_reconcile_total", labels | {"result": "success"}) == 1


async def test_a_conflict_is_retried_on_the_newer_object(client, namespace):
    seen = []

    async def reconcile(context, key):
        thing = context.store.get(key)
        if not seen:  # someone else changes it between our read and our write
            await client.patch(THINGS, key, merge_patch({"spec": {"by": "another"}}))
        seen.append(thing.get("spec", "by"))
        patch = merge_patch({"status": {"by": thing.get("spec", "by")}}, resource_version=thing.meta.resource_version)
        try:
            await context.client.patch(THINGS, key, patch, subresource="status")
        except Conflict:
            seen.append("conflict")
            raise

    async with managed(client, namespace, reconcile):
        key = await make_thing(client, namespace, by="us")
        await eventually(lambda: "another" in seen)
        assert seen[:2] == ["us", "conflict"]
        await eventually(lambda: seen[-1] == "another")
        assert (await client.get(THINGS, key)).get("status", "by") == "another"


async def test_requeue_after_calls_again_without_any_change(client, namespace):
    calls = Calls()

    async def reconcile(_context, key):
        calls.append(key)
        return Result(requeue_after=0.05) if len(calls) < 4 else None

    async with managed(client, namespace, reconcile):
        await make_thing(client, namespace)
        await eventually(lambda: len(calls) == 4)


async def test_children_wake_their_owner(client, namespace):
    calls = Calls()

    async def reconcile(_context, key):
        calls.append(key)

    async with managed(client, namespace, reconcile, watches=[(CONFIGMAPS, owner_keys(THINGS))]):
        key = await make_thing(client, namespace)
        await eventually(lambda: calls.of("a") == 1)
        owner = (await client.get(THINGS, key)).meta.uid
        reference = {"apiVersion": THINGS.api_version, "kind": "Thing", "name": "a", "uid": owner, "controller": True}
        meta = {"namespace": namespace, "name": "child", "ownerReferences": [reference]}
        child = await client.create(CONFIGMAPS, {"metadata": meta})
        await eventually(lambda: calls.of("a") == 2)
        await client.delete(CONFIGMAPS, child.key, uid=child.meta.uid, propagation=Propagation.BACKGROUND)
        await eventually(lambda: calls.of("a") == 3)


async def test_a_terminal_error_is_said_once_and_taken_back_on_success(client, namespace):
    calls = Calls()

    async def reconcile(context, key):
        calls.append(key)
        if context.store.get(key).get("spec", "colour") == "blue":
            raise TerminalError("UnknownColour", "blue is no colour")

    async with managed(client, namespace, reconcile):
        key = await make_thing(client, namespace, colour="blue")
        await eventually(lambda: calls.of("a") == 1)
        await calls.settle(client, namespace)
        stalled = find_condition((await client.get(THINGS, key)).get("status", "conditions"), "Stalled")
        assert stalled["status"] == "True"
        assert (stalled["reason"], stalled["message"]) == ("UnknownColour", "blue is no colour")
        assert calls.of("a") == 1
        await client.patch(THINGS, key, merge_patch({"spec": {"colour": "red"}}))
        await eventually(lambda: calls.of("a") == 2)
        await calls.settle(client, namespace)
        healed = find_condition((await client.get(THINGS, key)).get("status", "conditions"), "Stalled")
        assert (healed["status"], healed["reason"]) == ("False", "Reconciled")
        assert calls.of("a") == 2


async def test_a_terminal_error_that_comes_again_is_not_said_again(own_cluster, client, namespace):
    calls = Calls()

    async def reconcile(_context, key):
        calls.append(key)
        if not is_sentinel(key):
            raise TerminalError("UnknownColour", "blue is no colour")

    async with managed(client, namespace, reconcile) as (manager, _, running):
        key = await make_thing(client, namespace)
        await eventually(lambda: calls.of("a") == 1)
        await calls.settle(client, namespace)
        await client.patch(THINGS, key, merge_patch({"metadata": {"labels": {"x": "y"}}}))
        await eventually(lambda: calls.of("a") == 2)
        manager.stop()
        await running
    asked = own_cluster.audit(namespace=namespace)
    assert [record.verb for record in asked if record.resource == "events"] == ["create"]
    assert len([record for record in asked if record.subresource == "status"]) == 1


async def test_a_clean_stop_lets_a_running_reconcile_end_and_starts_no_other(client, namespace):
    begun, ended = Calls(), Calls()
    let_go = asyncio.Event()

    async def reconcile(context, key):
        begun.append(key)
        await let_go.wait()
        await context.client.patch(THINGS, key, merge_patch({"status": {"done": True}}), subresource="status")
        ended.append(key)

    async with managed(client, namespace, reconcile) as (manager, controller, running):
        key = await make_thing(client, namespace)
        await eventually(lambda: len(begun) == 1)
        await make_thing(client, namespace, "b")
        await eventually(lambda: len(controller.queue) == 1)
        manager.stop()
        let_go.set()
        await running
    assert [key.name for key in ended] == ["a"]
    assert [key.name for key in begun] == ["a"]
    assert (await client.get(THINGS, key)).get("status", "done") is True


async def test_a_second_stop_does_not_wait(client, namespace):
    begun = Calls()

    async def reconcile(_context, key):
        begun.append(key)
        await asyncio.Event().wait()

    async with managed(client, namespace, reconcile) as (manager, _, _):
        await make_thing(client, namespace)
        await eventually(lambda: len(begun) == 1)
        manager.stop()
        manager.stop()
