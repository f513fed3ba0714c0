"""Controllers, autoscalers and GitOps tools that undo a delete or a scale-down.

That an object has a maker is only a note. It is a cause where the maker is seen to act on its own: an Application that
heals itself, or an object that a GitOps tool has just made again.
"""

from collections.abc import Iterator
from shlex import quote
from typing import NamedTuple

from pilotage.catalogue.registry import known
from pilotage.teardown.diagnosis.remedies import DELETE, EDIT, Remedy, delete_by_hand
from pilotage.teardown.diagnosis.why.codes import CauseCode
from pilotage.teardown.diagnosis.why.context import WhyContext
from pilotage.teardown.diagnosis.why.model import Confidence, StuckCause
from pilotage.teardown.snapshot.fields import dig, entries, mapping, number, seconds_since, span, text
from pilotage.teardown.snapshot.questions import EventsAbout
from pilotage.teardown.snapshot.world import Item

RECENT_SECONDS = 600
"""An object that was created or scaled within this time counts as just now."""

_MANAGERS = ("argocd", "flux", "kustomize-controller", "helm-controller")
ARGO_INSTANCE = "argocd.argoproj.io/instance"
ARGO_TRACKING = "argocd.argoproj.io/tracking-id"
_FLUX = {
    "kustomize.toolkit.fluxcd.io": "Kustomization",
    "helm.toolkit.fluxcd.io": "HelmRelease",
}


class Applier(NamedTuple):
    """A GitOps tool's claim on an object."""

    tool: str
    group: str
    kind: str
    namespace: str
    name: str
    mark: str


