"""Configuration of a client: from a kubeconfig, or from the service account of the Pod it runs in.

    explicit file  >  the KUBECONFIG list  >  ~/.kube/config  >  in-cluster

A place that somebody named and that says nothing is an error, never a reason to look at the next one: that could be
another cluster. All errors are ConfigErrors that name the file and the field.

What only a kubeconfig needs is imported when one is looked for, so that `import pilotage.kube` stays cheap.
"""

from __future__ import annotations

import base64
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

import msgspec

from pilotage.kube.credentials import Credentials, FixedCredentials, TokenFile
from pilotage.kube.errors import ConfigError, CredentialsError, NothingConfigured
from pilotage.kube.tls import TlsSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pilotage.kube.kubeconfig import Kubeconfig, KubeconfigEntry, Selection
    from pilotage.kube.kubeconfig_file import Cluster, KubeconfigContext

__all__ = ["ClusterConfig", "ConfigError", "CredentialsError", "TlsSettings", "in_cluster_config", "load_config"]

SERVICE_ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")

# Under this name, a cluster's `extensions` hold what an exec plugin is to be told about that cluster.
_EXEC_EXTENSION = "client.authentication.k8s.io/exec"

_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class ClusterConfig(msgspec.Struct, frozen=True):
    """Address of a cluster, with TLS, credentials and proxy.

    `server` is a URL without a trailing slash; `namespace` is the one meant when none is given; `context` and `source`
    (the files, or "in-cluster") are for messages.
    """

    server: str
    tls: TlsSettings
    credentials: Credentials
    namespace: str
    proxy_url: str | None
    context: str | None
    source: str

    def __repr__(self) -> str:
        return f"ClusterConfig({self.server}, {self.tls}, of {self.source})"  # a proxy's URL may hold a password


def load_config(
    *, kubeconfig: str | None = None, context: str | None = None, env: Mapping[str, str] = os.environ
) -> ClusterConfig:
    """The configuration for `context`, or for the current one; ConfigError if there is none or it is wrong."""
    if kubeconfig:
        return _from_files([Path(kubeconfig)], context, env, named_by=kubeconfig)
    if env.get("KUBECONFIG"):
        files = [Path(name) for name in env["KUBECONFIG"].split(os.pathsep) if name]
        return _from_files(files, context, env, named_by=f"KUBECONFIG={env['KUBECONFIG']}")
    home = Path(env["HOME"], ".kube", "config") if env.get("HOME") else None
    if home is not None and (config := _read([home])):
        return _resolve(config.select(context), config.source, env)
    if context:
        raise ConfigError(
            f"{home or '~/.kube/config'}: contexts: there is none named {context!r}, nor any other. Set KUBECONFIG."
        )
    if not env.get("KUBERNETES_SERVICE_HOST"):
        raise NothingConfigured(
            f"{home or '~/.kube/config'}: is not there or empty, KUBECONFIG is not set, and this is not a Pod "
            "(KUBERNETES_SERVICE_HOST is not set): no cluster is configured. Set KUBECONFIG to a kubeconfig file."
        )
    return in_cluster_config(env)


