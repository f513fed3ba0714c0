"""Nodes: whether a kubelet can still confirm that something has ended.

Apart from the families: whoever predicts what will stand in the way asks this as well, and needs no more of them.
"""

from pilotage.kube import Json
from pilotage.teardown.diagnosis.remedies import look_at
from pilotage.teardown.diagnosis.why.codes import CauseCode
from pilotage.teardown.diagnosis.why.model import StuckCause
from pilotage.teardown.snapshot.fields import condition, since, text
from pilotage.teardown.snapshot.world import Item, Name, World


def lost_node(world: World, name: str) -> StuckCause | None:
    """Why nobody on this node can confirm anything; None where its kubelet is heard of, or nothing is known."""
    if not name:
        return None
    node = world.find("", "Node", "", name)
    if node is None:
        if world.problem("", "Node"):
            return None
        return StuckCause(
            CauseCode.NODE_GONE,
            Name("", "Node", "", name),
            "does not exist any more: no kubelet will ever confirm anything for it",
            (f"no Node {name} is there",),
        )
    ready = condition(world.body(node), "Ready")
    if text(ready, "status") != "Unknown":
        return None
    return _node_cause(world, node, ready, CauseCode.NODE_LOST, "is LOST: its kubelet has stopped reporting")


def unready_node(world: World, name: str) -> StuckCause | None:
    """A node whose kubelet reports, and says that it is not well: the container runtime may be down."""
    node = world.find("", "Node", "", name)
    ready = condition(world.body(node), "Ready") if node else {}
    if node is None or text(ready, "status") != "False":
        return None
    return _node_cause(world, node, ready, CauseCode.NODE_NOT_READY, "is NOT READY: its kubelet reports trouble")


def _node_cause(world: World, node: Item, ready: Json, code: CauseCode, said: str) -> StuckCause:
    words = ": ".join(filter(None, (text(ready, "reason"), text(ready, "message"))))
    changed = text(ready, "lastTransitionTime")
    evidence = [f"Ready is {text(ready, 'status')}{since(world, changed)} ({words})"]
    if heard := text(ready, "lastHeartbeatTime"):
        evidence.append(f"it last reported at {heard}")
    mend = look_at(node, f"Bring {node} back", "Its kubelet then stops the pods and confirms it. Nothing leaks.")
    return StuckCause(code, node, said, tuple(evidence), remedies=(mend,), since=changed)
