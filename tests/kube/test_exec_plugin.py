"""Exec plugins: real programs, asked for credentials as a client does it."""

import asyncio
import json
import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from pilotage.kube.config import ClusterConfig, CredentialsError, load_config
from pilotage.kube.credentials import Impersonating
from pilotage.kube.exec_plugin import ExecPlugin
from pilotage.kube.exec_run import ExecSettings
from tests.kube.test_tls import issue
from tests.virtual_time import run_warp, warp

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"
SECRET = "s3cr3t-that-nobody-may-see"
NOW = datetime(2030, 1, 1, tzinfo=UTC).timestamp()

# It records its runs and its input, and answers as the file `answer` says.
PLUGIN = """
import os, pathlib, sys
here = pathlib.Path(__file__).parent
with open(here / "runs", "a") as runs:
    runs.write("x")
(here / "info").write_text(os.environ["KUBERNETES_EXEC_INFO"])
(here / "seen").write_text("|".join([*sys.argv[1:], os.environ.get("WHO", ""), os.environ.get("INHERITED", "")]))
sys.stderr.write((here / "stderr").read_text())
sys.stdout.write((here / "answer").read_text())
sys.exit(int((here / "code").read_text()))
"""

# It says hello on a socket, and then nothing more: the socket ends when the program does.
STUCK = """
import os, pathlib, socket, subprocess, sys, time
if "--child" not in sys.argv:
    sys.stderr.write("visit https://login.example\\x1b[31m to log in\\n")
    sys.stderr.flush()
    if "--parent" in sys.argv:
        sys.exit(subprocess.Popen([sys.executable, "-IS", __file__, "--child"]) and 0)
with socket.socket(socket.AF_UNIX) as s:
    s.connect(str(pathlib.Path(__file__).parent / "socket"))
    s.sendall(b"hello")
    while True:
        time.sleep(3600)
"""


def answer(api_version: str = V1, **status: object) -> str:
    return json.dumps({"kind": "ExecCredential", "apiVersion": api_version, "status": status})


