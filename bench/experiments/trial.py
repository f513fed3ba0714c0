"""One trial: an experiment at its share of the requests, one proxy that hears nothing for a while, and an end."""

import asyncio
import datetime as dt
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.experiments.stage import until
from bench.experiments.subject import Scenario, Subject
from controlplane import AuditRecord
from field.edge import Edge
from pilotage.kube import Absent, ObjectKey, Resource

SERVICES = Resource("", "v1", "services", "Service")
SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
QUIET_SECONDS = 3.0
"""A trial is over when no request has failed for this long, the Service is gone, and nothing is held."""
TRIAL_SECONDS_MAX = 60.0
POLL_SECONDS = 0.05
ANSWERS = 200
"""Answers of each proxy from which the share of the experiment is taken."""
SOME_ANSWERS = 20
"""Answers of each proxy, and of the experiment by each, before it goes on."""
LOAD: Mapping[str, Any] = {"clients": 3, "pause": 0.02, "streams": 12, "seconds": 2.0}
"""Clients of each proxy: see `field.ground.load`."""
NO_CLUSTER = "503"
"""Answer of an Envoy that has for a moment no cluster for a route. It names a server that is unreachable."""
NO_ROUTE = "404"
"""Answer of an Envoy that has no route; our gateway adds words. No server here says that."""
REFUSED_STREAM = "stream: "
"""Prefix of failures of streams. One that is refused is tried again at once, so their number says nothing."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Counts from the moment at which the experiment's end was asked for, and moments in seconds since then."""

    requests: int
    """Short requests: clients ask one after the other, at a steady pace whatever they get."""
    failed: int
    cut: int
    """Streams that were cut."""
    failures: Mapping[str, int]
    failures_before: Mapping[str, int]
    """Failures while the experiment began, with no feed held."""
    share: float
    """Part of the requests that the experiment had before."""
    seconds: float
    """Length of the trial."""
    server_killed: float | None
    service_deleted: float | None
    let_go: tuple[float | None, ...]
    """For each proxy, when it had no route to the Service; None if that was not seen."""


@dataclass(frozen=True, slots=True)
class Count:
    """Counts of all clients so far."""

    answers: Counter[str]
    after: Counter[str]
    failures: Counter[str]
    cut: int


def counted(reports: Sequence[Mapping[str, Any]]) -> Count:
    """The sum of what the clients of all proxies report."""

    def total(field: str) -> Counter[str]:
        return sum((Counter(each[field]) for each in reports), Counter[str]())

    return Count(total("answers"), total("after"), total("failures"), sum(each["cut"] for each in reports))


def failed(failures: Mapping[str, int], *, leaves: bool = False) -> int:
    """Number of short requests that failed; `leaves`: the endpoint itself goes, so that no route is no failure."""
    return sum(
        number
        for what, number in failures.items()
        if not what.startswith(REFUSED_STREAM) and not (leaves and (what == NO_CLUSTER or what.startswith(NO_ROUTE)))
    )


