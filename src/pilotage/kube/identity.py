"""Identity of a user of a kubeconfig: the credentials to ask before each request, and a client certificate.

The rules are kubectl's. A token file wins over a token; a token and a user name together are a mistake; an exec plugin
counts only where there is neither of these nor a certificate; impersonation goes on top of anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pilotage.kube.credentials import Credentials, FixedCredentials, Impersonating, TokenFile, basic, bearer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pilotage.kube.errors import ConfigError
    from pilotage.kube.exec_run import ExecSettings
    from pilotage.kube.kubeconfig import KubeconfigEntry
    from pilotage.kube.kubeconfig_file import Exec, User

_INTERACTIVE_MODES = ("Never", "IfAvailable", "Always")


def client_certificate(user: KubeconfigEntry[User]) -> tuple[bytes | None, bytes | None, str]:
    """The user's certificate and key (PEM), both or none, and the field that the certificate came from."""
    value = user.value
    cert, origin = user.read_bytes("client-certificate", value.client_certificate_data, value.client_certificate)
    if cert is None:
        return None, None, origin
    key, _ = user.read_bytes("client-key", value.client_key_data, value.client_key)
    if key is None:
        raise user.error("client-key", "is not set, but the certificate is. Set it, or client-key-data.")
    return cert, key, origin


def credentials_of(
    user: KubeconfigEntry[User], *, cluster_info: Mapping[str, Any], env: Mapping[str, str]
) -> Credentials:
    """The credentials of a user. `cluster_info` and `env` are for an exec plugin."""
    value = user.value
    if value.auth_provider is not None:
        raise user.error(
            "auth-provider",
            "was removed from Kubernetes. Use exec with the plugin of your provider, such as kubelogin.",
        )
    if value.exec is not None and not _has_another_proof(value):
        from pilotage.kube.exec_plugin import ExecPlugin  # few users have one

        return ExecPlugin(_exec_settings(user, value.exec, cluster_info), env=env)
    if value.username or value.password:
        if value.token or value.token_file:
            raise user.error("username", "is set together with a token. Remove one of them.")
        return FixedCredentials(basic(value.username or "", value.password or ""))
    token = None
    if value.token:
        try:
            token = bearer(value.token.strip())
        except ValueError as error:
            raise user.error("token", f"{error}. Copy it again.") from None
    if value.token_file:
        return TokenFile(user.path(value.token_file), origin=user.field("tokenFile"), fallback=token)
    return FixedCredentials(token)


def impersonating(user: KubeconfigEntry[User], credentials: Credentials) -> Credentials:
    """The credentials, acting as whom the user's `as` fields say, if they do."""
    value = user.value
    extra = [(key, text) for key, texts in (value.as_user_extra or {}).items() for text in texts]
    if not value.as_:
        if value.as_uid or value.as_groups or extra:
            raise user.error("as", "is not set, but as-uid, as-groups or as-user-extra is. Name the user to act as.")
        return credentials
    headers = [("Impersonate-User", value.as_)]
    if value.as_uid:
        headers.append(("Impersonate-Uid", value.as_uid))
    headers += [("Impersonate-Group", group) for group in value.as_groups or ()]
    # The name of the key is part of the header's name: all that cannot stand there is percent-encoded.
    headers += [("Impersonate-Extra-" + quote(key, safe="!#$&'*+^`|"), text) for key, text in extra]
    if not all(text.isprintable() for _, text in headers):
        raise user.error("as", "or a field next to it holds a line break or another control character. Remove it.")
    return Impersonating(credentials, headers)


def _has_another_proof(user: User) -> bool:
    proofs = (
        user.token,
        user.token_file,
        user.username,
        user.password,
        user.client_certificate,
        user.client_certificate_data,
    )
    return any(proofs)


def _exec_settings(user: KubeconfigEntry[User], exec_: Exec, cluster_info: Mapping[str, Any]) -> ExecSettings:
    from pilotage.kube.exec_run import API_VERSIONS, ExecSettings

    def wrong(field: str, problem: str) -> ConfigError:
        return user.error(f"exec.{field}", problem)

    if not exec_.command:
        raise wrong("command", "is not set. Name the program to run.")
    if exec_.api_version not in API_VERSIONS:
        raise wrong("apiVersion", f"is {exec_.api_version or 'not set'}. It must be one of: {', '.join(API_VERSIONS)}.")
    mode = exec_.interactive_mode or ("IfAvailable" if exec_.api_version.endswith("/v1beta1") else "")
    if mode not in _INTERACTIVE_MODES:
        raise wrong("interactiveMode", f"is {mode or 'not set'}. It must be one of: {', '.join(_INTERACTIVE_MODES)}.")
    if not all(variable.name for variable in exec_.env or ()):
        raise wrong("env", "has an entry with an empty name. Name it.")
    return ExecSettings(
        origin=user.field("exec"),
        command=str(user.path(exec_.command)) if "/" in exec_.command else exec_.command,
        api_version=exec_.api_version,
        args=tuple(exec_.args or ()),
        env=tuple((variable.name, variable.value or "") for variable in exec_.env or ()),
        install_hint=exec_.install_hint or "",
        interactive_mode=mode,
        cluster=cluster_info if exec_.provide_cluster_info else None,
    )
