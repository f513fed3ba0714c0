"""The closure of a teardown: named objects, what they own and contain, and, with `adopt`, what refers to them."""

from collections.abc import Iterable

from pilotage.api.names import LABEL_ENDPOINT_UID
from pilotage.catalogue.kind import Keep
from pilotage.catalogue.names import DEFINITION, NAMESPACE, SERVICE, SERVICE_NAME, VOLUME, VOLUME_CLAIM
from pilotage.catalogue.registry import known
from pilotage.catalogue.relation import Relation
from pilotage.teardown.planning.arguments import TargetError
from pilotage.teardown.planning.ledger import Policy, kept_by_spec
from pilotage.teardown.snapshot.fields import text, texts
from pilotage.teardown.snapshot.graph import Edge, Edges
from pilotage.teardown.snapshot.world import Item, Name, World

_OWNED = "owned by "
_NAMED = "named"

_ADOPTED = frozenset({Relation.ROUTES_TO, Relation.SCALES, Relation.SELECTS})
_LEAVES_FREE = frozenset({Relation.MOUNTS, Relation.NEEDS, Relation.OWNS})
"""Relations whose targets do not keep their source from being adopted; any other target does."""
_MADE_IN_EVERY_NAMESPACE = frozenset(
    {("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default"), ("ConfigMap", "istio-ca-root-cert")}
)


