"""Arguments that name objects, parsed; and the messages for those that name nothing.

Words are ``KIND/NAME`` (any number of them) or ``KIND[,KIND…] [NAME…]``. A kind is a plural, a singular, a short name,
in any case, with ``.group`` or ``.version.group`` behind it where it must be told from another, or a category such as
``all``. `targets` finds them on a live cluster, `targets_in_dump` in a dump.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pilotage.kube import LabelSelector, Surface
from pilotage.teardown.snapshot.world import Item, KindReading, Name

NEAR_MAX = 3


class TargetError(ValueError):
    """Arguments that name nothing. The message says what was wrong, and what would be right."""


class Targets(NamedTuple):
    """The objects that are meant, each once and whole, and the names under which there was nothing."""

    found: list[Item]
    absent: list[Name]
    unread: tuple[KindReading, ...] = ()
    """Kinds that a selector was to search, and that could not be read: they may hold more."""


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


NAME_AND_SELECTOR = "Names and a selector exclude each other: leave out -l, or the names and files."


def no_names(kinds: list[str]) -> str:
    """Message for a kind without a name."""
    return f"Which {', '.join(kinds)}? Add a name ({kinds[0]}/NAME), or a selector (-l)."


def missing_name(name: Name, names: Iterable[str]) -> str:
    """Message for an object that does not exist, with similar names."""
    import difflib  # most names mean something

    text = f"There is no {name}."
    near = difflib.get_close_matches(name.name, list(names), NEAR_MAX)
    if near:
        return f"{text} There is {listed(near)}."
    return f"{text} Look in another namespace with -n." if name.namespace else text


def unknown_kind(word: str, surface: Surface) -> str:
    """Message for an unknown kind, with similar ones."""
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
