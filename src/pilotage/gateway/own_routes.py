"""The routes on which the gateway answers by itself: what is served, and what leads nowhere. Plain dicts, pure."""

from collections.abc import Sequence
from urllib.parse import quote

from pilotage.gateway import answers
from pilotage.gateway.answers import METADATA, encoded
from pilotage.gateway.finder import with_finder
from pilotage.kube import Json

_MODELS = "/v1/models"
_GET: Json = {"name": ":method", "string_match": {"exact": "GET"}}
_LEFT_PLAIN = ("/", "/!'()*", "/:@!$&'()*+,;=")
"""Characters that clients do not escape in a path, beside letters, digits and ``-._~``, which Envoy makes plain by
itself, as it does with slashes."""


def model_list(served: Sequence[tuple[str, str]]) -> Json:
    """GET /v1/models: of models, each with the namespace that serves it."""
    return answering({"path": _MODELS, "headers": [_GET]}, 200, encoded(answers.models(served)))


def model_info(model: str, namespace: str) -> list[Json]:
    """GET /v1/models/NAME: of one model, which a namespace serves. After `body_routes`, which take all but GET.

    A route for each way in which clients write the name: what a path may have as it is, some escape and some do not. No
    pattern: Envoy refuses those of more than a hundred steps.
    """
    written = sorted({quote(model, safe=each) for each in _LEFT_PLAIN})
    body = encoded(answers.model(model, namespace))
    return [answering({"path": f"{_MODELS}/{each}"}, 200, body) for each in written]


def body_routes() -> list[Json]:
    """Answers to requests whose body names no model, or one that is not served; the second one has it inspected.

    Before it was, a request matches no route by its model. So it is compared with all routes down to that one, and
    what is not for such requests comes after it.
    """
    no_model = {"filter": METADATA, "path": [{"key": "lacks"}], "value": {"string_match": {"exact": "model"}}}
    not_get = {**_GET, "invert_match": True}
    return [
        answering({"prefix": "/v1/", "dynamic_metadata": [no_model]}, 400, encoded(answers.NO_MODEL)),
        _unknown_model({"prefix": "/v1/", "headers": [not_get]}) | with_finder(),
    ]


def last_routes() -> list[Json]:
    """Answers to all other requests, which match no route. The order counts."""
    return [
        _unknown_model({"prefix": f"{_MODELS}/"}),
        _unknown_model({"prefix": "/v1/"}) | with_finder(),
        unknown_path({"prefix": "/"}),
    ]


def _unknown_model(match: Json) -> Json:
    return answering(match, 404, encoded(answers.UNKNOWN_MODEL))


def unknown_path(match: Json) -> Json:
    """The answer to paths that lead nowhere."""
    return answering(match, 404, encoded(answers.UNKNOWN_PATH))


def answering(match: Json, status: int, body: str) -> Json:
    """A route on which the gateway says this, in JSON."""
    kind = {
        "header": {"key": "content-type", "value": "application/json"},
        "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
    }
    return {
        "match": match,
        "direct_response": {"status": status, "body": {"inline_string": body}},
        "response_headers_to_add": [kind],
    }
