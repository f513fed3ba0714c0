"""The Host that an agent makes: what it says, that it is quiet, and that there is one agent for it."""

import asyncio

import pytest
import structlog
from msgspec.structs import replace

from pilotage.agent import host as host_module
from pilotage.agent.host import AnotherAgent, own_address, status_changes
from pilotage.agent.pressure import Level
from pilotage.agent.settings import AgentSettings, load_settings
from pilotage.api.names import HOST_LEASES, HOSTS
from pilotage.cli.commands.agent import agent as command
from pilotage.kube import LEASES, ObjectKey, merge_patch
from pilotage.kube.wire import format_micro_time
from pilotage.runtime.clock import utc_now
from pilotage.runtime.settings import SettingsError
from tests.agent.test_starting import quiet
from tests.cli.running import run
from tests.support.kinds import NAMESPACES, delete


def host(town):
    return town.world.find(HOSTS, ObjectKey("", town.host))


async def test_it_says_what_it_has(town):
    town.settings = replace(town.settings, labels=("disk=ssd", "zone=a"))
    town.memory.reading = town.memory.reading._replace(total=64 << 30, available=32 << 30)
    await town.start()
    await town.until(lambda: host(town) and host(town).get("status", {}).get("phase") == "Ready")
    status = host(town)["status"]
    assert status["addresses"] == ["127.0.0.1"]
    assert status["memoryBytes"] == 64 << 30
    assert status["freeBytes"] == 32 << 30
    assert [each["name"] for each in status["runtimes"]] == ["llama.cpp"]
    assert status["runtimes"][0]["path"].endswith("llama-server")
    assert status["cpus"] >= 1
    assert host(town)["metadata"]["labels"] == {"disk": "ssd", "zone": "a"}
    lease = town.world.find(LEASES, ObjectKey(HOST_LEASES, town.host))
    assert lease["spec"]["holderIdentity"].startswith(town.host)
    assert lease["spec"]["leaseDurationSeconds"] == 15


async def test_it_counts_servers_and_what_they_were_promised(town):
    await town.start()
    await town.serving(memoryBytes=32 << 30)
    await town.until(lambda: host(town)["status"]["processes"] == 1)
    await town.until(lambda: host(town)["status"]["freeBytes"] < 30 << 30)


async def test_labels_of_others_stay_and_ours_are_put_back(town):
    town.settings = replace(town.settings, labels=("disk=ssd",))
    await town.start()
    await town.until(lambda: host(town))
    patch = merge_patch({"metadata": {"labels": {"disk": "none", "theirs": "yes"}}})
    await town.client.patch(HOSTS, ObjectKey("", town.host), patch)
    await town.until(lambda: host(town)["metadata"]["labels"] == {"disk": "ssd", "theirs": "yes"})


async def test_it_is_quiet(town):
    await town.start()
    await town.until(lambda: host(town) and host(town).get("status", {}).get("phase") == "Ready")
    assert await quiet(town) == []


async def test_a_host_that_somebody_deletes_is_not_made_again(town):
    await town.start()
    await town.until(lambda: host(town) and host(town).get("status"))
    with structlog.testing.capture_logs() as logs:
        await delete(town.client, HOSTS, await town.client.get(HOSTS, ObjectKey("", town.host)))
        await town.until(lambda: [each for each in logs if "was deleted" in each["event"]])
        assert await quiet(town) == []
    assert host(town) is None
    await town.stop()
    await town.start()
    await town.until(lambda: host(town))


async def test_one_agent_for_one_name(town, monkeypatch):
    """Another one comes while we do not reach the API server, takes the Lease, and we step back."""
    monkeypatch.setattr(host_module, "RETRY_SECONDS", 0.2)
    await town.start()
    await town.serving()
    key = ObjectKey(HOST_LEASES, town.host)
    lease = (await town.client.get(LEASES, key)).to_dict()
    lease["spec"]["holderIdentity"] = "somebody else"
    await town.client.replace(LEASES, lease)
    with pytest.raises(AnotherAgent, match="somebody else"):
        await town.ended()
    town.nothing_but_logs_is_left()


async def test_an_agent_waits_for_the_lease_of_another(town):
    await town.client.create(NAMESPACES, {"metadata": {"name": HOST_LEASES}})
    spec = {"holderIdentity": "other", "leaseDurationSeconds": 15, "renewTime": format_micro_time(utc_now())}
    await town.client.create(LEASES, {"metadata": {"name": town.host}, "spec": spec}, namespace=HOST_LEASES)
    starting = asyncio.create_task(town.start())
    await asyncio.wait({starting}, timeout=0.5)
    assert not starting.done()
    assert host(town) is None
    starting.cancel()


def test_small_changes_of_memory_are_no_news():
    now = utc_now_of_a_loop()
    wanted = {"freeBytes": 1 << 30}
    old = status_changes({}, wanted, Level.NORMAL, stopping=False, now=now)
    assert status_changes(old, {"freeBytes": (1 << 30) + (64 << 20)}, Level.NORMAL, stopping=False, now=now) is None
    assert status_changes(old, {"freeBytes": 2 << 30}, Level.NORMAL, stopping=False, now=now) == {"freeBytes": 2 << 30}
    assert status_changes(old, {"freeBytes": 0}, Level.NORMAL, stopping=False, now=now) == {"freeBytes": 0}
    stops = status_changes(old, wanted, Level.WARNING, stopping=True, now=now)
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
