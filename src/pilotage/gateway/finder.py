"""Finds the model in a request's body, for the routes: Envoy's own filter for JSON, as plain dicts. Pure."""

from pilotage.gateway.answers import METADATA
from pilotage.kube import Json

NAME = "envoy.filters.http.json_to_metadata"
HOLDER = "envoy.filters.http.buffer"
_TYPES = "type.googleapis.com/"


def with_finder() -> Json:
    """Configuration of a route whose requests are searched for their model, and then matched again."""
    return {"typed_per_filter_config": {HOLDER: on({}), NAME: on({})}}


def on(config: Json) -> Json:
    """Configuration by which a route has a filter that is off otherwise."""
    return {"@type": f"{_TYPES}envoy.config.route.v3.FilterConfig", "config": config}


def holder(bytes_max: int) -> Json:
    """Holds a body until it is whole, up to so many bytes: more than a connection may have in its buffers."""
    return {"@type": f"{_TYPES}envoy.extensions.filters.http.buffer.v3.Buffer", "max_request_bytes": bytes_max}


def json_only() -> Json:
    """Part of the rules: bodies that say that they are JSON."""
    return {"allow_content_types_regex": {"regex": r"(?i)application/([-.a-z0-9]+\+)?json(\s*;.*)?"}}


def finder() -> Json:
    """Puts the `model` of a JSON body where routes can match it. What is nested deeper does not count."""
    lacks = {"metadata_namespace": METADATA, "key": "lacks", "value": "model"}
    return {
        "@type": f"{_TYPES}envoy.extensions.filters.http.json_to_metadata.v3.JsonToMetadata",
        "request_rules": {
            "rules": [
                {
                    "selectors": [{"key": "model"}],
                    "on_present": {"metadata_namespace": METADATA, "key": "model"},
                    "on_missing": lacks,
                    "on_error": lacks,
                }
            ],
            **json_only(),
        },
    }
