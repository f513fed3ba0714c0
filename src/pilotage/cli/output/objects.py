"""Results for scripts, in the forms of kubectl: JSON, YAML, or names; several objects are a List."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pilotage.cli.output.text import say

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pilotage.kube import Json, Object
    from pilotage.teardown.snapshot.world import Name


def print_object(form: str, obj: Object | Json) -> None:
    """Print one object as `form` says: json, yaml or name."""
    body = _plain(obj)
    print_report(form, body, [_name(body)])


def print_list(form: str, objects: Iterable[Object | Json]) -> None:
    """Print objects as a List, or the name of each on a line."""
    items = [_plain(obj) for obj in objects]
    print_report(form, {"apiVersion": "v1", "kind": "List", "items": items}, map(_name, items))


def print_report(form: str, report: object, names: Iterable[Name]) -> None:
    """Print a report as `form` says: json, yaml, or name for `names`, the objects that it is about, each once.

    A name is written as kubectl does, such as servingendpoint.pilotage.dev/assistant, without the namespace.
    """
    import msgspec

    if form == "name":
        for each in dict.fromkeys(names):
            say(f"{each.kind.lower()}{each.group and f'.{each.group}'}/{each.name}")
    elif form == "yaml":
        import yaml

        click.echo(yaml.safe_dump(msgspec.to_builtins(report), sort_keys=False), nl=False)
    else:
        import json

        click.echo(json.dumps(msgspec.to_builtins(report), indent=2))


def _plain(obj: Object | Json) -> Json:
    """An object with all its fields but managedFields."""
    body: Json = obj if isinstance(obj, dict) else obj.to_dict()
    meta: dict[str, Any] = body.get("metadata", {})
    return body | {"metadata": {name: value for name, value in meta.items() if name != "managedFields"}}


def _name(body: Json) -> Name:
    from pilotage.teardown.snapshot.world import Name

    meta: dict[str, str] = body["metadata"]
    group = body.get("apiVersion", "").rpartition("/")[0]
    return Name(group, body.get("kind", ""), meta.get("namespace", ""), meta.get("name", ""))