class Trial:
    """One scenario with one subject, whose namespace is there.

    The feed of the first proxy is held from just before the end of the experiment is asked for until some seconds after
    the API server has taken it. In mid-shift it is held as soon as the route says the share, before this proxy has it.
    """

    def __init__(
        self, subject: Subject, scenario: Scenario, held_seconds: float, *, in_mid_shift: bool = False
    ) -> None:
        self._subject, self._scenario, self._held_seconds = subject, scenario, held_seconds
        self._in_mid_shift = in_mid_shift
        self._stage, self._networks = subject.stage, subject.stage.networks

    async def play(self) -> Outcome:
        """Start the subject and the load, end the experiment, and end the load."""
        host = self._subject.host
        await self._subject.start()
        for each in self._networks:
            each.load(host, **LOAD)
        try:
            service = await self._begin()
            return await self._end(service)
        finally:
            self._networks[0].release()
            for each in self._networks:
                each.stop_load(host)

    async def _begin(self) -> str:
        """Start the experiment, and wait until the proxies have had answers of it; returns its Service."""
        subject = self._subject
        await until("answers before the experiment", partial(self._has_answers, SOME_ANSWERS, (), self._networks))
        self._first = self._count()
        service = await subject.shift()
        having = self._networks
        if self._in_mid_shift:
            self._networks[0].hold()
            having = self._networks[1:]
        await until("route in the proxies", partial(_have_route, subject, service, having))
        self._servers = await until("server behind the Service", partial(_servers, subject, service))
        await until("answers of the experiment", partial(self._has_answers, SOME_ANSWERS, self._servers, having))
        if not self._in_mid_shift:
            await subject.runs()
        for each in self._networks:
            each.mark(subject.host)
        await until("answers with the experiment", partial(self._has_answers, ANSWERS, (), having, field="after"))
        return service

    async def _end(self, service: str) -> Outcome:
        subject, cluster = self._subject, self._stage.cluster
        key = ObjectKey(subject.namespace, service)
        uid = (await subject.client.get(SERVICES, key)).meta.uid
        before, mark = self._count(), cluster.audit_mark()
        watching = [asyncio.create_task(_let_go(subject, each, service)) for each in self._networks]
        self._networks[0].hold()
        start = time.time()
        await self._scenario.act(subject)
        await asyncio.sleep(self._held_seconds)
        self._networks[0].release()
        await self._quiet(key, uid)
        after, seconds = self._count(), time.time() - start
        for each in watching:
            each.cancel()
        let_go = await asyncio.gather(*watching, return_exceptions=True)
        killed = [moment for name, moment in self._stage.kubelet.killed.items() if name in self._servers]
        deleted = service_deleted(cluster.audit(since=mark, namespace=subject.namespace), service)
        failures = after.failures - before.failures
        return Outcome(
            requests=(after.answers - before.answers).total() + failed(failures),
            failed=failed(failures, leaves=self._scenario.leaves),
            cut=after.cut - before.cut,
            failures=failures,
            failures_before=before.failures - self._first.failures,
            share=sum(before.after[name] for name in self._servers) / before.after.total(),
            seconds=seconds,
            server_killed=min(killed) - start if killed else None,
            service_deleted=None if deleted is None else deleted - start,
            let_go=tuple(each - start if isinstance(each, float) else None for each in let_go),
        )

    async def _quiet(self, key: ObjectKey, uid: str) -> None:
        """Wait until the Service is gone and no request has failed for a while, or for as long as a trial may take."""
        deadline = time.monotonic() + TRIAL_SECONDS_MAX
        seen, since = -1, time.monotonic()
        while time.monotonic() < deadline:
            now = failed(self._count().failures, leaves=self._scenario.leaves)
            if now != seen or await _is_there(self._subject, key, uid):
                seen, since = now, time.monotonic()
            if time.monotonic() - since > QUIET_SECONDS:
                return
            await asyncio.sleep(POLL_SECONDS)

    async def _has_answers(
        self, number: int, servers: Collection[str], networks: Sequence[Edge], *, field: str = "answers"
    ) -> bool:
        """Whether the clients of each of these proxies have had this many answers, of any server or of some."""
        reports = [each.report(self._subject.host)[field] for each in networks]
        return all(sum(each[name] for name in servers or each if name in each) >= number for each in reports)

    def _count(self) -> Count:
        return counted([each.report(self._subject.host) for each in self._networks])


async def _have_route(subject: Subject, service: str, networks: Sequence[Edge]) -> bool:
    asked = [subject.stage.has_route(each, subject.namespace, service) for each in networks]
    return all(await asyncio.gather(*asked))


async def _let_go(subject: Subject, network: Edge, service: str) -> float:
    """Wait until a proxy gives no request to the Service; returns when, in seconds of `time.time`."""
    while await subject.stage.has_route(network, subject.namespace, service):  # noqa: ASYNC110 - Envoy sends no events
        await asyncio.sleep(POLL_SECONDS)
    return time.time()


def service_deleted(records: Sequence[AuditRecord], service: str) -> float | None:
    """When the API server was asked to delete a Service, by its name or with all of its namespace."""
    asked = [
        each.received
        for each in records
        if each.resource == "services" and each.verb.startswith("delete") and each.name in (service, "")
        if not each.subresource and each.code < 300
    ]
    return dt.datetime.fromisoformat(min(asked)).timestamp() if asked else None


async def _servers(subject: Subject, service: str) -> set[str]:
    """Names of the pods behind a Service."""
    labels = f"kubernetes.io/service-name={service}"
    slices = (await subject.client.list(SLICES, subject.namespace, labels=labels)).items
    return {each["targetRef"]["name"] for found in slices for each in found.get("endpoints", default=None) or ()}


async def _is_there(subject: Subject, key: ObjectKey, uid: str) -> bool:
    try:
        return (await subject.client.get(SERVICES, key, metadata_only=True)).meta.uid == uid
    except Absent:
        return False
