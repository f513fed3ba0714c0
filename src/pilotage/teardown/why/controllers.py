"""What to do about a controller that does not remove its finalizer, from the least destructive up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pilotage.teardown.remedies import DELETE, LOOK, REPAIR, place, strip_finalizer
from pilotage.teardown.why.model import Remedy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pilotage.teardown.keepers import Keeper
    from pilotage.teardown.why.complaints import Refusal
    from pilotage.teardown.why.context import Context
    from pilotage.teardown.world import Item

CHILDREN_NAMED_MAX = 8


def bring_back(keeper: Keeper) -> Iterator[Remedy]:
    """Start the controller again, as far as it can be told how."""
    workload = keeper.workload
    effect = "It finishes the deletion by itself. Nothing leaks."
    if workload is None:
        yield Remedy("", f"Start {keeper.who} again", "kubectl get leases -A", effect, REPAIR, keeper.lease)
    elif keeper.trouble.startswith("scaled to 0") and workload.group_kind.kind in ("Deployment", "StatefulSet"):
        scale = f"kubectl scale {place(workload)} --replicas=1"
        yield Remedy("", "Bring the controller back", scale, effect, REPAIR, workload)
    else:
        yield Remedy("", "Bring the controller back", f"kubectl describe {place(workload)}", effect, REPAIR, workload)


def read_log(workload: Item) -> Remedy:
    """Let a person read what it says."""
    return Remedy(
        "",
        "Read the controller's log",
        f"kubectl logs {place(workload)} --tail=100",
        "Nothing changes.",
        LOOK,
        workload,
    )


def restart(workload: Item) -> Remedy:
    """Let it begin anew."""
    return Remedy(
        "",
        "Restart the controller",
        f"kubectl rollout restart {place(workload)}",
        "It looks at everything again when it starts. Nothing leaks.",
        REPAIR,
        workload,
    )


def last_resort(item: Item, keeper: Keeper) -> Iterator[Remedy]:
    """Removing the finalizer. What belongs to Kubernetes itself has better ways, or is not to be touched."""
    if item.terminating and not keeper.builtin:
        yield strip_finalizer(item, keeper.finalizer, keeper.leaks)


def take_down_children(context: Context, item: Item) -> Iterator[Remedy]:
    """Delete what the object owns and its controller would have deleted, in order."""
    if not item.terminating:
        return
    children = [each for each in context.world.children(item.uid) if not each.terminating]
    if 0 < len(children) <= CHILDREN_NAMED_MAX and len({each.meta.namespace for each in children}) == 1:
        words = " ".join(place(each).partition(" ")[0] for each in children)
        where = f" -n {children[0].meta.namespace}" if children[0].meta.namespace else ""
        yield Remedy(
            "",
            "Take down what it would have taken down, in order",
            f"pilotage delete {words}{where}",
            f"Would delete {len(children)} objects and what they own. {item} itself still waits.",
            DELETE,
            item,
        )


def grant(refusal: Refusal) -> str:
    """The two commands that give the permission, in one line."""
    what = f"{refusal.plural}.{refusal.group}" if refusal.group else refusal.plural
    what += f"/{refusal.subresource}" if refusal.subresource else ""
    name = f"let-{refusal.verb}-{refusal.plural}"
    subject = f"--user={refusal.user}"
    parts = refusal.user.split(":")
    if len(parts) == 4 and parts[:2] == ["system", "serviceaccount"]:
        subject = f"--serviceaccount={parts[2]}:{parts[3]}"
    if refusal.namespace:
        where = f" -n {refusal.namespace}"
        return (
            f"kubectl create role {name} --verb={refusal.verb} --resource={what}{where} && "
            f"kubectl create rolebinding {name} --role={name} {subject}{where}"
        )
    return (
        f"kubectl create clusterrole {name} --verb={refusal.verb} --resource={what} && "
        f"kubectl create clusterrolebinding {name} --clusterrole={name} {subject}"
    )
