"""Finds what is wrong with the expressions of a policy, in the words of kube-apiserver.

Expressions are checked against the types of their variables; objects and parameters can be anything.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from cel_expr_python import cel
from google.protobuf import descriptor_pb2, descriptor_pool, struct_pb2, timestamp_pb2

from pilotage_harbor.expressions.authorizer import functions
from pilotage_harbor.expressions.programs import Expressions
from pilotage_harbor.schema.cel_environments import checking_environment
from pilotage_harbor.schema.cel_library import declared, type_of
from pilotage_harbor.schema.cel_words import compiler_words

_GROUP_KIND = {"group": "string", "version": "string", "kind": "string"}
_MESSAGES: dict[str, dict[str, str]] = {
    "GroupVersionKind": _GROUP_KIND,
    "GroupVersionResource": {"group": "string", "version": "string", "resource": "string"},
    "UserInfo": {"username": "string", "uid": "string", "groups": "[]string", "extra": "dyn"},
    "AdmissionRequest": {
        "kind": "GroupVersionKind",
        "resource": "GroupVersionResource",
        "subResource": "string",
        "requestKind": "GroupVersionKind",
        "requestResource": "GroupVersionResource",
        "requestSubResource": "string",
        "name": "string",
        "namespace": "string",
        "operation": "string",
        "userInfo": "UserInfo",
        "dryRun": "bool",
        "options": "dyn",
    },
    "NamespaceSpec": {"finalizers": "[]string"},
    "NamespaceCondition": {
        **dict.fromkeys(("status", "type", "message", "reason"), "string"),
        "lastTransitionTime": "timestamp",
    },
    "NamespaceStatus": {"conditions": "[]NamespaceCondition", "phase": "string"},
    "NamespaceMetadata": {
        **dict.fromkeys(("name", "generateName", "namespace", "UID", "resourceVersion"), "string"),
        **dict.fromkeys(("labels", "annotations"), "{}string"),
        **dict.fromkeys(("deletionGracePeriodSeconds", "generation"), "int"),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), "timestamp"),
        "finalizers": "[]string",
    },
    "Namespace": {"metadata": "NamespaceMetadata", "spec": "NamespaceSpec", "status": "NamespaceStatus"},
    "variables": {},
}
"""The types of ``request`` and ``namespaceObject``; ``[]`` is a list of, ``{}`` a map from names to."""

_PACKAGE = "kubernetes"
_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {"string": _Field.TYPE_STRING, "int": _Field.TYPE_INT64, "bool": _Field.TYPE_BOOL}
_WELL_KNOWN = {"dyn": ".google.protobuf.Value", "timestamp": ".google.protobuf.Timestamp"}
_TYPE_WORDS = re.compile(r"[A-Z]+(?![\w.])|[<>]")
_GO_NAMES = {
    "NULL": "null_type",
    "TIMESTAMP": "google.protobuf.Timestamp",
    "DURATION": "google.protobuf.Duration",
    "<": "(",
    ">": ")",
}
_KEPT_TYPE = re.compile(r"(?:BOOL|BYTES|DOUBLE|DURATION|INT|NULL|STRING|TIMESTAMP|UINT|DYN|LIST|MAP|[<>, ])+")


class Checker:
    """Checks the expressions of one policy. Variables are added in their order, and later expressions may use them."""

    def __init__(self, *, params: bool) -> None:
        self._variables: dict[str, Any] = {
            "object": cel.Type.DYN,
            "oldObject": cel.Type.DYN,
            "request": cel.Type(f"{_PACKAGE}.AdmissionRequest"),
            "namespaceObject": cel.Type(f"{_PACKAGE}.Namespace"),
        }
        if params:
            self._variables["params"] = cel.Type.DYN
        self._composed: dict[str, Any] = {}
        self._texts: dict[str, str] = {}

    def add_variable(self, name: str, text: str) -> str:
        """Problem of a variable, or nothing. One that does not compile is of any type from then on."""
        self._composed.setdefault("variables", cel.Type(f"{_PACKAGE}.variables"))
        problem, type_ = self._compiled(text, authorizer=True, composed=True)
        kept = type_ is not None and _KEPT_TYPE.fullmatch(type_.name())
        self._composed[f"variables.{name}"] = type_ if kept else cel.Type.DYN
        self._texts[name] = "dyn(null)" if problem else text
        return problem

    def problem(self, text: str, *wanted: str, authorizer: bool = True, composed: bool = True) -> str:
        """Problem of an expression that must be of one of the types `wanted` (``BOOL``), or nothing."""
        problem, type_ = self._compiled(text, authorizer=authorizer, composed=composed)
        if problem or type_ is None or type_.name() in wanted:
            return problem
        want = go_type(wanted[0]) if len(wanted) == 1 else f"one of [{' '.join(map(go_type, wanted))}]"
        return f"must evaluate to {want} but got {go_type(type_.name())}"

    def _compiled(self, text: str, *, authorizer: bool, composed: bool) -> tuple[str, Any]:
        variables = {**self._variables, **(self._composed if composed else {})}
        if authorizer:
            variables["authorizer"] = type_of("Authorizer")
            variables["authorizer.requestResource"] = type_of("ResourceCheck")
        environment = checking_environment(_pool(), variables, _authorizer_functions())
        try:
            type_ = environment.compile(text).return_type()
        except RuntimeError as error:
            return f"compilation failed: {compiler_words(str(error), text)}", None
        if problem := _runner().program(text, self._texts).problem:
            return f"compilation failed: {problem}", None
        return "", type_


def go_type(name: str) -> str:
    """A type as cel-go writes it: ``LIST<INT>`` is ``list(int)``."""
    return _TYPE_WORDS.sub(lambda found: _GO_NAMES.get(found[0], found[0].lower()), name)


def _undecided(*_: object) -> Any:  # noqa: ANN401 - never returns
    raise AssertionError("an expression that is only checked has run")


@cache
def _authorizer_functions() -> list[cel.FunctionDecl]:
    return declared(functions(_undecided), running=False)


@cache
def _runner() -> Expressions:
    """Compiler that expressions will run with: an expression that is valid but cannot run is refused, too."""
    return Expressions(_undecided)


@cache
def _pool() -> descriptor_pool.DescriptorPool:
    file = descriptor_pb2.FileDescriptorProto(
        name="admission.proto",
        package=_PACKAGE,
        syntax="proto2",
        dependency=[module.DESCRIPTOR.name for module in (struct_pb2, timestamp_pb2)],
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, (field, type_) in enumerate(fields.items(), 1):
            _add_field(message, field, number, type_)
    pool = descriptor_pool.DescriptorPool()
    for module in (struct_pb2, timestamp_pb2):
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(file.SerializeToString())
    return pool


def _add_field(message: descriptor_pb2.DescriptorProto, name: str, number: int, type_: str) -> None:
    repeated = type_.startswith(("[]", "{}"))
    label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
    field = message.field.add(name=name, number=number, label=label)
    if type_.startswith("{}"):
        entry = message.nested_type.add(name=f"{name.capitalize()}Entry")
        entry.options.map_entry = True
        _add_field(entry, "key", 1, "string")
        _add_field(entry, "value", 2, type_[2:])
        field.type, field.type_name = _Field.TYPE_MESSAGE, f".{_PACKAGE}.{message.name}.{entry.name}"
        return
    type_ = type_.removeprefix("[]")
    if type_ in _SCALARS:
        field.type = _SCALARS[type_]
    else:
        field.type, field.type_name = _Field.TYPE_MESSAGE, _WELL_KNOWN.get(type_, f".{_PACKAGE}.{type_}")
