"""The process: from an empty folder to a server, and back."""

import re
import signal
import socket
import ssl
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml


@contextmanager
def harbor(folder, *arguments, **options):
    """A running process: gives it, its URL and its kubeconfig's path."""
    command = [sys.executable, "-m", "pilotage", "harbor", "--data", str(folder), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options) as process:
        try:
            lines = [process.stdout.readline() for _ in range(2)]
            found = re.fullmatch(r"server: (https://\S+)\nkubeconfig: (\S+)\n", "".join(lines))
            assert found is not None, (lines, "" if lines[-1] else process.stderr.read())
            yield process, found[1], found[2]
        finally:
            process.kill()


def ask(kubeconfig, path):
    """A connection on which this was asked, as the administrator."""
    config = yaml.safe_load(Path(kubeconfig).read_text())
    server = config["clusters"][0]["cluster"]["server"]
    host, port = server.removeprefix("https://").split(":")
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    connection = context.wrap_socket(socket.create_connection((host, int(port)), timeout=20))
    token = config["users"][0]["user"]["token"]
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    return connection


def received(connection, until=b""):
    data = b""
    while not (until and until in data) and (more := connection.recv(65536)):
        data += more
    return data


def test_it_serves_until_it_is_told_to_stop_and_ends_its_watches(tmp_path):
    with harbor(tmp_path / "data", "--memory") as (process, url, kubeconfig):
        assert kubeconfig == str(tmp_path / "data" / "kubeconfig")
        with ask(kubeconfig, "/api/v1/namespaces?watch=1&resourceVersion=0") as watch:
            assert received(watch, b'"ADDED"').startswith(b"HTTP/1.1 200 OK")
            process.send_signal(signal.SIGTERM)
            assert received(watch).endswith(b"0\r\n\r\n")
        assert process.wait(20) == 0
        assert process.stderr.read() == ""
    with harbor(tmp_path / "data", "--memory") as (_, again, _):
        assert again == url  # clients that were there before find it again


def test_one_folder_is_for_one_process(tmp_path):
    with (
        harbor(tmp_path, "--memory"),
        pytest.raises(AssertionError, match="in use by another process"),
        harbor(tmp_path),
    ):
        pass


def test_a_port_that_is_taken_is_said_so_in_a_sentence(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with pytest.raises(AssertionError, match="ddress already in use") as caught, harbor(tmp_path, "--port", port):
            pass
    assert "Traceback" not in str(caught.value)
