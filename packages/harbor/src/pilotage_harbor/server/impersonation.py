"""Impersonation: the headers that ask for it, and the permissions that it needs.

There are two ways to be allowed. The newer is narrow: a right to impersonate such a user, and a right to do just this
request while impersonating. The older is one right, `impersonate`, for whatever comes next. Either is enough.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pilotage_harbor.access.attributes import AccessAttributes, attributes_of, refusal
from pilotage_harbor.apimachinery import errors
from pilotage_harbor.apimachinery.users import ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED, UserInfo
from pilotage_harbor.schema.gotext import quote as quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping

    from pilotage_harbor.access.rbac import Authorizer
    from pilotage_harbor.server.http1 import Headers, RequestHead

_LABEL = "[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_SERVICE_ACCOUNT = re.compile(rf"system:serviceaccount:({_LABEL}):({_LABEL}(?:\.{_LABEL})*)")
_NODE = re.compile(rf"system:node:({_LABEL}(?:\.{_LABEL})*)")
_EXTRA = "impersonate-extra-"
_GROUP = "authentication.k8s.io"
_REMEMBERED_MAX = 10_000


def impersonated(
    user: UserInfo,
    head: RequestHead,
    authorizer: Authorizer | None,
    old_way_first: MutableMapping[str, bool] | None = None,
) -> UserInfo:
    """The user that `user` impersonates, if it may: StatusError 400 or 403 otherwise. Without an authorizer none may.

    `old_way_first` remembers which way last led somewhere for whom, so that it is tried first: its refusal is told.
    """
    wanted = wanted_user(head.headers)
    if wanted is None:
        return user
    ways = [mode, ""] if (mode := _mode(wanted)) else [""]
    if old_way_first is not None and old_way_first.get(user.name):
        ways.reverse()
    told: errors.StatusError | None = None
    for way in ways:
        accesses = list(_accesses(wanted, way))
        if way:
            request = attributes_of(head.method, head.path, head.query)
            accesses.insert(0, request._replace(verb=f"impersonate-on:{way}:{request.verb}"))
        refused = _refused(user, accesses, authorizer) or (_never(user, wanted, way) if way else None)
        if refused is None:
            _remember(old_way_first, user.name, old=not way)
            return _completed(wanted, way)
        told = told or refused
    assert told is not None
    raise told


def _remember(old_way_first: MutableMapping[str, bool] | None, name: str, *, old: bool) -> None:
    if old_way_first is not None and old_way_first.get(name) is not old:
        if len(old_way_first) >= _REMEMBERED_MAX:
            old_way_first.clear()
        old_way_first[name] = old


def wanted_user(headers: Headers) -> UserInfo | None:
    """The user that the headers ask to be, as they say it; None if they do not ask. 400 if they name no user."""
    asked = [pair for pair in (*headers.values.items(), *headers.more) if pair[0].startswith("impersonate-")]
    first = dict(reversed(asked))
    name, uid = first.get("impersonate-user", ""), first.get("impersonate-uid", "")
    groups = tuple(value for key, value in asked if key == "impersonate-group")
    extra: dict[str, tuple[str, ...]] = {}
    for key, value in asked:
        if key.startswith(_EXTRA):
            plain = unquote(key[len(_EXTRA) :])
            extra[plain] = (*extra.get(plain, ()), value)
    wanted = UserInfo(name, uid, groups, extra)
    if name:
        return wanted
    if uid or groups or extra:
        raise errors.bad_request(f"requested {_in_go(wanted)} without impersonating a user name")
    return None


def _mode(wanted: UserInfo) -> str:
    """The narrow way that fits this user; the empty one if none does."""
    node, account = _NODE.fullmatch(wanted.name), _SERVICE_ACCOUNT.fullmatch(wanted.name)
    if node is None and account is None:
        return "user-info"
    if wanted.uid or wanted.groups or wanted.extra:
        return ""
    return "arbitrary-node" if node is not None else "serviceaccount"


def _accesses(wanted: UserInfo, mode: str) -> Iterator[AccessAttributes]:
    """Permissions that impersonating this user takes."""
    verb, group = (f"impersonate:{mode}", _GROUP) if mode else ("impersonate", "")
    node, account = _NODE.fullmatch(wanted.name), _SERVICE_ACCOUNT.fullmatch(wanted.name)
    if account is not None:
        yield AccessAttributes(verb, group, "serviceaccounts", namespace=account[1], name=account[2])
    elif node is not None and mode:
        yield AccessAttributes(verb, group, "nodes", name=node[1])
    else:
        yield AccessAttributes(verb, group, "users", name=wanted.name)
    if wanted.uid:
        yield AccessAttributes(verb, _GROUP, "uids", name=wanted.uid)
    for each in wanted.groups:
        yield AccessAttributes(verb, group, "groups", name=each)
    for key, values in wanted.extra.items():
        for value in values:
            yield AccessAttributes(verb, _GROUP, "userextras", key, name=value)


def _refused(
    user: UserInfo, accesses: list[AccessAttributes], authorizer: Authorizer | None
) -> errors.StatusError | None:
    for access in accesses:
        if authorizer is None:
            return refusal(user, access)
        allowed, reason = authorizer.decide(user, access)
        if not allowed:
            return refusal(user, access, reason)
    return None


def _never(user: UserInfo, wanted: UserInfo, mode: str) -> errors.StatusError | None:
    """The narrow way does not lead to those who may do everything."""
    if MASTERS not in wanted.groups:
        return None
    access = AccessAttributes(f"impersonate:{mode}", _GROUP, "groups", name=MASTERS)
    return refusal(user, access, f"impersonating the {MASTERS} group is not allowed")


def _completed(wanted: UserInfo, mode: str) -> UserInfo:
    """User with the groups that such a user always has."""
    groups = wanted.groups
    account = _SERVICE_ACCOUNT.fullmatch(wanted.name)
    if account is not None and not groups:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account[1]}")
    if mode == "arbitrary-node":
        groups = ("system:nodes",)
    if wanted.name == ANONYMOUS:
        groups = groups if UNAUTHENTICATED in groups else (*groups, UNAUTHENTICATED)
    elif UNAUTHENTICATED not in groups and AUTHENTICATED not in groups:
        groups = (*groups, AUTHENTICATED)
    return wanted._replace(groups=groups)


def _in_go(user: UserInfo) -> str:
    """The structure as Go prints it."""
    groups = f"[]string{{{', '.join(map(quoted, user.groups))}}}" if user.groups else "[]string(nil)"
    extra = "map[string][]string(nil)"
    if user.extra:
        values = (f"{quoted(key)}:[]string{{{', '.join(map(quoted, user.extra[key]))}}}" for key in sorted(user.extra))
        extra = f"map[string][]string{{{', '.join(values)}}}"
    return f"&user.DefaultInfo{{Name:{quoted(user.name)}, UID:{quoted(user.uid)}, Groups:{groups}, Extra:{extra}}}"
