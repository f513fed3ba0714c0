"""Owner of a finalizer: by the table where it is known, else by traces."""

import datetime as dt
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cached_property

import msgspec

from pilotage.api.names import HOST_LEASES, HOSTS, LABEL_HOST, PROCESS_FINALIZER
from pilotage.catalogue.kind import KnownFinalizer
from pilotage.catalogue.names import LEASE
from pilotage.catalogue.registry import find_finalizer
from pilotage.kube import GroupKind
from pilotage.teardown.diagnosis.finalizer_owners import traces
from pilotage.teardown.diagnosis.finalizer_owners.liveness import Judgement, Liveness, either, judge_lease, together
from pilotage.teardown.diagnosis.finalizer_owners.operator_writes import StatusWrite, last_write, reconsider
from pilotage.teardown.planning.ledger import HOLD
from pilotage.teardown.snapshot.fields import condition, moment, seconds_since, text
from pilotage.teardown.snapshot.world import Item, World

PATIENCE_SECONDS = 300.0
"""Time in which an owner that is not seen to run may still remove its finalizer."""
LEASE_OF_OPERATOR = "pilotage-operator"
LIKELY_MAX = 3
"""Workloads that are named where only a word in their names tells that one of them may be the owner."""
UNKNOWN_LEAKS = "whatever its controller would have cleaned up; nothing here tells what that is."


class FinalizerOwner(msgspec.Struct, frozen=True):
    """The controller that has to remove a finalizer, and whether it can."""

    finalizer: str
    who: str
    """Name for people: ``KServe controller``. Empty where nothing at all is known."""
    workload: Item | None
    """The workload that runs it in this cluster, if it was found."""
    lease: Item | None
    """The Lease it holds, or held."""
    alive: Liveness
    evidence: tuple[str, ...]
    """Evidence for `alive`, in sentences."""
    leaks: str
    """Leftovers if the finalizer is removed by hand."""
    builtin: bool
    """Whether it is a part of Kubernetes itself."""
    does: str = ""
    """Its work before it removes the finalizer; empty where that is not known."""
    guessed: bool = False
    """Whether the workload was found by likeness of names alone."""
    trouble: str = ""
    """Why it does not run, in a few words, where it does not: ``0 of 1 replicas available``."""
    others: tuple[Item, ...] = ()
    """Further workloads that are as likely as `workload`."""


class _Found(msgspec.Struct, frozen=True):
    workload: Item | None
    how: str = ""
    guessed: bool = False
    who: str = ""
    others: tuple[Item, ...] = ()


