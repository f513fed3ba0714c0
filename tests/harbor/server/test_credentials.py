"""Credentials in the folder, and their use by TLS."""

import asyncio
import base64
import datetime as dt
import os
import ssl
import stat
import time
from pathlib import Path

import pytest
import yaml

from pilotage.private_files import NotPrivate
from pilotage_harbor.server import pki
from pilotage_harbor.server.authentication import Authentication
from pilotage_harbor.server.credentials import ADMIN, ServerCredentials, ServerCredentialsError
from pilotage_harbor.server.server import Server
from tests.harbor.server.support import Client, Core, Line, request


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("harbor") / "data"
    ServerCredentials(path).write_kubeconfig("https://127.0.0.1:1234")
    return path


def token(folder: Path):
    return yaml.safe_load((folder / "kubeconfig").read_text())["users"][0]["user"]["token"]


def test_everything_is_for_the_owner_alone(folder):
    names = {path.name for path in folder.iterdir()}
    assert names == {"accounts.key", "ca.crt", "ca.key", "server.crt", "server.key", "tokens.json", "kubeconfig"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_kubeconfig_has_all_that_a_client_needs(folder):
    config = yaml.safe_load((folder / "kubeconfig").read_text())
    cluster = config["clusters"][0]["cluster"]
    assert cluster["server"] == "https://127.0.0.1:1234"
    assert base64.b64decode(cluster["certificate-authority-data"]) == (folder / "ca.crt").read_bytes()
    assert ServerCredentials(folder).tokens.user(token(folder)) == ADMIN


def test_the_token_itself_is_kept_nowhere_else(folder):
    secret = token(folder).encode()
    assert len(secret) >= 40
    assert [path.name for path in folder.iterdir() if secret in path.read_bytes()] == ["kubeconfig"]


def test_a_restart_changes_nothing(folder):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    again = ServerCredentials(folder)
    again.write_kubeconfig("https://127.0.0.1:1234")
    assert again.last_port() == 1234
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_lost_kubeconfig_means_a_new_token_and_the_old_one_is_void(tmp_path):
    ServerCredentials(tmp_path).write_kubeconfig("https://127.0.0.1:1")
    old = token(tmp_path)
    (tmp_path / "kubeconfig").unlink()
    again = ServerCredentials(tmp_path)
    again.write_kubeconfig("https://127.0.0.1:1")
    assert token(tmp_path) != old
    assert (again.tokens.user(old), again.tokens.user(token(tmp_path))) == (None, ADMIN)


def test_a_folder_that_cannot_be_used_is_said_so(tmp_path):
    ServerCredentials(tmp_path)
    (tmp_path / "server.crt").write_text("nonsense")
    with pytest.raises(ServerCredentialsError, match="certificates"):
        ServerCredentials(tmp_path).tls()
    (tmp_path / "tokens.json").write_text("nonsense")
    with pytest.raises(ServerCredentialsError, match=r"tokens\.json"):
        ServerCredentials(tmp_path)


def test_a_folder_that_others_can_write_to_is_not_believed(folder):
    """They could have put an authority of their own there."""
    folder.chmod(0o777)
    try:
        with pytest.raises(NotPrivate, match=f"other users can write to {folder}"):
            ServerCredentials(folder)
    finally:
        folder.chmod(0o700)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("given", ["", "ca.crt", "server.key", "tokens.json", "accounts.key"])
def test_nothing_of_somebody_else_is_believed(tmp_path, given):
    ServerCredentials(tmp_path)
    os.chown(tmp_path / given, 65534, 65534)
    with pytest.raises((NotPrivate, ServerCredentialsError), match=rf"{tmp_path / given} .*belongs to user .*65534"):
        ServerCredentials(tmp_path)


@pytest.mark.parametrize("days", [-36500, 36500])
def test_certificates_are_valid_whatever_the_clock_said_when_they_were_made(tmp_path, monkeypatch, days):
    wrong = time.time() + 86400 * days
    monkeypatch.setattr(time, "time", lambda: wrong)
    ServerCredentials(tmp_path)
    made = (tmp_path / "ca.crt").read_bytes()
    monkeypatch.undo()
    context = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
    (authority,) = context.get_ca_certs()
    assert ssl.cert_time_to_seconds(authority["notBefore"]) == 0
    ServerCredentials(tmp_path)
    assert (tmp_path / "ca.crt").read_bytes() == made


@pytest.mark.parametrize("days", [(-20, -10), (10, 20)])
def test_certificates_that_are_not_valid_now_are_made_anew(tmp_path, monkeypatch, days):
    """Such as those that a version before this one made while the clock was wrong."""
    now = dt.datetime.now(dt.UTC)
    first, last = (now + dt.timedelta(days=each) for each in days)
    with monkeypatch.context() as patched:
        patched.setattr(pki, "_ALWAYS", (first, last))
        patched.setattr(pki._signed, "__defaults__", ((first, last),))
        ServerCredentials(tmp_path).write_kubeconfig("https://127.0.0.1:1")
    old = (tmp_path / "ca.crt").read_bytes()
    again = ServerCredentials(tmp_path)
    again.write_kubeconfig("https://127.0.0.1:1")
    again.tls()
    assert (tmp_path / "ca.crt").read_bytes() != old
    config = yaml.safe_load((tmp_path / "kubeconfig").read_text())
    known = base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"])
    assert known == (tmp_path / "ca.crt").read_bytes()


async def connect(folder: Path, port: int, name: str, pair: pki.Pair | None, tmp_path: Path) -> Client:
    context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    context.set_alpn_protocols(["h2", "http/1.1"])
    if pair is not None:
        (tmp_path / "client.pem").write_bytes(pair.certificate + pair.key)
        context.load_cert_chain(tmp_path / "client.pem")
    client = Client(*await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name))
    assert client.writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"
    return client


