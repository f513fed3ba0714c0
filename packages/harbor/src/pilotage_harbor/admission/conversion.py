"""Conversion webhooks: custom resources of one version as another version has them.

To read or to write an object takes no waiting, but to ask a webhook does. So what a webhook has answered is remembered;
where an answer is missing, `Unconverted` is raised, whoever handles the request asks for it (`Unconverted.ask`), and
begins again. A write asks for all that it and its watches will need before it stores anything (`convert_ahead`).
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import TYPE_CHECKING, TypeVar

import msgspec

from pilotage_harbor.admission.webhook_client import Failed, call
from pilotage_harbor.apimachinery.errors import StatusError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pilotage_harbor.core import Core
    from pilotage_harbor.kinds import Json, Kind

GROUP = "apiextensions.k8s.io"
OBJECTS_MAX = 500
"""Number of objects that are converted by one call."""
REMEMBERED_MAX = 20_000
_VERSIONS = ("v1", "v1beta1")
_CHANGEABLE = ("labels", "annotations")

_encode = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder().decode
_Result = TypeVar("_Result")


class Unconverted(Exception):
    """Its webhook has not been asked yet how an object looks in another version."""

    def __init__(self, conversion: Conversion, obj: Json, target: str) -> None:
        super().__init__(f"{obj.get('kind')} as {target}")
        self._conversion = conversion
        self._obj = obj
        self._target = target

    async def ask(self, core: Core) -> None:
        """Ask now, also about the others that are stored; StatusError 500 if it does not know either."""
        await self._conversion.ask(core, self._obj, self._target)


class Conversion:
    """The webhook of one CustomResourceDefinition, and what it has answered."""

    timeout_seconds = 30

    def __init__(self, webhook: Json, storage: str) -> None:
        self.client: Json = webhook.get("clientConfig") or {}
        self._versions: list[str] = webhook.get("conversionReviewVersions") or []
        self._storage = storage
        self._known: OrderedDict[tuple[bytes, str], bytes] = OrderedDict()

    def converted(self, obj: Json, target: str) -> Json:
        """An object as another version has it; raises Unconverted. Only labels and annotations of metadata change."""
        key = _key(obj, target)
        raw = self._known.get(key)
        if raw is None:
            raise Unconverted(self, obj, target)
        self._known.move_to_end(key)
        new: Json = _decode(raw)
        meta = {name: value for name, value in obj["metadata"].items() if name not in _CHANGEABLE}
        new["metadata"] = meta | new["metadata"]
        return new

    async def ask(self, core: Core, obj: Json, target: str) -> None:
        """Have an object converted, and with it those that are stored and not converted yet."""
        objects, keys = [obj], {_key(obj, target)}
        for entry in core.store.entries(self._storage):
            other = _decode(entry.raw)
            if len(objects) < OBJECTS_MAX and other["apiVersion"] != target:
                key = _key(other, target)
                if key not in self._known and key not in keys:
                    objects.append(other)
                    keys.add(key)
        for source, new in zip(objects, await self._answers(core, objects, target), strict=True):
            self._remember(source, new, target)
            self._remember(new, source, source["apiVersion"])

    def _remember(self, source: Json, new: Json, target: str) -> None:
        meta = {name: new["metadata"][name] for name in _CHANGEABLE if new["metadata"].get(name)}
        self._known[_key(source, target)] = _encode({**new, "metadata": meta})
        if len(self._known) > REMEMBERED_MAX:
            self._known.popitem(last=False)

    async def _answers(self, core: Core, objects: list[Json], target: str) -> list[Json]:
        group, _, version = objects[0]["apiVersion"].rpartition("/")
        named = f"conversion webhook for {group}/{version}, Kind={objects[0]['kind']}"
        spoken = next((version for version in self._versions if version in _VERSIONS), None)
        if spoken is None or core.post is None:
            raise StatusError(500, "", "no supported conversion review versions")
        uid = core.uid()
        review = {
            "kind": "ConversionReview",
            "apiVersion": f"{GROUP}/{spoken}",
            "request": {"uid": uid, "desiredAPIVersion": target, "objects": objects},
        }
        try:
            found = _objects_untrusted(await call(core, core.post, self, review), uid, spoken)
        except (Failed, _Refused) as error:
            raise StatusError(500, "", f"{named} failed: {error}") from None
        if len(found) != len(objects):
            raise StatusError(500, "", f"{named} returned {len(found)} objects, expected {len(objects)}")
        for index, (new, old) in enumerate(zip(found, objects, strict=True)):
            if why := _problem(new, old, target):
                raise StatusError(500, "", f"{named} returned invalid converted object at index {index}: {why}")
        return found


async def convert_ahead(core: Core, kind: Kind, obj: Json) -> None:
    """Have ready what it takes to store an object, to answer with it, and to show it to watches of other versions."""
    to_storage = kind.to_storage
    stored = await _surely(core, lambda: to_storage(obj)) if to_storage is not None else obj
    for other in [each for each in core.registry if each.storage == kind.storage]:
        read = other.from_storage
        if read is None or other.api_version == stored["apiVersion"]:
            continue
        try:
            await _surely(core, lambda read=read: read({**stored}))  # type: ignore[misc]
        except StatusError:
            if other is kind:
                raise


async def _surely(core: Core, convert: Callable[[], _Result]) -> _Result:
    try:
        return convert()
    except Unconverted as missing:
        await missing.ask(core)
    return convert()


class _Refused(Exception):
    """The answer has no objects."""


def _objects_untrusted(body: bytes, uid: str, version: str) -> list[Json]:
    try:
        review = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _Refused("the answer is no JSON") from None
    response = review.get("response") if isinstance(review, dict) else None
    if not isinstance(response, dict):
        raise _Refused("no response provided")
    if version == "v1" and response.get("uid") != uid:
        raise _Refused(f'expected response.uid="{uid}", got "{response.get("uid") or ""}"')
    result = response.get("result")
    status = result if isinstance(result, dict) else {}
    if status.get("status") != "Success":
        otherwise = f"response.result.status was '{status.get('status') or ''}', not 'Success'"
        raise _Refused(str(status.get("message") or otherwise))
    objects = response.get("convertedObjects")
    return objects if isinstance(objects, list) else []


def _problem(new: object, old: Json, target: str) -> str:
    """Problems of an object that a webhook made of another."""
    if not isinstance(new, dict):
        return "invalid type"
    if new.get("apiVersion") != target:
        return f"invalid groupVersion (expected {target}, received {new.get('apiVersion') or ''})"
    if new.get("kind") != old["kind"]:
        return f"invalid kind (expected {old['kind']}, received {new.get('kind') or ''})"
    meta = new.get("metadata")
    if not isinstance(meta, dict):
        return "missing metadata in converted object"
    for field, name in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        if (meta.get(field) or "") != (old["metadata"].get(field) or ""):
            return f"must have the same {name}: {old['metadata'].get(field) or ''} != {meta.get(field) or ''}"
    for field in _CHANGEABLE:
        values = meta.get(field)
        if values is not None and not (isinstance(values, dict) and all(isinstance(v, str) for v in values.values())):
            return f"invalid metadata.{field} in converted object"
    return ""


def _key(obj: Json, target: str) -> tuple[bytes, str]:
    """Key of a conversion: all that decides its result. The writer and the time of a write do not."""
    meta = obj["metadata"]
    counted = {name: meta[name] for name in ("name", "namespace", *_CHANGEABLE) if meta.get(name)}
    return hashlib.sha256(_encode({**obj, "metadata": counted})).digest(), target
