"""Tokens of ServiceAccounts: what a TokenRequest is answered with.

A token is opaque and random. It is good until it expires, and only while its account is there, and the object that it
was bound to. Nothing of it outlives the process: who held one asks for another.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from pilotage.harbor import errors
from pilotage.harbor.access.tokens import AUDIENCE, digest_of
from pilotage.harbor.access.users import AUTHENTICATED, User
from pilotage.harbor.calls import Answer, answer
from pilotage.harbor.problems import invalid
from pilotage.harbor.schema import builtin, decode_problem
from pilotage.harbor.verbs import bodies
from pilotage.harbor.verbs.objects import from_entry
from pilotage.harbor.verbs.removing import format_time_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pilotage.harbor.core import Core
    from pilotage.harbor.errors import Cause
    from pilotage.harbor.kinds import Json
    from pilotage.harbor.store import Entry
    from pilotage.harbor.verbs.scope import Scope

GROUP, KIND = "authentication.k8s.io", "TokenRequest"
SECONDS_DEFAULT = 3600
SECONDS_MIN = 600
_BOUND = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}
_EXTRA = "authentication.kubernetes.io/"


async def request_token(core: Core, scope: Scope) -> Answer:
    """Make a token for a ServiceAccount."""
    body, _ = bodies.parse_untrusted(scope.call)
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


def _problems(seconds: int) -> list[Cause]:
    field = "spec.expirationSeconds"
    if seconds < SECONDS_MIN:
        return [invalid(field, seconds, "may not specify a duration less than 10 minutes")]
    return [invalid(field, seconds, "may not specify a duration larger than 2^32 seconds")] if seconds > 2**32 else []


def _granted(core: Core, scope: Scope, account: Entry, spec: Json) -> Json:
    bound = _bound(core, scope, spec["boundObjectRef"])
    extra = {f"{_EXTRA}credential-id": (f"JTI={core.uid()}",)}
    if bound is not None:
        storage, entry = bound
        if storage != "secrets":
            extra |= {f"{_EXTRA}{storage[:-1]}-name": (entry.name,), f"{_EXTRA}{storage[:-1]}-uid": (entry.uid,)}
    needed = [("serviceaccounts", account), *([bound] if bound is not None else [])]

    def alive() -> bool:
        found = ((core.store.get(storage, each.namespace, each.name), each) for storage, each in needed)
        return all(now is not None and now.uid == each.uid for now, each in found)

    token = secrets.token_urlsafe(32)
    expires = core.now() + spec["expirationSeconds"]
    user = account_user(account, extra)
    core.tokens.add(digest_of(token), user, expires=expires, alive=alive, audiences=tuple(spec["audiences"]))
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
        "status": {"token": token, "expirationTimestamp": format_time_of(expires)},
    }


def account_user(account: Entry, extra: Mapping[str, tuple[str, ...]] | None = None) -> User:
    """Who asks with a ServiceAccount's token."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{account.namespace}", AUTHENTICATED)
    return User(f"system:serviceaccount:{account.namespace}:{account.name}", account.uid, groups, extra or {})


def _bound(core: Core, scope: Scope, reference: Any) -> tuple[str, Entry] | None:  # noqa: ANN401 - JSON
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