def causes(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    """Programs that would recreate this object or scale it up again; only for the object that was asked about."""
    if not context.asked_about(item):
        return
    yield from _gitops(context, item)
    if item.terminating:
        return
    yield from _owner(context, item)
    if known(item.group_kind).scaled:
        yield from _autoscalers(context, item)


# A controller above it


def _owner(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    reference = item.meta.controller
    owner = context.world.get(reference.uid) if reference else None
    if owner is None or owner.terminating:
        return
    top, seen = owner, {item.uid, owner.uid}
    while (above := top.meta.controller) and above.uid not in seen and (found := context.world.get(above.uid)):
        seen.add(above.uid)
        top = found
    line = f" (through {owner})" if top is not owner else ""
    yield StuckCause(
        CauseCode.MADE_BY_CONTROLLER,
        top,
        f"recreates {item} when it is deleted{line}",
        (f"{owner} is its controller by ownerReferences, and exists",),
        remedies=(
            delete_by_hand(
                top,
                f"Delete {top} instead, if all of it should go",
                "What it owns goes with it, and does not come back. Nothing leaks.",
            ),
        ),
    )


# Autoscalers


def _autoscalers(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    for scaler in context.world.of("autoscaling", "HorizontalPodAutoscaler", item.meta.namespace):
        body = context.body(scaler)
        if _targets(mapping(body, "spec", "scaleTargetRef"), item) and not scaler.terminating:
            yield _hpa(context, item, scaler, body)
    for scaler in context.world.of("keda.sh", "ScaledObject", item.meta.namespace):
        body = context.body(scaler)
        if _targets(mapping(body, "spec", "scaleTargetRef"), item, "Deployment") and not scaler.terminating:
            least = number(body, "spec", "minReplicaCount")
            yield _scaler(
                item,
                scaler,
                CauseCode.AUTOSCALER_SCALES,
                f"scales {item} back to {least} or more, from 0 as well",
                ("KEDA may activate a workload that is at 0 replicas",),
            )


def _targets(reference: object, item: Item, default_kind: str = "") -> bool:
    kind = text(reference, "kind") or default_kind
    return (kind, text(reference, "name")) == (item.resource.kind, item.meta.name)


def _hpa(context: WhyContext, item: Item, scaler: Item, body: object) -> StuckCause:
    least = number(body, "spec", "minReplicas", default=1)
    scaled = seconds_since(context.now, text(body, "status", "lastScaleTime"))
    if scaled is None or scaled > RECENT_SECONDS:
        said = f"scales {item} back to {least} or more (it leaves 0 alone)"
        return _scaler(item, scaler, CauseCode.AUTOSCALER_SCALES, said, ())
    answer = context.world.ask(EventsAbout(scaler.uid))
    rescales = [each for each in (answer.items if answer else ()) if text(each, "reason") == "SuccessfulRescale"]
    evidence = [f"it last scaled it {span(scaled)} ago, to {number(body, 'status', 'desiredReplicas')}"]
    evidence += [f"it says: {text(each, 'message')}" for each in rescales[-1:]]
    said = f"fights over {item}: it keeps {least} or more replicas, whatever scales it down"
    return _scaler(item, scaler, CauseCode.AUTOSCALER_FIGHTS, said, tuple(evidence))


def _scaler(item: Item, scaler: Item, code: CauseCode, said: str, evidence: tuple[str, ...]) -> StuckCause:
    return StuckCause(
        code,
        scaler,
        said,
        evidence,
        remedies=(
            delete_by_hand(
                scaler,
                "Delete the autoscaler first, then scale down or delete",
                f"Nothing scales {item.meta.name} any more, up or down. Nothing leaks.",
            ),
        ),
    )


# GitOps


def _gitops(context: WhyContext, item: Item) -> Iterator[StuckCause]:
    applier = _applier(item)
    if applier is None:
        return
    found = _find(context, applier)
    heals = _heals(context, applier, found)
    made = _made_just_now(context, item)
    acts = (heals or made) and not item.terminating
    who = f"{applier.tool} {applier.kind} {applier.name}".strip()
    evidence = [f"it is marked as its own: {applier.mark}"]
    if heals:
        evidence.append(heals)
    if made:
        evidence.append(made)
    yield StuckCause(
        CauseCode.GITOPS_REAPPLIES if acts else CauseCode.GITOPS_MANAGED,
        found or item,
        f"{who} re-applies {item}" + (", each time it is deleted" if acts else " at its next sync"),
        tuple(evidence),
        Confidence.HIGH if heals else Confidence.MEDIUM,
        remedies=_gitops_remedies(applier, item),
    )


def _applier(item: Item) -> Applier | None:
    meta = item.meta
    if tracking := meta.annotations.get(ARGO_TRACKING, ""):
        namespace, _, name = tracking.partition(":")[0].rpartition("_")
        mark = f"annotation {ARGO_TRACKING} is {tracking}"
        return Applier("Argo CD", "argoproj.io", "Application", namespace, name, mark)
    if name := meta.labels.get(ARGO_INSTANCE, ""):
        mark = f"label {ARGO_INSTANCE} is {name}"
        return Applier("Argo CD", "argoproj.io", "Application", "", name, mark)
    for group, kind in _FLUX.items():
        if name := meta.labels.get(f"{group}/name", ""):
            namespace = meta.labels.get(f"{group}/namespace", "")
            return Applier("Flux", group, kind, namespace, name, f"label {group}/name is {name}")
    if name := meta.annotations.get("meta.helm.sh/release-name", ""):
        namespace = meta.annotations.get("meta.helm.sh/release-namespace", "")
        return Applier("Helm", "", "release", namespace, name, f"annotation meta.helm.sh/release-name is {name}")
    return None


def _find(context: WhyContext, applier: Applier) -> Item | None:
    """The tool's own object: in the namespace that is named, or wherever there is one of that name."""
    everywhere = context.world.of(applier.group, applier.kind) if applier.group else []
    return next(
        (
            each
            for each in everywhere
            if each.meta.name == applier.name and applier.namespace in ("", each.meta.namespace)
        ),
        None,
    )


def _heals(context: WhyContext, applier: Applier, found: Item | None) -> str:
    """Why it applies again on its own, if it does."""
    body = context.body(found) if found else None
    if body is None or found is None or found.terminating:
        return ""
    if applier.tool == "Argo CD":
        heals = dig(body, "spec", "syncPolicy", "automated", "selfHeal") is True
        return f"{found} has syncPolicy.automated.selfHeal" if heals else ""
    if dig(body, "spec", "suspend") is True or applier.kind == "HelmRelease":
        return ""  # a HelmRelease mends drift only where it is told to, and an upgrade is needed otherwise
    return f"{found} re-applies everything every {text(body, 'spec', 'interval') or 'few minutes'}"


def _made_just_now(context: WhyContext, item: Item) -> str:
    """Whether a GitOps tool itself has just created the object."""
    age = seconds_since(context.now, item.meta.creation_timestamp)
    if age is None or age > RECENT_SECONDS:
        return ""
    managers = {
        text(each, "manager")
        for each in entries(item.read(), "metadata", "managedFields")
        if text(each, "time") == item.meta.creation_timestamp
    }
    makers = sorted(name for name in managers if name.startswith(_MANAGERS))
    return f"{makers[0]} made it {span(age)} ago" if makers else ""


def _gitops_remedies(applier: Applier, item: Item) -> tuple[Remedy, ...]:
    name = quote(applier.name)
    where = f" -n {quote(applier.namespace)}" if applier.namespace else ""
    stop = {
        "Application": f"argocd app set {name} --sync-policy none",
        "Kustomization": f"flux suspend kustomization {name}{where}",
        "HelmRelease": f"flux suspend helmrelease {name}{where}",
        "release": f"helm uninstall {name}{where}",
    }[applier.kind]
    helm = applier.tool == "Helm"
    return (
        Remedy(
            f"Take {item} out of its source, and let {applier.tool} delete it",
            "git rm …",
            "It goes and is not recreated. Nothing leaks.",
            EDIT,
            item,
        ),
        Remedy(
            "Uninstall the whole release" if helm else f"Stop {applier.tool} from applying it, then delete it",
            stop,
            "All that the release made goes." if helm else "Nothing of it is applied until it is resumed.",
            DELETE if helm else EDIT,
            item,
        ),
    )
