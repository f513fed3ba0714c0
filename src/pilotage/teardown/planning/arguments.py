"""Arguments that name objects, parsed; and the messages for those that name nothing.

Words are ``KIND/NAME`` (any number of them) or ``KIND[,KIND…] [NAME…]``. A kind is a plural, a singular, a short name,
in any case, with ``.group`` or ``.version.group`` behind it where it must be told from another, or a category such as
``all``. `targets` finds them, on a live cluster or in a dump.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pilotage.kube import Discovery, LabelSelector, Resource, Surface
    from pilotage.teardown.snapshot.world import Name

NEAR_MAX = 3


class TargetError(ValueError):
    """Arguments that name nothing. The message says what was wrong, and what would be right.

    `command`: the next command, if there is one; the message ends in it. `text` is the message without it.
    """

    def __init__(self, text: str, command: str = "") -> None:
        super().__init__(f"{text} {command}".rstrip())
        self.text = text
        self.command = command


class Words(NamedTuple):
    """Words, taken apart: pairs of kind and name; or kinds alone, where a selector chooses."""

    named: list[tuple[str, str]]
    kinds: list[str]


def parse(words: Sequence[str]) -> Words:
    """Take words apart, as kubectl does. TargetError where they are of neither form."""
    words = [word for word in words if word]
    if not words:
        return Words([], [])
    if any("/" in word for word in words):
        return Words([_pair(word, words) for word in words], [])
    kinds = [kind for kind in words[0].split(",") if kind]
    names = words[1:]
    return Words([(kind, name) for kind in kinds for name in names], [] if names else kinds)


def _pair(word: str, words: Sequence[str]) -> tuple[str, str]:
    kind, slash, name = word.partition("/")
    if not slash:
        example = f"{words[0].partition('/')[0]}/{word}"
        raise TargetError(f"{word!r} has no kind, while the other words have one: write KIND/NAME, such as {example}.")
    if not kind or not name or "/" in name:
        raise TargetError(f"{word!r} is not KIND/NAME: write it as in deployment/web.")
    return kind, name


def no_names(kinds: list[str]) -> str:
    """Message for a kind without a name."""
    return f"Which {', '.join(kinds)}? Add a name ({kinds[0]}/NAME), or a selector (-l)."


def missing_name(name: Name, names: Iterable[str]) -> str:
    """Message for an object that does not exist, with similar names, or with some that exist."""
    import difflib  # most names mean something

    text, there = f"There is no {name}.", sorted(names)
    near = difflib.get_close_matches(name.name, there, NEAR_MAX)
    if near:
        return f"{text} There is {listed(near)}."
    if there:
        more = ", among others" if len(there) > NEAR_MAX else ""
        text = f"{text} There is {listed(there[:NEAR_MAX])}{more}."
    return f"{text} Look in another namespace with -n." if name.namespace else text


async def find_kind(discovery: Discovery, word: str) -> Resource:
    """The kind that a word means. TargetError where it means none, with similar ones."""
    from pilotage.kube import UnknownKind

    try:
        return (await discovery.find(word)).resource
    except UnknownKind:
        raise TargetError(_unknown_kind(word, await discovery.surface())) from None


def _unknown_kind(word: str, surface: Surface) -> str:
    text = f"The server has no kind {word!r}."
    near = near_kinds(word, ([each.resource.plural, each.singular, *each.short_names] for each in surface.resources))
    if near:
        text += f" Did you mean {listed(near)}?"
    if surface.unreadable:
        text += f" (These could not be asked: {', '.join(sorted(surface.unreadable))}.)"
    elif not near:
        text += " `kubectl api-resources` lists those it has."
    return text


def near_kinds(word: str, names: Iterable[list[str]]) -> list[str]:
    """The kinds whose names are similar to a word."""
    import difflib

    known = sorted({name for each in names for name in each})
    return difflib.get_close_matches(word.partition(".")[0].lower(), known, NEAR_MAX)


def listed(names: Sequence[str]) -> str:
    """Names, as a sentence has them."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def parse_selector(selector: str) -> LabelSelector:
    """A selector as it is typed. TargetError where it is none."""
    from pilotage.kube import LabelSelector, SelectorError

    try:
        return LabelSelector.parse(selector)
    except SelectorError as error:
        raise TargetError(f"-l {selector}: {error}.") from error
