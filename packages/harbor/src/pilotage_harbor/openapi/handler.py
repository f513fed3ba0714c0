"""Serves the documents: content negotiation, ETags and caching."""

from __future__ import annotations

from email.utils import formatdate
from functools import lru_cache
from typing import TYPE_CHECKING

from pilotage_harbor.apimachinery.calls import JSON, ServerResponse
from pilotage_harbor.openapi.documents import documents_of, url

if TYPE_CHECKING:
    from pilotage_harbor.apimachinery.calls import Call
    from pilotage_harbor.core import Core
    from pilotage_harbor.openapi.documents import Document

_ROOT = "/openapi/v3"
_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_PROTOBUF_OLD = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_YEAR_SECONDS = 365 * 24 * 3600


def serve(core: Core, call: Call) -> ServerResponse:
    """Answer what is asked below ``/openapi``, with whichever method: the real server does not look at it either.

    Version 3 is only served as JSON, version 2 also as the protobuf that Go clients ask for. 406 for any other form.
    """
    documents = documents_of(core)
    path = call.path
    if path == _ROOT:
        return ServerResponse(
            200, documents.index(), {"Content-Type": "text/plain; charset=utf-8"}
        )  # as Go takes it for
    if path == "/openapi/v2":
        form = _form(call.headers.get("accept", ""))
        if form == JSON:
            return _conditional(call, documents.v2())
        return _conditional(call, documents.v2_protobuf(), {"Content-Type": form}) if form else _NOT_ACCEPTABLE
    if not path.startswith(f"{_ROOT}/"):
        return ServerResponse(404, b"404 page not found\n", {"Content-Type": "text/plain; charset=utf-8"})
    name = path.removeprefix(f"{_ROOT}/")
    document = documents.v3(name)
    if document is None:
        return ServerResponse(404, b"")
    if _form(call.headers.get("accept", ""), protobuf=False) != JSON:
        return _NOT_ACCEPTABLE
    wanted = call.option("hash")
    if not wanted:
        return _conditional(call, document)
    if wanted != document.hash:
        return _moved(url(name, document), document)
    until = formatdate(core.now() + _YEAR_SECONDS, usegmt=True)
    return _conditional(call, document, {"Cache-Control": "public, immutable", "Expires": until})


_NOT_ACCEPTABLE = ServerResponse(406, b"", {"Vary": "Accept"})


def _moved(where: str, document: Document) -> ServerResponse:
    """Redirect from an outdated hash to the current document."""
    headers = {"Content-Type": JSON, "Etag": f'"{document.hash}"', "Location": where, "Vary": "Accept"}
    return ServerResponse(301, b"", headers)


def _conditional(call: Call, document: Document, headers: dict[str, str] | None = None) -> ServerResponse:
    """The document, or 304 if the client says that it has it."""
    tag = f'"{document.hash}"'
    said = {"Content-Type": JSON, "Etag": tag, "Vary": "Accept", **(headers or {})}
    known = [each.strip().removeprefix("W/") for each in call.headers.get("if-none-match", "").split(",")]
    if tag in known or known == ["*"]:
        del said["Content-Type"]
        return ServerResponse(304, b"", said)
    return ServerResponse(200, document.body, said)


@lru_cache(maxsize=64)
def _form(accept: str, *, protobuf: bool = True) -> str:
    """The media type to answer in: the first that we have of what the client likes best, or ""."""
    clauses = []
    for clause in accept.split(",") if accept.strip() else ["*/*"]:
        media, *parameters = (part.strip() for part in clause.split(";"))
        liked = next((part[2:] for part in parameters if part.startswith("q=")), "1")
        clauses.append((_number(liked), media))
    for _, media in sorted(clauses, key=lambda clause: -clause[0]):
        if media in (JSON, "application/*", "*/*", "*/json"):
            return JSON
        if protobuf and media in (_PROTOBUF, _PROTOBUF_OLD):
            return _PROTOBUF
    return ""


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0