def bearer(token: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {token}"}


class Plugin:
    """A plugin in a folder of its own, with a wall clock to go with it."""

    def __init__(self, folder: Path, program: str = PLUGIN) -> None:
        self.folder = folder
        self.wall = NOW
        self.script = folder / "plugin.py"
        self.script.write_text(program)
        self.says(answer(token="first"))

    def says(self, text: str, *, code: int = 0, stderr: str = "") -> None:
        for name, content in (("answer", text), ("code", str(code)), ("stderr", stderr)):
            (self.folder / name).write_text(content)

    def hands_out(self, token: str, *, lives: float | None = None) -> None:
        expiry = (
            {} if lives is None else {"expirationTimestamp": datetime.fromtimestamp(self.wall + lives, UTC).isoformat()}
        )
        self.says(answer(token=token, **expiry))

    @property
    def runs(self) -> int:
        runs = self.folder / "runs"
        return len(runs.read_text()) if runs.exists() else 0

    def credentials(self, *args: str) -> ExecPlugin:
        settings = ExecSettings(
            origin="here: exec", command=sys.executable, api_version=V1, args=("-IS", str(self.script), *args)
        )
        return ExecPlugin(settings, env={}, now=lambda: self.wall)

    def config(
        self, inherited: Mapping[str, str] | None = None, cluster: Mapping[str, Any] | None = None, **fields: object
    ) -> ClusterConfig:
        """A kubeconfig that uses it."""
        plugin = {
            "command": sys.executable,
            "args": ["-IS", str(self.script)],
            "apiVersion": V1,
            "interactiveMode": "Never",
            **fields,
        }
        content = {
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1:6443", **(cluster or {})}}],
            "users": [{"name": "u", "user": {"exec": plugin}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }
        (self.folder / "config").write_text(yaml.safe_dump(content))
        return load_config(kubeconfig=str(self.folder / "config"), env=inherited or {})


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


# --- its input


async def test_arguments_environment_and_what_is_not_told(plugin: Plugin) -> None:
    config = plugin.config(
        {"INHERITED": "yes", "WHO": "overridden"},
        args=["-IS", str(plugin.script), "$HOME; echo", "--x"],
        env=[{"name": "WHO", "value": "me"}],
    )
    assert await config.credentials.headers() == bearer("first")
    assert await config.credentials.client_certificate() is None
    assert (plugin.folder / "seen").read_text() == "$HOME; echo|--x|me|yes"
    assert json.loads((plugin.folder / "info").read_text()) == {
        "kind": "ExecCredential",
        "apiVersion": V1,
        "spec": {"interactive": False},
    }
    assert plugin.runs == 1


async def test_the_cluster_if_it_asks_for_it(plugin: Plugin) -> None:
    plugin.says(answer(V1BETA1, token="first"))
    (plugin.folder / "ca.pem").write_text("pem")
    cluster = {
        "certificate-authority": "ca.pem",
        "tls-server-name": "api",
        "proxy-url": "http://proxy:3128",
        "extensions": [
            {"name": "other", "extension": {"a": 1}},
            {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "06e3"}},
        ],
    }
    config = plugin.config(cluster=cluster, apiVersion=V1BETA1, provideClusterInfo=True)
    assert await config.credentials.headers() == bearer("first")
    assert json.loads((plugin.folder / "info").read_text()) == {
        "kind": "ExecCredential",
        "apiVersion": V1BETA1,
        "spec": {
            "interactive": False,
            "cluster": {
                "server": "https://10.0.0.1:6443",
                "certificate-authority-data": "cGVt",
                "tls-server-name": "api",
                "proxy-url": "http://proxy:3128",
                "config": {"audience": "06e3"},
            },
        },
    }


# --- where it is found


async def test_a_command_is_found_on_the_path_or_beside_its_kubeconfig(
    plugin: Plugin, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = plugin.folder / "bin"
    folder.mkdir()
    (folder / "our-login").write_text(f"#!/bin/sh\nexec {sys.executable} -IS {plugin.script}\n")
    (folder / "our-login").chmod(0o755)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    assert await plugin.config(command="bin/our-login", args=None).credentials.headers() == bearer("first")
    assert await plugin.config(command="./bin/our-login", args=None).credentials.headers() == bearer("first")
    assert await plugin.config({"PATH": str(folder)}, command="our-login", args=None).credentials.headers() == bearer(
        "first"
    )
    assert plugin.runs == 3
    # Not on the path, and not from the folder we happen to be in, not even where the path says so.
    monkeypatch.chdir(folder)
    for path in ({}, {"PATH": ""}, {"PATH": "."}, {"PATH": f":{elsewhere}"}):
        with pytest.raises(CredentialsError, match="exec: our-login is not there"):
            await plugin.config(path, command="our-login", args=None).credentials.headers()
    assert plugin.runs == 3


async def test_a_missing_command_comes_with_its_install_hint(plugin: Plugin) -> None:
    config = plugin.config(command="aws-\N{SNOWMAN}", installHint="Run:\n\x1b[1mbrew install aws\x07")
    with pytest.raises(CredentialsError) as raised:
        await config.credentials.headers()
    place = f"{plugin.folder}/config: users[u].user.exec"
    said = f"{place}: aws-☃ is not there, or cannot be executed. Run:\n\\u001b[1mbrew install aws\\u0007"
    assert str(raised.value) == said
    with pytest.raises(
        CredentialsError, match=r"gone is not there, or cannot be executed\. Install it, or correct the command\."
    ):
        await plugin.config(command="./gone").credentials.headers()
    (plugin.folder / "broken").write_text("#!/no/such/interpreter\n")
    (plugin.folder / "broken").chmod(0o755)
    with pytest.raises(CredentialsError, match=r"exec: .*/broken cannot be run \(.+\)\. Correct the command"):
        await plugin.config(command="./broken").credentials.headers()
    with pytest.raises(CredentialsError, match=r"cannot be run \(embedded null byte\)"):
        await plugin.config(args=["a\0b"]).credentials.headers()


# --- its answers


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", r"printed no ExecCredential \(Input data was truncated\)\. Update the plugin\."),
        (SECRET, r"printed no ExecCredential \(JSON is malformed.*\)"),
        ('"' + SECRET + '"', r"printed no ExecCredential \(Expected `object`, got `str`\)"),
        (answer(token=1), r"printed no ExecCredential \(Expected `str \| null`, got `int` - at `\$.status.token`\)"),
        (
            answer(token=SECRET, expirationTimestamp="soon"),
            r"printed no ExecCredential \(Invalid RFC3339.*expirationTimestamp",
        ),
        (
            answer(token=SECRET, expirationTimestamp="2030-01-01T00:00:00"),
            r"printed no ExecCredential \(.*expirationTimestamp",
        ),
        (
            answer(V1BETA1, token=SECRET),
            f"answered with {V1BETA1} ExecCredential, asked for {V1} ExecCredential. Set apiVersion",
        ),
        (
            json.dumps({"kind": "Token", "apiVersion": V1, "status": {"token": SECRET}}),
            f"answered with {V1} Token, asked for",
        ),
        (json.dumps({"status": {"token": SECRET}}), "answered with None None, asked for"),
        (
            json.dumps({"kind": "ExecCredential", "apiVersion": V1}),
            "answered with neither a token nor a certificate. Log in",
        ),
        (answer(token=""), "answered with neither a token nor a certificate"),
        (answer(token=f"{SECRET}\n{SECRET}"), "status.token of .* holds characters that a token cannot have"),
        (answer(clientCertificateData="c"), "answered with only one of certificate and key"),
        (answer(token="t", clientKeyData=SECRET), "answered with only one of certificate and key"),
        (answer(clientCertificateData="c", clientKeyData=SECRET), "exec: not a usable pair of certificate and key"),
    ],
)
async def test_an_answer_that_breaks_the_protocol(plugin: Plugin, text: str, want: str) -> None:
    plugin.says(text)
    with pytest.raises(CredentialsError, match=f"^here: exec: .*{want}|^here: {want}") as raised:
        await plugin.credentials().headers()
    assert SECRET not in str(raised.value)


async def test_a_failure_shows_what_the_plugin_said_and_not_what_it_printed(plugin: Plugin) -> None:
    plugin.says(answer(token=SECRET), code=3, stderr="x" * 5000 + "\nnot \x1b[31mlogged in\n")
    with pytest.raises(CredentialsError) as raised:
        await plugin.config().credentials.headers()
    message = str(raised.value)
    start = (
        f"{plugin.folder}/config: users[u].user.exec: {sys.executable} ended with exit code 3. "
        "Run it by hand to see why. It said: x"
    )
    assert message.startswith(start)
    assert message.endswith("x\nnot \\u001b[31mlogged in")
    assert len(message) < len(start) + 2100
    assert SECRET not in message


async def test_a_plugin_that_was_killed(plugin: Plugin) -> None:
    plugin.script.write_text("import os; os.kill(os.getpid(), 9)")
    with pytest.raises(CredentialsError, match="ended by signal 9"):
        await plugin.credentials().headers()


async def test_a_certificate(plugin: Plugin) -> None:
    pair = issue("jane", issue("ca"))
    plugin.says(answer(clientCertificateData=pair.cert.decode(), clientKeyData=pair.key.decode()))
    credentials = plugin.credentials()
    assert await credentials.client_certificate() == (pair.cert, pair.key)
    assert await credentials.headers() == {}
    assert plugin.runs == 1
    plugin.says(answer(token="both", clientCertificateData=pair.cert.decode(), clientKeyData=pair.key.decode()))
    credentials.rejected({})
    assert await credentials.headers() == bearer("both")
    assert await credentials.client_certificate() == (pair.cert, pair.key)
    assert plugin.runs == 2


# --- how long it is used


async def test_a_credential_without_expiry_is_used_until_a_401(plugin: Plugin) -> None:
    credentials = plugin.credentials()
    used = await credentials.headers()
    plugin.hands_out("second")
    plugin.wall += 10 * 365 * 24 * 3600
    assert await credentials.headers() is used
    credentials.rejected()
    assert await credentials.headers() == bearer("second")
    assert plugin.runs == 2


async def test_late_rejections_of_the_old_credential_cost_no_further_run(plugin: Plugin) -> None:
    credentials = plugin.credentials()
    acting = Impersonating(credentials, [("Impersonate-User", "jane")])
    used, used_acting = await credentials.headers(), await acting.headers()
    plugin.hands_out("second")
    credentials.rejected(used)
    assert await credentials.headers() == bearer("second")
    credentials.rejected(used)
    acting.rejected(used_acting)
    assert await acting.headers() == {**bearer("second"), "Impersonate-User": "jane"}
    assert plugin.runs == 2
    acting.rejected(await acting.headers())
    await acting.headers()
    assert plugin.runs == 3


@pytest.mark.parametrize(("lives", "kept"), [(3600, 3540), (600, 540), (100, 90), (10, 9), (0, 0), (-5, 0)])
async def test_it_is_replaced_shortly_before_it_expires(plugin: Plugin, lives: float, kept: float) -> None:
    plugin.hands_out("first", lives=lives)
    credentials = plugin.credentials()
    assert await credentials.headers() == bearer("first")
    plugin.hands_out("second", lives=3600)
    if kept:
        plugin.wall += kept - 0.5
        assert await credentials.headers() == bearer("first")
        plugin.wall += 1
    assert await credentials.headers() == bearer("second")
    assert plugin.runs == 2


def test_what_time_it_is_is_asked_of_the_loop(plugin: Plugin) -> None:
    async def use() -> None:
        plugin.wall = asyncio.get_running_loop().wall_time()  # type: ignore[attr-defined]
        plugin.hands_out("first", lives=3600)
        credentials = plugin.config().credentials
        assert await credentials.headers() == bearer("first")
        plugin.hands_out("second", lives=7200)
        await warp(3500)
        assert await credentials.headers() == bearer("first")
        await warp(50)
        assert await credentials.headers() == bearer("second")

    run_warp(use())


async def test_when_that_fails_the_old_one_is_used_while_it_lasts(
    plugin: Plugin, caplog: pytest.LogCaptureFixture
) -> None:
    plugin.hands_out("first", lives=600)
    credentials = plugin.credentials()
    await credentials.headers()
    plugin.says("", code=1, stderr="no network")
    plugin.wall += 545
    assert await asyncio.gather(*(credentials.headers() for _ in range(3))) == [bearer("first")] * 3
    assert await credentials.headers() == bearer("first")
    assert plugin.runs == 2
    assert len(caplog.records) == 1
    assert "no network" in caplog.text
    plugin.wall = NOW + 595  # now it may be tried again
    assert await credentials.headers() == bearer("first")
    assert plugin.runs == 3
    plugin.wall = NOW + 600  # and now it is over
    with pytest.raises(CredentialsError, match="no network"):
        await credentials.headers()
    plugin.hands_out("second")
    assert await credentials.headers() == bearer("second")


async def test_one_that_was_rejected_is_not_used_when_the_next_run_fails(plugin: Plugin) -> None:
    plugin.hands_out("first", lives=600)
    credentials = plugin.credentials()
    credentials.rejected(await credentials.headers())
    plugin.says("", code=1)
    with pytest.raises(CredentialsError):
        await credentials.headers()


async def test_nor_one_that_is_rejected_while_the_next_run_fails(plugin: Plugin) -> None:
    plugin.hands_out("first", lives=600)
    credentials = plugin.credentials()
    used = await credentials.headers()
    plugin.says("", code=1)
    plugin.wall += 545
    asked = asyncio.create_task(credentials.headers())
    await asyncio.sleep(0)
    credentials.rejected(used)
    with pytest.raises(CredentialsError):
        await asked


# --- one run at a time, and for no longer than it may


async def test_all_who_ask_at_once_share_one_run(plugin: Plugin) -> None:
    credentials = plugin.credentials()
    assert await asyncio.gather(*(credentials.headers() for _ in range(20))) == [bearer("first")] * 20
    assert await credentials.client_certificate() is None
    assert plugin.runs == 1
    plugin.says("", code=1)
    credentials.rejected()
    failed = await asyncio.gather(*(credentials.headers() for _ in range(20)), return_exceptions=True)
    assert {type(error) for error in failed} == {CredentialsError}
    assert plugin.runs == 2


class Hello:
    """Waits for a stuck plugin to say hello, and for its end."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "socket"
        self.began: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def __aenter__(self) -> "Hello":
        self._server = await asyncio.start_unix_server(self._answer, self._path)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.readexactly(5) == b"hello"
        self.began.set_result(None)
        assert await reader.read() == b""
        self.ended.set_result(None)
        writer.close()


@pytest.mark.parametrize("kind", ["alone", "--parent"])
def test_a_plugin_that_does_not_end_is_ended_with_its_children(tmp_path: Path, kind: str) -> None:
    async def test() -> None:
        credentials = Plugin(tmp_path, STUCK).credentials(kind)
        async with Hello(tmp_path) as hello:
            asked = asyncio.create_task(credentials.headers())
            await hello.began
            await warp(55)
            assert not asked.done()
            await warp(10)
            with pytest.raises(CredentialsError) as raised:
                await asked
            await hello.ended
            assert str(raised.value) == (
                f"here: exec: {sys.executable} did not finish within 60 s, and was ended. "
                "It said: visit https://login.example\\u001b[31m to log in"
            )

    run_warp(test())


def test_the_run_goes_on_while_someone_waits_and_ends_with_the_last(tmp_path: Path) -> None:
    async def test() -> None:
        credentials = Plugin(tmp_path, STUCK).credentials()
        async with Hello(tmp_path) as hello:
            first, second = (asyncio.create_task(credentials.headers()) for _ in range(2))
            await hello.began
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            assert not second.done()
            assert not hello.ended.done()
            second.cancel()
            await hello.ended
            with pytest.raises(asyncio.CancelledError):
                await second
        plugin = Plugin(tmp_path)
        assert await credentials.headers() == bearer("first")  # and the next caller gets a run of its own
        assert plugin.runs == 1

    run_warp(test())


# --- at a terminal

ASKS = """
import json, os, sys
assert json.loads(os.environ["KUBERNETES_EXEC_INFO"])["spec"]["interactive"] is True
sys.stderr.write("password: ")
sys.stderr.flush()
token = input()
version = "client.authentication.k8s.io/v1"
print(json.dumps({"kind": "ExecCredential", "apiVersion": version, "status": {"token": token}}))
"""
CLIENT = """
import asyncio, sys
from pilotage.kube.config import ConfigError, load_config
try:
    print(dict(asyncio.run(load_config(kubeconfig=sys.argv[1]).credentials.headers())))
except ConfigError as error:
    sys.exit(str(error))
"""


@pytest.mark.parametrize("mode", ["Always", "IfAvailable"])
def test_a_person_at_a_terminal_is_asked(tmp_path: Path, mode: str) -> None:
    Plugin(tmp_path, ASKS).config(interactiveMode=mode)
    person, terminal = pty.openpty()
    try:
        os.write(person, b"typed\n")
        client = subprocess.run(
            [sys.executable, "-c", CLIENT, tmp_path / "config"],
            stdin=terminal,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        os.close(person)
        os.close(terminal)
    assert (client.stdout, client.stderr) == ("{'Authorization': 'Bearer typed'}\n", "password: ")


@pytest.mark.parametrize(
    ("mode", "want"),
    [
        ("Always", "interactiveMode is Always, but standard input is no terminal"),
        ("IfAvailable", "ended with exit code 1. Run it by hand to see why. It said: "),
    ],
)
def test_without_a_terminal(tmp_path: Path, mode: str, want: str) -> None:
    Plugin(tmp_path, ASKS).config(interactiveMode=mode)
    client = subprocess.run(
        [sys.executable, "-c", CLIENT, tmp_path / "config"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert client.returncode == 1
    assert f"{tmp_path}/config: users[u].user.exec: " in client.stderr
    assert want in client.stderr
