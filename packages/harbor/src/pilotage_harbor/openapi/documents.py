"""The documents themselves: which there are, what each is made of, and how long it can be kept.

A document is made when it is first asked for, and kept until one of its kinds changes. Its hash is that of its content,
so the index, which names the hashes, needs them all; after a change it needs only those that have changed.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary, proxy

import msgspec

from pilotage_harbor.discovery.resources import REVIEWS, VERSION
from pilotage_harbor.openapi import protobuf
from pilotage_harbor.openapi.components import DELETE_OPTIONS, META, ComponentSchema, delete_options, with_all_referred
from pilotage_harbor.openapi.custom import custom_components
from pilotage_harbor.openapi.operations import api_path, discovery_path, paths_of, review_paths
from pilotage_harbor.openapi.swagger import swagger_path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pilotage_harbor.core import Core
    from pilotage_harbor.kinds import Kind

Json = dict[str, Any]

_CRDS = "customresourcedefinitions.apiextensions.k8s.io"
_BEARER = {"type": "apiKey", "name": "authorization", "in": "header", "description": "Bearer Token authentication"}
_INFO = {"title": "Kubernetes", "version": VERSION}


class Document(NamedTuple):
    """One document as it is sent."""

    body: bytes
    hash: str


class Documents:
    """All documents of one core."""

    def __init__(self, core: Core) -> None:
        self._core: Core = proxy(core)  # a core goes when nobody else holds it, and its documents go with it
        self._changes = -1
        self._made: dict[str, tuple[tuple[Kind, ...], Document]] = {}
        self._index: bytes | None = None
        self._v2: Document | None = None
        self._v2_protobuf: bytes | None = None

    def index(self) -> bytes:
        """The index of all documents, each with its URL and hash."""
        self._forget_old()
        if self._index is None:
            paths = {}
            for path in sorted(self._paths()):
                document = self.v3(path)
                assert document is not None
                paths[path] = {"serverRelativeURL": url(path, document)}
            self._index = msgspec.json.encode({"paths": paths})
        return self._index

    def v3(self, path: str) -> Document | None:
        """The document of ``api/v1`` or ``apis/apps/v1``; None for what is not served."""
        self._forget_old()
        made = self._made.get(path)
        if made is None:
            if path not in self._paths():
                return None
            group, version, kinds = self._content(path)
            made = kinds, _document(self._v3(path, group, version, kinds))
            self._made[path] = made
        return made[1]

    def v2(self) -> Document:
        """Everything in one, as version 2 says it."""
        self._forget_old()
        if self._v2 is None:
            self._v2 = _document(self._swagger())
        return self._v2

    def v2_protobuf(self) -> Document:
        """The same as protobuf. It has the same hash: that is of what it says, not of how."""
        document = self.v2()
        if self._v2_protobuf is None:
            self._v2_protobuf = protobuf.encode(self._swagger())
        return document._replace(body=self._v2_protobuf)

    def _forget_old(self) -> None:
        if self._changes == self._core.registry.changes:
            return
        self._changes = self._core.registry.changes
        self._index = self._v2 = self._v2_protobuf = None
        for path, (kinds, _) in [*self._made.items()]:
            if self._content(path)[2] != kinds:
                del self._made[path]

    def _paths(self) -> set[str]:
        """All documents that there are."""
        paths = {"api", "apis", "version"}
        for kind in self._core.registry:
            path = api_path(kind.group, kind.version)[1:]
            paths.add(path)
            if kind.group and not kind.custom:
                paths.add(f"apis/{kind.group}")
        for group in REVIEWS:
            paths |= {f"apis/{group}", f"apis/{group}/v1"}
        return paths

    def _content(self, path: str) -> tuple[str, str, tuple[Kind, ...]]:
        """The group, the version and the kinds of a document; no version for those about discovery."""
        match path.split("/"):
            case ["api", version]:
                group = ""
            case ["apis", group, version]:
                pass
            case _:
                return "", "", ()
        return group, version, tuple((self._core.registry.version(group, version) or {}).values())

    def _v3(self, path: str, group: str, version: str, kinds: tuple[Kind, ...]) -> Json:
        items, names, own = self._parts(kinds, [group] if version else [])
        if DELETE_OPTIONS in names:
            custom = all(kind.custom for kind in kinds)
            own[DELETE_OPTIONS] = delete_options("" if custom else group, version)
        if not kinds or not all(kind.custom for kind in kinds):
            component = _DISCOVERY.get(path) or (META + ("APIResourceList" if version else "APIGroup"))
            items[f"/{path}/"] = discovery_path(path, component)
            names.add(component)
        components = {"schemas": with_all_referred(names, own), "securitySchemes": {"BearerToken": _BEARER}}
        return {"openapi": "3.0.0", "info": _INFO, "paths": dict(sorted(items.items())), "components": components}

    def _swagger(self) -> Json:
        items, names, own = self._parts(tuple(self._core.registry), [*REVIEWS], v2=True)
        own[DELETE_OPTIONS] = delete_options("", "v1", v2=True)
        paths = {path: swagger_path(item) for path, item in sorted(items.items())}
        return {
            "swagger": "2.0",
            "info": _INFO,
            "paths": paths,
            "definitions": with_all_referred(names, own, v2=True),
            "securityDefinitions": {"BearerToken": _BEARER},
            "security": [{"BearerToken": []}],
        }

    def _parts(
        self, kinds: Iterable[Kind], groups: Iterable[str], *, v2: bool = False
    ) -> tuple[dict[str, Json], set[str], dict[str, ComponentSchema]]:
        """The paths of these kinds and of the groups' questions, what they refer to, and the custom components."""
        items: dict[str, Json] = {}
        names: set[str] = set()
        own: dict[str, ComponentSchema] = {}
        for kind in kinds:
            paths = paths_of(kind)
            items |= paths.items
            names |= paths.refers_to
            if kind.custom:
                own |= custom_components(kind, self._core.get(_CRDS, "", kind.qualified), v2=v2)
        for group in groups:
            paths = review_paths(group, REVIEWS.get(group, ()))
            items |= paths.items
            names |= paths.refers_to
        return items, names, own


_DISCOVERY = {
    "api": META + "APIVersions",
    "apis": META + "APIGroupList",
    "version": "io.k8s.apimachinery.pkg.version.Info",
}
_documents: WeakKeyDictionary[Core, Documents] = WeakKeyDictionary()


def documents_of(core: Core) -> Documents:
    """The documents of this core, made as needed."""
    documents = _documents.get(core)
    if documents is None:
        documents = _documents[core] = Documents(core)
    return documents


def url(path: str, document: Document) -> str:
    """URL of a document with this content, which clients may cache for ever."""
    return f"/openapi/v3/{path}?hash={document.hash}"


def _document(content: Json) -> Document:
    body = msgspec.json.encode(content)
    return Document(body, hashlib.sha512(body).hexdigest().upper())