class Members:
    """Objects that go and objects that stay, each with the reason, by uid."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.going: dict[str, Item] = {}
        self.kept: dict[str, Item] = {}
        self.reasons: dict[str, str] = {}
        self.contents: dict[str, set[str]] = {}
        """Contents of a Namespace, or instances of a definition, that goes."""
        self.remarks: list[str] = []
        self.slices: dict[tuple[str, str], list[Item]] = {}
        """The EndpointSlices that nobody owns, by namespace and name of the Service they are labelled for."""
        for item in world.of("discovery.k8s.io", "EndpointSlice"):
            service = item.meta.labels.get(SERVICE_NAME)
            if service and not item.meta.owner_references:
                self.slices.setdefault((item.meta.namespace, service), []).append(item)
        self._attached: dict[str, list[str]] = {}
        """Objects that go with another without naming it as owner: the Endpoints of a Service."""

    def parts(self, uid: str) -> list[str]:
        """Members that it owns."""
        owner = self.going.get(uid)
        owned = [
            child.uid
            for child in self._world.children(uid)
            if child.uid in self.going and (owner is None or _may_own(owner, child))
        ]
        return owned + self._attached.get(uid, [])

    def below(self, uid: str) -> set[str]:
        """All parts, and theirs."""
        found: set[str] = set()
        open_ = [uid]
        while open_:
            for part in self.parts(open_.pop()):
                if part not in found and part != uid:
                    found.add(part)
                    open_.append(part)
        return found

    def tie(self, part: Item, whole: Item) -> None:
        """Make a member a part of another one that does not own it."""
        self._attached.setdefault(whole.uid, []).append(part.uid)

    def attach(self, part: Item, whole: Item, reason: str) -> None:
        """Let something go along with an object that does not own it, also if it was named besides."""
        self.going[part.uid] = part
        self.reasons.setdefault(part.uid, reason)
        self.tie(part, whole)


def gather_members(world: World, graph: Edges, targets: Iterable[Item], policy: Policy, *, adopt: bool) -> Members:
    """All members of a teardown of these targets."""
    members = Members(world)
    for target in targets:
        _take(members, world, target, _NAMED, policy)
    _take_parts(members, world, graph, policy)
    _spare_what_others_own(members, world)
    while adopt and _adopt(members, world, graph, policy):
        _take_parts(members, world, graph, policy)
        _spare_what_others_own(members, world)
    _spare_volumes_of_what_stays(members, world)
    _spare_what_holds_what_stays(members)
    _note_what_stays(members, world, graph)
    return members


def _take(members: Members, world: World, first: Item, reason: str, policy: Policy) -> None:
    """Take an object, what it owns, and what is in it."""
    open_ = [(first, reason)]
    while open_:
        item, why = open_.pop()
        if item.uid in members.going or item.uid in members.kept:
            if why == _NAMED and item.uid in members.going:
                members.reasons[item.uid] = why  # not just because of its owner
            continue
        if policy.keeps(item.group_kind, item.meta.name, item.uid):
            members.kept[item.uid] = item
            members.reasons[item.uid] = f"kept as asked; {why}"
            if item.terminating:
                members.remarks.append(f"{item} cannot be kept: its deletion has begun already")
            continue
        members.going[item.uid] = item
        members.reasons[item.uid] = why
        open_ += ((child, f"{_OWNED}{item}") for child in world.children(item.uid) if _may_own(item, child))
        if item.group_kind == NAMESPACE:
            inside = contents(world, item.meta.name)
            members.contents[item.uid] = {each.uid for each in inside}
            open_ += ((each, f"in {item}") for each in inside)
        elif item.group_kind == DEFINITION:
            instances = _instances(world, item)
            members.contents[item.uid] = {each.uid for each in instances}
            open_ += ((each, f"defined by {item}") for each in instances)
        elif item.group_kind == SERVICE:
            open_ += _slices(members, world, item)


def _take_parts(members: Members, world: World, graph: Edges, policy: Policy) -> None:
    """Take the parts that a member's own controller takes down. What the member's spec keeps stays."""
    open_ = [item for item in members.going.values() if known(item.group_kind).takes_down]
    for whole in open_:
        own = _policy_of(world, whole)
        for part in _parts_of(graph, whole):
            asked = policy.keeps(part.group_kind, part.meta.name, part.uid)
            kept = own.keeps(part.group_kind, part.meta.name, part.uid)
            if asked and not kept:
                raise TargetError(
                    f"{part} cannot be kept like this: the controller of {whole} takes it down. Say in spec.deletion "
                    f"of {whole} what stays of it."
                )
            if kept and (asked or not _goes_with_namespace(members, part)):
                members.going.pop(part.uid, None)
                _keep(members, part, f"spec.deletion of {whole} keeps it")
            else:
                _take(members, world, part, f"made for {whole}", policy)
                members.tie(part, whole)


def _parts_of(graph: Edges, whole: Item) -> list[Item]:
    """The parts of an object by the relations that its kind names. A part of an endpoint carries its uid."""
    relations = known(whole.group_kind).takes_down
    found = [edge.source for edge in graph.into(whole.uid) if edge.relation in relations - {Relation.DEFINES}]
    found += (
        edge.target
        for edge in graph.out_of(whole.uid)
        if edge.relation in relations & {Relation.DEFINES} and edge.target is not None
        if edge.target.meta.labels.get(LABEL_ENDPOINT_UID) == whole.uid
    )
    return found


def _policy_of(world: World, whole: Item) -> Policy:
    """Policy of the spec of an object: what is kept."""
    return Policy(keep=kept_by_spec(texts(world.body(whole), "spec", "deletion", "keep")))


def _goes_with_namespace(members: Members, part: Item) -> bool:
    return any(part.uid in inside and uid in members.going for uid, inside in members.contents.items())


def _may_own(owner: Item, child: Item) -> bool:
    """An owner in another namespace is none: the collector counts it as absent."""
    return not owner.meta.namespace or owner.meta.namespace == child.meta.namespace


def _spare_what_others_own(members: Members, world: World) -> None:
    """The collector leaves what has another owner that stays: it takes the reference to the one that goes off it."""
    open_ = [uid for uid in members.going if members.reasons[uid].startswith(_OWNED)]
    while open_:
        uid = open_.pop()
        item = members.going.get(uid)
        if item is None or not members.reasons[uid].startswith(_OWNED):
            continue
        owners = [world.get(owner.uid) for owner in item.meta.owner_references]
        stays = next((each for each in owners if each and each.uid not in members.going and _may_own(each, item)), None)
        if stays is not None:
            open_ += members.below(uid)
            del members.going[uid]
            members.remarks.append(f"{item} stays: {stays} owns it, too")


def _spare_volumes_of_what_stays(members: Members, world: World) -> None:
    """A claim is kept for what is on its volume."""
    for item in [each for each in members.going.values() if each.group_kind == VOLUME]:
        claim = members.kept.get(text(world.body(item), "spec", "claimRef", "uid"))
        if claim is not None:
            del members.going[item.uid]
            _keep(members, item, f"{claim} is kept, and with it the data of its volume")


def _spare_what_holds_what_stays(members: Members) -> None:
    """A Namespace takes all that is in it along, and a definition its instances: they stay if one of those does."""
    for uid, inside in list(members.contents.items()):
        stays = next((members.kept[each] for each in sorted(inside) if each in members.kept), None)
        item = members.going.get(uid)
        if stays is not None and item is not None:
            del members.going[uid], members.contents[uid]
            members.kept[uid] = item
            members.reasons[uid] = f"it would take {stays} along, which is kept"
            members.remarks.append(f"{item} stays: it would take {stays} along, which is kept")


def contents(world: World, namespace: str) -> list[Item]:
    """Contents of a namespace, without what the cluster itself keeps in each: Events, certificates."""
    return [
        item
        for item in world
        if item.meta.namespace == namespace
        and not known(item.group_kind).cluster_made
        and (item.resource.kind, item.meta.name) not in _MADE_IN_EVERY_NAMESPACE
    ]


def _instances(world: World, definition: Item) -> list[Item]:
    plural, _, group = definition.meta.name.partition(".")
    return [item for item in world if item.resource.group == group and item.resource.plural == plural]


def _slices(members: Members, world: World, service: Item) -> list[tuple[Item, str]]:
    """The Endpoints of a Service go with it. Slices that were made by hand are nobody's, so they are ours."""
    namespace, name = service.meta.namespace, service.meta.name
    if endpoints := world.find("", "Endpoints", namespace, name):
        members.attach(endpoints, service, f"the endpoints of {service}")
    return [(item, f"labelled as a slice of {service}") for item in members.slices.get((namespace, name), ())]


