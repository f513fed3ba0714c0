"""Questions about rights, answered: may I, may he, what may I, who am I, and whose token is this.

Each is a pure function from the object that was posted to the object that is the answer. What is wrong with it is
raised as kube-apiserver's refusal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pilotage_harbor.access.attributes import AccessAttributes
from pilotage_harbor.access.tokens import AUDIENCE
from pilotage_harbor.apimachinery import errors
from pilotage_harbor.apimachinery.errors import StatusCause
from pilotage_harbor.apimachinery.users import AUTHENTICATED, UserInfo
from pilotage_harbor.schema import builtin, decode_problem

if TYPE_CHECKING:
    from pilotage_harbor.access.rbac import Authorizer
    from pilotage_harbor.access.tokens import Tokens
    from pilotage_harbor.kinds import Json

AUTHORIZATION = "authorization.k8s.io"
AUTHENTICATION = "authentication.k8s.io"
RESOURCES = {
    "selfsubjectaccessreviews": AUTHORIZATION,
    "subjectaccessreviews": AUTHORIZATION,
    "localsubjectaccessreviews": AUTHORIZATION,
    "selfsubjectrulesreviews": AUTHORIZATION,
    "selfsubjectreviews": AUTHENTICATION,
    "tokenreviews": AUTHENTICATION,
}
"""Resources of reviews, and their groups. All of them are v1."""

KINDS = {
    "selfsubjectaccessreviews": "SelfSubjectAccessReview",
    "subjectaccessreviews": "SubjectAccessReview",
    "localsubjectaccessreviews": "LocalSubjectAccessReview",
    "selfsubjectrulesreviews": "SelfSubjectRulesReview",
    "selfsubjectreviews": "SelfSubjectReview",
    "tokenreviews": "TokenReview",
}
"""Their kinds."""

_INVALID = "FieldValueInvalid"


def answer_to(
    wanted: AccessAttributes, body: Json, user: UserInfo, authorizer: Authorizer, now: str, tokens: Tokens
) -> Json:
    """The answer to whichever of `RESOURCES` was posted. 400 for values of the wrong types."""
    kind = KINDS[wanted.resource]
    problem = decode_problem(builtin(wanted.group, "v1", kind), body, kind)
    if problem is not None:
        raise errors.bad_request(f'{kind} in version "v1" cannot be handled as a {kind}: {problem}')
    if wanted.resource == "tokenreviews":
        return token_review(body, tokens)
    if wanted.resource == "selfsubjectaccessreviews":
        return self_subject_access_review(body, user, authorizer)
    if wanted.resource == "subjectaccessreviews":
        return subject_access_review(body, authorizer)
    if wanted.resource == "localsubjectaccessreviews":
        return local_subject_access_review(body, wanted.namespace, authorizer)
    if wanted.resource == "selfsubjectrulesreviews":
        return self_subject_rules_review(body, user, authorizer)
    return self_subject_review(body, user, now)


def self_subject_access_review(body: Json, user: UserInfo, authorizer: Authorizer) -> Json:
    """May I? The answer to a SelfSubjectAccessReview."""
    spec = body.get("spec") or {}
    _refuse(_access_problems(spec) + _metadata_problems(body, "must be empty"))
    return _decided("SelfSubjectAccessReview", body, user, spec, authorizer)


def subject_access_review(body: Json, authorizer: Authorizer) -> Json:
    """May he? The answer to a SubjectAccessReview."""
    spec = body.get("spec") or {}
    problems = _access_problems(spec, subject=True) + _metadata_problems(body, "must be empty")
    _refuse(problems)
    return _decided("SubjectAccessReview", body, _subject(spec), spec, authorizer)


def local_subject_access_review(body: Json, namespace: str, authorizer: Authorizer) -> Json:
    """May he, in this namespace (that of the path)? The answer to a LocalSubjectAccessReview."""
    spec = body.get("spec") or {}
    metadata = body.get("metadata") or {}
    if (metadata.get("namespace") or namespace) != namespace:
        words = "the namespace of the provided object does not match the namespace sent on the request"
        raise errors.bad_request(words)
    problems = _access_problems(spec, subject=True)
    problems += _metadata_problems(body, "must be empty except for namespace", "namespace")
    resource = spec.get("resourceAttributes")
    if resource is not None and (resource.get("namespace") or "") != namespace:
        shown = _shown(resource.get("namespace") or "")
        field = "spec.resourceAttributes.namespace"
        problems.append(StatusCause(field, _INVALID, f"Invalid value: {shown}: must match metadata.namespace"))
    path = spec.get("nonResourceAttributes")
    if path is not None:
        words = f"Invalid value: {_shown_path(path)}: disallowed on this kind of request"
        problems.append(StatusCause("spec.nonResourceAttributes", _INVALID, words))
    _refuse(problems)
    placed = {**body, "metadata": {**metadata, "namespace": namespace}}
    return _decided("LocalSubjectAccessReview", placed, _subject(spec), spec, authorizer)


def self_subject_rules_review(body: Json, user: UserInfo, authorizer: Authorizer) -> Json:
    """The answer to a SelfSubjectRulesReview: the rules of a user in a namespace."""
    namespace = (body.get("spec") or {}).get("namespace") or ""
    if not namespace:
        raise errors.bad_request("no namespace on request")
    rules, problem = authorizer.rules(user, namespace)
    status: Json = {
        "resourceRules": [
            _picked(rule, "verbs", "apiGroups", "resources", "resourceNames") for rule in rules if rule.get("resources")
        ],
        "nonResourceRules": [
            _picked(rule, "verbs", "nonResourceURLs") for rule in rules if rule.get("nonResourceURLs")
        ],
        "incomplete": False,
    }
    if problem:
        status["evaluationError"] = problem
    return {**_named(body, AUTHORIZATION, "SelfSubjectRulesReview"), "metadata": {}, "spec": {}, "status": status}


def self_subject_review(body: Json, user: UserInfo, now: str) -> Json:
    """The answer to a SelfSubjectReview; `now` is the time as objects carry it."""
    named = _named(body, AUTHENTICATION, "SelfSubjectReview")
    return {**named, "metadata": {"creationTimestamp": now}, "status": {"userInfo": _info(user)}}


def token_review(body: Json, tokens: Tokens) -> Json:
    """Answer to a TokenReview."""
    spec = body.get("spec") or {}
    token, wanted = spec.get("token"), spec.get("audiences") or [AUDIENCE]
    if not isinstance(token, str) or not token:
        raise errors.bad_request("token is required for TokenReview in authentication")
    user = tokens.user(token, wanted)
    status: Json = {"user": {}, "error": "invalid bearer token"}
    if user is not None:
        if AUTHENTICATED not in user.groups:
            user = user._replace(groups=(*user.groups, AUTHENTICATED))
        meant = [each for each in wanted if each in tokens.audiences(token)]
        status = {"authenticated": True, "user": _info(user), "audiences": meant}
    named = _named(body, AUTHENTICATION, "TokenReview")
    return {**named, "metadata": body.get("metadata") or {}, "spec": spec, "status": status}


def _info(user: UserInfo) -> Json:
    info: Json = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {name: list(values) for name, values in user.extra.items()}
    return info


def _decided(kind: str, body: Json, user: UserInfo, spec: Json, authorizer: Authorizer) -> Json:
    decision = authorizer.decide(user, _wanted(spec))
    status: Json = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    return {**_named(body, AUTHORIZATION, kind), "metadata": body.get("metadata") or {}, "spec": spec, "status": status}


def _wanted(spec: Json) -> AccessAttributes:
    asked = spec.get("resourceAttributes")
    if asked is None:
        path = spec["nonResourceAttributes"]
        return AccessAttributes(path.get("verb") or "", path=path.get("path") or "")
    values = (asked.get(name) or "" for name in ("verb", "group", "resource", "subresource", "namespace", "name"))
    return AccessAttributes(*values)


def _subject(spec: Json) -> UserInfo:
    extra = {name: tuple(values or ()) for name, values in (spec.get("extra") or {}).items()}
    return UserInfo(spec.get("user") or "", spec.get("uid") or "", tuple(spec.get("groups") or ()), extra)


def _access_problems(spec: Json, *, subject: bool = False) -> list[StatusCause]:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    problems = []
    if resource is not None and path is not None:
        words = f"Invalid value: {_shown_path(path)}: cannot be specified in combination with resourceAttributes"
        problems.append(StatusCause("spec.nonResourceAttributes", _INVALID, words))
    if resource is None and path is None:
        words = "Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified"
        problems.append(StatusCause("spec.resourceAttributes", _INVALID, words))
    if subject and not spec.get("user") and not spec.get("groups"):
        words = 'Invalid value: "": at least one of user or group must be specified'
        problems.append(StatusCause("spec.user", _INVALID, words))
    return problems


def _metadata_problems(body: Json, words: str, *allowed: str) -> list[StatusCause]:
    metadata = body.get("metadata") or {}
    ignored = (*allowed, "managedFields")
    if any(value for name, value in metadata.items() if name not in ignored):
        return [StatusCause("metadata", _INVALID, f"Invalid value: {_shown(metadata)}: {words}")]
    return []


def _refuse(problems: list[StatusCause]) -> None:
    """422, as if the kind had no name: so does kube-apiserver say it."""
    if problems:
        error = errors.invalid(AUTHORIZATION, "", "", problems)
        error.details = {"group": AUTHORIZATION, "causes": (error.details or {})["causes"]}
        raise error


def _named(body: Json, group: str, kind: str) -> Json:
    return {"kind": body.get("kind") or kind, "apiVersion": body.get("apiVersion") or f"{group}/v1"}


def _picked(rule: Json, *names: str) -> Json:
    return {name: rule[name] for name in names if rule.get(name)}


def _shown(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _shown_path(path: Json) -> str:
    """Path with the names that the fields have in Go."""
    return _shown({"Path": path.get("path") or "", "Verb": path.get("verb") or ""})
