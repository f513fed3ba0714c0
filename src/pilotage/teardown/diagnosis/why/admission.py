"""Admission webhooks and policies that a write to an object would meet, as far as their configurations say.

The server's own rules, read from what was gathered: resource rules, namespaceSelector, objectSelector. What only the
server can tell (matchConditions, matchPolicy across versions) counts as a match that is not `certain`.
"""

from collections.abc import Iterator

import msgspec

from pilotage.kube import Json
from pilotage.kube.selectors import LabelSelector, SelectorError
from pilotage.teardown.snapshot.fields import entries, mapping, text, texts
from pilotage.teardown.snapshot.world import Item, Name, World

GROUP = "admissionregistration.k8s.io"
WEBHOOK_KINDS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")

# Crossplane's webhook writes down every attempt to delete, a dry run too: it is never asked.
_USAGE_CONFIGURATION = "crossplane-no-usages"
_USAGE_WEBHOOK = "nousages."


class Hook(msgspec.Struct, frozen=True):
    """One webhook, or one policy (`kind` tells), that a write would meet."""

    configuration: Item
    kind: str
    name: str
    """The webhook's own name, as error messages give it; of a policy, the policy's."""
    position: int
    """Its place in `webhooks`."""
    fails_closed: bool
    """Whether the write fails when it cannot be asked."""
    certain: bool
    side_effects: bool
    """Whether it refuses dry runs, because asking it would change something."""
    service: Name | None
    url: str

    @property
    def keeps_usages(self) -> bool:
        """Whether this is Crossplane's, which must not be asked."""
        return self.configuration.meta.name == _USAGE_CONFIGURATION or self.name.startswith(_USAGE_WEBHOOK)


def unread(world: World) -> str:
    """Why the webhook configurations are not known; empty where they are."""
    return next((problem for kind in WEBHOOK_KINDS if (problem := world.problem(GROUP, kind))), "")


def hooks(world: World, item: Item, operation: str) -> list[Hook]:
    """The webhooks and policies that a DELETE or an UPDATE of this object would meet."""
    found = [hook for kind in WEBHOOK_KINDS for hook in _webhooks(world, kind, item, operation)]
    return found + list(_policies(world, item, operation))


def find(world: World, name: str) -> Hook | None:
    """The webhook of this name, whatever it is for."""
    for kind in WEBHOOK_KINDS:
        for configuration in world.of(GROUP, kind):
            for index, entry in enumerate(entries(world.body(configuration), "webhooks")):
                if entry.get("name") == name:
                    return _hook(configuration, kind, index, entry)
    return None


def _webhooks(world: World, kind: str, item: Item, operation: str) -> Iterator[Hook]:
    for configuration in world.of(GROUP, kind):
        for index, entry in enumerate(entries(world.body(configuration), "webhooks")):
            ruled = any(_rule_matches(rule, item, operation) for rule in entries(entry, "rules"))
            if ruled and _selected(world, entry, item):
                yield _hook(configuration, kind, index, entry)


def _hook(configuration: Item, kind: str, index: int, entry: Json) -> Hook:
    service = mapping(entry, "clientConfig", "service")
    return Hook(
        configuration=configuration,
        kind=kind,
        name=text(entry, "name"),
        position=index,
        fails_closed=entry.get("failurePolicy") != "Ignore",
        certain=not entry.get("matchConditions"),
        side_effects=entry.get("sideEffects") not in ("None", "NoneOnDryRun"),
        service=Name("", "Service", text(service, "namespace"), text(service, "name")) if service else None,
        url=text(entry, "clientConfig", "url"),
    )


def _policies(world: World, item: Item, operation: str) -> Iterator[Hook]:
    bound = {
        text(body, "spec", "policyName")
        for binding in world.of(GROUP, "ValidatingAdmissionPolicyBinding")
        if "Deny" in texts(body := world.body(binding), "spec", "validationActions")
        and _selected(world, mapping(body, "spec", "matchResources"), item)
    }
    for policy in world.of(GROUP, "ValidatingAdmissionPolicy"):
        if policy.meta.name not in bound:
            continue
        spec = mapping(world.body(policy), "spec")
        constraints = mapping(spec, "matchConstraints")
        ruled = any(_rule_matches(rule, item, operation) for rule in entries(constraints, "resourceRules"))
        if ruled and _selected(world, constraints, item):
            yield Hook(
                configuration=policy,
                kind="ValidatingAdmissionPolicy",
                name=policy.meta.name,
                position=0,
                fails_closed=spec.get("failurePolicy") != "Ignore",
                certain=False,
                side_effects=False,
                service=None,
                url="",
            )


def _rule_matches(rule: Json, item: Item, operation: str) -> bool:
    resource = item.resource
    scope = rule.get("scope") or "*"
    return (
        _one_of(texts(rule, "operations"), operation)
        and _one_of(texts(rule, "apiGroups"), resource.group)
        and any(each in ("*", "*/*", resource.plural) for each in texts(rule, "resources"))
        and scope in ("*", "Namespaced" if resource.namespaced else "Cluster")
        and (not (names := texts(rule, "resourceNames")) or item.meta.name in names)
    )


def _one_of(listed: list[str], value: str) -> bool:
    return "*" in listed or value in listed


def _selected(world: World, entry: Json, item: Item) -> bool:
    """Whether both selectors take the object. One that cannot be judged does: the server is asked then."""
    return _takes(entry.get("objectSelector"), item.meta.labels) and _takes(
        entry.get("namespaceSelector"), _namespace_labels(world, item)
    )


def _namespace_labels(world: World, item: Item) -> dict[str, str] | None:
    """The labels that a namespaceSelector looks at; None where it looks at none, or they are not known."""
    if item.group_kind == ("", "Namespace"):
        return item.meta.labels
    if not item.meta.namespace:
        return None
    namespace = world.find("", "Namespace", "", item.meta.namespace)
    return namespace.meta.labels if namespace else None


def _takes(selector: object, labels: dict[str, str] | None) -> bool:
    if not isinstance(selector, dict) or not selector or labels is None:
        return True
    try:
        return LabelSelector.from_object(selector).matches(labels)
    except (SelectorError, TypeError):
        return True
