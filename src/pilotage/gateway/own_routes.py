"""The routes on which the gateway answers by itself: what is served, and what leads nowhere. Plain dicts, pure."""

from collections.abc import Sequence

from pilotage.gateway import answers
from pilotage.gateway.answers import METADATA, encoded
from pilotage.gateway.finder import with_finder
from pilotage.kube import Json

_MODELS = "/v1/models"
_GET: Json = {"name": ":method", "string_match": {"exact": "GET"}}


def model_list_match() -> Json:
    """GET /v1/models."""
    return {"path": _MODELS, "headers": [_GET]}


def model_list(served: Sequence[tuple[str, str]]) -> Json:
    """GET /v1/models: of models, each with the namespace that serves it."""
    return answering(model_list_match(), 200, encoded(answers.models(served)))


def model_info(model: str, namespace: str) -> Json:
    """GET /v1/models/NAME, in the table of that model: of one that a namespace serves."""
    return answering({"prefix": f"{_MODELS}/", "headers": [_GET]}, 200, encoded(answers.model(model, namespace)))


def body_routes() -> list[Json]:
    """Answers to requests whose body names no model, or one that is not served; the second one has it inspected.

    What is not for such requests comes after them.
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
