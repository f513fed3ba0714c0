"""Answers of the gateway itself: errors in the form that OpenAI's clients understand, each with what to do. Pure."""

from collections.abc import Iterable

import msgspec

from pilotage.gateway.inputs import ProxiedRoute
from pilotage.kube import Json

METADATA = "pilotage.dev"
"""The namespace of what filters and routes know of a request."""
HEADER = "x-pilotage-scope"
"""Header with the name of the route table that a request is matched in: see `scopes`."""
MODEL_SCOPE = "model "
"""First part of the names of tables that belong to models."""
_ENDPOINT = f"%METADATA(ROUTE:{METADATA}:endpoint)%"

INVALID = "invalid_request_error"
UNAVAILABLE = "server_error"


def error(message: str, kind: str, code: str, param: str | None = None) -> Json:
    """The body of an error."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


UNKNOWN_MODEL = error(
    "No endpoint serves the model that this request names. GET /v1/models lists those that are served.",
    INVALID,
    "model_not_found",
    "model",
)
NO_MODEL = error(
    'This request names no model. Send JSON with "model" in it and the header Content-Type: application/json, or use '
    "the path /endpoints/NAMESPACE/NAME/v1/… of the endpoint, which takes any body.",
    INVALID,
    "model_required",
    "model",
)
UNKNOWN_PATH = error(
    "Nothing is served at this path. Models are served below /v1 (GET /v1/models lists them), endpoints below "
    "/endpoints/NAMESPACE/NAME. Of a server, /v1 and the other paths for inference are passed on, and no others.",
    INVALID,
    "not_found",
)


def detached(route: ProxiedRoute) -> tuple[int, Json]:
    """Answer of a route without any weight, with its status."""
    if route.leaving:
        return 404, error(
            f"The endpoint {route.endpoint} is being deleted. GET /v1/models lists the models that are served.",
            INVALID,
            "model_not_found",
            "model",
        )
    return 503, error(
        f"The endpoint {route.endpoint} takes no requests now: no revision of it has a share of them, because it is "
        f"being set up or replaced. See `pilotage status {route.endpoint} -n {route.key.namespace}`.",
        UNAVAILABLE,
        "endpoint_detached",
    )


def model(name: str, namespace: str) -> Json:
    """The answer to GET /v1/models/NAME. `created` is 0: a time would change the answer, and nobody needs it."""
    return {"id": name, "object": "model", "created": 0, "owned_by": namespace}


def models(served: Iterable[tuple[str, str]]) -> Json:
    """The answer to GET /v1/models."""
    return {"object": "list", "data": [model(name, namespace) for name, namespace in served]}


def encoded(body: Json) -> str:
    """Answer as JSON text."""
    return msgspec.json.encode(body).decode()


def local_replies() -> Json:
    """Bodies that replace Envoy's own, by its response flags. The first that matches is used.

    Answers that a route gives directly have no flag, so they stay as they are.
    """
    return {
        "mappers": [
            _on_flags(
                ["UH", "NC"],
                503,
                f"No server of the endpoint {_ENDPOINT} is ready. Try again in a while; `pilotage status {_ENDPOINT}` "
                "says what it waits for.",
                "no_ready_backend",
            ),
            _on_flags(
                ["UF"],
                503,
                f"The servers of the endpoint {_ENDPOINT} could not be reached, and the request was not delivered. Try "
                f"again; `pilotage status {_ENDPOINT}` says how they are.",
                "connection_failed",
            ),
            _on_flags(
                ["UC", "UR", "UPE", "URX"],
                502,
                f"A server of the endpoint {_ENDPOINT} broke off before it answered. The request may have been worked "
                f"on; `pilotage logs {_ENDPOINT}` may say why.",
                "upstream_broke_off",
            ),
            _on_flags(
                ["UO"],
                503,
                f"The endpoint {_ENDPOINT} has too many requests under way. Try again in a while.",
                "overloaded",
            ),
            _without_route(UNKNOWN_MODEL, {"name": HEADER, "string_match": {"prefix": MODEL_SCOPE}}),
            _without_route(UNKNOWN_PATH, {"name": HEADER, "present_match": True}),
            _on_details(
                "overload",
                503,
                "The gateway has no memory left for this request. Nothing was delivered; try again in a while.",
                "overloaded",
            ),
            _on_flags(["SI"], 504, "Nothing moved for too long, and the request was given up.", "idle_timeout"),
            _on_status(
                413,
                "The body is too large to look for its model. Send it to /endpoints/NAMESPACE/NAME/v1/… of the "
                "endpoint, which takes bodies of any size.",
                "body_too_large",
            ),
            _on_status(408, "The body took too long to arrive. Send it again, in less time.", "upload_timeout"),
            _on_status(431, "The headers are larger than 60 KiB. Send fewer or shorter ones.", "headers_too_large"),
        ]
    }


def _on_flags(flags: list[str], status: int, message: str, code: str) -> Json:
    return {
        "filter": {"response_flag_filter": {"flags": flags}},
        "status_code": status,
        "body_format_override": {"json_format": error(message, UNAVAILABLE, code)},
    }


def _without_route(body: Json, header: Json) -> Json:
    """Answer to requests that belong to a table which is not there, or which has no route for them."""
    both = [{"response_flag_filter": {"flags": ["NR"]}}, {"header_filter": {"header": header}}]
    return {
        "filter": {"and_filter": {"filters": both}},
        "status_code": 404,
        "body_format_override": {"json_format": body},
    }


def _on_details(details: str, status: int, message: str, code: str) -> Json:
    """Answer by Envoy's own word for what it did, where it has no flag."""
    cel = "type.googleapis.com/envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter"
    expression = {"@type": cel, "expression": f"response.code_details == '{details}'"}
    return {
        "filter": {"extension_filter": {"name": "cel", "typed_config": expression}},
        "status_code": status,
        "body_format_override": {"json_format": error(message, UNAVAILABLE, code)},
    }


def _on_status(status: int, message: str, code: str) -> Json:
    comparison = {"op": "EQ", "value": {"default_value": status, "runtime_key": f"pilotage.status.{status}"}}
    return {
        "filter": {"status_code_filter": {"comparison": comparison}},
        "body_format_override": {"json_format": error(message, INVALID, code)},
    }
