"""Proxy that the environment names, by Go's rules."""

import pytest

from pilotage.kube import ClusterConfig, ConfigError
from pilotage.kube.credentials import FixedCredentials
from pilotage.kube.proxies import proxy_for
from pilotage.kube.tls import TlsSettings


def proxy(server: str, env: dict[str, str], proxy_url: str | None = None) -> str | None:
    config = ClusterConfig(server, TlsSettings(), FixedCredentials(), "default", proxy_url, None, "")
    found = proxy_for(config, env)
    return found and found.geturl()


PROXY = {"HTTPS_PROXY": "http://p:3128"}


@pytest.mark.parametrize(
    ("server", "no_proxy", "found"),
    [
        ("https://k8s.example:6443", "", True),
        ("https://k8s.example:6443", "other.example, .else.example", True),
        ("https://k8s.example:6443", "k8s.example", False),
        ("https://k8s.example:6443", "K8S.example:6443", False),
        ("https://k8s.example:6443", "k8s.example:443", True),
        ("https://k8s.example:6443", "example", False),
        ("https://k8s.example:6443", ".example", False),
        ("https://k8s.example:6443", "ample", True),
        ("https://k8s.example:6443", ".k8s.example", True),
        ("https://k8s.example:6443", "*.k8s.example", True),
        ("https://api.k8s.example:6443", ".k8s.example", False),
        ("https://api.k8s.example:6443", "*.k8s.example", False),
        ("https://api.k8s.example:6443", "*k8s.example", True),
        ("https://api.k8s.example:6443", ".k8s.example:6443", False),
        ("https://api.k8s.example:6443", ".k8s.example:443", True),
        ("https://k8s.example", "k8s.example:443", False),
        ("https://k8s.example", "k8s.example:80", True),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", False),
        ("https://[fd00::1]:6443", "[fd00::1]:443", True),
        ("https://[fd00::1]:6443", "fd00::1", False),
        ("https://10.96.0.1:443", "10.96.0.1:443", False),
        ("https://10.96.0.1:443", "10.0.0.0/8:443", True),
        ("https://10.96.0.1:443", ".0.1", True),
        ("https://k8s.example:6443", "*", False),
        ("https://10.96.0.1:443", "10.0.0.0/8", False),
        ("https://11.96.0.1:443", "10.0.0.0/8", True),
        ("https://[fd00::1]:443", "fd00::/8", False),
        ("https://127.0.0.1:6443", "", False),
        ("https://localhost:6443", "", False),
        ("https://[::1]:6443", "", False),
        ("http://k8s.example:8080", "", False),
    ],
)
def test_who_is_reached_directly(server, no_proxy, found):
    assert (proxy(server, PROXY | {"NO_PROXY": no_proxy}) is not None) is found


def test_the_configuration_comes_before_the_environment():
    assert proxy("https://127.0.0.1:6443", PROXY, "http://mine:1") == "http://mine:1"


@pytest.mark.parametrize(("value", "found"), [("p:3128", "http://p:3128"), ("https://p", "https://p")])
def test_a_proxy_without_a_scheme_is_http(value, found):
    assert proxy("https://k8s.example", {"https_proxy": value}) == found


@pytest.mark.parametrize("value", ["socks5://p:1080", "http://", "ftp://secret@p"])
def test_a_proxy_that_cannot_be_used_is_named_without_its_login(value):
    with pytest.raises(ConfigError, match="HTTPS_PROXY") as error:
        proxy("https://k8s.example", {"HTTPS_PROXY": value})
    assert "secret" not in str(error.value)
