"""Objects for scripts, in the forms of kubectl: JSON, YAML, or names; several are a List."""

from collections.abc import Iterable
from typing import Any

import click

from pilotage.kube import Json, Object


def print_object(form: str, obj: Object | Json) -> None:
    """Print one object as `form` says: json, yaml or name."""
    _print(form, _plain(obj), [_plain(obj)])


def print_list(form: str, objects: Iterable[Object | Json]) -> None:
    """Print objects as a List, or the name of each on a line."""
    items = [_plain(obj) for obj in objects]
    _print(form, {"apiVersion": "v1", "kind": "List", "items": items}, items)


def print_report(form: str, report: object) -> None:
    """Print a report, which is no object, as `form` says: json or yaml."""
    if form == "yaml":
        import msgspec
        import yaml

        click.echo(yaml.safe_dump(msgspec.to_builtins(report), sort_keys=False), nl=False)
    else:
        import json

        click.echo(json.dumps(report, indent=2))


def _plain(obj: Object | Json) -> Json:
    """An object with all its fields but managedFields."""
    body: Json = obj.to_dict() if isinstance(obj, Object) else obj
    meta: dict[str, Any] = body.get("metadata", {})
    return body | {"metadata": {name: value for name, value in meta.items() if name != "managedFields"}}


def _print(form: str, whole: Json, items: list[Json]) -> None:
    if form == "name":
        for each in items:
            click.echo(_name(each))
    else:
        print_report(form, whole)


def _name(obj: Json) -> str:
    """The name as kubectl prints it, such as servingendpoint.pilotage.dev/assistant."""
    group = obj.get("apiVersion", "").rpartition("/")[0]
    return f"{obj.get('kind', '').lower()}{f'.{group}' if group else ''}/{obj['metadata'].get('name', '')}"