def in_cluster_config(env: Mapping[str, str] = os.environ, folder: Path = SERVICE_ACCOUNT_FOLDER) -> ClusterConfig:
    """The configuration of a Pod's service account; ConfigError if this is not a Pod, or one without a token."""
    host, port = (_variable(env, name) for name in ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"))
    credentials = TokenFile(folder / "token", origin="in-cluster: the token of the service account")
    certificate, namespace = folder / "ca.crt", folder / "namespace"
    try:
        ca_data = certificate.read_bytes()
        in_namespace = namespace.read_text(encoding="utf-8").strip() if namespace.exists() else ""
    except OSError as error:
        raise ConfigError(
            f"in-cluster: {error.filename} cannot be read ({error.strerror}). Mount the service account."
        ) from error
    return ClusterConfig(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        tls=TlsSettings(ca_data=ca_data, ca_origin=f"in-cluster: {certificate}"),
        credentials=credentials,
        namespace=in_namespace or "default",
        proxy_url=None,
        context=None,
        source="in-cluster",
    )


def _variable(env: Mapping[str, str], name: str) -> str:
    value = env.get(name)
    if not value:
        raise ConfigError(f"in-cluster: {name}: is not set. Run in a Pod, or set KUBECONFIG to a kubeconfig file.")
    return value


def _from_files(files: list[Path], context: str | None, env: Mapping[str, str], *, named_by: str) -> ClusterConfig:
    config = _read(files)
    if not config.files:
        raise ConfigError(f"{named_by}: no such file. Correct the path.")
    if not config:
        raise ConfigError(f"{config.source}: contexts: there is none, nor anything else. Name another file.")
    return _resolve(config.select(context), config.source, env)


def _read(files: list[Path]) -> Kubeconfig:
    from pilotage.kube.kubeconfig import Kubeconfig

    return Kubeconfig(files)


def _resolve(selected: Selection, source: str, env: Mapping[str, str]) -> ClusterConfig:
    """The configuration of the selected entries. Their files are read here, so that a wrong path is found now."""
    from pilotage.kube.identity import client_certificate, credentials_of, impersonating

    cluster, user = selected.cluster, selected.user
    server = _server(cluster)
    proxy_url = _proxy_url(cluster)
    ca_data, ca_origin = _trusted(cluster)
    credentials: Credentials = FixedCredentials()
    cert = key = None
    client_origin = ""
    # As kubectl: over a connection that anyone can read, no secret is sent.
    if server.startswith("https:"):
        cert, key, client_origin = client_certificate(user)
        credentials = credentials_of(user, cluster_info=_cluster_info(cluster, ca_data), env=env)
    return ClusterConfig(
        server=server,
        tls=TlsSettings(
            ca_data=ca_data,
            insecure=bool(cluster.value.insecure_skip_tls_verify),
            server_name=cluster.value.tls_server_name or None,
            client_cert=cert,
            client_key=key,
            ca_origin=ca_origin,
            client_origin=client_origin,
        ),
        credentials=impersonating(user, credentials),
        namespace=_namespace(selected.context),
        proxy_url=proxy_url,
        context=selected.context.name,
        source=source,
    )


def _server(cluster: KubeconfigEntry[Cluster]) -> str:
    server = cluster.value.server
    if not server:
        raise cluster.error("server", "is not set. Set it to https://HOST:PORT.")
    url = _http_url(server)
    if url is None:
        raise cluster.error("server", "is not a URL of the form https://HOST:PORT. Correct it.")
    if "@" in url.netloc:
        raise cluster.error("server", "holds a user name or password. Put these into the user's username and password.")
    return f"{url.scheme}://{url.netloc}{url.path.rstrip('/')}"


def _proxy_url(cluster: KubeconfigEntry[Cluster]) -> str | None:
    proxy = cluster.value.proxy_url
    if proxy and _http_url(proxy) is None:  # it is not shown: it may hold a password
        raise cluster.error("proxy-url", "is not of the form http://HOST:PORT or https://HOST:PORT. Correct it.")
    return proxy or None


def _http_url(text: str) -> SplitResult | None:
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:  # a port or an IPv6 address that is none
        return None
    return url if url.scheme in ("http", "https") and url.hostname and port != 0 else None


def _trusted(cluster: KubeconfigEntry[Cluster]) -> tuple[bytes | None, str]:
    value = cluster.value
    ca_data, origin = cluster.read_bytes(
        "certificate-authority", value.certificate_authority_data, value.certificate_authority
    )
    if ca_data is not None and value.insecure_skip_tls_verify:
        raise cluster.error(
            "insecure-skip-tls-verify", "is true, but a certificate-authority is set. Remove one of them."
        )
    return ca_data, origin


def _namespace(context: KubeconfigEntry[KubeconfigContext]) -> str:
    namespace = context.value.namespace or "default"
    if not _NAMESPACE.fullmatch(namespace):
        raise context.error(
            "namespace", f"{namespace!r} cannot be a namespace. Use lower case letters, digits and '-'."
        )
    return namespace


def _cluster_info(cluster: KubeconfigEntry[Cluster], ca_data: bytes | None) -> Mapping[str, Any]:
    """The cluster as an exec plugin is told of it, if it asks for that."""
    value = cluster.value
    info = {
        "server": value.server,
        "tls-server-name": value.tls_server_name,
        "insecure-skip-tls-verify": value.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(ca_data).decode() if ca_data else None,
        "proxy-url": value.proxy_url,
        "disable-compression": value.disable_compression,
        "config": next((e.extension for e in value.extensions or () if e.name == _EXEC_EXTENSION), None),
    }
    return {name: told for name, told in info.items() if told}
