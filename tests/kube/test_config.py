"""Kubeconfig files and service account folders as a user may have them, and the client's reading of them."""

import base64
import os
import ssl
import subprocess
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from pilotage.kube.config import ClusterConfig, ConfigError, in_cluster_config, load_config

SECRET = "s3cr3t-that-nobody-may-see"
CA_PEM = b"-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n"


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def document(
    cluster: Mapping[str, Any] | None = None,
    user: Mapping[str, Any] | None = None,
    context: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A kubeconfig with one context, `dev`; what is given replaces fields of its parts."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "dev",
        "clusters": [{"name": "local", "cluster": {"server": "https://10.0.0.1:6443", **(cluster or {})}}],
        "users": [{"name": "admin", "user": {"token": SECRET} if user is None else dict(user)}],
        "contexts": [{"name": "dev", "context": {"cluster": "local", "user": "admin", **(context or {})}}],
    }


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False))
    return path


def load(path: Path, context: str | None = None) -> ClusterConfig:
    return load_config(kubeconfig=str(path), context=context, env={})


async def sent(config: ClusterConfig) -> list[tuple[str, str]]:
    return list((await config.credentials.headers()).items())


# --- where the file is found


def test_the_places_in_their_order(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    with pytest.raises(ConfigError, match="no cluster is configured"):
        load_config(env=env)
    home = write(tmp_path / ".kube" / "config", document({"server": "https://home"}))
    assert load_config(env=env).server == "https://home"
    listed = write(tmp_path / "listed", document({"server": "https://listed"}))
    env["KUBECONFIG"] = str(listed)
    assert load_config(env=env).server == "https://listed"
    explicit = write(tmp_path / "explicit", document({"server": "https://explicit"}))
    config = load_config(kubeconfig=str(explicit), env=env)
    assert (config.server, config.context, config.source) == ("https://explicit", "dev", str(explicit))
    env["KUBECONFIG"] = ""  # as if it were not set
    assert load_config(env=env).source == str(home)


def test_a_pod_is_asked_last_and_an_empty_file_at_home_does_not_hide_it(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    write(tmp_path / ".kube" / "config", {"clusters": None, "users": [], "contexts": None, "current-context": ""})
    with pytest.raises(
        ConfigError, match=r"^in-cluster: the token of the service account: .*/serviceaccount/token cannot be read"
    ):
        load_config(env=env)
    with pytest.raises(ConfigError, match="there is none named 'dev', nor any other"):
        load_config(env=env, context="dev")


def test_a_place_that_was_named_is_never_passed_over_for_another_cluster(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    write(tmp_path / ".kube" / "config", document())
    gone, empty = tmp_path / "gone", write(tmp_path / "empty", "")
    with pytest.raises(ConfigError, match=rf"^{gone}: no such file\. Correct the path\.$"):
        load_config(kubeconfig=str(gone), env=env)
    with pytest.raises(ConfigError, match=rf"^KUBECONFIG={gone}: no such file\. Correct the path\.$"):
        load_config(env=env | {"KUBECONFIG": str(gone)})
    with pytest.raises(ConfigError, match=rf"^{empty}: contexts: there is none"):
        load_config(env=env | {"KUBECONFIG": str(empty)})


# --- the merged list


def test_of_each_entry_the_first_file_wins_whole_and_paths_belong_to_their_file(tmp_path: Path) -> None:
    first = write(
        tmp_path / "a" / "config",
        {
            "clusters": [{"name": "red", "cluster": {"server": "https://red-a", "certificate-authority": "ca.pem"}}],
            "contexts": [{"name": "one", "context": {"cluster": "red", "user": "me", "namespace": "from-a"}}],
        },
    )
    second = write(
        tmp_path / "b" / "config",
        {
            "current-context": "one",
            "clusters": [
                {"name": "red", "cluster": {"server": "https://red-b", "tls-server-name": "not-taken"}},
                {"name": "blue", "cluster": {"server": "https://blue-b", "certificate-authority": "ca.pem"}},
            ],
            "users": [{"name": "me", "user": {"tokenFile": "../b/token"}}],
            "contexts": [
                {"name": "one", "context": {"cluster": "blue", "user": "me", "namespace": "from-b"}},
                {"name": "two", "context": {"cluster": "blue", "user": "me"}},
            ],
        },
    )
    third = write(tmp_path / "c", document() | {"current-context": "two"})
    for folder in "ab":
        (tmp_path / folder / "ca.pem").write_bytes(folder.encode())
    (tmp_path / "b" / "token").write_text("t")
    env = {"KUBECONFIG": os.pathsep.join(["", str(tmp_path / "gone"), str(first), str(second), str(third)])}

    one = load_config(env=env)
    assert (one.context, one.server, one.namespace) == ("one", "https://red-a", "from-a")
    assert (one.tls.ca_data, one.tls.server_name) == (b"a", None)
    assert one.source == f"{first}, {second}, {third}"
    two = load_config(env=env, context="two")
    assert (two.server, two.namespace, two.tls.ca_data) == ("https://blue-b", "default", b"b")


def test_a_relative_kubeconfig_is_relative_to_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "x" / "config", document({"certificate-authority": "ca.pem"}))
    (tmp_path / "x" / "ca.pem").write_bytes(b"ca")
    monkeypatch.chdir(tmp_path)
    config = load_config(env={"KUBECONFIG": "x/config"})
    assert (config.tls.ca_data, config.source) == (b"ca", str(tmp_path / "x" / "config"))


# --- the meaning of fields


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("https://10.0.0.1:6443/", "https://10.0.0.1:6443"),
        ("https://[fd00::1]:6443", "https://[fd00::1]:6443"),
        ("https://rancher.example/k8s/clusters/c-1/", "https://rancher.example/k8s/clusters/c-1"),
        ("https://host/prefix?a=b#c", "https://host/prefix"),
        ("http://localhost:8001", "http://localhost:8001"),
    ],
)
def test_server(tmp_path: Path, written: str, meant: str) -> None:
    assert load(write(tmp_path / "config", document({"server": written}))).server == meant


