"""The informer on a real API server, through everything that can happen to its connection."""

import asyncio
import contextlib
import random

import pytest

from pilotage.kube import Client, ObjectKey, Propagation, load_config, merge_patch
from pilotage.runtime import informer
from pilotage.runtime.informer import Informer
from tests.runtime.objects import CONFIGMAPS
from tests.runtime.waiting import eventually
from tests.support.tcp_proxy import TcpProxy

SECONDS_MAX = 60


class Mirror:
    """State as a handler was told, and the rule that every step starts from the state that was told before."""

    def __init__(self) -> None:
        self.objects: dict[ObjectKey, str] = {}
        self.deleted: list[str] = []
        self._told = asyncio.Event()

    def __call__(self, change):
        key = change.object.key
        known = self.objects.get(key)
        if change.new is None:
            assert known == change.old.meta.uid, f"{key}: deleted, but not known"
            del self.objects[key]
            self.deleted.append(change.old.meta.uid)
        elif change.old is None:
            assert known is None, f"{key}: added twice"
            self.objects[key] = change.new.meta.uid
        else:
            assert known == change.new.meta.uid == change.old.meta.uid, f"{key}: changed into another object"
            assert int(change.new.meta.resource_version) > int(change.old.meta.resource_version), f"{key}: went back"
        self._told.set()

    async def until(self, condition):
        """Wait until what was told fulfils a condition."""
        async with asyncio.timeout(SECONDS_MAX):
            while not condition(self):
                self._told.clear()
                await self._told.wait()


@contextlib.asynccontextmanager
async def informed(config, namespace, **options):
    """A running, synced informer of ConfigMaps, and its mirror."""
    async with Client.connect(config) as client:
        informer = Informer(client, CONFIGMAPS, rng=random.Random(7), namespace=namespace, **options)
        mirror = Mirror()
        informer.add_handler(mirror)
        running = asyncio.create_task(informer.run())
        try:
            async with asyncio.timeout(SECONDS_MAX):
                await informer.synced.wait()
            yield informer, mirror
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


@pytest.fixture
async def direct(cluster, no_leaks):
    """A client past the proxy: what others do to the objects."""
    async with Client.connect(load_config(kubeconfig=str(cluster.kubeconfig))) as client:
        yield client


@pytest.fixture
async def proxied(cluster, no_leaks):
    config = load_config(kubeconfig=str(cluster.kubeconfig))
    async with TcpProxy(config.server) as proxy:
        yield proxy, proxy.config(config)


@pytest.fixture
def impatient(monkeypatch):
    """Shorten the pauses of an informer, which grow to many seconds while the API server restarts."""
    monkeypatch.setattr(informer, "RETRY_SECONDS", (0.1, 0.4))


async def make(client, namespace, *names):
    made = [
        await client.create(CONFIGMAPS, {"metadata": {"namespace": namespace, "name": name}, "data": {"n": name}})
        for name in names
    ]
    return {obj.meta.name: obj.meta.uid for obj in made}


async def unmake(client, namespace, uids):
    for name, uid in uids.items():
        await client.delete(CONFIGMAPS, ObjectKey(namespace, name), uid=uid, propagation=Propagation.BACKGROUND)


def knows(uids, namespace):
    """The condition that exactly these are known, besides what Kubernetes itself puts into every namespace."""
    wanted = {ObjectKey(namespace, name): uid for name, uid in uids.items()}

    def condition(mirror):
        return {key: uid for key, uid in mirror.objects.items() if key.name != "kube-root-ca.crt"} == wanted

    return condition


async def test_it_follows_every_change(proxied, direct, namespace):
    _, config = proxied
    async with informed(config, namespace) as (informer, mirror):
        uids = await make(direct, namespace, "a", "b")
        await mirror.until(knows(uids, namespace))
        patched = await direct.patch(CONFIGMAPS, ObjectKey(namespace, "a"), merge_patch({"data": {"n": "2"}}))
        await unmake(direct, namespace, {"b": uids["b"]})
        await mirror.until(knows({"a": uids["a"]}, namespace))
        assert informer.store.get(patched.key).get("data", "n") == "2"
        assert mirror.deleted == [uids["b"]]


async def test_a_delete_while_the_connection_is_down_is_seen(proxied, direct, namespace):
    proxy, config = proxied
    async with informed(config, namespace) as (_, mirror):
        uids = await make(direct, namespace, "a", "b", "c")
        await mirror.until(knows(uids, namespace))
        proxy.refuse()
        await unmake(direct, namespace, {"b": uids.pop("b")})
        proxy.accept()
        await mirror.until(knows(uids, namespace))


async def test_an_object_made_anew_while_the_connection_is_down_is_deleted_then_added(proxied, direct, namespace):
    proxy, config = proxied
    async with informed(config, namespace) as (_, mirror):
        first = await make(direct, namespace, "a")
        await mirror.until(knows(first, namespace))
        proxy.refuse()
        await unmake(direct, namespace, first)
        second = await make(direct, namespace, "a")
        proxy.accept()
        await mirror.until(knows(second, namespace))
        assert mirror.deleted == [first["a"]]


