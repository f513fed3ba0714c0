"""Traces from a finalizer to its controller: who wrote it, whose API group its domain is, who serves that group.

Each is evidence, none is proof. They are tried from the most telling to the least.
"""

import re
from collections.abc import Iterable, Iterator

import msgspec

from pilotage.catalogue.names import WEBHOOKS
from pilotage.teardown.snapshot.fields import entries, mapping, seconds_since, span, text, texts
from pilotage.teardown.snapshot.world import Item, World

WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet")
UNSPECIFIC = frozenset(
    {
        "manager",
        "controller",
        "operator",
        "main",
        "unknown",
        "controller-manager",
        "before-first-apply",
        "go-http-client",
    }
)
"""Names that many controllers go by: the default is the name of the program."""
BY_HAND = re.compile(
    r"kubectl|k9s|^lens|curl|headlamp|mozilla|^helm|terraform|pulumi|argocd|kustomize-controller|^flux|ansible|^pilotage$"
    r"|^kube-controller-manager$",
    re.IGNORECASE,
)
"""People, and programs that write what people wrote: they put a finalizer there, and do not come back to remove it.

Among them is who makes pods and claims of templates: its own finalizers are in the catalogue.
"""
_COMMON_WORDS = frozenset(
    {
        *("com", "net", "org", "dev", "app", "apps", "api", "apis", "k8s", "kubernetes", "cloud", "cluster", "core"),
        *("controller", "operator", "manager", "system", "internal", "service", "services", "server", "kube"),
        *("test", "tests", "testing", "example", "examples", "sample", "samples", "demo", "local", "default", "main"),
        *("prod", "production", "stage", "staging", "team", "platform", "infra", "public", "shared", "common", "hold"),
        *("finalizer", "finalizers", "finalize", "cleanup", "protection", "delete", "deletion"),
    }
)
_CONTROLLERS = frozenset({"controller", "controllers", "operator", "operators", "manager"})
_PREFIX = re.compile(r"^(finalizers?|cleanup)[./-]")


class Writer(msgspec.Struct, frozen=True):
    """The writer of a finalizer, by managedFields."""

    manager: str
    evidence: str
    by_hand: bool


def writer_of(world: World, item: Item, finalizer: str) -> Writer | None:
    """The field manager that owns the entry of the finalizer."""
    for entry in entries(item.read(), "metadata", "managedFields"):
        owned = mapping(entry, "fieldsV1", "f:metadata", "f:finalizers")
        manager = text(entry, "manager")
        if manager and f'v:"{finalizer}"' in owned:
            seconds = seconds_since(world.now, text(entry, "time"))
            when = f" {span(seconds)} ago" if seconds is not None else ""
            by_hand = bool(BY_HAND.search(manager))
            return Writer(manager, f'The finalizer was last written by "{manager}"{when}.', by_hand)
    return None


def domain_of(finalizer: str) -> str:
    """The DNS name in a finalizer, without words that only say that it is one; empty where there is none."""
    name = finalizer.partition("/")[0]
    name = _PREFIX.sub("", name)
    return name.lower() if "." in name else ""


def definitions_of(world: World, item: Item, domain: str) -> Iterator[Item]:
    """The CustomResourceDefinitions whose group is the domain, or a part of it; those of the object's group first."""
    found = []
    for crd in world.of("apiextensions.k8s.io", "CustomResourceDefinition"):
        group = crd.meta.name.partition(".")[2]
        if group and domain and (domain == group or domain.endswith(f".{group}") or group.endswith(f".{domain}")):
            found.append((group != item.resource.group, crd.meta.name, crd))
    yield from (crd for _, _, crd in sorted(found, key=lambda each: each[:2]))


def services_for(world: World, group: str) -> Iterator[tuple[Item, Item]]:
    """The webhook configurations with rules for an API group, and the Services that answer them."""
    for kind in WEBHOOKS:
        for configuration in world.of(*kind):
            for webhook in entries(configuration.read(), "webhooks"):
                groups = [each for rule in entries(webhook, "rules") for each in texts(rule, "apiGroups")]
                if group in groups:
                    service = _service(world, mapping(webhook, "clientConfig", "service"))
                    if service:
                        yield configuration, service


def conversion_service(world: World, crd: Item) -> Item | None:
    """The Service that converts between the versions of a definition, if it has one."""
    body = world.body(crd) or {}
    return _service(world, mapping(body, "spec", "conversion", "webhook", "clientConfig", "service"))