def test_embedded_certificates_win_over_files(tmp_path: Path) -> None:
    cluster = {
        "certificate-authority": "missing",
        "certificate-authority-data": "\n".join(
            encoded(CA_PEM)[i : i + 20] for i in range(0, len(encoded(CA_PEM)), 20)
        ),
        "tls-server-name": "kubernetes.default",
        "proxy-url": f"http://me:{SECRET}@proxy:3128",
    }
    user = {
        "client-certificate": "missing",
        "client-certificate-data": encoded(b"cert"),
        "client-key": "missing",
        "client-key-data": encoded(b"key"),
    }
    config = load(write(tmp_path / "config", document(cluster, user)))
    assert config.tls.ca_data == CA_PEM
    assert (config.tls.client_cert, config.tls.client_key) == (b"cert", b"key")
    assert (config.tls.server_name, config.tls.insecure) == ("kubernetes.default", False)
    assert config.proxy_url == f"http://me:{SECRET}@proxy:3128"


def test_certificates_in_files(tmp_path: Path) -> None:
    (tmp_path / "tls").mkdir()
    for name in ("ca", "cert", "key"):
        (tmp_path / "tls" / name).write_text(name)
    path = write(
        tmp_path / "config",
        document(
            {"certificate-authority": "tls/ca"},
            {"client-certificate": "tls/cert", "client-key": str(tmp_path / "tls/key")},
        ),
    )
    tls = load(path).tls
    assert (tls.ca_data, tls.client_cert, tls.client_key) == (b"ca", b"cert", b"key")


def test_insecure(tmp_path: Path) -> None:
    config = load(write(tmp_path / "config", document({"insecure-skip-tls-verify": True})))
    assert config.tls.insecure
    assert config.tls.ssl_context().verify_mode == ssl.CERT_NONE