async def test_clients_trust_the_server_and_it_knows_them(folder, tmp_path):
    core, line = Core(), Line()
    core.answers["/watch"] = line
    credentials = ServerCredentials(folder)
    server = Server(core.handle, Authentication(credentials.tokens), tls=credentials.tls())
    port = await server.start("127.0.0.1", 0)
    authority = pki.Pair((folder / "ca.crt").read_bytes(), (folder / "ca.key").read_bytes())
    jane = pki.make_client_certificate(authority, "jane", ("devs", "ops"))
    for name in ("127.0.0.1", "localhost", "kubernetes.default.svc"):
        client = await connect(folder, port, name, jane, tmp_path)
        client.send(request("/"))
        assert (await client.answer())[0] == 200
        await client.close()
    user = core.calls[-1].user
    assert (user.name, user.groups) == ("jane", ("devs", "ops", "system:authenticated"))
    assert user.extra["authentication.kubernetes.io/credential-id"][0].startswith("X509SHA256=")
    watcher = await connect(folder, port, "localhost", None, tmp_path)
    watcher.send(request("/watch", Authorization=f"Bearer {token(folder)}"))
    await watcher.head()
    assert core.calls[-1].user == ADMIN
    line.say(b"x" * 100_000)
    assert await watcher.chunk() == b"x" * 100_000
    stopping = asyncio.create_task(server.stop())
    assert await watcher.rest() == b"0\r\n\r\n"
    await watcher.close()
    await stopping


async def test_a_certificate_of_another_authority_is_no_credential(folder, tmp_path):
    core = Core()
    credentials = ServerCredentials(folder)
    server = Server(core.handle, Authentication(credentials.tokens), tls=credentials.tls())
    port = await server.start("127.0.0.1", 0)
    forged = pki.make_client_certificate(pki.make_authority(), "jane", ("system:masters",))
    client = await connect(folder, port, "localhost", forged, tmp_path)
    client.send(request("/"))
    with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
        await client.answer()
    assert core.calls == []
    await server.stop()
