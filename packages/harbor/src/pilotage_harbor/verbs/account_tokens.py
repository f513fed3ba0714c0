"""Tokens of ServiceAccounts: how a TokenRequest is answered, and whom such a token stands for.

A token is signed and holds kube-apiserver's claims: the account and the object that it is bound to, each with its uid,
its audiences, and when it expires. It is good until then, while those objects are there; none of the same name can take
their place. Nothing is kept about it, so it outlives a restart of the server.

`nbf` is written for others and not enforced here. Only this server signs, so a token from the future is one that was
issued before the clock was set back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pilotage_harbor.access import signed
from pilotage_harbor.access.tokens import AUDIENCE, Bearer
from pilotage_harbor.apimachinery import errors
from pilotage_harbor.apimachinery.calls import ServerResponse, answer
from pilotage_harbor.apimachinery.field_errors import invalid
from pilotage_harbor.apimachinery.users import AUTHENTICATED, UserInfo
from pilotage_harbor.core.deletion import format_time_of
from pilotage_harbor.core.objects import from_entry
from pilotage_harbor.schema import builtin, decode_problem
from pilotage_harbor.verbs import bodies

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pilotage_harbor.apimachinery.errors import StatusCause
    from pilotage_harbor.core import Core
    from pilotage_harbor.core.scope import Scope
    from pilotage_harbor.kinds import Json
    from pilotage_harbor.storage.store import StoredObject

GROUP, KIND = "authentication.k8s.io", "TokenRequest"
SECONDS_DEFAULT = 3600
SECONDS_MIN = 600
_BOUND = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}
_EXTRA = "authentication.kubernetes.io/"


async def request_token(core: Core, scope: Scope) -> ServerResponse:
    """Make a token for a ServiceAccount."""
    body = await bodies.parsed(core, scope.call)
    problem = decode_problem(builtin(GROUP, "v1", KIND), body, KIND)
    if problem is not None:
        raise errors.bad_request(f'{KIND} in version "v1" cannot be handled as a {KIND}: {problem}')
    meta: Json = body.get("metadata") or {}
    for name, wanted in (("name", scope.name), ("namespace", scope.namespace)):
        if meta.get(name) and meta[name] != wanted:
            shown = f"must match the service account {name} if specified"
            raise errors.invalid(GROUP, KIND, scope.name, [invalid(f"metadata.{name}", meta[name], shown)])
    account = core.store.get("serviceaccounts", scope.namespace, scope.name)
    if account is None:
        raise errors.not_found("", "serviceaccounts", scope.name)
    if meta.get("uid") and meta["uid"] != account.uid:  # clients that write protobuf send an empty one
        words = f"the UID in the token request ({meta['uid']}) does not match the UID of the service account"
        raise errors.conflict(GROUP, KIND, scope.name, f"{words} ({account.uid})")
    spec: Json = {**(body.get("spec") or {})}
    spec["audiences"] = spec.get("audiences") or [AUDIENCE]
    spec["expirationSeconds"] = SECONDS_DEFAULT if spec.get("expirationSeconds") is None else spec["expirationSeconds"]
    spec.setdefault("boundObjectRef", None)
    if problems := _problems(spec["expirationSeconds"]):
        raise errors.invalid(GROUP, KIND, "", problems)
    return answer(_granted(core, scope, account, spec), 201)


def _problems(seconds: int) -> list[StatusCause]:
    field = "spec.expirationSeconds"
    if seconds < SECONDS_MIN:
        return [invalid(field, seconds, "may not specify a duration less than 10 minutes")]
    return [invalid(field, seconds, "may not specify a duration larger than 2^32 seconds")] if seconds > 2**32 else []


def _granted(core: Core, scope: Scope, account: StoredObject, spec: Json) -> Json:
    bound = _bound(core, scope, spec["boundObjectRef"])
    now = int(core.now())
    about = _About(account.namespace, _Named(account.name, account.uid))
    if bound is not None:
        storage, entry = bound
        setattr(about, storage[:-1], _Named(entry.name, entry.uid))
    claims = _Claims(
        aud=spec["audiences"],
        exp=now + spec["expirationSeconds"],
        iat=now,
        iss=AUDIENCE,
        jti=core.uid(),
        about=about,
        nbf=now,
        sub=account_user(account.namespace, account.name, account.uid).name,
    )
    return {
        "kind": KIND,
        "apiVersion": f"{GROUP}/v1",
        "metadata": {
            "name": account.name,
            "namespace": account.namespace,
            "uid": account.uid,
            "creationTimestamp": core.now_text(),
        },
        "spec": spec,
        "status": {
            "token": signed.sign(msgspec.json.encode(claims), core.tokens.key),
            "expirationTimestamp": format_time_of(claims.exp),
        },
    }


class _Named(msgspec.Struct):
    """An object that a token depends on."""

    name: str
    uid: str


class _About(msgspec.Struct, omit_defaults=True):
    namespace: str
    serviceaccount: _Named
    pod: _Named | None = None
    secret: _Named | None = None
    node: _Named | None = None


class _Claims(msgspec.Struct):
    """The claims of a token, named as kube-apiserver names them."""

    aud: list[str]
    exp: int
    iat: int
    iss: str
    jti: str
    about: _About = msgspec.field(name="kubernetes.io")
    nbf: int
    sub: str


_decoder = msgspec.json.Decoder(_Claims)


def bearer_of(core: Core, raw: bytes) -> Bearer | None:
    """The bearer of a token with these claims, which this server has signed; None where they are not a token's."""
    try:
        claims = _decoder.decode(raw)
    except msgspec.DecodeError:
        return None
    about = claims.about
    account = about.serviceaccount
    needed = [("serviceaccounts", about.namespace, account)]
    extra = {f"{_EXTRA}credential-id": (f"JTI={claims.jti}",)}
    for kind, storage in _BOUND.items():
        bound: _Named | None = getattr(about, kind.lower())
        if bound is None:
            continue
        needed.append((storage, "" if storage == "nodes" else about.namespace, bound))
        if storage != "secrets":
            extra |= {f"{_EXTRA}{kind.lower()}-name": (bound.name,), f"{_EXTRA}{kind.lower()}-uid": (bound.uid,)}

    def alive() -> bool:
        found = ((core.store.get(storage, namespace, each.name), each) for storage, namespace, each in needed)
        return all(now is not None and now.uid == each.uid for now, each in found)

    user = account_user(about.namespace, account.name, account.uid, extra)
    return Bearer(user, claims.exp, alive, tuple(claims.aud))


