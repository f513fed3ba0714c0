"""The parts of an object and its relations to others, as a tree.

Below the object stands what it owns, and what that owns. Then, each under a heading of its own: who owns it, what
refers to it or to a part of it (with what in turn sends traffic there), and what it or a part of it refers to. Below a
Namespace stands all that is in it, by kind, what nobody owns first; below a CustomResourceDefinition its instances.

An object is shown once. Where it comes up again it is only named, so circles end. Of many alike only the first are
shown, and the number of the others; a very large tree is cut off in the same way.
"""

import datetime as dt
from collections.abc import Container, Iterable
from typing import Any, NamedTuple

from pilotage.api.names import ENDPOINTS
from pilotage.catalogue.relation import Relation
from pilotage.kube import GroupKind, Json
from pilotage.kube.wire import parse_time
from pilotage.teardown.relations import defined_by
from pilotage.teardown.snapshot.fields import entries, mapping, span, text
from pilotage.teardown.snapshot.graph import Edge, Edges
from pilotage.teardown.snapshot.world import Item, Name, State, World

_DEPTH_MAX = 24
_REFERRERS_DEPTH_MAX = 4
_ASKED_MAX = 50
UNREAD_LISTED_MAX = 3
"""Kinds that could not be read and are listed with the reason; more are counted: who lacks a right lacks many."""
_EVENTS = frozenset([GroupKind("", "Event"), GroupKind("events.k8s.io", "Event")])
_DEFINING = frozenset([GroupKind("", "Namespace"), GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")])
_FOLLOWED = frozenset([Relation.ROUTES_TO, Relation.SELECTS, Relation.SCALES, Relation.PROTECTS, Relation.TARGETS])
"""Relations through which a referrer of a referrer counts as well: an Ingress, through the Service."""
_CONDITIONS = ("Ready", "Available", "Programmed", "Accepted", "Valid", "Complete", "Healthy", "Established")
_PASSIVE = {
    Relation.OWNS: "owned by",
    Relation.SELECTS: "selected by",
    Relation.ROUTES_TO: "gets traffic from",
    Relation.SCALES: "scaled by",
    Relation.MOUNTS: "mounted by",
    Relation.PROTECTS: "protected by",
    Relation.CLAIMS: "claimed by",
    Relation.TARGETS: "targeted by",
    Relation.NEEDS: "needed by",
    Relation.DEFINES: "defined by",
}


class Node(NamedTuple):
    """One line: an object, a heading (`title`), or how many more there are (`more`)."""

    name: Name | None = None
    item: Item | None = None
    title: str = ""
    more: int = 0
    state: State | None = None
    text: str = ""
    """State: ``2 of 2 ready``, ``terminating for 14m``, ``not there``."""
    how: str = ""
    """Relation to the object above: ``selects it``, ``mounted by deployment/web``. Empty if it is owned."""
    field: str = ""
    again: bool = False
    """It is shown elsewhere in the tree; here it is only named."""
    nodes: tuple["Node", ...] = ()


class Tree(NamedTuple):
    """The whole tree, and what could not be read and may be missing from it."""

    root: Node
    unread: tuple[str, ...] = ()


def tree(world: World, graph: Edges, item: Item, *, alike_max: int = 20, nodes_max: int = 2000) -> Tree:
    """The tree of one object. Pods that it shows are asked for in full, up to a bound, so that their phase is seen."""
    builder = _Builder(world, graph, item, alike_max, nodes_max)
    unread = [f"{reading.resource}: {reading.problem}" for reading in world.kinds.values() if reading.problem]
    unread += [f"{group}: {why}" for group, why in world.unreadable_groups.items()]
    return Tree(builder.build(), tuple(sorted(unread)))


class _Builder:
    def __init__(self, world: World, graph: Edges, root: Item, alike_max: int, nodes_max: int) -> None:
        self._world, self._graph, self._root = world, graph, root
        self._alike_max, self._left = alike_max, nodes_max
        self._asked = 0
        self._shown: set[str] = set()
        self._home = root.home

    def build(self) -> Node:
        root = self._node(self._root.name, self._root)
        self._shown.add(self._root.uid)
        if self._root.group_kind in _DEFINING:
            defined = [*defined_by(self._world, self._root), *self._children(self._root)]
            contents = {each.uid: each for each in defined if each.group_kind not in _EVENTS and each is not self._root}
            tops = [each for each in contents.values() if not self._owned_within(each, contents)]
            reached = {each.uid: each for each in self._below(tops)}
            circles = [each for uid, each in contents.items() if uid not in reached]
            members = [self._root, *reached.values(), *circles]
            parts = self._contents(tops, circles)
        else:
            members = self._below([self._root])
            parts = self._owned(self._root, 1)
        inside = {member.uid for member in members}
        headed = (
            ("owned by", self._owners(self._root, 1)),
            ("referred to by", self._referrers(members, inside)),
            ("refers to", self._references(members, inside)),
        )
        sections = [Node(title=title, nodes=nodes) for title, nodes in headed if nodes]
        return root._replace(nodes=(*parts, *sections))

    # What it is made of

    def _below(self, roots: Iterable[Item]) -> list[Item]:
        """These and all that they own, the nearest first."""
        found = {item.uid: item for item in roots}
        for item in (queue := list(found.values())):
            for child in self._children(item):
                if child.uid not in found:
                    found[child.uid] = child
                    queue.append(child)
        return queue

    def _children(self, item: Item) -> list[Item]:
        owned = (edge.target for edge in self._graph.out_of(item.uid) if edge.relation is Relation.OWNS)
        return list({child.uid: child for child in owned if child is not None}.values())

    def _owned(self, item: Item, depth: int) -> tuple[Node, ...]:
        return self._listed(self._children(item), depth)

    def _listed(self, items: Iterable[Item], depth: int) -> tuple[Node, ...]:
        nodes: list[Node] = []
        for alike in _by_kind(items).values():
            shown = 0 if depth > _DEPTH_MAX else min(len(alike), self._alike_max)
            for i, item in enumerate(alike[:shown]):
                if self._left <= 0:
                    shown = i
                    break
                nodes.append(self._expanded(item, depth))
            nodes += _more(alike[0].resource.kind, len(alike) - shown)
        return tuple(nodes)

    def _expanded(self, item: Item, depth: int) -> Node:
        if item.uid in self._shown:
            return self._node(item.name, item)._replace(again=True)
        self._shown.add(item.uid)
        return self._node(item.name, item)._replace(nodes=self._owned(item, depth + 1))

    def _contents(self, tops: list[Item], circles: list[Item]) -> tuple[Node, ...]:
        """All of a namespace by kind, what nobody owns first; then what owns itself in a circle."""
        groups = sorted(_by_kind(tops).items(), key=lambda group: (not any(map(self._children, group[1])), group[0]))
        nodes = [Node(title=f"{kind} ({len(alike)})", nodes=self._listed(alike, 2)) for kind, alike in groups]
        if circles:
            nodes.append(Node(title=f"own each other in a cycle ({len(circles)})", nodes=self._listed(circles, 2)))
        return tuple(nodes)

    def _owned_within(self, item: Item, inside: Container[str]) -> bool:
        return any(edge.relation is Relation.OWNS and edge.source.uid in inside for edge in self._graph.into(item.uid))

    def _owners(self, item: Item, depth: int) -> tuple[Node, ...]:
        owners = {e.source.uid: e for e in self._graph.into(item.uid) if e.relation is Relation.OWNS}
        nodes = []
        for uid, edge in owners.items():
            node = self._node(edge.source.name, edge.source)
            if uid in self._shown or depth > _DEPTH_MAX:
                nodes.append(node._replace(again=uid in self._shown))
                continue
            self._shown.add(uid)
            nodes.append(node._replace(nodes=self._owners(edge.source, depth + 1)))
        return tuple(nodes)

    # What it has to do with others

    def _referrers(self, members: Iterable[Item], inside: set[str], depth: int = 1) -> tuple[Node, ...]:
        """Objects outside that point at a member. Of several pointers the one to the topmost member is shown."""
        edges: dict[str, dict[Relation, Edge]] = {}
        for member in members:
            for edge in self._graph.into(member.uid):
                followed = depth == 1 or edge.relation in _FOLLOWED
                if edge.relation is not Relation.OWNS and edge.source.uid not in inside and followed:
                    edges.setdefault(edge.source.uid, {}).setdefault(edge.relation, edge)
        nodes: list[Node] = []
        groups: dict[str, list[list[Edge]]] = {}
        for relations in edges.values():
            found = list(relations.values())
            groups.setdefault(str(found[0].source.group_kind), []).append(found)
        for kind in sorted(groups):
            alike = sorted(groups[kind], key=lambda found: _place(found[0].source))
            shown = alike[: max(0, min(self._alike_max, self._left))]
            nodes += [self._referrer(found, inside, depth) for found in shown]
            nodes += _more(alike[0][0].source.resource.kind, len(alike) - len(shown))
        return tuple(nodes)

    def _referrer(self, edges: list[Edge], inside: set[str], depth: int) -> Node:
        source = edges[0].source
        how = "; ".join(f"{edge.relation} {self._called(edge.target, depth)}" for edge in edges)
        node = self._node(source.name, source)._replace(how=how, field=edges[0].field)
        if source.uid in self._shown:
            return node._replace(again=True)
        self._shown.add(source.uid)
        if depth == _REFERRERS_DEPTH_MAX:
            return node
        return node._replace(nodes=self._referrers([source], inside, depth + 1))

    def _references(self, members: Iterable[Item], inside: set[str]) -> tuple[Node, ...]:
        """Targets of members that are outside or missing. Of several pointers that of the topmost member is shown."""
        edges: dict[Name, Edge] = {}
        for member in members:
            for edge in self._graph.out_of(member.uid):
                within = edge.target is not None and edge.target.uid in inside
                if edge.relation is not Relation.OWNS and not within:
                    edges.setdefault(edge.name, edge)
        groups: dict[str, list[Edge]] = {}
        for edge in edges.values():
            groups.setdefault(str(edge.name.group_kind), []).append(edge)
        nodes: list[Node] = []
        for kind in sorted(groups):
            # What is not there comes first: it must not be among those that are left out.
            alike = sorted(groups[kind], key=lambda edge: (edge.target is not None, edge.name))
            shown = alike[: max(0, min(self._alike_max, self._left))]
            for edge in shown:
                how = f"{_PASSIVE[edge.relation]} {self._called(edge.source, 1)}"
                node = self._node(edge.name, edge.target)._replace(how=how, field=edge.field)
                nodes.append(node._replace(again=edge.target is not None and edge.target.uid in self._shown))
            nodes += _more(alike[0].name.kind, len(alike) - len(shown))
        return tuple(nodes)

    def _called(self, item: Item | None, depth: int) -> str:
        return "it" if item is None or depth > 1 or item is self._root else _say(item.name, self._home)

    def _node(self, name: Name, item: Item | None) -> Node:
        self._left -= 1
        if item is not None and not item.full and item.group_kind == ("", "Pod") and self._asked < _ASKED_MAX:
            self._asked += 1
            self._world.body(item)
        state, text = display_state(self._world, name, item)
        return Node(name, item, state=state, text=text)


def _by_kind(items: Iterable[Item]) -> dict[str, list[Item]]:
    groups: dict[str, list[Item]] = {}
    for item in sorted(items, key=_place):
        groups.setdefault(str(item.group_kind), []).append(item)
    return dict(sorted(groups.items()))


def _place(item: Item) -> tuple[bool, Name]:
    """Sort key: terminating objects come first, so that they are not among those that are left out."""
    return not item.terminating, item.name


def _more(kind: str, count: int) -> list[Node]:
    return [Node(title=kind, more=count)] if count > 0 else []


def _say(name: Name, home: str) -> str:
    """The name, without the namespace where it is that of the whole tree."""
    return str(name._replace(namespace="") if name.namespace == home else name)


# Told


def render(found: Tree) -> list[str]:
    """The tree as lines of text."""
    root = found.root
    assert root.name is not None
    home = root.name.name if root.name.group_kind == ("", "Namespace") else root.name.namespace
    lines = [f"{root.name}  {root.text or root.state}"]
    _render(root.nodes, "", home, lines)
    if len(found.unread) > UNREAD_LISTED_MAX:
        names = ", ".join(line.partition(": ")[0] for line in found.unread[:UNREAD_LISTED_MAX])
        more = f"{names} and {len(found.unread) - UNREAD_LISTED_MAX} more"
        lines += [
            "",
            f"This may be incomplete: {len(found.unread)} kinds could not be read ({more}); -o json says why.",
        ]
    elif found.unread:
        lines += ["", "This may be incomplete. These could not be read:", *(f"  {line}" for line in found.unread)]
    return lines


def _render(nodes: tuple[Node, ...], margin: str, home: str, lines: list[str]) -> None:
    for i, node in enumerate(nodes):
        last = i == len(nodes) - 1
        lines.append(f"{margin}{'└─ ' if last else '├─ '}{_line(node, home)}")
        _render(node.nodes, f"{margin}{'   ' if last else '│  '}", home, lines)


def _line(node: Node, home: str) -> str:
    if node.more:
        return f"… and {node.more:,} more of kind {node.title}"
    if node.name is None:
        return node.title
    told = f"({node.how}, {node.field})" if node.how else ""
    return "  ".join(filter(None, (_say(node.name, home), node.text, told, "(see above)" if node.again else "")))


def to_json(found: Tree) -> dict[str, Any]:
    """The tree for programs; fields that do not apply are left out."""
    return {"root": _json(found.root), "unread": list(found.unread)}


def _json(node: Node) -> dict[str, Any]:
    told: dict[str, Any] = {}
    if node.name is not None:
        told = {"group": node.name.group, "kind": node.name.kind, "namespace": node.name.namespace}
        told |= {"name": node.name.name, "uid": node.item.uid if node.item else "", "state": node.state}
    told |= {"title": node.title, "more": node.more, "text": node.text, "how": node.how, "field": node.field}
    told |= {"again": node.again, "nodes": [_json(inner) for inner in node.nodes]}
    required = ("group", "namespace", "uid")
    return {key: value for key, value in told.items() if value or key in required}


# The state of an object, in a few words: no more than what was read of it shows


def display_state(world: World, name: Name, item: Item | None) -> tuple[State, str]:
    """State of an object, in words; of one that was not seen, whether it is not there or could not be read."""
    if item is None:
        problem = world.problem(name.group, name.kind, name.namespace)
        return (State.UNKNOWN, f"unknown: {problem}") if problem else (State.GONE, "not there")
    words = ready(item)
    if not item.terminating:
        return State.PRESENT, words
    kept = f"finalizers: {', '.join(item.meta.finalizers)}" if item.meta.finalizers else ""
    return State.TERMINATING, "; ".join(filter(None, (_terminating(world.now, item), kept, words)))


def _terminating(now: dt.datetime, item: Item) -> str:
    try:
        until = (parse_time(item.meta.deletion_timestamp) - now).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return "terminating"
    # The timestamp of a pod is the end of its grace period, that of all else the moment of the delete.
    since = item.meta.deletion_grace_period_seconds - until
    words = f"terminating for {span(since)}" if since >= 0 else "terminating"
    return f"{words}, {span(until)} of grace left" if until > 0 else words


def ready(item: Item) -> str:
    """Whether it does its work, where its status says so; empty where that was not read, or is not said."""
    if not item.full:
        return ""
    body = item.read()
    spec, status = mapping(body, "spec"), mapping(body, "status")
    if not status:
        return ""
    match item.group_kind:
        case ("", "Pod"):
            return _pod(status)
        case ("apps", "DaemonSet"):
            return _of(status.get("numberReady"), status.get("desiredNumberScheduled"))
        case ENDPOINTS.group_kind:
            replicas = mapping(status, "replicas")
            return _of(replicas.get("ready"), replicas.get("desired"))
        case _:
            if "replicas" in status and ("replicas" in spec or "readyReplicas" in status):
                return _of(status.get("readyReplicas", 0), spec.get("replicas", 1))
            phase = status.get("phase")
            return phase if isinstance(phase, str) else _condition(status)


def _pod(status: Json) -> str:
    phase = status.get("phase")
    containers = entries(status, "containerStatuses")
    up = sum(each.get("ready") is True for each in containers)
    words = [phase] if isinstance(phase, str) else []
    if phase == "Running":
        words.append(_of(up, len(containers)))
    for each in containers:
        reason = text(each, "state", "waiting", "reason")
        if reason and reason not in words:
            words.append(reason)
    return ", ".join(filter(None, words))


def _condition(status: Json) -> str:
    conditions = entries(status, "conditions")
    for name in _CONDITIONS:
        for condition in conditions:
            if condition.get("type") == name:
                reason = text(condition, "reason")
                why = f": {reason}" if reason else ""
                return name.lower() if condition.get("status") == "True" else f"not {name.lower()}{why}"
    return ""


def _of(part: object, whole: object) -> str:
    return f"{part} of {whole} ready" if isinstance(part, int) and isinstance(whole, int) else ""
