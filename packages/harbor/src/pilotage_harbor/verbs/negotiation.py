"""Content negotiation: the object, only its metadata, or a Table for people."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from pilotage_harbor.apimachinery import errors

_SUPPORTED = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
_AS = {
    ("Table", "meta.k8s.io", "v1"): "table",
    ("Table", "meta.k8s.io", "v1beta1"): "table",
    ("PartialObjectMetadata", "meta.k8s.io", "v1"): "metadata",
    ("PartialObjectMetadataList", "meta.k8s.io", "v1"): "metadata",
    ("PartialObjectMetadata", "meta.k8s.io", "v1beta1"): "metadata",
    ("PartialObjectMetadataList", "meta.k8s.io", "v1beta1"): "metadata",
}
_DISCOVERY = ("APIGroupDiscoveryList", "apidiscovery.k8s.io")


class Form(NamedTuple):
    """`shape`: object, metadata, table or discovery; `version`: that of the shape's own kind; `yaml`: not JSON."""

    shape: str = "object"
    version: str = "v1"
    yaml: bool = False


@lru_cache(maxsize=256)
def negotiate(accept: str, *, discovery: bool = False, table: bool = True) -> Form:
    """The first of the client's media types that we can give; 406 if there is none. `table`: there may be one."""
    unknown = False
    for clause in accept.split(",") if accept.strip() else ["application/json"]:
        media, *parameters = (part.strip() for part in clause.split(";"))
        if media not in ("application/json", "application/yaml", "*/*"):
            continue
        given = dict(part.partition("=")[::2] for part in parameters)
        kind, group, version = given.get("as", ""), given.get("g", ""), given.get("v", "")
        yaml = media == "application/yaml"
        if not kind:
            return Form(yaml=yaml)
        if discovery and (kind, group) == _DISCOVERY and version in ("v2", "v2beta1"):
            return Form("discovery", version)
        shape = _AS.get((kind, group, version))
        if shape is not None and not discovery and (table or shape != "table"):
            return Form(shape, version)
        unknown = True
    if unknown:
        words = f"only the following media types are accepted: {', '.join(_SUPPORTED)}"
        raise errors.StatusError(406, "NotAcceptable", words)
    raise errors.not_acceptable(_SUPPORTED)
