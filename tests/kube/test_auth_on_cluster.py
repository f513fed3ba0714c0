"""Every way to prove who we are, against a real API server: it tells whom it takes us for."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
import yaml

from controlplane import Cluster
from pilotage.kube import Client, ClusterConfig, Resource, Unauthorized, Unavailable, in_cluster_config, load_config
from tests.kube.test_exec_plugin import Plugin, answer
from tests.kube.test_tls import issue
from tests.virtual_time import run_warp, warp

REVIEWS = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False)


class Who(NamedTuple):
    """Whom the server takes us for."""

    name: str
    groups: frozenset[str]
    extra: Mapping[str, list[str]]


async def ask(client: Client) -> Who:
    review = await client.create(REVIEWS, {"apiVersion": REVIEWS.api_version, "kind": REVIEWS.kind})
    user = review.get("status", "userInfo")
    return Who(user["username"], frozenset(user["groups"]), user.get("extra", {}))


async def name_of(config: ClusterConfig) -> str:
    async with Client.connect(config) as client:
        return (await ask(client)).name


def config(cluster: Cluster, folder: Path, user: Mapping[str, Any], **fields: object) -> ClusterConfig:
    """A kubeconfig for this user; `fields` replace those of the cluster, and None removes one."""
    connection = {"server": cluster.url, "certificate-authority": str(cluster.ca_file), **fields}
    content = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": connection}],
        "users": [{"name": "u", "user": dict(user)}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }
    (folder / "config").write_text(yaml.safe_dump(content))
    return load_config(kubeconfig=str(folder / "config"), env={})


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


async def test_a_client_certificate_embedded_or_in_files(own_cluster: Cluster, tmp_path: Path) -> None:
    embedded = load_config(kubeconfig=str(own_cluster.user("jane", ["devs"])), env={})
    async with Client.connect(embedded) as client:
        who = await ask(client)
    assert who.name == "jane"
    assert "devs" in who.groups
    assert embedded.tls.client_cert
    assert embedded.tls.client_key
    user = {
        "client-certificate": str(write(tmp_path / "cert", embedded.tls.client_cert.decode())),
        "client-key": str(write(tmp_path / "key", embedded.tls.client_key.decode())),
    }
    assert await name_of(config(own_cluster, tmp_path, user)) == "jane"


async def test_how_the_server_is_known(own_cluster: Cluster, tmp_path: Path) -> None:
    user = {"token": own_cluster.tokens["tok-a"]}
    by_name = config(own_cluster, tmp_path, user, **{"tls-server-name": "kubernetes.default"})
    assert await name_of(by_name) == "tok-a"
    with pytest.raises(Unavailable, match=r"example\.org"):
        await name_of(config(own_cluster, tmp_path, user, **{"tls-server-name": "example.org"}))
    stranger = str(write(tmp_path / "stranger.pem", issue("stranger").cert.decode()))
    with pytest.raises(Unavailable, match="certificate"):
        await name_of(config(own_cluster, tmp_path, user, **{"certificate-authority": stranger}))
    anyone = config(own_cluster, tmp_path, user, **{"certificate-authority": None, "insecure-skip-tls-verify": True})
    assert await name_of(anyone) == "tok-a"


async def test_impersonation(own_cluster: Cluster, tmp_path: Path) -> None:
    user = {
        "token": own_cluster.tokens["tok-a"],
        "as": "joe",
        "as-groups": ["devs", "ops"],
        "as-user-extra": {"acme.com/team": ["x", "y"]},
    }
    async with Client.connect(config(own_cluster, tmp_path, user)) as client:
        who = await ask(client)
    assert who.name == "joe"
    assert who.groups >= {"devs", "ops"}
    assert who.extra["acme.com/team"] == ["x", "y"]


async def test_a_service_account(own_cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    own_cluster.wait_for_service_account(namespace)
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
    write(tmp_path / "token", own_cluster.request("POST", path, {"spec": {}})["status"]["token"])
    write(tmp_path / "ca.crt", own_cluster.ca_file.read_text())
    write(tmp_path / "namespace", namespace)
    url = urlsplit(own_cluster.url)
    env = {"KUBERNETES_SERVICE_HOST": str(url.hostname), "KUBERNETES_SERVICE_PORT": str(url.port)}
    found = in_cluster_config(env, tmp_path)
    assert found.namespace == namespace
    assert await name_of(found) == f"system:serviceaccount:{namespace}:default"


def test_a_token_file_that_is_rotated(own_cluster: Cluster, tmp_path: Path) -> None:
    async def test() -> None:
        write(tmp_path / "token", own_cluster.tokens["tok-a"])
        async with Client.connect(config(own_cluster, tmp_path, {"tokenFile": "token"})) as client:
            assert (await ask(client)).name == "tok-a"
            write(tmp_path / "token", own_cluster.tokens["tok-b"])
            assert (await ask(client)).name == "tok-a"
            await warp(61)
            assert (await ask(client)).name == "tok-b"

    run_warp(test())


async def test_a_rejected_token_is_read_again_within_the_same_request(own_cluster: Cluster, tmp_path: Path) -> None:
    write(tmp_path / "token", "revoked")
    async with Client.connect(config(own_cluster, tmp_path, {"tokenFile": "token"})) as client:
        with pytest.raises(Unauthorized):
            await ask(client)
        write(tmp_path / "token", own_cluster.tokens["tok-a"])
        assert (await ask(client)).name == "tok-a"


def plugin_config(cluster: Cluster, plugin: Plugin) -> ClusterConfig:
    return plugin.config(cluster={"server": cluster.url, "certificate-authority": str(cluster.ca_file)})


async def test_the_token_of_an_exec_plugin(own_cluster: Cluster, tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    plugin.hands_out("revoked")
    async with Client.connect(plugin_config(own_cluster, plugin)) as client:
        with pytest.raises(Unauthorized):
            await ask(client)
        assert plugin.runs == 2  # once more after the first 401
        plugin.hands_out(own_cluster.tokens["tok-a"])
        assert (await ask(client)).name == "tok-a"
        assert plugin.runs == 3
        plugin.hands_out(own_cluster.tokens["tok-b"])
        assert (await ask(client)).name == "tok-a"  # it is good still, so nothing is asked
        assert plugin.runs == 3


async def test_the_certificates_of_an_exec_plugin(own_cluster: Cluster, tmp_path: Path) -> None:
    def hand_out(user: str, expiry: str) -> None:
        tls = load_config(kubeconfig=str(own_cluster.user(user)), env={}).tls
        assert tls.client_cert
        assert tls.client_key
        pair = {"clientCertificateData": tls.client_cert.decode(), "clientKeyData": tls.client_key.decode()}
        plugin.says(answer(**pair, expirationTimestamp=expiry))

    plugin = Plugin(tmp_path)
    hand_out("jane", expiry="2020-01-01T00:00:00Z")  # so that it is asked again at the next request
    async with Client.connect(plugin_config(own_cluster, plugin)) as client:
        assert (await ask(client)).name == "jane"
        hand_out("joe", expiry="2100-01-01T00:00:00Z")
        assert (await ask(client)).name == "joe"
        runs = plugin.runs
        assert (await ask(client)).name == "joe"
        assert plugin.runs == runs
