"""Options of ``pilotage gateway`` for its own names, the hosts of namespaces and its memory."""

import msgspec
import pytest
from click.testing import CliRunner

from pilotage.cli.commands.gateway import gateway
from pilotage.gateway import supervisor
from pilotage.gateway.settings import GatewaySettings

KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: t}}]
current-context: c
"""


@pytest.fixture
def told(tmp_path, monkeypatch):
    """Runs the command and returns what it said, and the settings with which it would have run."""
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    seen = []

    async def run(settings, _):
        seen.append(settings)
        return 0

    monkeypatch.setattr(supervisor, "run", run)

    def tell(*options, **variables):
        seen.clear()
        words = ["--kubeconfig", str(tmp_path / "kubeconfig"), "--run", str(tmp_path), *options]
        result = CliRunner().invoke(gateway, words, env=variables)
        return result.output, (seen[0] if seen else None)

    return tell


def test_names_hosts_and_memory_reach_the_control_plane(told):
    options = [
        "--name",
        "Models.example.com",
        "--name",
        "models",
        "--hosts",
        "team-a=*.a.example.com",
        "--memory",
        "512",
    ]
    _, settings = told(*options)
    read = msgspec.json.decode(msgspec.json.encode(settings), type=GatewaySettings)  # as it is passed on
    assert read.names == ("models.example.com", "models")
    assert read.hosts == (("team-a", "*.a.example.com"),)
    assert read.memory_bytes == 512 * 1024**2
    _, settings = told(PILOTAGE_GATEWAY_HOSTS="team-a=a.example.com team-b=b.example.com")
    assert settings.hosts == (("team-a", "a.example.com"), ("team-b", "b.example.com"))


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--name", "*.example.com", "is no name, such as models.example.com"),
        ("--name", "", "is no name"),
        ("--hosts", "a.example.com", "is not NAMESPACE=HOST"),
        ("--hosts", "team-a=127.0.0.1", "is not NAMESPACE=HOST"),
        ("--hosts", "=a.example.com", "is not NAMESPACE=HOST"),
        ("--memory", "16", "is not in the range x>=128"),
    ],
)
def test_what_means_nothing_is_refused(told, option, value, said):
    output, settings = told(option, value)
    assert settings is None
    assert said in output