class FinalizerOwners:
    """The keepers of one world. One for many questions: what is the same for all of them is looked up once."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._workloads = list(traces.workloads(world))

    @property
    def looked_everywhere(self) -> bool:
        """Whether workloads of other namespaces than those that were read are known, too."""
        namespaces = self._world.namespaces
        if not namespaces or GroupKind("apps", "Deployment") in self._world.everywhere:
            return True
        return any(each.meta.namespace not in namespaces for each in self._workloads)

    def of(self, item: Item, finalizer: str) -> FinalizerOwner:
        """The owner of this finalizer of this object."""
        writer = traces.writer_of(self._world, item, finalizer)
        written = (writer.evidence,) if writer else ()
        row = find_finalizer(finalizer)
        if row and row.builtin:
            return self._built_in(finalizer, row, written)
        if row and finalizer == HOLD:  # a run of a command: no controller, so none to be found dead or missing
            return _of_row(finalizer, row, Judgement(Liveness.UNKNOWN), written, None)
        if row and finalizer == PROCESS_FINALIZER:
            return _agent(self._world, item, row, written)
        found = self._by_row(row, finalizer) if row else self._by_traces(item, finalizer, writer)
        lease = self._lease(row, found.workload, traces.domain_of(finalizer))
        judged = self._judge(row, found, lease)
        evidence = ((found.how,) if found.how else ()) + judged.evidence + written + tuple(self._not_read())
        who = row.who if row else found.who
        if not who and found.workload:
            who = f"{found.workload.meta.name}"
        if not who and lease:
            who = f"the holder of {lease}"
        return FinalizerOwner(
            finalizer,
            who,
            found.workload,
            lease,
            judged.alive,
            evidence,
            row.leaks if row else UNKNOWN_LEAKS,
            builtin=False,
            does=row.does if row else "",
            guessed=found.guessed,
            trouble=judged.trouble,
            others=found.others,
        )

    def _judge(self, row: KnownFinalizer | None, found: _Found, lease: Item | None) -> Judgement:
        judged = together(self._world, found.workload, lease)
        if found.others:
            return either([judged, *(together(self._world, each, None) for each in found.others)])
        if row is not None and LEASE_OF_OPERATOR in row.leases and judged.alive is not Liveness.ALIVE:
            return reconsider(self._world, judged, lease, self._last_write)
        return judged

    @cached_property
    def _last_write(self) -> StatusWrite | None:
        return last_write(self._world)

    def _built_in(self, finalizer: str, row: KnownFinalizer, written: tuple[str, ...]) -> FinalizerOwner:
        """A part of Kubernetes: alive where its Lease says so. It often runs where nobody can see it."""
        leases = (self._world.find(*LEASE, "kube-system", name) for name in row.leases)
        lease = next((each for each in leases if each), None)
        judged = judge_lease(self._world, lease) if lease else Judgement(Liveness.UNKNOWN)
        if judged.alive is not Liveness.ALIVE:
            judged = Judgement(Liveness.UNKNOWN, evidence=judged.evidence)
        return _of_row(finalizer, row, judged, written, lease)

    def _by_row(self, row: KnownFinalizer, finalizer: str) -> _Found:
        best: tuple[int, Item] | None = None
        for each in self._workloads:
            score = _score(row, each, finalizer)
            if score and (best is None or score > best[0]):
                best = score, each
        if best is None:
            *names, last = row.workloads or ("",)
            listed = f"{', '.join(names)} or {last}" if names else last
            return _Found(None, f"No workload is named like {row.who}: {listed}." if last else "")
        return _Found(best[1], guessed=best[0] < 4)

    def _by_traces(self, item: Item, finalizer: str, writer: traces.Writer | None) -> _Found:
        if found := self._by_service(item, finalizer):
            return found
        if writer and (workload := traces.named_like(self._workloads, writer.manager)):
            return _Found(workload, f'"{writer.manager}" is the name of {workload}.', who=writer.manager)
        if likely := traces.sharing_a_word(self._workloads, finalizer)[:LIKELY_MAX]:
            names = " and ".join(map(str, likely))
            have = "has" if len(likely) == 1 else "each have"
            how = f"{names} {have} a word in common with the finalizer; nothing better was found."
            who = " or ".join(each.meta.name for each in likely)
            return _Found(likely[0], how, guessed=True, who=who, others=tuple(likely[1:]))
        who = "" if writer is None or writer.by_hand or writer.manager in traces.UNSPECIFIC else writer.manager
        return _Found(None, "", who=who)

    def _by_service(self, item: Item, finalizer: str) -> _Found | None:
        """Owner by the API group that the finalizer's domain is part of: its webhooks, its conversion, its release."""
        world = self._world
        for crd in traces.definitions_of(world, item, traces.domain_of(finalizer)):
            group = crd.meta.name.partition(".")[2]
            for configuration, service in traces.services_for(world, group):
                if workload := traces.workload_behind(world, service):
                    how = f"{workload} answers the webhooks of the API group {group} ({configuration}, {service})."
                    return _Found(workload, how)
            converter = traces.conversion_service(world, crd)
            if converter and (workload := traces.workload_behind(world, converter)):
                return _Found(workload, f"{workload} converts {crd.meta.name} ({converter}).")
            if workload := next(traces.released_with(world, crd), None):
                return _Found(workload, f"{workload} was installed together with {crd}.")
        return None

    def _lease(self, row: KnownFinalizer | None, workload: Item | None, domain: str) -> Item | None:
        """The Lease of the controller: of the name that is known, else the one that its pods hold, else by domain."""
        leases = self._world.of(*LEASE)
        if row:
            named = [each for each in leases if any(fnmatchcase(each.meta.name, name) for name in row.leases)]
            at_home = [each for each in named if workload and each.meta.namespace == workload.meta.namespace]
            exact = [each for each in named if each.meta.name in row.leases]
            if chosen := next(iter(at_home or exact), None):
                return chosen
        if workload:
            for each in leases:
                holder = text(each.read(), "spec", "holderIdentity")
                here = each.meta.namespace == workload.meta.namespace
                if here and (holder.startswith(f"{workload.meta.name}-") or each.meta.name == workload.meta.name):
                    return each
        if not row and domain:
            below = [each for each in leases if f".{each.meta.name}".endswith(f".{domain}")]
            exact = [each for each in below if each.meta.name == domain]
            # Of several that merely end alike, nobody knows which is meant: they may belong to all of one company.
            return next(iter(exact or (below if len(below) == 1 else ())), None)
        return None

    def _not_read(self) -> Iterator[str]:
        """Kinds that would tell, and could not be read."""
        for group, kind in (("apps", "Deployment"), LEASE):
            problem = self._world.problem(group, kind)
            if problem:
                yield f"{GroupKind(group, kind)} could not be read: {problem}."
        if not self.looked_everywhere:
            read = ", ".join(sorted(self._world.namespaces))
            yield f"Controllers in other namespaces than {read} were not searched for."


