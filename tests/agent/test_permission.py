"""A spec is untrusted: the machine runs what its owner allows, and reports what it does not run, and why."""

import asyncio
import socket

import pytest

from pilotage.agent.health import Prober, ProbeResult
from pilotage.agent.launch.ports import Ports
from pilotage.agent.permission import LaunchRules, refusal
from pilotage.agent.settings import AgentSettings
from pilotage.api.host import ProcessSpec
from pilotage.api.names import HOSTS
from pilotage.kube import ObjectKey, merge_patch
from pilotage.serving.runtimes import RUNTIMES
from tests.agent.agent_host import python_server
from tests.agent.servers import PLAIN

NOBODYS_RULES = LaunchRules(commands=False, namespaces=(), host_namespaces=(), reserved_ports={8082})


def spec_of(**runtime):
    return ProcessSpec.read(
        {
            "endpoint": "chat",
            "service": "chat-1",
            "model": {"name": runtime.pop("model", "tiny"), "source": "file:///m.gguf"},
            "runtime": runtime,
        }
    )


def refused(rules=NOBODYS_RULES, namespace="team-a", **runtime):
    found = refusal(rules, namespace, spec_of(**runtime))
    return found.message if found is not None else ""


def test_a_runtime_of_another_version_is_refused():
    for commands in (False, True):
        words = refused(NOBODYS_RULES._replace(commands=commands), name="ollama")
        assert words == "this agent has no runtime ollama. Upgrade it, or choose another runtime"


# Of one that runs


async def refuses(host, words):
    """It says so, as an endpoint will; nothing was started."""
    await host.until(lambda: host.reason() == "NotAllowed")
    status = host.status()
    assert (status["phase"], status["ready"]) == ("Failed", False)
    assert words in status["message"]
    assert "pilotage agent --allow-commands" in status["message"]
    assert host.processes() == []
    assert not (host.settings.data / "logs").exists()


async def test_a_command_of_a_spec_is_not_run(host):
    """It would run as the agent's user, who can read the agent's key and what lies beside it."""
    host.strict()
    key, stolen = host.folder / "ca.key", host.folder / "stolen"
    key.write_text("PRIVATE KEY")
    await host.start()
    steal = {"name": "custom", "command": ["/bin/sh", "-c", f"cat {key} > {stolen}"], "args": []}
    await host.place(runtime=steal)
    await refuses(host, "runtime.command is not run on this machine")
    assert not stolen.exists()


@pytest.mark.parametrize(
    "attack", ["--path", "--log-file", "--slot-save-path", "--media-path", "--models-dir", "--api-key-file"]
)
async def test_no_argument_of_llama_server_reads_or_writes_files(host, attack):
    host.strict()
    await host.start()
    await host.place(runtime={"args": ["--threads", "1", attack, str(host.folder)]})
    await refuses(host, f"The argument {attack} of runtime.args")


async def test_no_variable_brings_code_into_a_server(host):
    host.strict()
    await host.start()
    await host.place(runtime={"env": [{"name": "LD_PRELOAD", "value": str(host.folder / "evil.so")}]})
    await refuses(host, "The variable LD_PRELOAD of runtime.env")


async def test_a_preset_with_ordinary_arguments_serves(host):
    host.strict()
    await host.start()
    await host.serving(
        runtime={
            "args": ["--threads", "1", "-c", "512", "--no-slots"],
            "env": [{"name": "OMP_NUM_THREADS", "value": "1"}],
        }
    )


async def test_a_namespace_that_the_agent_was_not_started_for(host):
    host.strict(namespaces=("team-a",))
    await host.start()
    await host.place()
    await host.until(lambda: host.reason() == "NotAllowed")
    assert "nothing of namespace default: the agent's --namespaces" in host.status()["message"]
    await host.until(lambda: host.world.find(HOSTS, ObjectKey("", host.name))["status"].get("namespaces") == ["team-a"])


