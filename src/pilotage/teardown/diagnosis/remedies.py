"""Remedies: how harmful each is, and those that more than one family of causes offers.

Remedies are shown from the least destructive up. Removing a finalizer is always the last: whoever put it there wanted
to do something first, and that is then never done.
"""

from collections.abc import Sequence
from shlex import quote

import msgspec

from pilotage.kube import Resource
from pilotage.teardown.snapshot.world import Item, Name

LOOK = 0
"""Nothing is changed."""
REPAIR = 1
"""The broken part is repaired, and the deletion finishes by itself."""
REDRIVE = 2
"""A delete that was already asked for is sent again."""
EDIT = 3
"""Another object is changed, such as an owner reference or a spec."""
DELETE = 5
"""Another object is deleted."""
UNGUARD = 7
"""An object that protects others as well is removed, such as a webhook configuration."""
FORCE = 9
"""The record goes, and what it stands for may live on."""
STRIP = 10
"""A finalizer of somebody else is removed."""

STRIP_FINALIZER = "strip-finalizer"
REDRIVE_FOREGROUND = "redrive-foreground"
REPLAY_DELETE = "replay-delete"


class Remedy(msgspec.Struct, frozen=True):
    """One thing to do. Remedies are listed from the least destructive up (`harm`, 0: nothing is lost)."""

    title: str
    """An imperative sentence."""
    command: str
    """The command to run."""
    effect: str
    """Effect, and what may leak. ``Nothing leaks.`` where nothing does."""
    harm: int
    subject: Item | Name | None = None
    code: str = ""
    """Its name for ``--fix=CODE``; empty where only a person can do it."""
    detail: str = ""
    """Argument for `fix` besides the subject: the finalizer, for example."""


def place(item: Item) -> str:
    """The object as a person types it: kind and name with its namespace, the group where the kind is not a core one.

    Quoted for a shell: in a dump a name can be anything, and commands are there to be copied.
    """
    return spelled(item.resource, item.name)


def spelled(resource: Resource, name: Name) -> str:
    """`place` of an object that may be gone."""
    group = resource.group
    kind = resource.kind.lower()
    word = kind if not group or "." not in group or group.endswith(".k8s.io") else f"{resource.plural}.{group}"
    return quote(f"{word}/{name.name}") + (f" -n {quote(name.namespace)}" if name.namespace else "")


def strip_command(where: str, finalizer: str) -> str:
    """Command that removes a finalizer from an object."""
    return f"pilotage why {where} --fix={STRIP_FINALIZER} --finalizer {quote(finalizer)}"


def look_at(item: Item, title: str, effect: str) -> Remedy:
    """Let a person look, who then knows what to mend."""
    return Remedy(title, f"kubectl describe {place(item)}", effect, LOOK, item)


def delete_by_hand(item: Item, title: str, effect: str, harm: int = DELETE) -> Remedy:
    """Let a person delete an object."""
    return Remedy(title, f"kubectl delete {place(item)}", effect, harm, item)


def redrive_foreground(item: Item) -> Remedy:
    """Send the delete again, in the background: the API drops the finalizer of the foreground deletion by itself."""
    return Remedy(
        "Send the delete again, in the background",
        f"pilotage why {place(item)} --fix={REDRIVE_FOREGROUND}",
        "The server drops foregroundDeletion by itself; what it owns is collected afterwards. Nothing leaks.",
        REDRIVE,
        item,
        code=REDRIVE_FOREGROUND,
    )


def replay_delete(item: Item) -> Remedy:
    """Send the delete of a dependent again, which the garbage collector gave up on for the time being."""
    return Remedy(
        f"Send the delete of {item} again",
        f"pilotage why {place(item)} --fix={REPLAY_DELETE}",
        "The garbage collector waits up to 17 minutes before it tries again. Nothing leaks.",
        REDRIVE,
        item,
        code=REPLAY_DELETE,
    )


def delete_together(items: Sequence[Item]) -> Remedy:
    """Take down objects that wait for each other, so that none has to be gone before another."""
    namespaces = {item.meta.namespace for item in items} - {""}
    if len(namespaces) > 1:  # a command has one -n, and waits for the end of what it was given
        return look_at(items[0], "Find the one that the others do not need, and release it", "Nothing changes.")
    words = [spelled(item.resource, item.name._replace(namespace="")) for item in items]
    words += (f"-n {quote(namespace)}" for namespace in namespaces)
    return Remedy(
        "Delete them together",
        f"pilotage delete {' '.join(words)}",
        "Each is deleted in the background, with what it owns, so that none waits for another. Nothing leaks.",
        REDRIVE if all(item.terminating for item in items) else DELETE,
        items[0],
    )


def strip_finalizer(item: Item, finalizer: str, effect: str, title: str = "Remove the finalizer") -> Remedy:
    """Remove a finalizer of somebody else: the last resort."""
    command = strip_command(place(item), finalizer)
    return Remedy(title, command, effect, STRIP, item, STRIP_FINALIZER, finalizer)
