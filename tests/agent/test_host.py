"""The Host that an agent makes: what it says, that it is quiet, and that there is one agent for it."""

import asyncio

import aiohttp
import pytest
import structlog
from msgspec.structs import replace

from pilotage.agent import host as host_module
from pilotage.agent.host import AnotherAgent, own_address, status_changes
from pilotage.agent.pressure import PressureLevel
from pilotage.agent.run import AgentExit
from pilotage.agent.settings import AgentSettings, load_settings
from pilotage.api.names import HOST_LEASES, HOSTS
from pilotage.cli.commands.agent import agent as command
from pilotage.kube import LEASES, ObjectKey, merge_patch
from pilotage.kube.wire import format_micro_time
from pilotage.runtime.clock import utc_now
from pilotage.runtime.settings import SettingsError
from tests.agent.agent_host import python_server, refuse
from tests.agent.servers import PLAIN
from tests.agent.test_starting import quiet
from tests.cli.running import run
from tests.support.kinds import NAMESPACES, delete


def host_object(host):
    return host.world.find(HOSTS, ObjectKey("", host.name))


async def test_it_says_what_it_has(host):
    host.settings = replace(host.settings, labels=("disk=ssd", "zone=a"))
    host.memory.reading = host.memory.reading._replace(total=64 << 30, available=32 << 30)
    await host.start()
    await host.until(lambda: host_object(host) and host_object(host).get("status", {}).get("phase") == "Ready")
    status = host_object(host)["status"]
    assert status["addresses"] == ["127.0.0.1"]
    assert status["memoryBytes"] == 64 << 30
    assert status["freeBytes"] == 32 << 30
    assert [each["name"] for each in status["runtimes"]] == ["llama.cpp"]
    assert status["runtimes"][0]["path"].endswith("llama-server")
    assert status["cpus"] >= 1
    assert host_object(host)["metadata"]["labels"] == {"disk": "ssd", "zone": "a"}
    lease = host.world.find(LEASES, ObjectKey(HOST_LEASES, host.name))
    assert lease["spec"]["holderIdentity"].startswith(host.name)
    assert lease["spec"]["leaseDurationSeconds"] == 15


async def test_it_counts_servers_and_what_they_were_promised(host):
    await host.start()
    await host.serving(memoryBytes=32 << 30)
    await host.until(lambda: host_object(host)["status"]["processes"] == 1)
    await host.until(lambda: host_object(host)["status"]["freeBytes"] < 30 << 30)


async def test_labels_of_others_stay_and_ours_are_put_back(host):
    host.settings = replace(host.settings, labels=("disk=ssd",))
    await host.start()
    await host.until(lambda: host_object(host))
    patch = merge_patch({"metadata": {"labels": {"disk": "none", "theirs": "yes"}}})
    await host.client.patch(HOSTS, ObjectKey("", host.name), patch)
    await host.until(lambda: host_object(host)["metadata"]["labels"] == {"disk": "ssd", "theirs": "yes"})


async def test_it_is_quiet(host):
    await host.start()
    await host.until(lambda: host_object(host) and host_object(host).get("status", {}).get("phase") == "Ready")
    assert await quiet(host) == []


async def test_a_host_that_somebody_deletes_is_not_made_again(host):
    await host.start()
    await host.until(lambda: host_object(host) and host_object(host).get("status"))
    with structlog.testing.capture_logs() as logs:
        await delete(host.client, HOSTS, await host.client.get(HOSTS, ObjectKey("", host.name)))
        await host.until(lambda: [each for each in logs if "was deleted" in each["event"]])
        assert await quiet(host) == []
    assert host_object(host) is None
    await host.stop()
    await host.start()
    await host.until(lambda: host_object(host))


async def test_one_agent_for_one_name(host, monkeypatch):
    """Another one comes while we do not reach the API server, takes the Lease, and we step back."""
    monkeypatch.setattr(host_module, "RETRY_SECONDS", 0.2)
    await host.start()
    await host.serving()
    key = ObjectKey(HOST_LEASES, host.name)
    lease = (await host.client.get(LEASES, key)).to_dict()
    lease["spec"]["holderIdentity"] = "somebody else"
    await host.client.replace(LEASES, lease)
    with pytest.raises(AnotherAgent, match="somebody else"):
        await host.ended()
    host.nothing_but_logs_is_left()


async def test_an_agent_waits_for_the_lease_of_another(host):
    await host.client.create(NAMESPACES, {"metadata": {"name": HOST_LEASES}})
    spec = {"holderIdentity": "other", "leaseDurationSeconds": 15, "renewTime": format_micro_time(utc_now())}
    await host.client.create(LEASES, {"metadata": {"name": host.name}, "spec": spec}, namespace=HOST_LEASES)
    starting = asyncio.create_task(host.start())
    await asyncio.wait({starting}, timeout=0.5)
    assert not starting.done()
    assert host_object(host) is None
    starting.cancel()


