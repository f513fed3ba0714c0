"""Remedies for a controller that does not remove its finalizer, from the least destructive up."""

from collections.abc import Iterator
from shlex import quote

from pilotage.teardown.diagnosis.finalizer_owners import FinalizerOwner
from pilotage.teardown.diagnosis.remedies import DELETE, LOOK, REPAIR, Remedy, place, strip_finalizer
from pilotage.teardown.diagnosis.why.complaints import RefusedRequest
from pilotage.teardown.diagnosis.why.context import WhyContext
from pilotage.teardown.planning.closure import gather_members
from pilotage.teardown.planning.policy import Policy
from pilotage.teardown.snapshot.world import Item


def bring_back(keeper: FinalizerOwner) -> Iterator[Remedy]:
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
        "It reconciles everything again when it starts. Nothing leaks.",
        REPAIR,
        workload,
    )


def last_resort(item: Item, keeper: FinalizerOwner) -> Iterator[Remedy]:
    """Removing the finalizer. What belongs to Kubernetes itself has better ways, or is not to be touched.

    Nor is one in a namespace's spec: it takes another request (`/finalize`), which writes the whole list, with the
    finalizer of the namespace controller. Without that one, all that is in the namespace would leak.
    """
    if item.terminating and not keeper.builtin and keeper.finalizer in item.meta.finalizers:
        yield strip_finalizer(item, keeper.finalizer, keeper.leaks)


def do_its_work(context: WhyContext, item: Item) -> Iterator[Remedy]:
    """Let `pilotage delete` take down what the object owns, in order, as its controller would have."""
    if not item.terminating or not context.world.children(item.uid):
        return
    going = gather_members(context.world, context.graph, [item], Policy(), adopt=True).going
    number = sum(not each.terminating for each in going.values())
    if number:
        yield Remedy(
            "",
            "Take down what it would have taken down, in order, then release it",
            f"pilotage delete {place(item)} --adopt",
            f"Would delete {number} object{'s' * (number != 1)}, and say how to release {item}. "
            "Nothing leaks that Pilotage can see.",
            DELETE,
            item,
        )


def grant(refusal: RefusedRequest) -> str:
    """The two commands that give the permission, in one line."""
    what = f"{refusal.plural}.{refusal.group}" if refusal.group else refusal.plural
    what += f"/{refusal.subresource}" if refusal.subresource else ""
    what, verb = quote(f"--resource={what}"), quote(f"--verb={refusal.verb}")
    name = f"let-{refusal.verb}-{refusal.plural}"
    subject = f"--user={refusal.user}"
    parts = refusal.user.split(":")
    if len(parts) == 4 and parts[:2] == ["system", "serviceaccount"]:
        subject = f"--serviceaccount={parts[2]}:{parts[3]}"
    role, cluster_role = quote(f"--role={name}"), quote(f"--clusterrole={name}")
    name, subject = quote(name), quote(subject)
    if refusal.namespace:
        where = f" -n {quote(refusal.namespace)}"
        return (
            f"kubectl create role {name} {verb} {what}{where} && "
            f"kubectl create rolebinding {name} {role} {subject}{where}"
        )
    return (
        f"kubectl create clusterrole {name} {verb} {what} && "
        f"kubectl create clusterrolebinding {name} {cluster_role} {subject}"
    )
