"""JSON values as YAML, as `yaml.dump` writes them, but event by event: it does not hold the interpreter meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_STR = "tag:yaml.org,2002:str"


def as_yaml(value: object) -> bytes:
    """YAML for clients that ask for it: keys in order, one line for each text that has one."""
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.emit(_document(value), Dumper=dumper, width=2**20)
    return text.encode()


def _document(value: object) -> Iterator[Any]:
    import yaml

    yield yaml.StreamStartEvent()
    yield yaml.DocumentStartEvent(explicit=False)
    yield from _events(value, yaml.resolver.Resolver().resolve)
    yield yaml.DocumentEndEvent(explicit=False)
    yield yaml.StreamEndEvent()


def _events(root: object, resolve: Any) -> Iterator[Any]:  # noqa: ANN401 - yaml has no types
    """Events without recursion: the rest of the value is on a stack."""
    import yaml
    from yaml import ScalarNode

    left: list[Any] = [iter((root,))]
    ends: list[Any] = [None]
    while left:
        value = next(left[-1], left)
        if value is left:
            left.pop()
            if (end := ends.pop()) is not None:
                yield end
        elif isinstance(value, dict):
            yield yaml.MappingStartEvent(None, None, implicit=True, flow_style=False if value else None)
            left.append(each for pair in sorted(value.items()) for each in pair)
            ends.append(yaml.MappingEndEvent())
        elif isinstance(value, list):
            yield yaml.SequenceStartEvent(None, None, implicit=True, flow_style=False if value else None)
            left.append(iter(value))
            ends.append(yaml.SequenceEndEvent())
        elif isinstance(value, str):
            plain = resolve(ScalarNode, value, (True, False)) == _STR
            yield yaml.ScalarEvent(None, None if plain else _STR, (plain, True), value)
        else:
            yield yaml.ScalarEvent(None, None, (True, False), _scalar(value))


def _scalar(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, float):
        return str(value)
    text = repr(value).lower()
    return text.replace("e", ".0e", 1) if "." not in text and "e" in text else text  # as YAML 1.1 wants it