async def test_a_connection_cut_in_the_middle_of_an_event_loses_nothing(proxied, direct, namespace):
    proxy, config = proxied
    async with informed(config, namespace) as (_, mirror):
        uids = {}
        for number in range(5):
            proxy.cut_after(200 + 150 * number)  # an event has about a thousand bytes
            uids |= await make(direct, namespace, f"a{number}")
            if number:
                await unmake(direct, namespace, {f"a{number - 1}": uids.pop(f"a{number - 1}")})
            await mirror.until(knows(uids, namespace))
        assert proxy.connections >= 5


async def test_it_survives_a_restart_of_the_api_server(own_cluster, direct, namespace, impatient):
    async with informed(load_config(kubeconfig=str(own_cluster.kubeconfig)), namespace) as (_, mirror):
        uids = await make(direct, namespace, "a", "b")
        await mirror.until(knows(uids, namespace))
        await asyncio.to_thread(own_cluster.restart_apiserver)
        await unmake(direct, namespace, {"a": uids.pop("a")})
        uids |= await make(direct, namespace, "c")
        await mirror.until(knows(uids, namespace))


async def test_it_lists_again_when_its_version_was_compacted(own_cluster, proxied, direct, namespace, impatient):
    proxy, config = proxied
    async with informed(config, namespace) as (informer, mirror):
        uids = await make(direct, namespace, "a", "b", "c")
        await mirror.until(knows(uids, namespace))
        proxy.refuse()
        await unmake(direct, namespace, {"a": uids["a"], "b": uids.pop("b")})
        again = await make(direct, namespace, "a")
        await asyncio.to_thread(own_cluster.expire_resource_versions)
        lost_at = informer.resource_version
        proxy.accept()
        await mirror.until(knows(uids | again, namespace))
        assert len(mirror.deleted) == 2
        assert int(informer.resource_version) > int(lost_at)


async def test_who_wrote_before_a_list_looks_again_after_it(own_cluster, proxied, direct, namespace, impatient):
    """Other clients may have written between the write and the list, and the events that would tell are gone."""
    proxy, config = proxied
    told = []
    async with informed(config, namespace) as (informer, mirror):
        uids = await make(direct, namespace, "a")
        await mirror.until(knows(uids, namespace))
        proxy.refuse()
        written = await direct.patch(CONFIGMAPS, ObjectKey(namespace, "a"), merge_patch({"data": {"n": "2"}}))
        informer.observe(written, writer=told.append)
        assert informer.store.get(written.key) is written
        assert told == []
        await asyncio.to_thread(own_cluster.expire_resource_versions)
        proxy.accept()
        await eventually(lambda: len(told) == 1)
        assert told[0].gap


async def test_a_stall_of_30_seconds_loses_nothing(proxied, direct, namespace):
    proxy, config = proxied
    async with informed(config, namespace) as (_, mirror):
        uids = await make(direct, namespace, "a", "b")
        await mirror.until(knows(uids, namespace))
        proxy.hold()
        await unmake(direct, namespace, {"a": uids.pop("a")})
        await asyncio.sleep(30)  # the stall itself: the test is that it ends well, not when
        uids |= await make(direct, namespace, "c")
        assert not knows(uids, namespace)(mirror)
        proxy.release()
        await mirror.until(knows(uids, namespace))


async def test_a_connection_that_stays_open_and_says_nothing_is_given_up(proxied, direct, namespace):
    proxy, config = proxied
    async with informed(config, namespace, idle_seconds_max=1.0) as (informer, mirror):
        uids = await make(direct, namespace, "a")
        await mirror.until(knows(uids, namespace))
        proxy.hold()
        await unmake(direct, namespace, {"a": uids.pop("a")})
        await eventually(lambda: informer.problem is not None)
        assert "not even a bookmark" in str(informer.problem)
        proxy.cut()
        proxy.release()
        await mirror.until(knows(uids, namespace))


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_any_mixture_of_changes_and_faults_ends_in_the_true_state(proxied, direct, namespace, seed):
    proxy, config = proxied
    rng = random.Random(seed)
    async with informed(config, namespace) as (_, mirror):
        uids: dict[str, str] = {}
        for _ in range(60):
            name = rng.choice("abcdef")
            if name not in uids:
                uids |= await make(direct, namespace, name)
            elif rng.random() < 0.5:
                await unmake(direct, namespace, {name: uids.pop(name)})
            else:
                patch = merge_patch({"data": {"x": str(rng.random())}})
                await direct.patch(CONFIGMAPS, ObjectKey(namespace, name), patch)
            if rng.random() < 0.15:
                rng.choice([proxy.cut, proxy.refuse, proxy.hold, lambda: proxy.cut_after(rng.randrange(3000))])()
            if rng.random() < 0.3:
                proxy.accept()
                proxy.release()
        proxy.accept()
        proxy.release()
        await mirror.until(knows(uids, namespace))
