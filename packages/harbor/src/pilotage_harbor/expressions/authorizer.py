"""The ``authorizer`` of admission expressions: what the author of a request, or an account, may do.

As all values that CEL has no room for, an authorizer and a check run as maps. `functions` gives the table that binds
them to whoever decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pilotage_harbor.access.attributes import AccessAttributes
from pilotage_harbor.apimachinery.names import dns_label, dns_subdomain
from pilotage_harbor.apimachinery.users import UserInfo
from pilotage_harbor.schema.cel_library import Function

if TYPE_CHECKING:
    from collections.abc import Callable

    from pilotage_harbor.access.rbac import AuthorizationDecision

Value = dict[str, Any]

_USER, _GROUPS = "#user", "#groups"
_DECISION = "#allowed"


def authorizer_of(user: UserInfo) -> Value:
    """The variable ``authorizer`` for a request of this user."""
    return {_USER: user.name, _GROUPS: list(user.groups)}


def check_of(user: UserInfo, wanted: AccessAttributes) -> Value:
    """The variable ``authorizer.requestResource``: a check of what the request is about."""
    named = {name: getattr(wanted, name) for name in ("group", "resource", "subresource", "namespace", "name")}
    return authorizer_of(user) | named


def functions(decide: Callable[[UserInfo, AccessAttributes], AuthorizationDecision]) -> tuple[Function, ...]:
    """The functions of authorizers, checks and decisions."""

    def check(value: Value, verb: str) -> Value:
        user = UserInfo(_having(value, _USER)[_USER], groups=tuple(value[_GROUPS]))
        fields = {name: value[name] for name in AccessAttributes._fields if name in value}
        allowed, reason = decide(user, AccessAttributes(verb, **fields))
        return {_DECISION: allowed, "reason": reason}

    return (
        Function("path", ("@Authorizer.string->PathCheck",), _path),
        Function("group", ("@Authorizer.string->GroupCheck",), _setter("group")),
        Function("serviceAccount", ("@Authorizer.string.string->Authorizer",), _service_account),
        Function("resource", ("@GroupCheck.string->ResourceCheck",), _resource),
        *(
            Function(name, ("@ResourceCheck.string->ResourceCheck",), _setter(name))
            for name in ("subresource", "namespace", "name")
        ),
        # RBAC, which decides, does not look at selectors.
        *(
            Function(name, ("@ResourceCheck.string->ResourceCheck",), lambda value, _: value)
            for name in ("fieldSelector", "labelSelector")
        ),
        Function("check", ("@PathCheck.string->Decision", "@ResourceCheck.string->Decision"), check),
        Function("allowed", ("@Decision->bool",), lambda value: _decided(value)[_DECISION]),
        Function("reason", ("@Decision->string",), lambda value: _decided(value)["reason"]),
        Function("errored", ("@Decision->bool",), lambda value: not _decided(value)),
        Function("error", ("@Decision->string",), lambda value: _decided(value) and ""),
    )


def _path(value: Value, path: str) -> Value:
    if not path.strip():
        raise ValueError("path must not be empty")
    return {**_having(value, _USER), "path": path}


def _resource(value: Value, resource: str) -> Value:
    if not resource.strip():
        raise ValueError("resource must not be empty")
    return {**_having(value, _USER), "resource": resource}


def _service_account(value: Value, namespace: str, name: str) -> Value:
    _having(value, _USER)
    if dns_subdomain(name):
        raise ValueError("Invalid service account name")
    if dns_label(namespace):
        raise ValueError("Invalid service account namespace")
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return authorizer_of(UserInfo(f"system:serviceaccount:{namespace}:{name}", groups=groups))


def _setter(field: str) -> Callable[[Value, str], Value]:
    return lambda value, text: {**_having(value, _USER), field: text}


def _decided(value: Value) -> Value:
    return _having(value, _DECISION)


def _having(value: Value, key: str) -> Value:
    """The value, if it is what its function is for: any map can stand where a type is not known."""
    if key not in value:
        raise ValueError("no such overload")
    return value