def _of_row(
    finalizer: str, row: KnownFinalizer, judged: Judgement, written: tuple[str, ...], lease: Item | None, who: str = ""
) -> FinalizerOwner:
    """The owner that a row names, where it is no workload of the cluster."""
    return FinalizerOwner(
        finalizer,
        who or row.who,
        None,
        lease,
        judged.alive,
        judged.evidence + written,
        row.leaks,
        builtin=row.builtin,
        does=row.does,
        trouble=judged.trouble,
    )


def finalizer_owner(world: World, item: Item, finalizer: str) -> FinalizerOwner:
    """The owner of this finalizer of this object, and whether it runs."""
    return FinalizerOwners(world).of(item, finalizer)


def abandoned(world: World, item: Item, finalizer: str) -> bool:
    """Whether nobody is going to take this finalizer off: its keeper is known not to run; or is not seen to run, and
    has had its time. A run of ours is no controller, and those of Kubernetes come back.
    """
    kept = finalizer_owner(world, item, finalizer)
    if finalizer == HOLD or kept.builtin or kept.alive is Liveness.ALIVE:
        return False
    waited = seconds_since(world.now, item.meta.deletion_timestamp) or 0.0
    return (kept.alive is Liveness.DEAD and not kept.guessed) or waited >= PATIENCE_SECONDS


def _score(row: KnownFinalizer, workload: Item, finalizer: str) -> int:
    """Score of a workload for a row; 0: no match. Below 4 it is a guess."""
    name, namespace = workload.meta.name, workload.meta.namespace
    at_home = namespace in row.namespaces
    labelled = any(workload.meta.labels.get(key) == value for key, value in row.labels)
    exact = name in row.workloads
    alike = any(fnmatchcase(name, pattern) for pattern in row.workloads if "*" in pattern)
    if exact and (at_home or labelled or name not in traces.UNSPECIFIC):
        return 8 + 2 * at_home + labelled
    if labelled:
        return 4 + 2 * at_home + alike
    if not alike:
        return 0
    driver = finalizer.partition("/")[2] if row.patterns[0].endswith("/*") else ""
    shared = any(word in name.split("-") for word in driver.split("-") if len(word) > 2 and word != "csi")
    return 1 + at_home + shared


# Agents of Hosts have one Lease each, called like its Host


def _agent(world: World, process: Item, row: KnownFinalizer, written: tuple[str, ...]) -> FinalizerOwner:
    """The agent of the Host that a process was placed on, and whether it renews its Lease."""
    host = process.meta.labels.get(LABEL_HOST, "")
    lease = world.find("coordination.k8s.io", "Lease", HOST_LEASES, host) if host else None
    if not host:
        who, judged = "Pilotage operator", Judgement(Liveness.UNKNOWN, evidence=("It was not placed on any Host.",))
    else:
        who, judged = f"the agent of host/{host}", _judge_agent(world, host, lease)
    return _of_row(PROCESS_FINALIZER, row, judged, written, lease, who)


def _judge_agent(world: World, host: str, lease: Item | None) -> Judgement:
    if lease is None:
        return Judgement(Liveness.UNKNOWN, evidence=(f"No Lease {host} was seen in the namespace {HOST_LEASES}.",))
    body = world.body(lease)
    if body is not None and not text(body, "spec", "holderIdentity"):
        return Judgement(Liveness.DEAD, "it has stopped", (f"It has given up {lease}.",))
    judged = judge_lease(world, lease)
    if judged.alive is Liveness.ALIVE and _is_lost(world, host, moment(body, "spec", "renewTime")):
        return Judgement(Liveness.DEAD, f"the operator has found host/{host} lost", judged.evidence)
    return judged


def _is_lost(world: World, name: str, renewed: dt.datetime | None) -> bool:
    """Whether the operator, which waits for less time than we do, has given it up since its Lease was renewed."""
    host = world.find(*HOSTS.group_kind, "", name)
    said = condition(world.body(host), "AgentAlive") if host is not None else {}
    since = moment(said, "lastTransitionTime")
    return said.get("status") == "False" and since is not None and renewed is not None and since >= renewed
