"""Runs a case through the strategies as the core does, and brings answers into a form that can be compared."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from pilotage_harbor.apimachinery.errors import StatusCause, StatusError
from pilotage_harbor.apimachinery.metadata_rules import metadata_problems, metadata_update_problems
from pilotage_harbor.apimachinery.users import UserInfo
from pilotage_harbor.builtin import builtin_kinds
from pilotage_harbor.kinds import Kind

Json = dict[str, Any]
HERE = Path(__file__).parent
NAMESPACE = "cases"
UID = "11111111-2222-3333-4444-555555555555"
KINDS = {(kind.api_version, kind.kind): kind for kind in builtin_kinds()}
RECORDER = UserInfo("tok-a", "tok-a", ("system:masters", "system:authenticated"))
SYSTEM = {"creationTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": "1", "uid": UID}


class Case(NamedTuple):
    family: str
    name: str
    manifest: Json
    updates: dict[str, Json]
    statuses: dict[str, Json]

    @property
    def kind(self) -> Kind:
        return KINDS[self.manifest["apiVersion"], self.manifest["kind"]]


def cases() -> Iterator[Case]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where it is
    for file in sorted((HERE / "cases").glob("*.yaml")):
        for name, case in yaml.load(file.read_text(), loader).items():
            yield Case(file.stem, name, case["manifest"], case.get("updates", {}), case.get("statuses", {}))


def recorded(family: str) -> Json:
    answers: Json = json.loads((HERE / "recorded" / f"{family}.json").read_text())
    return answers


class Shelf:
    """A View of a few objects."""

    def __init__(self, **objects: list[Json]) -> None:
        self._objects = objects

    def get(self, storage: str, namespace: str, name: str) -> Json | None:
        found = (each for each in self.objects(storage, namespace) if each["metadata"]["name"] == name)
        return next(found, None)

    def objects(self, storage: str, namespace: str = "") -> Iterable[Json]:
        return [
            copy.deepcopy(each)
            for each in self._objects.get(storage, [])
            if not namespace or each["metadata"].get("namespace") == namespace
        ]


def default_shelf() -> Shelf:
    """Objects that the recorder finds in its cluster, too."""
    account = {"metadata": {"name": "default", "namespace": NAMESPACE}}
    robot = {"metadata": {"name": "robot", "namespace": NAMESPACE}}
    return Shelf(serviceaccounts=[account, robot])


class Runner:
    """One case: the object as it is now, or what was refused."""

    def __init__(self, case: Case, shelf: Shelf | None = None) -> None:
        self.case = case
        self.kind = case.kind
        self.shelf = shelf or default_shelf()
        self.current: Json | None = None

    def create(self) -> Json:
        obj = copy.deepcopy(self.case.manifest)
        meta = obj.setdefault("metadata", {})
        if self.kind.namespaced:
            meta.setdefault("namespace", NAMESPACE)
        strategy = self.kind.strategy
        strategy.default(obj)
        meta.update(SYSTEM)
        if meta.get("generateName") and not meta.get("name"):
            meta["name"] = f"{meta['generateName']}x2x4x"
        try:
            strategy.prepare_create(obj, self.shelf)
            strategy.note_author(obj, RECORDER)
        except StatusError as error:
            return error.status
        problems = metadata_problems(meta, namespaced=self.kind.namespaced, name_problems=strategy.name_problems)
        problems += strategy.validate(obj, self.shelf)
        if problems:
            return _refusal(self.kind, meta.get("name", ""), problems)
        self.current = self._stored(obj)
        return self.current

    def update(self, patch: Json) -> Json:
        assert self.current is not None
        old = self.current
        obj = merged(copy.deepcopy(old), patch)
        strategy = self.kind.strategy
        strategy.default(obj)
        before = copy.deepcopy(old)
        try:
            strategy.prepare_update(obj, old, self.shelf)
        except StatusError as error:
            return error.status
        problems = metadata_update_problems(obj["metadata"], old["metadata"])
        problems += strategy.validate_update(obj, old, self.shelf)
        assert old == before, "the old object was changed"
        if problems:
            return _refusal(self.kind, obj["metadata"]["name"], problems)
        self.current = self._stored(obj)
        return self.current

    def update_status(self, patch: Json) -> Json:
        assert self.current is not None
        old = self.current
        obj = merged(copy.deepcopy(old), patch)
        strategy = self.kind.strategy
        strategy.default(obj)
        strategy.prepare_status_update(obj, old)
        problems = metadata_update_problems(obj["metadata"], old["metadata"])
        problems += strategy.validate_status_update(obj, old, self.shelf)
        if problems:
            return _refusal(self.kind, obj["metadata"]["name"], problems)
        self.current = obj
        return obj

    def _stored(self, obj: Json) -> Json:
        """Object as it comes back from storage."""
        if self.kind.to_storage is None or self.kind.from_storage is None:
            return obj
        return self.kind.from_storage(self.kind.to_storage(obj))


def _refusal(kind: Kind, name: str, problems: list[StatusCause]) -> Json:
    from pilotage_harbor.apimachinery.errors import invalid

    return invalid(kind.group, kind.kind, name, problems).status


def merged(obj: Json, patch: Json) -> Json:
    """A merge patch, applied."""
    for key, value in patch.items():
        if value is None:
            obj.pop(key, None)
        elif isinstance(value, dict) and isinstance(obj.get(key), dict):
            merged(obj[key], value)
        else:
            obj[key] = copy.deepcopy(value)
    return obj


_META = ("creationTimestamp", "managedFields", "resourceVersion", "selfLink", "uid")


def comparable(answer: Json, asked: str) -> Json:
    """An answer without what differs from run to run. `asked` is the text of what was asked for so far."""
    if answer.get("kind") == "Status":
        details = answer.get("details") or {}
        causes: list[Json] = [
            {"field": cause.get("field", ""), "reason": cause["reason"], "message": cause["message"].split("\n")[0]}
            for cause in details.get("causes", ())
        ]
        # The real server checks metadata up to four times, and says so each time.
        causes = list({json.dumps(cause): cause for cause in causes}.values())
        refusal = {"code": answer["code"], "reason": answer["reason"], "causes": causes}
        if not causes:
            refusal["message"] = answer["message"]
        return _placeheld(refusal, asked)
    answer = copy.deepcopy(answer)
    for name in _META:
        answer["metadata"].pop(name, None)
    return _placeheld(answer, asked)


def _placeheld(answer: Json, asked: str) -> Json:
    text = json.dumps(answer, sort_keys=True)
    text = re.sub(r"\w{8}(-\w{4}){3}-\w{12}", "UID", text)
    text = re.sub(r"A-\w{5}", "A-xxxxx", text)
    text = re.sub(r'"last(Phase)?TransitionTime": "[^"]*"', r'"last\1TransitionTime": "TIME"', text)
    text = re.sub(r"kube-api-access-\w{5}", "kube-api-access-xxxxx", text)
    text = re.sub(r'"10\.0\.\d+\.\d+"', lambda match: match[0] if match[0] in asked else '"ADDRESS"', text)
    text = re.sub(r'odePort": (\d+)', lambda match: match[0] if match[1] in asked else 'odePort": "PORT"', text)
    result: Json = json.loads(text)
    return result


def play(case: Case, runner: Any) -> Json:
    """Create and update, and write down all answers."""
    asked = json.dumps(case.manifest)
    answers: Json = {"created": comparable(runner.create(), asked)}
    if "code" in answers["created"]:
        return answers
    for name, patch in case.updates.items():
        asked += json.dumps(patch)
        answers.setdefault("updated", {})[name] = comparable(runner.update(patch), asked)
    for name, patch in case.statuses.items():
        asked += json.dumps(patch)
        answers.setdefault("statuses", {})[name] = comparable(runner.update_status(patch), asked)
    return answers