def account_user(namespace: str, name: str, uid: str, extra: Mapping[str, tuple[str, ...]] | None = None) -> UserInfo:
    """The user that a ServiceAccount's token stands for."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
    return UserInfo(f"system:serviceaccount:{namespace}:{name}", uid, groups, extra or {})


def _bound(core: Core, scope: Scope, reference: Any) -> tuple[str, StoredObject] | None:  # noqa: ANN401 - JSON
    """The object that a token is to live as long as."""
    if reference is None:
        return None
    api_version, kind, name = (reference.get(key) or "" for key in ("apiVersion", "kind", "name"))
    group, _, version = api_version.rpartition("/")
    storage = _BOUND.get(kind, "") if not group else ""
    if not storage:
        raise errors.bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    entry = core.store.get(storage, "" if storage == "nodes" else scope.namespace, name)
    if entry is None:
        raise errors.not_found("", storage, name)
    if storage == "pods":
        pods = core.registry.storage(storage)
        assert pods is not None
        if from_entry(pods, entry)["spec"].get("serviceAccountName") != scope.name:
            words = f'cannot bind token for serviceaccount "{scope.name}" to pod'
            raise errors.bad_request(f"{words} running with different serviceaccount name.")
    if reference.get("uid") and reference["uid"] != entry.uid:
        words = (
            f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
        raise errors.conflict("", kind, name, words)
    return storage, entry