def test_small_changes_of_memory_are_no_news():
    now = utc_now_of_a_loop()
    wanted = {"freeBytes": 1 << 30}
    old = status_changes({}, wanted, PressureLevel.NORMAL, stopping=False, now=now)
    assert (
        status_changes(old, {"freeBytes": (1 << 30) + (64 << 20)}, PressureLevel.NORMAL, stopping=False, now=now)
        is None
    )
    assert status_changes(old, {"freeBytes": 2 << 30}, PressureLevel.NORMAL, stopping=False, now=now) == {
        "freeBytes": 2 << 30
    }
    assert status_changes(old, {"freeBytes": 0}, PressureLevel.NORMAL, stopping=False, now=now) == {"freeBytes": 0}
    stops = status_changes(old, wanted, PressureLevel.WARNING, stopping=True, now=now)
    assert stops["phase"] == "Stopping"


def utc_now_of_a_loop():
    async def now():
        return utc_now()

    return asyncio.run(now())


def test_the_address_of_this_machine():
    assert own_address("https://127.0.0.1:6443") == "127.0.0.1"
    assert own_address("https://no.such.host.invalid") == "127.0.0.1"


def test_every_setting_has_a_flag_and_a_line_of_help():
    flags = {option.name for option in command.params}
    assert flags == {*AgentSettings.__struct_fields__, "config", "kubeconfig", "context"}
    assert all(option.help for option in command.params)
    assert "--file-roots" in run("agent", "--help").out


def test_settings_come_from_flags_variables_and_a_file(tmp_path):
    file = tmp_path / "agent.yaml"
    file.write_text("name: by-file\nlabels: [a=b]\nbind: 0.0.0.0\n")
    env = {"PILOTAGE_AGENT_NAME": "by-variable", "PILOTAGE_AGENT_FILE_ROOTS": "/a /b"}
    settings = load_settings({"bind": "::1"}, env, file)
    assert (settings.name, settings.bind, settings.label_map) == ("by-variable", "::1", {"a": "b"})
    assert [str(each) for each in settings.file_roots] == ["/a", "/b"]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"name": "No_Good"}, "--name: 'No_Good' cannot be used: a Host's name has at most"),
        ({"address": "example.com"}, "--address: 'example.com' cannot be used"),
        ({"labels": ("a",)}, "--labels: 'a' cannot be used: it is KEY=VALUE"),
        ({"metrics_address": "80"}, "--metrics-address: '80' cannot be used: it is HOST:PORT"),
    ],
)
def test_a_setting_that_cannot_be_used_is_said_so(flags, words):
    with pytest.raises(SettingsError) as error:
        load_settings(flags, {})
    assert words in str(error.value)


def test_a_setting_that_there_is_not(tmp_path):
    file = tmp_path / "agent.yaml"
    file.write_text("fileRoot: [/a]\n")
    with pytest.raises(SettingsError, match="did you mean fileRoots"):
        load_settings({}, {"PILOTAGE_AGENT_CONFIG": str(file)})


async def test_an_agent_that_waits_for_its_lease_says_so(host):
    """It answers at once, and nothing is done before the Lease is its own."""
    host.settings = replace(host.settings, metrics_address="127.0.0.1:0")
    answer, left = refuse(503, "ServiceUnavailable", method="GET", resource="leases")
    stop = host.world.intercept(answer)
    starting = asyncio.create_task(host.start())
    await host.until(lambda: host.running is not None and host.running.manager.port and left[0] < 10**9)
    place = f"http://127.0.0.1:{host.running.manager.port}"
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{place}/healthz") as alive:
            assert alive.status == 200
        async with session.get(f"{place}/readyz") as ready:
            assert (ready.status, await ready.text()) == (503, f"the Lease of host {host.name}: not acquired yet\n")
    assert host_object(host) is None
    stop()
    await starting
    await host.until(lambda: host_object(host))


async def test_an_agent_that_never_had_its_lease_leaves_everything_as_it_was(host):
    """Whoever has it may be in charge of what is in the journal."""
    await host.start()
    await host.serving(runtime=python_server(PLAIN), drainSeconds=0)
    await host.crash()
    before = host.slice(), host.find(), host.processes()
    answer, left = refuse(503, "ServiceUnavailable", method="GET", resource="leases")
    host.world.intercept(answer)
    starting = asyncio.create_task(host.start())
    await host.until(lambda: left[0] < 10**9)
    assert await host.stop() == AgentExit.UNPROVEN
    starting.cancel()
    assert (host.slice(), host.find(), host.processes()) == before