class Who(NamedTuple):
    name: str
    user: Mapping[str, Any]
    want: list[tuple[str, str]]


WHO = [
    Who("nobody", {}, []),
    Who("a token, as a block with its line end", {"token": "abc\n"}, [("Authorization", "Bearer abc")]),
    Who("the token file wins", {"token": "abc", "tokenFile": "token"}, [("Authorization", "Bearer from-file")]),
    Who(
        "the token where the file is missing", {"token": "abc", "tokenFile": "gone"}, [("Authorization", "Bearer abc")]
    ),
    Who(
        "name and password",
        {"username": "me", "password": "pä"},
        [("Authorization", "Basic " + encoded("me:pä".encode()))],
    ),
    Who("a token wins over exec", {"token": "abc", "exec": {"command": "gone"}}, [("Authorization", "Bearer abc")]),
    Who(
        "impersonation",
        {
            "token": "abc",
            "as": "jane",
            "as-uid": "u1",
            "as-groups": ["devs", "ops"],
            "as-user-extra": {"scopes": ["view", "edit"], "acme.com/team": ["x"]},
        },
        [
            ("Authorization", "Bearer abc"),
            ("Impersonate-User", "jane"),
            ("Impersonate-Uid", "u1"),
            ("Impersonate-Group", "devs"),
            ("Impersonate-Group", "ops"),
            ("Impersonate-Extra-scopes", "view"),
            ("Impersonate-Extra-scopes", "edit"),
            ("Impersonate-Extra-acme.com%2Fteam", "x"),
        ],
    ),
]


@pytest.mark.parametrize("case", WHO, ids=lambda case: case.name)
async def test_who_we_are(tmp_path: Path, case: Who) -> None:
    (tmp_path / "token").write_text("from-file\n")
    config = load(write(tmp_path / "config", document(user=case.user)))
    assert await sent(config) == case.want
    assert await sent(config) == case.want  # also when it is cached
    assert await config.credentials.client_certificate() is None


async def test_no_secret_is_sent_in_the_clear(tmp_path: Path) -> None:
    user = {"token": SECRET, "client-certificate-data": encoded(b"c"), "client-key-data": encoded(b"k"), "as": "jane"}
    config = load(write(tmp_path / "config", document({"server": "http://localhost:8001"}, user)))
    assert await sent(config) == [("Impersonate-User", "jane")]
    assert config.tls.client_cert is None


# --- messages for errors


class Wrong(NamedTuple):
    name: str
    content: object
    want: str  # the whole message; {file} is the kubeconfig, {cluster} and so on are file and field


def exec_user(**fields: object) -> dict[str, Any]:
    return {
        "exec": {
            "command": "plugin",
            "apiVersion": "client.authentication.k8s.io/v1",
            "interactiveMode": "Never",
            **fields,
        }
    }