async def test_a_namespace_that_the_host_does_not_allow_and_then_does(host):
    """The agent enforces it by itself, whoever has placed the process."""
    await host.start()
    key = ObjectKey("", host.name)
    await host.until(lambda: host.world.find(HOSTS, key))
    await host.client.patch(HOSTS, key, merge_patch({"spec": {"allowedNamespaces": ["team-a"]}}))
    await host.until(lambda: host.running.agent._host.allowed_namespaces == ("team-a",))
    await host.place(runtime=python_server(PLAIN))
    await host.until(lambda: host.reason() == "NotAllowed")
    assert "spec.allowedNamespaces of its Host" in host.status()["message"]
    assert host.processes() == []
    await host.client.patch(HOSTS, key, merge_patch({"spec": {"allowedNamespaces": ["default"]}}))
    await host.until(lambda: host.is_ready())


async def test_a_namespace_that_the_host_does_not_allow_while_the_agent_has_only_just_started(host, monkeypatch):
    async def not_yet(*_):
        await asyncio.Event().wait()

    monkeypatch.setattr("pilotage.agent.host.OwnHostController.reconcile", not_yet)
    await host.client.create(HOSTS, {"metadata": {"name": host.name}, "spec": {"allowedNamespaces": ["team-a"]}})
    await host.start()
    await host.place(runtime=python_server(PLAIN))
    await host.until(lambda: host.reason() == "NotAllowed")
    assert host.processes() == []


async def test_a_port_of_the_machine_itself(host):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    host.strict(metrics_address=f"127.0.0.1:{port}")
    await host.start()
    await host.place(runtime={"port": port})
    await host.until(lambda: host.reason() == "NotAllowed")
    assert f"runtime.port is {port}, which a service of this machine has" in host.status()["message"].replace(
        "R", "r", 1
    )


async def test_an_answer_without_end_is_not_read(host):
    """A server that answers its health check without end costs its agent nothing."""
    script = """
import os, socket
taken = socket.create_server(("127.0.0.1", int(os.environ["PORT"])))
while True:
    one, _ = taken.accept()
    one.recv(65536)
    try:
        one.sendall(b"HTTP/1.1 200 OK\\r\\n\\r\\n")
        while True: one.sendall(b"x" * (1 << 20))
    except OSError: pass
"""
    await host.start()
    before = _peak_kib()
    await host.serving(runtime=python_server(script))
    entry = host.running.journal.entries()[0]
    as_vllm = entry.but(runtime="vllm", alias="tiny")  # whose answers are read, not only their status
    async with Prober("127.0.0.1") as prober:
        assert (await prober.check(as_vllm)).result is ProbeResult.FOREIGN
        assert await prober.in_flight(as_vllm) is None
    assert _peak_kib() - before < 64 << 10


def _peak_kib():
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


# The rules


@pytest.mark.parametrize(
    "args",
    [
        ["--path", "/"],
        ["--path=/"],
        ["--log_file", "x"],
        ["--ctx_size", "5"],
        ["--ctx-siz", "5"],
        ["@/etc/passwd"],
        ["/etc/passwd"],
        ["--"],
        ["-"],
        [""],
        ["--ctx-size"],
        ["--ctx-size", "--path"],
        ["--ctx-size", "{model}"],
        ["--ctx-size=5\n--path=/"],
        ["-c=5"],
        ["--jinja=/x"],
        ["--jinja", "/x"],
        ["--chat-template", "../../x"],
        ["--chat-template-file", "x"],
        ["--host", "0.0.0.0"],
        ["--port", "1"],
        ["--model", "x"],
        ["--alias", "x"],
        ["--tools", "all"],
        ["--agent"],
        ["--ui"],
        ["--rpc", "1.2.3.4:5"],
        ["--lora", "x"],
        ["--hf-repo", "a/b"],
        ["--metrics", "x"],
        ["--no-such-thing"],
    ],
)
def test_arguments_that_no_stranger_may_give(args):
    assert "of runtime.args" in refused(args=args)


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["--threads", "1"],
        ["-c", "8192", "--parallel=2"],
        ["--flash-attn", "on", "-ngl", "99", "--device", "CUDA0,CUDA1"],
        ["--temp", "0.7", "--seed", "-1", "-n", "-1"],
        ["--embeddings", "--pooling", "mean"],
        ["--cache-type-k", "q8_0", "--jinja", "--reasoning-format", "deepseek"],
    ],
)
def test_arguments_that_everybody_may_give(args):
    assert refused(args=args) == ""


