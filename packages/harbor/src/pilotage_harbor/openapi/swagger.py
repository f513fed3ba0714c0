"""Conversion of a path of OpenAPI v3 to version 2, which has bodies and media types in other places."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

_METHODS = ("get", "put", "post", "patch", "delete")


def swagger_path(item: Json) -> Json:
    """The path item of version 2. The input is not changed."""
    made: Json = {method: _operation(item[method]) for method in _METHODS if method in item}
    if "parameters" in item:
        made["parameters"] = [_parameter(each) for each in item["parameters"]]
    return made


def _operation(operation: Json) -> Json:
    made = {key: value for key, value in operation.items() if key not in ("requestBody", "parameters", "responses")}
    parameters = [_parameter(each) for each in operation.get("parameters", ())]
    body = operation.get("requestBody")
    if body is not None:
        made["consumes"] = list(body["content"])
        schema = _schema(next(iter(body["content"].values()))["schema"])
        parameters.insert(0, {"in": "body", "name": "body", "schema": schema, **_required(body)})
    else:
        made["consumes"] = ["*/*"]
    if parameters:
        made["parameters"] = parameters
    produces: dict[str, None] = {}
    made["responses"] = {}
    for code, response in operation["responses"].items():
        made["responses"][code] = {"description": response["description"]}
        for media, content in response.get("content", {}).items():
            produces[media] = None
            made["responses"][code]["schema"] = _schema(content["schema"])
    made["produces"] = list(produces)
    made["schemes"] = ["https"]
    return made


def _parameter(parameter: Json) -> Json:
    return {**{key: value for key, value in parameter.items() if key != "schema"}, **parameter["schema"]}


def _required(body: Json) -> Json:
    return {"required": True} if body.get("required") else {}


def _schema(schema: Json) -> Json:
    if "$ref" in schema:
        return {"$ref": schema["$ref"].replace("#/components/schemas/", "#/definitions/")}
    return schema