WRONG = [
    # shape
    Wrong("a list", "- a\n", "{file}: the whole file: expected mapping, got list. Correct it."),
    Wrong(
        "not YAML",
        f"users:\n- name: admin\n  user:\n    token: {SECRET}: {SECRET}\n",
        "{file}: line 4, column 38: not YAML (mapping values are not allowed in this context). Correct it there.",
    ),
    Wrong(
        "a token that looks like an alias",
        f"users:\n- name: admin\n  user:\n    token: *{SECRET}\n",
        "{file}: line 4, column 12: not YAML (found undefined alias). Correct it there.",
    ),
    Wrong(
        "a token that looks like a tag",
        f"users:\n- name: admin\n  user:\n    token: !{SECRET}\n",
        "{file}: line 4, column 12: not YAML (could not determine a constructor for the tag '…'). Correct it there.",
    ),
    Wrong(
        "a date that is none",
        "current-context: 2020-99-99\n",
        "{file}: the whole file: not YAML (unreadable characters). Correct it there.",
    ),
    Wrong("clusters is a mapping", {"clusters": {"a": 1}}, "{file}: clusters: expected list, got mapping. Correct it."),
    Wrong(
        "an entry without a name",
        {"clusters": [{"cluster": {}}]},
        "{file}: clusters[0]: has no name. Add it.",
    ),
    Wrong(
        "a number for a token",
        document(user={"token": 12345}),
        "{user}.token: expected string, got int. Put it in quotes.",
    ),
    Wrong(
        "a string for a flag",
        document({"insecure-skip-tls-verify": "yes"}),
        "{cluster}.insecure-skip-tls-verify: expected bool, got string. Correct it.",
    ),
    Wrong(
        "a number in the middle of args",
        document(user=exec_user(args=["a", 1])),
        "{user}.exec.args[1]: expected string, got int. Put it in quotes.",
    ),
    Wrong(
        "a name twice in one file",
        {**document(), "users": [{"name": "admin"}, {"name": "admin"}]},
        "{file}: users: two are named 'admin'. Remove or rename one.",
    ),
    # references
    Wrong(
        "no current context",
        {**document(), "current-context": ""},
        "{file}: current-context: is not set. Choose one of: dev.",
    ),
    Wrong(
        "a current context that is not there",
        {**document(), "current-context": "prod"},
        "{file}: current-context: there is no context 'prod'. Choose one of: dev.",
    ),
    Wrong(
        "a cluster that is not there",
        document(context={"cluster": "moon"}),
        "{context}.cluster: there is no cluster 'moon'. Choose one of: local.",
    ),
    Wrong(
        "a context without a cluster",
        document(context={"cluster": ""}),
        "{context}.cluster: is not set. Name one of the clusters.",
    ),
    Wrong(
        "a user that is not there",
        {**document(), "users": None},
        "{context}.user: there is no user 'admin'. No user is defined at all.",
    ),
    Wrong(
        "a context without a user",
        document(context={"user": None}),
        "{context}.user: is not set. Name one of the users.",
    ),
    Wrong(
        "a namespace that would change the URL",
        document(context={"namespace": "a/../b"}),
        "{context}.namespace: 'a/../b' cannot be a namespace. Use lower case letters, digits and '-'.",
    ),
    # the cluster
    Wrong(
        "no server",
        document({"server": None}),
        "{cluster}.server: is not set. Set it to https://HOST:PORT.",
    ),
    *(
        Wrong(
            f"server {server}",
            document({"server": server}),
            "{cluster}.server: is not a URL of the form https://HOST:PORT. Correct it.",
        )
        for server in ("10.0.0.1:6443", "host", "https://", "ftp://host", "https://host:port", "https://[::1")
    ),
    Wrong(
        "a password in the server",
        document({"server": f"https://me:{SECRET}@host"}),
        "{cluster}.server: holds a user name or password. Put these into the user's username and password.",
    ),
    Wrong(
        "a CA file that is missing",
        document({"certificate-authority": "gone.pem"}),
        "{cluster}.certificate-authority: {folder}/gone.pem cannot be read "
        "(No such file or directory). Correct the path.",
    ),
    Wrong(
        "a CA that is not base64",
        document({"certificate-authority-data": "-----BEGIN CER"}),
        "{cluster}.certificate-authority-data: is not base64. Encode the PEM with `base64 -w0`.",
    ),
    Wrong(
        "a CA, yet insecure",
        document({"insecure-skip-tls-verify": True, "certificate-authority-data": encoded(CA_PEM)}),
        "{cluster}.insecure-skip-tls-verify: is true, but a certificate-authority is set. Remove one of them.",
    ),
    Wrong(
        "a SOCKS proxy",
        document({"proxy-url": f"socks5://me:{SECRET}@host:1080"}),
        "{cluster}.proxy-url: is not of the form http://HOST:PORT or https://HOST:PORT. Correct it.",
    ),
    # the user
    Wrong(
        "a certificate without a key",
        document(user={"client-certificate-data": encoded(b"c")}),
        "{user}.client-key: is not set, but the certificate is. Set it, or client-key-data.",
    ),
    Wrong(
        "a key file that is missing",
        document(user={"client-certificate-data": encoded(b"c"), "client-key": "k"}),
        "{user}.client-key: {folder}/k cannot be read (No such file or directory). Correct the path.",
    ),
    Wrong(
        "a key that is not base64",
        document(user={"client-certificate-data": encoded(b"c"), "client-key-data": SECRET}),
        "{user}.client-key-data: is not base64. Encode the PEM with `base64 -w0`.",
    ),
    Wrong(
        "a token with a line break inside",
        document(user={"token": f"{SECRET}\n{SECRET}"}),
        "{user}.token: holds characters that a token cannot have. Copy it again.",
    ),
    Wrong(
        "a token file that is missing",
        document(user={"tokenFile": "token"}),
        "{user}.tokenFile: {folder}/token cannot be read (No such file or directory). Put a token there.",
    ),
    Wrong(
        "a token file that is empty",
        document(user={"tokenFile": "empty"}),
        "{user}.tokenFile: {folder}/empty is empty. Put a token there.",
    ),
    Wrong(
        "a token file that is not text",
        document(user={"tokenFile": "binary"}),
        "{user}.tokenFile: {folder}/binary is not text. Put a token there.",
    ),
    Wrong(
        "token and password",
        document(user={"token": SECRET, "username": "me", "password": SECRET}),
        "{user}.username: is set together with a token. Remove one of them.",
    ),
    Wrong(
        "auth-provider",
        document(user={"auth-provider": {"name": "gcp", "config": {"access-token": SECRET}}}),
        "{user}.auth-provider: was removed from Kubernetes. "
        "Use exec with the plugin of your provider, such as kubelogin.",
    ),
    Wrong(
        "groups without a user to act as",
        document(user={"token": SECRET, "as-groups": ["devs"]}),
        "{user}.as: is not set, but as-uid, as-groups or as-user-extra is. Name the user to act as.",
    ),
    Wrong(
        "a header in a group",
        document(user={"as": "jane", "as-groups": ["devs\r\nX-Evil: 1"]}),
        "{user}.as: or a field next to it holds a line break or another control character. Remove it.",
    ),
    Wrong(
        "exec without a command",
        document(user=exec_user(command=None)),
        "{user}.exec.command: is not set. Name the program to run.",
    ),
    Wrong(
        "exec of a version that was removed",
        document(user=exec_user(apiVersion="client.authentication.k8s.io/v1alpha1")),
        "{user}.exec.apiVersion: is client.authentication.k8s.io/v1alpha1. "
        "It must be one of: client.authentication.k8s.io/v1, client.authentication.k8s.io/v1beta1.",
    ),
    Wrong(
        "exec v1 that does not say whether it is interactive",
        document(user=exec_user(interactiveMode=None)),
        "{user}.exec.interactiveMode: is not set. It must be one of: Never, IfAvailable, Always.",
    ),
    Wrong(
        "exec with a variable that has no name",
        document(user=exec_user(env=[{"name": "", "value": SECRET}])),
        "{user}.exec.env: has an entry with an empty name. Name it.",
    ),
]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.name)
def test_a_mistake_is_said_with_its_file_and_field_and_without_secrets(tmp_path: Path, case: Wrong) -> None:
    (tmp_path / "empty").write_text(" \n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    path = write(tmp_path / "config", case.content)
    with pytest.raises(ConfigError) as raised:
        load(path)
    assert str(raised.value) == case.want.format(
        file=path,
        folder=tmp_path,
        cluster=f"{path}: clusters[local].cluster",
        user=f"{path}: users[admin].user",
        context=f"{path}: contexts[dev].context",
    )
    assert SECRET not in "".join(traceback.format_exception(raised.value))


def test_a_context_that_was_asked_for_and_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    path = write(tmp_path / "config", document())
    with pytest.raises(ConfigError, match=rf"^{path}: contexts: there is none named 'prod'\. Choose one of: dev\.$"):
        load(path, context="prod")
    with pytest.raises(
        ConfigError, match=rf"^{tmp_path}: cannot be read \(Is a directory\)\. Correct the path or its permissions\.$"
    ):
        load(tmp_path)


def test_the_exec_api_version_v1beta1_needs_no_interactive_mode(tmp_path: Path) -> None:
    user = exec_user(apiVersion="client.authentication.k8s.io/v1beta1", interactiveMode=None)
    assert repr(load(write(tmp_path / "config", document(user=user))).credentials) == "ExecPlugin('plugin')"


@pytest.mark.parametrize(
    "user",
    [
        {"token": SECRET},
        {"username": "me", "password": SECRET},
        {"client-certificate-data": encoded(b"c"), "client-key-data": encoded(SECRET.encode())},
        {"tokenFile": "token"},
        {"token": SECRET, "as": "jane"},
        exec_user(args=[SECRET], env=[{"name": "A", "value": SECRET}]),
    ],
    ids=str,
)
async def test_a_repr_shows_no_secret(tmp_path: Path, user: Mapping[str, Any]) -> None:
    (tmp_path / "token").write_text(SECRET)
    cluster = {"proxy-url": f"http://me:{SECRET}@proxy:3128"}
    config = load(write(tmp_path / "config", document(cluster, user)))
    shown = repr(config)
    assert SECRET not in shown
    assert encoded(SECRET.encode()) not in shown
    assert repr(SECRET.encode()) not in shown
    assert "10.0.0.1" in shown


# --- in a Pod


@pytest.fixture
def service_account(tmp_path: Path) -> Path:
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text("from-the-pod")
    (folder / "ca.crt").write_bytes(CA_PEM)
    (folder / "namespace").write_text("team-a\n")
    return folder


@pytest.mark.parametrize(
    ("host", "server"), [("10.96.0.1", "https://10.96.0.1:443"), ("fd00::1", "https://[fd00::1]:443")]
)
async def test_in_cluster(service_account: Path, host: str, server: str) -> None:
    env = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443"}
    config = in_cluster_config(env, service_account)
    assert (config.server, config.namespace, config.tls.ca_data) == (server, "team-a", CA_PEM)
    assert (config.source, config.context, config.proxy_url) == ("in-cluster", None, None)
    assert await sent(config) == [("Authorization", "Bearer from-the-pod")]
    (service_account / "namespace").unlink()
    assert in_cluster_config(env, service_account).namespace == "default"


@pytest.mark.parametrize(
    ("missing", "want"),
    [
        ("KUBERNETES_SERVICE_HOST", "^in-cluster: KUBERNETES_SERVICE_HOST: is not set. Run in a Pod"),
        ("KUBERNETES_SERVICE_PORT", "^in-cluster: KUBERNETES_SERVICE_PORT: is not set. Run in a Pod"),
        ("token", "^in-cluster: the token of the service account: .*/token cannot be read"),
        ("ca.crt", "^in-cluster: .*/ca.crt cannot be read .*Mount the service account"),
    ],
)
def test_in_cluster_without(service_account: Path, missing: str, want: str) -> None:
    env = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    if env.pop(missing, None) is None:
        (service_account / missing).unlink()
    with pytest.raises(ConfigError, match=want):
        in_cluster_config(env, service_account)


def test_nothing_heavy_is_imported_before_there_is_a_kubeconfig() -> None:
    heavy = {"yaml", "pilotage.kube.kubeconfig_file", "pilotage.kube.exec_run"}
    program = f"import sys, pilotage.kube.config; print({heavy} & set(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert loaded.stdout == "set()\n"