def workload_behind(world: World, service: Item) -> Item | None:
    """The workload behind a Service: by its pods, else by labels, else the only one in its namespace."""
    namespace = service.meta.namespace
    selector = mapping(world.body(service) or {}, "spec", "selector")
    wanted = {key: value for key, value in selector.items() if isinstance(value, str)}
    workloads = [each for kind in WORKLOADS for each in world.of("apps", kind, namespace)]
    if wanted:
        for pod in world.of("", "Pod", namespace):
            if wanted.items() <= pod.meta.labels.items() and (owner := workload_of(world, pod)):
                return owner
        for each in workloads:
            if wanted.items() <= each.meta.labels.items():
                return each
    if len(workloads) == 1:
        return workloads[0]
    stem = re.sub(r"-(webhook|service|webhook-service|svc)+$", "", service.meta.name)
    return next((each for each in workloads if stem and each.meta.name.startswith(stem)), None)


def workload_of(world: World, pod: Item) -> Item | None:
    """The workload that a pod belongs to, by ownership."""
    item: Item | None = pod
    for _ in range(3):
        if item is None:
            return None
        if item.group_kind.group == "apps" and item.group_kind.kind in WORKLOADS:
            return item
        controller = item.meta.controller
        item = world.get(controller.uid) if controller else None
    return None


def released_with(world: World, crd: Item) -> Iterator[Item]:
    """Workloads of the Helm release, or of the app by its label, that a definition came with."""
    release = crd.meta.annotations.get("meta.helm.sh/release-name")
    place = crd.meta.annotations.get("meta.helm.sh/release-namespace")
    part_of = crd.meta.labels.get("app.kubernetes.io/part-of") or crd.meta.labels.get("app.kubernetes.io/name")
    for each in workloads(world):
        helm = (
            each.meta.annotations.get("meta.helm.sh/release-name"),
            each.meta.annotations.get("meta.helm.sh/release-namespace"),
        )
        labels = each.meta.labels
        if (release and helm == (release, place)) or (
            part_of and part_of in (labels.get("app.kubernetes.io/part-of"), labels.get("app.kubernetes.io/name"))
        ):
            yield each


def workloads(world: World) -> Iterator[Item]:
    """Everything that can run a controller."""
    for kind in WORKLOADS:
        yield from world.of("apps", kind)


def named_like(candidates: Iterable[Item], name: str) -> Item | None:
    """The workload of this name, or whose name begins or ends with it, as a word."""
    if not name or name.lower() in UNSPECIFIC or BY_HAND.search(name):
        return None
    exact, alike = None, None
    for each in candidates:
        if each.meta.name == name:
            exact = exact or each
        elif each.meta.name.startswith(f"{name}-") or each.meta.name.endswith(f"-{name}"):
            alike = alike or each
    return exact or alike


def words_of(name: str) -> list[str]:
    """The telling words of a name, the longest first: ``stuck.acme`` says stuck and acme."""
    words = [word for word in re.split(r"[./_\-]", name.lower()) if len(word) >= 4 and word not in _COMMON_WORDS]
    return sorted(set(words), key=lambda word: (-len(word), word))


def sharing_a_word(candidates: Iterable[Item], finalizer: str) -> list[Item]:
    """Workloads that share a telling word with a finalizer, likely ones first.

    A controller by name that has a word of its path (``acme.io/gizmo``: gizmo-controller); controllers by name with a
    word of its domain, whose last label says nothing; where there is none, another workload with such a word, or a
    controller by name in a namespace with one.
    """
    everybody = list(candidates)
    found: dict[str, Item] = {}
    for word in words_of(finalizer.partition("/")[2]):
        found.update((each.uid, each) for each in everybody if word in _parts(each) and _is_controller(each))
    by_domain = next(filter(None, (_of_word(everybody, word) for word in _domain_words(finalizer))), [])
    found.update((each.uid, each) for each in by_domain)
    return list(found.values())


def _domain_words(finalizer: str) -> list[str]:
    return words_of(domain_of(finalizer).rpartition(".")[0])


def _of_word(candidates: list[Item], word: str) -> list[Item]:
    named = [each for each in candidates if word in _parts(each)]
    beside = (each for each in candidates if word in each.meta.namespace.split("-") and _is_controller(each))
    return [each for each in named if _is_controller(each)] or named[:1] or list(beside)[:1]


def _is_controller(workload: Item) -> bool:
    return bool(_CONTROLLERS.intersection(_parts(workload)))


def _parts(workload: Item) -> list[str]:
    return workload.meta.name.split("-")


def _service(world: World, reference: dict[str, object]) -> Item | None:
    return world.find("", "Service", text(reference, "namespace"), text(reference, "name"))