@pytest.mark.parametrize(
    "args", [["-c", "999999.5"], ["--ctx-size", "-1"], ["-ub", "10000"], ["--batch-size", "999999999"]]
)
def test_no_number_makes_a_server_take_more_memory_than_was_reckoned_with(args):
    """llama-server reads 999999.5 as 999999, and the agent, which takes whole numbers, as none."""
    assert f"the argument {' '.join(args)} of runtime.args" in refused(args=args)


@pytest.mark.parametrize("name", ["llama.cpp", "vllm", "tgi"])
@pytest.mark.parametrize(
    "variable",
    ["LD_PRELOAD", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "GGML_BACKEND_PATH", "LLAMA_ARG_LOG_FILE", "HF_ENDPOINT"],
)
def test_variables_that_no_stranger_may_give(name, variable):
    assert f"the variable {variable} " in refused(name=name, env=[{"name": variable, "value": "1"}])


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("vllm", ["--config", "x"]),
        ("vllm", ["--trust-remote-code"]),
        ("vllm", ["--chat-template", "x"]),
        ("vllm", ["--tool-parser-plugin", "x"]),
        ("vllm", ["--max-model", "1"]),
        ("tgi", ["--trust-remote-code"]),
        ("tgi", ["--master-shard-uds-path", "/x"]),
        ("sglang", ["--anything"]),
    ],
)
def test_other_presets_have_tables_of_their_own(name, args):
    assert "of runtime.args" in refused(name=name, args=args)


def test_no_table_has_an_option_that_names_a_file_a_port_or_code():
    suspicious = (
        "file",
        "path",
        "dir",
        "url",
        "host",
        "port",
        "plugin",
        "template-",
        "tool-",
        "lora",
        "config",
        "code",
    )
    known = {"--tool-call-parser", "--enable-auto-tool-choice"}  # how its answers are read
    for runtime in RUNTIMES.values():
        found = {name for name in runtime.allowed.options if any(word in name for word in suspicious)}
        assert found <= known, runtime.name


@pytest.mark.parametrize(
    ("words", "runtime"),
    [
        ("runtime.port is 80, and ports below 1024", {"port": 80}),
        ("runtime.port is 8082, which a service of this machine has", {"port": 8082}),
        ("is no path of printable ASCII characters", {"healthPath": "/\r\nHost: x"}),
        ("is no path of printable ASCII characters", {"healthPath": "/\u2028"}),
        ("could be taken for an option", {"model": "--path"}),
        ("runtime.command is not run", {"command": ["llama-server"]}),
        ("runtime.command is not run", {"name": "custom", "image": "x"}),
    ],
)
def test_what_else_is_refused(words, runtime):
    assert words in refused(**runtime)


def test_an_owner_who_allows_commands_has_the_ports_and_namespaces_all_the_same():
    rules = LaunchRules(commands=True, namespaces=("team-a",), host_namespaces=(), reserved_ports={8082})
    assert refused(rules, name="custom", command=["/bin/sh"], env=[{"name": "LD_PRELOAD", "value": "x"}]) == ""
    assert refused(rules, port=8082)
    assert refused(rules, namespace="team-b")


def test_words_of_a_spec_are_short_and_plain_in_messages():
    message = refused(args=["--\x1b]52;c;" + "x" * 5000])
    assert message.isprintable()
    assert len(message) < 400


def test_the_ports_of_this_machine_are_known():
    settings = AgentSettings(metrics_address="127.0.0.1:8082", reserved_ports=(8080,))
    assert LaunchRules.of(settings, (), 6443).reserved_ports == {8080, 8082, 6443}
    assert LaunchRules.of(settings, (), 0).reserved_ports == {8080, 8082}


def test_a_reserved_port_is_given_to_nobody(monkeypatch):
    given = iter([4000, 4001])
    monkeypatch.setattr("pilotage.agent.launch.ports.free_port", lambda *_: next(given))
    assert Ports("127.0.0.1", (4000,)).take() == 4001