def _adopt(members: Members, world: World, graph: Edges, policy: Policy) -> bool:
    """Take what refers to members and to nothing else, and the configuration that only they mount. True if any.

    What is in a namespace that nobody meant stays, and is named as a reference.
    """
    found: list[tuple[Item, str]] = []
    places = {item.meta.namespace for item in members.going.values()} | {""}
    for uid in list(members.going):
        for edge in graph.into(uid):
            source = edge.source
            if source.meta.namespace not in places or _known(members, source):
                continue
            if _adoptable(edge) and not source.meta.owner_references:
                aims = (each for each in graph.out_of(source.uid) if each.relation not in _LEAVES_FREE)
                if all(each.target is not None and each.target.uid in members.going for each in aims):
                    found.append((source, f"{edge.relation} {members.going[uid]}, and nothing else"))
        for edge in graph.out_of(uid):
            target = edge.target
            if edge.relation is not Relation.MOUNTS or target is None or _known(members, target):
                continue
            if target.meta.namespace not in places:
                continue
            users = (each.source.uid for each in graph.into(target.uid) if each.relation is Relation.MOUNTS)
            if known(target.group_kind).keep is Keep.CONFIGS and all(user in members.going for user in users):
                found.append((target, f"mounted by {members.going[uid]}, and by nothing else"))
    for item, reason in found:
        _take(members, world, item, reason, policy)
    return bool(found)


def _adoptable(edge: Edge) -> bool:
    """Whether its source is a route, a Service, an autoscaler or a guard of pods.

    A usage belongs to its user. Other sources, such as an admission webhook or a binding, may well do more than their
    references show.
    """
    is_guard = known(edge.source.group_kind).guard is not None
    return edge.relation in _ADOPTED or (edge.relation is Relation.PROTECTS and is_guard)


def _known(members: Members, item: Item) -> bool:
    return item.uid in members.going or item.uid in members.kept


def _note_what_stays(members: Members, world: World, graph: Edges) -> None:
    """List the volumes, Secrets and configuration that members use and that stay."""
    claimed: dict[Name, Edge] = {}
    for uid, item in list(members.going.items()):
        for edge in graph.out_of(uid):
            target = edge.target
            if edge.relation not in (Relation.MOUNTS, Relation.CLAIMS) or (target and _known(members, target)):
                continue
            if item.group_kind == VOLUME_CLAIM and edge.relation is Relation.CLAIMS and edge.name.group_kind == VOLUME:
                claimed[edge.name] = edge
            elif target is not None and known(target.group_kind).keep is not None:
                _keep(members, target, f"not asked for; {item} {edge.relation} it")
    for edge in claimed.values():
        _note_volume(members, world, edge)


def _note_volume(members: Members, world: World, claimed: Edge) -> None:
    """Note what the reclaim policy of a volume does once its claim is gone."""
    volume = claimed.target
    if volume is None:
        if not world.problem(*VOLUME):
            return  # it is not there
        body = None
    else:
        body = world.body(volume)
        holder = text(body, "spec", "claimRef", "uid")
        if holder and holder not in members.going:  # of another claim, which stays
            _keep(members, volume, f"not asked for; {claimed.source} {claimed.relation} it")
            return
    match text(body, "spec", "persistentVolumeReclaimPolicy"):
        case "Retain" if volume is not None:
            _keep(members, volume, "its reclaim policy is Retain")
        case "Delete":
            members.remarks.append(f"{claimed.name} goes with its claim (reclaim policy Delete): its data is lost")
        case "Recycle":
            members.remarks.append(
                f"{claimed.name} is emptied once its claim is gone (reclaim policy Recycle): its data is lost"
            )
        case _:
            members.remarks.append(
                f"{claimed.name}: whether it goes with its claim is not known, its reclaim policy was not read"
            )


def _keep(members: Members, item: Item, reason: str) -> None:
    members.kept[item.uid] = item
    members.reasons[item.uid] = reason
