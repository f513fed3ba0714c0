"""Kinds that could not be read, and pods on lost nodes: a plan is as complete as its snapshot."""

import itertools
from collections.abc import Iterator
from shlex import quote

from pilotage.teardown.diagnosis.hazards.model import Hazard, HazardCode, Outlook
from pilotage.teardown.snapshot.fields import text
from pilotage.teardown.snapshot.world import Item

PODS_ASKED_MAX = 500
"""Upper bound on the pods that are read: a lost node shows with some of them."""
_NAMES_MAX = 4


def hazards(outlook: Outlook) -> Iterator[Hazard]:
    """Kinds first, then nodes."""
    yield from _unread(outlook)
    yield from _lost_nodes(outlook)


def _unread(outlook: Outlook) -> Iterator[Hazard]:
    world = outlook.world
    unread = {str(kind): reading for kind, reading in world.kinds.items() if reading.problem}
    problems = {name: reading.problem for name, reading in unread.items()} | world.unreadable_groups
    if not problems:
        return
    names = sorted(problems)
    listed = ", ".join(names[:_NAMES_MAX]) + (f" and {len(names) - _NAMES_MAX} more" * (len(names) > _NAMES_MAX))
    evidence = tuple(f"{name}: {problems[name]}" for name in names[:_NAMES_MAX])
    gone = list(outlook.namespaces())
    dead = world.has_silent_apis
    if not gone:
        first = next(iter(outlook.ledger.entries), None)
        if first is None:
            return
        yield Hazard(
            HazardCode.KINDS_UNREAD,
            first.full_name,
            f"may have more to it than is listed: {listed} could not be read",
            False,
            f"{'Bring these APIs back' if dead else 'Ask for the permission to list them'}, or make sure that nothing "
            "of these kinds belongs to it.",
            evidence,
        )
    for namespace in gone:
        yield Hazard(
            HazardCode.NAMESPACE_CONTENT_UNKNOWN,
            namespace,
            f"may hold more than is listed: {listed} could not be read"
            + (", and a namespace goes only when every kind can be" * dead),
            dead,
            "Bring these APIs back first." if dead else "Ask for the permission to list them.",
            evidence,
        )


def _lost_nodes(outlook: Outlook) -> Iterator[Hazard]:
    """Pods are told gone by their node's kubelet, and a lost node has none."""
    world = outlook.world
    if world.problem("", "Node"):
        return  # where the nodes were not read, the pods need not be
    from pilotage.teardown.diagnosis.why.backends import lost_node

    by_node: dict[str, list[Item]] = {}
    for pod in itertools.islice(outlook.of("", "Pod"), PODS_ASKED_MAX):
        node = text(world.body(pod), "spec", "nodeName")
        if node:
            by_node.setdefault(node, []).append(pod)
    for node, pods in by_node.items():
        lost = lost_node(world, node)
        if lost:
            others = f", like {len(pods) - 1} more of these pods" if len(pods) > 1 else ""
            yield Hazard(
                HazardCode.POD_ON_LOST_NODE,
                pods[0],
                f"is on node {node}{others}, whose kubelet has to confirm that it has ended, and cannot",
                True,
                "Bring the node back; or, if the machine is off for certain:",
                (f"{lost.subject} {lost.text}", *lost.evidence),
                f"kubectl taint nodes {quote(node)} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
            )
